// Package mutate damages files for tests: seeded, so that a case is known by
// its number, and aware of formats, so that damage reaches what lies behind
// checksums and lengths.
//
// A Format has seeds (small files that are right) and mutators. Case n of a
// format is one of the seeds after one to four mutators, all drawn from a
// generator keyed by (format, n): it is the same on every machine and does not
// depend on other cases. Every runs a reader over the cases and demands of each
// what a reader of strangers' files has to keep: see there.
package mutate
