// Package metrics is arithmetic on numbers: curves and their areas, means with
// bootstrap intervals, rank correlations. It reads no files and draws random
// numbers from addressed streams only, so that a result is a function of its
// arguments.
//
// Functions that summarise return NaN for what is not defined (the correlation
// of a constant, the interval of nothing) and never panic on empty input; they
// do not change their arguments.
package metrics
