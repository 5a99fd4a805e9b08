package orchestrate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/usage"
)

// What cannot work with inputs of 8x8 is refused before anything runs.
func TestImputersThatDoNotFit(t *testing.T) {
	w := newWorld(t, 2)
	for _, c := range []struct{ study, grid, want string }{
		{"road", "{method: weights, imputer: blur}", "imputer blur: kernel 31 on inputs of 8x8: want at most 15, for example blur(kernel=15)"},
		{"road", "{method: weights, imputer: 'blur(kernel=4)'}", "kernel 4: want an odd number"},
		{"trace", "{edge: 2, reference: 'blur(kernel=17)'}", "reference blur(kernel=17): kernel 17 on inputs of 8x8: want at most 15"},
		{"road", "{method: weights, imputer: patch-mean}", "the mean of one pixel is that pixel"},
		{"road", "{method: weights, imputer: image}", "removal takes no other image"},
		{"explain", "{method: layered}", "layer fc of net tiny gives [10]: want one of maps, [C,h,w]: layer=input would be one"},
	} {
		_, err := w.run(w.plan(c.study, c.grid), "no")
		require.ErrorIs(t, err, usage.Err, c.grid)
		require.ErrorContains(t, err, c.want)
		require.NoDirExists(t, w.path("no"))
	}
	// Where others of the grid fit they are run.
	outcome, err := w.run(w.plan("road", "{method: weights, imputer: [blur, zero], order: morf, fractions: .5}"), "some")
	require.NoError(t, err)
	require.Equal(t, 2, outcome.Units)
}

// What leaves columns of a table as they are is refused for them: a column is a channel,
// and a patch, of one value.
func TestImputersThatLeaveTablesAsTheyAre(t *testing.T) {
	w := newWorld(t, 0)
	for _, c := range []struct{ study, grid, want string }{
		{"road", "{order: random, imputer: channel-mean}", "imputer channel-mean: a column is a channel of its own"},
		{"trace", "{reference: channel-mean, iterations: 2}", "imputer channel-mean: a column is a channel of its own"},
		{"trace", "{reference: patch-mean, iterations: 2}", "imputer patch-mean: columns are removed one by one"},
	} {
		p := w.columns(c.grid)
		p.Study = c.study
		_, err := w.run(p, "no")
		require.ErrorIs(t, err, usage.Err, c.grid)
		require.ErrorContains(t, err, c.want)
		require.ErrorContains(t, err, "nothing would be removed: want another imputer, for example dataset-mean")
		require.NoDirExists(t, w.path("no"))
	}
	p := w.columns("{order: random, imputer: [channel-mean, dataset-mean], fractions: .5}")
	p.Study = "road"
	outcome, err := w.run(p, "some")
	require.NoError(t, err)
	require.Equal(t, 3, outcome.Units)
	w.closed()
}
