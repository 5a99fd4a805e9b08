// Package dataset reads the inputs of a study: image folders (directories and
// archives, read as they are), arrays and tables; it gives every item the id by
// which records, maps and random numbers know it.
package dataset
