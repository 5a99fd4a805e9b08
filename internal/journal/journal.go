// Package journal keeps the scores of a search's states in a file, so that a
// search that was killed goes on: it is run again from its beginning and finds
// what it asks for here, until it comes to what nobody has scored yet. As a
// search's decisions are a function of its scores, it ends as it would have.
//
// The file is a line that names the search, then entries of a kind, a payload and
// a CRC-32C of both, little endian, appended and synced every so often. Whatever
// follows the last whole entry is dropped when it is opened again.
package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/assay-xai/assay/trace"
)

// Entries: 's' a state, its set's words and its two scores; 't' how long the
// search has run, and how long the device worked for it, both in nanoseconds.
const (
	stateEntry = 's'
	timeEntry  = 't'
)

// Journal is the file of one search, and a trace.Scorer that asks another one
// for what is not in it. It belongs to one goroutine.
type Journal struct {
	path, name string
	words      int
	every      time.Duration
	scorer     trace.Scorer
	device     func() time.Duration

	scores  map[string]trace.Score
	file    *os.File
	pending []byte
	end     int64 // of the whole entries of a file that was there
	begun   time.Time
	flushed time.Time
	// Before is how long the search ran before, Device how long the device worked
	// for it then.
	Before, Device time.Duration
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Open reads the journal at path of the search called name (one line), or
// prepares one: the file is made when the search has run for the time `every`,
// and synced as often. A file of another search is not read and will be replaced.
// scorer scores states of features features; device says how long the device has
// worked in this process.
func Open(path, name string, features int, every time.Duration, scorer trace.Scorer, device func() time.Duration) (*Journal, error) {
	j := &Journal{path: path, name: name, words: trace.Words(features), every: every, scorer: scorer, device: device,
		scores: map[string]trace.Score{}, begun: time.Now(), flushed: time.Now()}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the scores of an interrupted search: %w", err)
	}
	j.read(content)
	return j, nil
}

func (j *Journal) header() string {
	return fmt.Sprintf("assay scores of states, version 1, %d words: %s\n", j.words, strings.ReplaceAll(j.name, "\n", " "))
}

func (j *Journal) sizes() map[byte]int {
	return map[byte]int{stateEntry: 8*j.words + 16, timeEntry: 16}
}

func (j *Journal) read(content []byte) {
	header := j.header()
	if !strings.HasPrefix(string(content), header) {
		return
	}
	sizes := j.sizes()
	j.end = int64(len(header))
	for rest := content[len(header):]; len(rest) > 0; {
		size, ok := sizes[rest[0]]
		if !ok || len(rest) < 1+size+4 {
			return
		}
		if crc32.Checksum(rest[:1+size], castagnoli) != binary.LittleEndian.Uint32(rest[1+size:]) {
			return
		}
		payload := rest[1 : 1+size]
		number := func(at int) uint64 { return binary.LittleEndian.Uint64(payload[at:]) }
		if rest[0] == stateEntry {
			at := 8 * j.words
			j.scores[string(payload[:at])] = trace.Score{Logit: math.Float64frombits(number(at)), Prob: math.Float64frombits(number(at + 8))}
		} else {
			j.Before, j.Device = time.Duration(number(0)), time.Duration(number(8))
		}
		rest = rest[1+size+4:]
		j.end += int64(1 + size + 4)
	}
}

// Known is the number of states that have a score.
func (j *Journal) Known() int { return len(j.scores) }

// Want passes on what the scorer says (trace.Hinter).
func (j *Journal) Want() int {
	if h, ok := j.scorer.(trace.Hinter); ok {
		return h.Want()
	}
	return 1
}

// Scores implements trace.Scorer.
func (j *Journal) Scores(ctx context.Context, sets []trace.Set) ([]trace.Score, error) {
	out := make([]trace.Score, len(sets))
	var missing []trace.Set
	var where []int
	for i, s := range sets {
		if len(j.scores) > 0 {
			if v, ok := j.scores[string(setBytes(nil, s))]; ok {
				out[i] = v
				continue
			}
		}
		missing, where = append(missing, s), append(where, i)
	}
	if len(missing) == 0 {
		return out, nil
	}
	scored, err := j.scorer.Scores(ctx, missing)
	if err != nil {
		return nil, err
	}
	if len(scored) != len(missing) {
		return nil, fmt.Errorf("%d scores for %d states", len(scored), len(missing))
	}
	for i, v := range scored {
		out[where[i]] = v
		payload := setBytes(nil, missing[i])
		payload = binary.LittleEndian.AppendUint64(payload, math.Float64bits(v.Logit))
		j.add(stateEntry, binary.LittleEndian.AppendUint64(payload, math.Float64bits(v.Prob)))
	}
	if time.Since(j.flushed) >= j.every {
		if err := j.flush(); err != nil {
			return nil, fmt.Errorf("keeping the scores of a search: %w", err)
		}
	}
	return out, nil
}

func setBytes(b []byte, s trace.Set) []byte {
	for _, w := range s {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

func (j *Journal) add(kind byte, payload []byte) {
	at := len(j.pending)
	j.pending = append(append(j.pending, kind), payload...)
	j.pending = binary.LittleEndian.AppendUint32(j.pending, crc32.Checksum(j.pending[at:], castagnoli))
}

func (j *Journal) flush() error {
	if err := j.open(); err != nil {
		return err
	}
	times := binary.LittleEndian.AppendUint64(nil, uint64(j.Before+time.Since(j.begun)))
	j.add(timeEntry, binary.LittleEndian.AppendUint64(times, uint64(j.Device+j.device())))
	if _, err := j.file.Write(j.pending); err != nil {
		return err
	}
	j.pending = j.pending[:0]
	if err := j.file.Sync(); err != nil {
		return err
	}
	j.flushed = time.Now()
	return nil
}

func (j *Journal) open() error {
	if j.file != nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(j.path), 0o777); err != nil {
		return err
	}
	file, err := os.OpenFile(j.path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	j.file = file
	if err := file.Truncate(j.end); err != nil {
		return err
	}
	if j.end == 0 {
		j.pending = append([]byte(j.header()), j.pending...)
	}
	_, err = file.Seek(j.end, 0)
	return err
}

// Keep writes what came since the last sync and closes the file: the search is
// interrupted.
func (j *Journal) Keep() error {
	var err error
	if len(j.pending) > 0 {
		err = j.flush()
	}
	if e := j.Close(); err == nil {
		err = e
	}
	return err
}

// Close closes the file; what came since the last sync is not written.
func (j *Journal) Close() error {
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}

// Remove closes the file and takes it away: the search has ended.
func (j *Journal) Remove() error {
	err := j.Close()
	if e := os.Remove(j.path); err == nil && !errors.Is(e, fs.ErrNotExist) {
		err = e
	}
	return err
}
