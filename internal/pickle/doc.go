// Package pickle reads Python's pickles without running what they ask for: a
// pickle is scanned first (Scan), so that no length in it is believed, and then
// interpreted (Load) by a machine in which only the names exist that the caller
// admits. Every other name is refused, by its name.
//
// The machine is gopickle's; its values are those of gopickle/types.
package pickle
