package orchestrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
)

// run reads the data and trains. Nothing is written to a folder that holds no training yet
// before everything is read and checked.
func (r *training) run(ctx context.Context) (out TrainOutcome, err error) {
	out.Plan = r.plan
	if err := r.checkRows(); err != nil {
		return out, err
	}
	leave := func() {}
	var store *folderStore
	switch {
	case r.job.Out == "":
		r.notes = append(r.notes, "nothing is kept without --out FOLDER")
	case r.goesOn:
		store, err = r.open(ctx)
	default:
		leave, err = makeFolder(r.job.Out)
	}
	if err != nil {
		return out, err
	}
	defer func() {
		if store == nil {
			leave()
		} else if e := store.writer.Close(); err == nil && e != nil {
			err = fmt.Errorf("closing records: %w", e)
		}
	}()
	t, err := r.read(ctx)
	if err != nil {
		return out, err
	}
	if err := t.check(); err != nil {
		return out, err
	}
	if store == nil && r.job.Out != "" {
		if store, err = r.open(ctx); err != nil {
			return out, err
		}
	}
	if store != nil {
		t.Store = store
	}
	for _, note := range r.notes {
		r.job.Progress(Event{Kind: Note, Message: note})
	}
	out.Trained, err = Train(ctx, r.b, t)
	return out, err
}

// checkRows says what is wrong with how many examples of what classes there are.
func (r *training) checkRows() error {
	p := r.plan
	if err := p.Training.checkCount(len(r.rows)); err != nil {
		return err
	}
	if p.Imputer != nil {
		return nil
	}
	items := r.set.Items()
	first := items[r.rows[0]].Class
	if !slices.ContainsFunc(r.rows, func(i int) bool { return items[i].Class != first }) {
		return oneClass(len(r.rows), first)
	}
	return nil
}

// read reads the parts of the data.
func (r *training) read(ctx context.Context) (t Training, err error) {
	p := r.plan
	t = Training{Net: p.Net, Imputer: p.Imputer, Classes: p.Classes, Features: p.Features, Precision: p.Precision, Preset: p.Preset,
		State: r.state, Settings: p.Training, Progress: r.job.Progress}
	read := ReadTrainingData
	if p.Imputer != nil {
		read = readExamples
	}
	if t.Train, err = read(ctx, r.b, r.set, r.rows, p.Preset, r.info.Input, r.job.Progress); err != nil {
		return t, err
	}
	if r.set.Kind != dataset.Images {
		if _, shape, err := r.set.Values(0); err == nil && len(t.Train.Shape) == 1 {
			t.Preset = spread(p.Preset, shape)
		}
	}
	held := r.validation
	if r.held != nil {
		held = r.set
	}
	if held != nil {
		t.Validation, err = read(ctx, r.b, held, r.held, p.Preset, r.info.Input, r.job.Progress)
	}
	return t, err
}

// makeFolder makes a folder, so that it is known that it can be, and takes what it has made
// away again unless something is in it by then.
func makeFolder(path string) (leave func(), err error) {
	var made []string
	for at := path; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		made = append(made, at)
	}
	leave = func() {
		for _, at := range made {
			os.Remove(at) // which no folder with something in it is
		}
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		leave()
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrExist) {
			return nil, usage.Errorf("out: %w", err)
		}
		return nil, fmt.Errorf("out: %w", err)
	}
	return leave, nil
}

// open makes OUT, takes its lock, and only then compares and writes settings.
func (r *training) open(ctx context.Context) (*folderStore, error) {
	out, p := r.job.Out, r.plan
	if _, err := makeFolder(out); err != nil {
		return nil, err
	}
	id, err := p.id()
	if err != nil {
		return nil, err
	}
	store := &folderStore{out: out, id: id, record: record.Record{Study: "train", Net: p.trained(), Seed: p.Training.Seed}}
	if store.metadata, err = p.metadata(); err != nil {
		return nil, err
	}
	// What was recorded counts only if it is this training's.
	store.writer, err = record.Open(filepath.Join(out, record.FileName), func(record.Record) error { store.recorded++; return nil })
	if err != nil {
		return nil, err
	}
	if err := r.settle(ctx); err != nil {
		store.writer.Close()
		return nil, err
	}
	return store, nil
}

// settle writes settings, environment and class names, with the lock held.
func (r *training) settle(ctx context.Context) error {
	out, p := r.job.Out, r.plan
	sweepTraining(out)
	prior, err := readPriorTraining(out)
	if err != nil {
		return err
	}
	if prior != nil {
		d, err := p.differs(prior)
		if err != nil {
			return err
		}
		if d != "" {
			return usage.Errorf("out: %s holds another training: %s; choose another folder, or give the settings that are there", out, d)
		}
	}
	text, err := p.marshal()
	if err != nil {
		return err
	}
	classes := r.set.ClassNames
	if p.Imputer != nil {
		classes = nil
	}
	return writeOrigin(ctx, r.b, filepath.Join(out, TrainFile), text, r.job.Env, classes)
}

// sweepTraining removes temporary files that a killed training has left.
func sweepTraining(out string) {
	entries, err := os.ReadDir(out)
	if err != nil {
		return
	}
	for _, e := range entries {
		for _, name := range []string{TrainFile, EnvFile, ClassesFile, LastFile, BestFile, CheckpointFile} {
			if e.Type().IsRegular() && strings.HasPrefix(e.Name(), "."+name) {
				os.Remove(filepath.Join(out, e.Name()))
			}
		}
	}
}
