// Package orchestrate turns a plan into units, runs them on a backend and keeps
// what they found.
//
// A plan names nets, data and a grid of a study's parameters. Resolving it finds
// everything that it names and leaves nothing to chance: hashes of weights and
// data, the batch shape, the number of threads. Its units are the product of
// nets, data, points of the grid, items and seeds; a unit's id is the hash of
// all that determines its result, so a record that is there need not be made
// again. A run that was stopped or killed goes on where it was with the same
// plan in the same folder and ends with the same summary.
//
// What [Run] relies on: records are the only state; they are appended and synced
// before anything counts as done; every other file is replaced as a whole; the
// lock on the records' file keeps a second process away. Studies decide what a
// unit does ([Study]); the device is behind [Backend].
package orchestrate
