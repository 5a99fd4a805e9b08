package journal

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/trace"
)

// net scores sets by their bits and counts, and dies after so many calls.
type net struct {
	calls, dies int
	rows        int
}

type death struct{}

func (n *net) Scores(_ context.Context, sets []trace.Set) ([]trace.Score, error) {
	if n.calls++; n.dies > 0 && n.calls > n.dies {
		panic(death{})
	}
	n.rows += len(sets)
	out := make([]trace.Score, len(sets))
	for i, s := range sets {
		key := uint64(0)
		for _, w := range s {
			key = key*31 + w
		}
		u := rng.Stream{Key: 5}.Float64(key, 0)
		out[i] = trace.Score{Prob: .5 + u/2, Logit: math.Sqrt(u)}
	}
	return out, nil
}

func (*net) Want() int { return 3 }

func none() time.Duration { return 0 }

// A search that is killed again and again, in the middle of writes too, ends
// with the result of an undisturbed one.
func TestAKilledSearchEndsAsIfNothingHadHappened(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		size := rapid.SampledFrom([]int{4, 16, 70}).Draw(r, "t")
		o := trace.Options{Objective: "le-mo", ScoreOn: "prob", Seed: rapid.Uint64().Draw(r, "seed"), Budget: trace.Budget{Iterations: 20},
			Solver: rapid.SampledFrom([]string{"sa", "tabu", "genetic", "hill-climbing"}).Draw(r, "solver")}
		run := func(s trace.Scorer) (result trace.Result, done bool) {
			defer func() {
				if p := recover(); p != nil {
					if _, ok := p.(death); !ok {
						panic(p)
					}
				}
			}()
			result, err := trace.Run(context.Background(), trace.Problem{T: size, ImageID: "a", Scorer: s}, o)
			require.NoError(r, err)
			return result, true
		}
		want, _ := run(&net{})
		path := filepath.Join(t.TempDir(), "searches", "a.states")
		for life := 0; ; life++ {
			n := &net{dies: rapid.IntRange(1, 90).Draw(r, "dies")}
			if life > 3 {
				n.dies = 0
			}
			every := rapid.SampledFrom([]time.Duration{100 * time.Microsecond, time.Millisecond}).Draw(r, "every")
			j, err := Open(path, "the search", size, every, n, none)
			require.NoError(r, err)
			before := j.Known()
			got, done := run(j)
			require.NoError(r, j.Close())
			if done {
				require.Equal(r, want.Trajectory, got.Trajectory)
				require.Equal(r, want.History, got.History)
				require.Equal(r, want.Evaluations, got.Evaluations)
				require.Equal(r, want.Accepted, got.Accepted)
				require.Equal(r, want.Curves, got.Curves)
				require.LessOrEqual(r, int64(n.rows), got.Forwards)
				require.NoError(r, j.Remove())
				require.NoFileExists(r, path)
				return
			}
			again, err := Open(path, "the search", size, 0, n, none)
			require.NoError(r, err)
			require.GreaterOrEqual(r, again.Known(), before)
			require.LessOrEqual(r, again.Known(), before+n.rows)
			if content, err := os.ReadFile(path); err == nil && rapid.Bool().Draw(r, "torn") {
				cut := rapid.IntRange(0, min(50, len(content))).Draw(r, "cut")
				require.NoError(r, os.WriteFile(path, content[:len(content)-cut], 0o666))
			}
		}
	})
}

func TestDamageAndOthersFilesAreNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.states")
	ctx := context.Background()
	n := &net{}
	j, err := Open(path, "one", 9, 0, n, func() time.Duration { return time.Minute })
	require.NoError(t, err)
	for bit := range 5 {
		_, err = j.Scores(ctx, []trace.Set{{1 << bit}})
		require.NoError(t, err)
	}
	require.NoError(t, j.Close())
	j, err = Open(path, "one", 9, 0, n, none)
	require.NoError(t, err)
	require.Equal(t, 5, j.Known())
	require.Equal(t, time.Minute, j.Device)
	require.Positive(t, j.Before)
	got, err := j.Scores(ctx, []trace.Set{{1 << 7}, {1 << 2}})
	require.NoError(t, err)
	require.Equal(t, 6, n.calls)
	require.Equal(t, 6, n.rows, "the known one is not asked for")
	want, _ := (&net{}).Scores(ctx, []trace.Set{{1 << 7}, {1 << 2}})
	require.Equal(t, want, got)
	require.NoError(t, j.Close())

	content, err := os.ReadFile(path)
	require.NoError(t, err)
	content[len(content)-70] ^= 1
	require.NoError(t, os.WriteFile(path, content, 0o666))
	j, err = Open(path, "one", 9, 0, n, none)
	require.NoError(t, err)
	require.Less(t, j.Known(), 6, "nothing behind a damaged entry is believed")
	j, err = Open(path, "another", 9, 0, n, none)
	require.NoError(t, err)
	require.Zero(t, j.Known())
	_, err = j.Scores(ctx, []trace.Set{{3}})
	require.NoError(t, err)
	require.NoError(t, j.Close())
	j, err = Open(path, "another", 9, 0, n, none)
	require.NoError(t, err)
	require.Equal(t, 1, j.Known())
}

func TestAShortSearchTouchesNoDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "searches")
	j, err := Open(filepath.Join(dir, "a.states"), "one", 9, time.Hour, &net{}, none)
	require.NoError(t, err)
	_, err = j.Scores(context.Background(), []trace.Set{{1}})
	require.NoError(t, err)
	require.NoDirExists(t, dir)
	require.NoError(t, j.Remove())
}
