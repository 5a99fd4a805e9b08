package main

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// patient writes until the reader is gone and then drops what comes: what a run keeps
// in files does not depend on how much of its tables somebody reads.
type patient struct {
	w    io.Writer
	gone atomic.Bool
}

func (p *patient) Write(b []byte) (int, error) {
	if p.gone.Load() {
		return len(b), nil
	}
	n, err := p.w.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		p.gone.Store(true)
		return len(b), nil
	}
	return n, err
}

// surviveClosedPipes makes a write into a pipe that nobody reads an error and not the
// end of the program, in this process alone: programs that it starts die as ever.
func surviveClosedPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
