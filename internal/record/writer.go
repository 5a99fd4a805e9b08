package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// FileName is the name of the records' file in OUT.
const FileName = "results.jsonl"

// ErrLocked is what Open finds where another process writes the same file.
var ErrLocked = errors.New("in use by another process")

// file is what a Writer needs of an *os.File; tests put faults behind it.
type file interface {
	io.Writer
	Sync() error
	Truncate(size int64) error
	Close() error
}

// Writer appends records to a file. One process at a time can hold a file: the
// lock goes when the process ends, however it ends. A Writer's methods must
// not be called at once.
type Writer struct {
	f      file
	path   string
	size   int64
	broken error
}

// Open opens or makes the records' file at path, takes its lock and cuts off a
// torn last line: what a process that died while writing has left. each gets
// the records that are there, in order; it may be nil. A line that cannot be
// read and is not the last is an error naming it.
func Open(path string, each func(Record) error) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, fmt.Errorf("opening records: %w", err)
	}
	if err := lock(f, unix.LOCK_EX); err != nil {
		return nil, err
	}
	whole, err := scan(f, path, each)
	if err == nil {
		err = cut(f, whole)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Writer{f: f, path: path, size: whole}, nil
}

// cut shortens f to size, if it is longer.
func cut(f *os.File, size int64) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("reading records: %w", err)
	}
	if info.Size() == size {
		return nil
	}
	if err := f.Truncate(size); err != nil {
		return fmt.Errorf("dropping a torn line of %s: %w", f.Name(), err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("dropping a torn line of %s: %w", f.Name(), err)
	}
	return nil
}

// Append writes records with one write and waits until they are on disk. A
// failed write leaves the file as it was; after a failed sync nobody knows
// what is on disk, and the Writer refuses to go on.
func (w *Writer) Append(records ...Record) error {
	if w.broken != nil {
		return w.broken
	}
	if len(records) == 0 {
		return nil
	}
	var b bytes.Buffer
	for _, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("record %s of image %s: %w", r.ID, r.Image, err)
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	if _, err := w.f.Write(b.Bytes()); err != nil {
		if undo := w.f.Truncate(w.size); undo != nil {
			w.broken = fmt.Errorf("writing %s: %w (and its end could not be restored: %w)", w.path, err, undo)
			return w.broken
		}
		return fmt.Errorf("writing %s: %w", w.path, err)
	}
	if err := w.f.Sync(); err != nil {
		w.broken = fmt.Errorf("writing %s: %w", w.path, err)
		return w.broken
	}
	w.size += int64(b.Len())
	return nil
}

// Keep cuts the file off after its first n records.
func (w *Writer) Keep(n int) error {
	if w.broken != nil {
		return w.broken
	}
	f, err := os.Open(w.path)
	if err != nil {
		return fmt.Errorf("reading records: %w", err)
	}
	defer f.Close()
	enough := errors.New("enough")
	whole, err := scan(f, w.path, func(Record) error {
		if n--; n < 0 {
			return enough
		}
		return nil
	})
	if err != nil && !errors.Is(err, enough) {
		return err
	}
	if whole == w.size {
		return nil
	}
	if err := w.f.Truncate(whole); err != nil {
		return fmt.Errorf("cutting %s: %w", w.path, err)
	}
	if err := w.f.Sync(); err != nil {
		w.broken = fmt.Errorf("cutting %s: %w", w.path, err)
		return w.broken
	}
	w.size = whole
	return nil
}

// Close lets go of the file and its lock.
func (w *Writer) Close() error { return w.f.Close() }

// Failure is a record that says why its unit has no values: what identifies
// the unit stays, what was found goes. JSON has no NaN, so a unit whose numbers
// are not finite becomes one.
func Failure(r Record, reason string) Record {
	r.Prediction, r.Trace, r.TrainingEpoch, r.Map, r.Score, r.Road, r.Error = nil, nil, nil, nil, nil, nil, reason
	return r
}

// Failures are those of several units of one reason.
func Failures(records []Record, reason string) []Record {
	out := make([]Record, len(records))
	for i, r := range records {
		out[i] = Failure(r, reason)
	}
	return out
}

// Finite says whether all numbers of the record can be written as JSON.
func (r Record) Finite() bool {
	if p := r.Prediction; p != nil && !finite(p.Probabilities...) {
		return false
	}
	if e := r.TrainingEpoch; e != nil && !finite(e.Rate, e.Loss, e.Accuracy) {
		return false
	}
	if m := r.Map; m != nil && (!finite(m.Min, m.Max, m.Sum, m.Norm, m.NonFinite) || m.Delta != nil && !finite(*m.Delta)) {
		return false
	}
	if s := r.Score; s != nil && !s.finite() {
		return false
	}
	if c := r.Road; c != nil && (!finite(c.Probabilities...) || !finite(c.PredictedProbabilities...) || !finite(c.MaskVariation...) ||
		c.MapVariation != nil && !finite(*c.MapVariation)) {
		return false
	}
	t := r.Trace
	if t == nil {
		return true
	}
	if !finite(t.Value, t.Sums.Prob.Le, t.Sums.Prob.Mo, t.Sums.Logit.Le, t.Sums.Logit.Mo) {
		return false
	}
	if t.Last != nil && !finite(*t.Last) {
		return false
	}
	for _, p := range t.History {
		if !finite(p.Current, p.Best) {
			return false
		}
	}
	c := t.Curves
	return finite(c.Prob.Le...) && finite(c.Prob.Mo...) && finite(c.Logit.Le...) && finite(c.Logit.Mo...)
}

func (s *Score) finite() bool {
	if s.Value != nil && !finite(*s.Value) {
		return false
	}
	for _, v := range s.Also {
		if !finite(v) {
			return false
		}
	}
	for _, c := range s.Curves {
		if !finite(c.X...) || !finite(c.Y...) {
			return false
		}
	}
	return true
}

func finite(values ...float64) bool {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}
