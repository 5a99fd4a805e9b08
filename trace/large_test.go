package trace

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// Single pixels of an image of 224 x 224: an order has 50177 points each way,
// whose sets are made a few at a time.
func TestSinglePixels(t *testing.T) {
	const size = 224 * 224
	largest := 0
	f := scoreFunc(func(s Set) Score { return Score{Prob: 1 - float64(s.Len())/size} })
	counted := countedScorer{f, &largest}
	got, err := Run(context.Background(), Problem{T: size, ImageID: "a", Scorer: counted}, Options{Solver: "order", Objective: "le-mo", ScoreOn: "prob"})
	require.NoError(t, err)
	require.InDelta(t, 0, got.Value, 1e-6, "the net minds how many are deleted, not which")
	le, mo := got.Curves.Prob.Sums()
	require.InDelta(t, (size+1)/2., le, 1e-3)
	require.InDelta(t, (size+1)/2., mo, 1e-3)
	require.Equal(t, int64(2*size), got.Forwards, "both curves share their ends")
	require.LessOrEqual(t, largest, playChunk)
}

type countedScorer struct {
	scoreFunc
	largest *int
}

func (c countedScorer) Scores(ctx context.Context, sets []Set) ([]Score, error) {
	*c.largest = max(*c.largest, len(sets))
	return c.scoreFunc.Scores(ctx, sets)
}
