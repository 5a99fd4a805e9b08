// Package scores says how good maps of attribution are, by numbers that need a
// network's answers (deletion, infidelity, sensitivity to noise, ...) or the map
// alone (sparseness, complexity).
//
// The one idea: a score is a value that declares its name, direction, inputs and
// parameters, and computes a whole group of images at once, so that the states of
// all of them share the device's batches. What a state looks like is the device's
// affair (Stage); which states to ask for, and what to make of the answers, is
// decided here. A result depends on the image, its map and the parameters alone:
// not on the group, the batch, or the order.
//
// No result is NaN: what is not defined (a constant map's rank correlation) is a
// named state, Result.Undefined. Arithmetic on numbers alone is in package
// metrics, the deletion game and its searches in package trace.
package scores
