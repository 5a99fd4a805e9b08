package orchestrate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
)

// openDevices opens the devices of a plan: one, or several of a kind with
// commas between them ("cuda:0,cuda:1").
func openDevices(open Opener, devices string, threads int) ([]Backend, error) {
	var out []Backend
	for _, name := range strings.Split(devices, ",") {
		b, err := open(strings.TrimSpace(name), threads)
		if err != nil {
			closeDevices(out)
			return nil, err
		}
		out = append(out, b)
		if b.Kind() != out[0].Kind() {
			closeDevices(out)
			return nil, usage.Errorf("device %s: want devices of one kind, their results differ in the last digits", devices)
		}
		if slices.ContainsFunc(out[:len(out)-1], func(other Backend) bool { return other.Device() == b.Device() }) {
			closeDevices(out)
			return nil, usage.Errorf("device %s: %s is there twice", devices, b.Device())
		}
	}
	return out, nil
}

func closeDevices(backends []Backend) {
	for _, b := range backends {
		b.Close()
	}
}

func deviceNames(backends []Backend) string {
	names := make([]string, len(backends))
	for i, b := range backends {
		names[i] = b.Device()
	}
	return strings.Join(names, ",")
}

// spread runs the units of a stage that have no record on all devices at once. What a
// unit gives does not depend on the device that runs it; all units of an image
// go to one.
func (r *run) spread(ctx context.Context, v *views, stage int) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wait sync.WaitGroup
	failures := make([]error, len(r.backends))
	for i, backend := range r.backends {
		wait.Add(1)
		go func() {
			defer wait.Done()
			if failures[i] = r.onDevice(ctx, v, stage, i, backend); failures[i] != nil {
				stop()
			}
		}()
	}
	wait.Wait()
	var first error
	for _, err := range failures {
		if err != nil && (first == nil || errors.Is(first, context.Canceled)) {
			first = err
		}
	}
	return first
}

// onDevice runs the units of a stage on one device.
func (r *run) onDevice(ctx context.Context, v *views, stage, i int, backend Backend) error {
	own := *r.Resolved
	own.Backend = backend
	session := &Session{Resolved: &own, views: v, batch: r.Resolved.Batch(), partly: r.partly, records: filepath.Join(r.job.Out, record.FileName),
		searches: filepath.Join(r.job.Out, SearchesFolder), journalEvery: r.job.JournalEvery, kept: r.kept, out: r.job.Out}
	if session.journalEvery == 0 {
		session.journalEvery = defaultJournalEvery
	}
	for {
		units := r.todo(stage, i)
		if len(units) == 0 {
			return nil
		}
		err := r.Study.Run(ctx, session, units, r.emit)
		// What ran out of memory starts again at half the batch and says so.
		if !errors.Is(err, ErrOutOfMemory) || session.batch == 1 || ctx.Err() != nil {
			return err
		}
		where := ""
		if len(r.backends) > 1 {
			where = " on " + backend.Device()
		}
		r.warn(fmt.Sprintf("out of memory%s at batch %d: run at batch %d", where, session.batch, session.batch/2))
		session.batch /= 2
	}
}
