// Package usage marks errors that are the user's to mend: bad flags, plans or
// input files. The command line exits with 2 for them.
package usage

import (
	"errors"
	"fmt"
)

// Err is what errors.Is finds in every error of this package.
var Err = errors.New("usage")

type wrapped struct{ error }

func (w wrapped) Unwrap() []error { return []error{w.error, Err} }

// Errorf is fmt.Errorf for an error that the user can mend.
func Errorf(format string, args ...any) error { return wrapped{fmt.Errorf(format, args...)} }

// Mark marks err; nil stays nil.
func Mark(err error) error {
	if err == nil {
		return nil
	}
	return wrapped{err}
}
