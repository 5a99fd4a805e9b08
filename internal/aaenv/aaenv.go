// Package aaenv keeps gotorch's package init from choosing a thread count.
//
// That init asks libtorch for NumCPU/2 threads unless OMP_NUM_THREADS or
// MKL_NUM_THREADS is set. On one CPU this is 0, which libtorch answers with an
// exception that nobody catches: the process dies before main. On more it
// halves the machine. Go initialises packages that are ready in the order of
// their import paths, so this package, which needs nothing but os, runs before
// github.com/wangkuiyi/gotorch and sets a placeholder.
//
// The value chooses nothing: libgomp and MKL read these variables when they are
// loaded, which was before any Go code. torchx sets the number of threads
// itself, and calls Restore once gotorch's init has run, so that processes
// started later do not inherit the placeholder.
//
// The package's name is part of the trick (docs/build.md): keep it early in the
// alphabet and free of other imports.
package aaenv

import "os"

const (
	name        = "OMP_NUM_THREADS"
	other       = "MKL_NUM_THREADS" // either one disarms gotorch
	placeholder = "1"
)

// disarmed says that the variable is ours and not the user's.
var disarmed = disarm()

func disarm() bool {
	if os.Getenv(name) != "" || os.Getenv(other) != "" {
		return false
	}
	return os.Setenv(name, placeholder) == nil
}

// Restore takes the placeholder back if it is still there. It does nothing when
// the user had set one of the variables. Call it from one goroutine, after
// gotorch's init.
func Restore() {
	if disarmed && os.Getenv(name) == placeholder {
		_ = os.Unsetenv(name) // fails for malformed names only
	}
	disarmed = false
}
