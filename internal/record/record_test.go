package record

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/assay-xai/assay/internal/usage"
)

func sample(id string) Record {
	class := 3
	return Record{ID: id, Study: "trace", Net: "resnet18", Image: "a/" + id + ".jpg", Class: &class, Target: 3,
		Params: map[string]any{"edge": 7.0}, Seed: 1<<63 + 1,
		Trace: &Trace{Objective: "le", Value: .5, Trajectory: []int{1, 0}, Curves: Curves{Prob: Curve{Le: []float64{1, .1}, Mo: []float64{1, .1}}}}}
}

func read(t *testing.T, path string) []Record {
	t.Helper()
	var got []Record
	require.NoError(t, Scan(path, func(r Record) error { got = append(got, r); return nil }))
	return got
}

func TestAppendAndScanAgree(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	w, err := Open(path, nil)
	require.NoError(t, err)
	require.NoError(t, w.Append(sample("a"), sample("b")))
	require.NoError(t, w.Append())
	require.NoError(t, w.Append(sample("c")))
	require.NoError(t, w.Close())
	require.Equal(t, []Record{sample("a"), sample("b"), sample("c")}, read(t, path))
}

// A file cut at any byte opens with the records whose lines are whole, and
// goes on as if nothing had been lost but the rest.
func TestOpenDropsATornLineAtEveryByte(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	w, err := Open(path, nil)
	require.NoError(t, err)
	require.NoError(t, w.Append(sample("a"), sample("b")))
	require.NoError(t, w.Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for size := 0; size <= len(text); size++ {
		require.NoError(t, os.WriteFile(path, text[:size], 0o666))
		want := strings.Count(string(text[:size]), "\n")
		seen := 0
		require.Len(t, read(t, path), want)
		w, err := Open(path, func(Record) error { seen++; return nil })
		require.NoError(t, err)
		require.Equal(t, want, seen)
		require.NoError(t, w.Append(sample("z")))
		require.NoError(t, w.Close())
		got := read(t, path)
		require.Len(t, got, want+1)
		require.Equal(t, "z", got[want].ID)
	}
}

func TestDamagedLines(t *testing.T) {
	good := `{"id":"a","study":"eval"}`
	for _, c := range []struct {
		name, text, want string
		records          int
	}{
		{"middle", good + "\n{\"id\":\n" + good + "\n", FileName + ":2: not a record", 0},
		{"empty line in the middle", good + "\n\n" + good + "\n", FileName + ":2: not a record", 0},
		{"no id", "{}\n" + good + "\n", ":1: not a record (no id)", 0},
		{"last, although it ends", good + "\n\x00\x00\n", "", 1},
		{"before a torn one", good + "\nxx\n{\"i", FileName + ":2:", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), FileName)
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o666))
			n := 0
			w, err := Open(path, func(Record) error { n++; return nil })
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				kept, _ := os.ReadFile(path)
				require.Equal(t, c.text, string(kept), "an error must leave the file alone")
				return
			}
			require.NoError(t, err)
			require.NoError(t, w.Close())
			require.Equal(t, c.records, n)
		})
	}
}

func TestTwoWritersAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	w, err := Open(path, nil)
	require.NoError(t, err)
	_, err = Open(path, nil)
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorIs(t, err, usage.Err)
	require.NoError(t, w.Close())
	w, err = Open(path, nil)
	require.NoError(t, err)
	require.NoError(t, w.Close())
}

// faulty writes part of what it gets and then fails.
type faulty struct {
	*os.File
	left    int
	syncErr error
}

func (f *faulty) Write(b []byte) (int, error) {
	if len(b) <= f.left {
		f.left -= len(b)
		return f.File.Write(b)
	}
	n, _ := f.File.Write(b[:f.left])
	f.left = 0
	return n, unix.ENOSPC
}

func (f *faulty) Sync() error { return f.syncErr }

func TestFullDiskLeavesWholeLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	w, err := Open(path, nil)
	require.NoError(t, err)
	require.NoError(t, w.Append(sample("a")))
	w.f = &faulty{File: w.f.(*os.File), left: 40}
	err = w.Append(sample("b"))
	require.ErrorIs(t, err, unix.ENOSPC)
	require.ErrorContains(t, err, FileName)
	require.Equal(t, []Record{sample("a")}, read(t, path))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, byte('\n'), text[len(text)-1])
	require.NoError(t, w.Close())
}

func TestFailedSyncStopsTheWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	w, err := Open(path, nil)
	require.NoError(t, err)
	broken := errors.New("input/output error")
	w.f = &faulty{File: w.f.(*os.File), left: 1 << 20, syncErr: broken}
	require.ErrorIs(t, w.Append(sample("a")), broken)
	require.ErrorIs(t, w.Append(sample("b")), broken)
	require.NoError(t, w.Close())
}

func TestFiniteAndFailure(t *testing.T) {
	r := sample("a")
	require.True(t, r.Finite())
	require.True(t, Record{}.Finite())
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for i, spoil := range []func(*Record){
			func(r *Record) { r.Value = bad },
			func(r *Record) { r.Sums.Logit.Mo = bad },
			func(r *Record) { r.Curves.Prob.Le[1] = bad },
			func(r *Record) { r.Last = &bad },
			func(r *Record) { r.History = []HistoryPoint{{Best: bad}} },
			func(r *Record) { r.Prediction = &Prediction{Probabilities: []float64{bad}} },
		} {
			r := sample(fmt.Sprint(i))
			spoil(&r)
			require.False(t, r.Finite())
			path := filepath.Join(t.TempDir(), FileName)
			w, err := Open(path, nil)
			require.NoError(t, err)
			require.Error(t, w.Append(r))
			require.NoError(t, w.Append(Failure(r, "NaN")))
			require.NoError(t, w.Close())
			got := read(t, path)
			require.Len(t, got, 1)
			require.Equal(t, "NaN", got[0].Error)
			require.Nil(t, got[0].Trace)
		}
	}
}

func TestKeepCutsAndGoesOn(t *testing.T) {
	for n := range 5 {
		path := filepath.Join(t.TempDir(), FileName)
		w, err := Open(path, nil)
		require.NoError(t, err)
		require.NoError(t, w.Append(sample("a"), sample("b"), sample("c")))
		require.NoError(t, w.Keep(n))
		require.NoError(t, w.Append(sample("d")))
		require.NoError(t, w.Close())
		want := append([]Record{sample("a"), sample("b"), sample("c")}[:min(n, 3)], sample("d"))
		require.Equal(t, want, read(t, path))
	}
}
