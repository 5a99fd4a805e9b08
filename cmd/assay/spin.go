package main

import (
	"os"
	"strings"
	"syscall"
)

// Threads of libgomp that wait for work spin 3 ms before they sleep, which on a
// machine with other busy programs costs ten times what it saves: they spin on
// cores that those who have work are waiting for. At 4000 rounds (some 40 us) a
// quiet machine is as fast; a busy one was several times faster at 3000 and at
// 10000 (docs/decisions.md).
const (
	spinVariable = "GOMP_SPINCOUNT"
	waitVariable = "OMP_WAIT_POLICY"
	spinCount    = "4000"
)

// shortSpin returns the environment with the shorter wait, false where the user
// has chosen one.
func shortSpin(environ []string) ([]string, bool) {
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if name == spinVariable || name == waitVariable {
			return nil, false
		}
	}
	return append(environ, spinVariable+"="+spinCount), true
}

// spinShortly starts the program anew with the shorter wait, because libgomp reads
// it when it is loaded, before any code of ours. Where that fails, it goes on as it is.
func spinShortly() {
	environ, wanted := shortSpin(os.Environ())
	if !wanted {
		return
	}
	if self, err := os.Executable(); err == nil {
		_ = syscall.Exec(self, os.Args, environ) // returns only if it fails
	}
}
