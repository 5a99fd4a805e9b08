// Package buildtest holds the tests of the build's tricks, one a trick
// (docs/build.md). They look at what `make build` made: run that first.
package buildtest
