// Package scores is for scores of attribution maps that need a network's
// answers (pixel flipping, infidelity, sensitivity, ...), behind the interface
// that torchx satisfies, free of cgo. There is none yet: arithmetic on numbers
// alone is in package metrics, the deletion search in package trace.
package scores
