package torchx

// #include "torchx.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// Device is a CPU or a GPU with the OS thread that works for it.
type Device struct {
	name string
	c    C.tx_device
	work chan func()
	stop chan struct{} // closed by Close: no more work is taken
	done chan struct{} // closed when the thread has ended

	closing sync.Once
}

// Open opens "cpu", "cuda" or "cuda:N" and gives it `threads` intra-op threads
// (0: as many as libtorch would take). ErrNotFound: there is no such device.
func Open(name string, threads int) (*Device, error) {
	if err := start(); err != nil {
		return nil, err
	}
	d := &Device{name: name, work: make(chan func()), stop: make(chan struct{}), done: make(chan struct{})}
	text, free := cString(name)
	defer free()
	if err := failure(C.tx_device_open(text, &d.c)); err != nil {
		return nil, err
	}
	if d.c._type == C.TX_CUDA {
		d.name = fmt.Sprintf("cuda:%d", int(d.c.index))
	}
	ready := make(chan error)
	go d.run(threads, ready)
	if err := <-ready; err != nil {
		<-d.done
		return nil, err
	}
	return d, nil
}

// run is the device's thread: libtorch's thread count is a property of the
// calling OS thread, and so is OpenMP's team.
func (d *Device) run(threads int, ready chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(d.done)
	if threads != 0 {
		if err := failure(C.tx_set_threads(C.int32_t(threads))); err != nil {
			ready <- err
			return
		}
	}
	ready <- nil
	for {
		select {
		case f := <-d.work:
			f()
		case <-d.stop:
			return
		}
	}
}

// do runs f on the device's thread and waits for it. A context that ends while
// f waits in the queue takes it out; a running f is waited for.
func (d *Device) do(ctx context.Context, op string, f func() error) error {
	var err error
	finished := make(chan struct{})
	task := func() {
		defer close(finished)
		err = f()
	}
	select {
	case <-d.stop:
		return closedError(op, "device "+d.name)
	default:
	}
	select {
	case d.work <- task:
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", op, context.Cause(ctx))
	case <-d.stop:
		return closedError(op, "device "+d.name)
	}
	<-finished
	return err
}

// Name is "cpu" or "cuda:N"; Kind is "cpu" or "cuda".
func (d *Device) Name() string { return d.name }

// Kind is "cpu" or "cuda".
func (d *Device) Kind() string {
	if d.c._type == C.TX_CUDA {
		return "cuda"
	}
	return "cpu"
}

// Memory returns the bytes that are free and there in all.
func (d *Device) Memory() (free, total int64, err error) {
	var f, t C.int64_t
	if err := failure(C.tx_device_memory(d.c, &f, &t)); err != nil {
		return 0, 0, err
	}
	return int64(f), int64(t), nil
}

// Trim gives cached memory back to the system.
func (d *Device) Trim(ctx context.Context) error {
	return d.do(ctx, "device-trim", func() error { return failure(C.tx_device_trim(d.c)) })
}

// Synchronize waits for all work queued on the device.
func (d *Device) Synchronize(ctx context.Context) error {
	return d.do(ctx, "device-synchronize", func() error { return failure(C.tx_device_synchronize(d.c)) })
}

// Runtime describes libtorch and hardware as JSON; see tx_runtime.
func (d *Device) Runtime(ctx context.Context) ([]byte, error) {
	var out []byte
	err := d.do(ctx, "runtime", func() error {
		var text *C.char
		if err := failure(C.tx_runtime(&text)); err != nil {
			return err
		}
		out = take(text)
		return nil
	})
	return out, err
}

// Close ends the device's thread after the work that runs. Nets and scenes of
// the device should be closed before; closing them later is allowed.
func (d *Device) Close() error {
	d.closing.Do(func() { close(d.stop) })
	<-d.done
	return nil
}

// IsOutOfMemory reports whether err is an exhausted host or device memory.
func IsOutOfMemory(err error) bool { return errors.Is(err, ErrOutOfMemory) }
