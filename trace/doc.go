// Package trace turns deletion games into optimisation: it searches for the
// order of deleting features that a deletion metric likes best ("TRACE").
package trace
