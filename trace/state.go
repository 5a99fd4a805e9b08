package trace

import "context"

// Set is a set of deleted features: feature f is bit f%64 of word f/64. Its
// length is Words(t).
type Set []uint64

// Words returns the number of words of a set of t features.
func Words(t int) int { return (t + 63) / 64 }

// Score is what the net says of a state: the tracked class's output and its
// softmax. A net may return NaN.
type Score struct{ Logit, Prob float64 }

// Row is a state of one of several images: the image sits in a slot of the
// device's scene.
type Row struct {
	Slot   int
	Target int
	Set    Set
}

// RowScorer scores states of several images; the result is aligned with rows.
// A row's score depends on nothing but the row.
type RowScorer interface {
	ScoreRows(ctx context.Context, rows []Row) ([]Score, error)
}

// Scorer scores states of one image; the result is aligned with sets.
type Scorer interface {
	Scores(ctx context.Context, sets []Set) ([]Score, error)
}

// Hinter is a Scorer that says how many states of one call cost no more than
// one: rows that would be empty otherwise.
type Hinter interface{ Want() int }
