package orchestrate_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/assay-xai/assay/orchestrate"
)

// A call wastes little of its batches, or is not long: 64 batches, or one image.
func TestImagesOfACall(t *testing.T) {
	for _, c := range []struct {
		batch int
		rows  float64
		want  int
	}{{8, 1, 32}, {8, 4, 8}, {8, 50, 8}, {8, 100, 5}, {8, 400, 1}, {8, 4000, 1}, {64, 15, 64}, {1, 1, 4}, {32, 0, 128}} {
		require.Equal(t, c.want, orchestrate.ImagesOfACall(c.batch, c.rows), "batch %d, %g rows", c.batch, c.rows)
	}
	rapid.Check(t, func(t *rapid.T) {
		batch, rows := rapid.IntRange(1, 512).Draw(t, "batch"), rapid.IntRange(1, 5000).Draw(t, "rows")
		n := orchestrate.ImagesOfACall(batch, float64(rows))
		batches := (n*rows + batch - 1) / batch
		require.True(t, n == 1 || batches <= 64 || n == batch && rows <= 64, "%d images are %d batches", n, batches)
		wasted := float64(batches*batch-n*rows) / float64(batches*batch)
		require.Less(t, wasted, .25, "%d images", n)
	})
}
