// Package orchestrate turns a plan into units, runs them on a backend and keeps
// what they found.
package orchestrate
