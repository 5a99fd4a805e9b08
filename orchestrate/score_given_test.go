package orchestrate_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/orchestrate"
)

// Maps of a method that the plan asks, too, have a name of their own in rows, ranks,
// wins and records.
func TestGivenMapsBesideTheirMethod(t *testing.T) {
	w := newWorld(t, 5)
	_, err := w.run(w.plan("explain", `{method: [weights, random], target: predicted}`), "before")
	require.NoError(t, err)
	want := []string{"random", "weights", "weights (given: before)"}
	for study, grid := range map[string]string{
		"score": `{metric: [sparseness, "deletion(step=16)"]}`,
		"road":  `{fractions: "0.5", target: predicted}`,
	} {
		p := w.plan(study, grid)
		p.Grids = []map[string]any{{"method": "weights"}, {"attributions": []any{w.path("before/maps/weights"), w.path("before/maps/random")}}}
		outcome, err := w.run(p, study)
		require.NoError(t, err)
		require.NotEmpty(t, outcome.Contests)
		for _, c := range outcome.Contests {
			var names []string
			for _, one := range c.Competitors {
				names = append(names, one.Name)
			}
			require.ElementsMatch(t, want, names)
			require.Len(t, c.Wins, 3)
			for _, win := range c.Wins {
				require.NotEqual(t, win.A, win.B)
				if win.A == "weights" && win.B == want[2] {
					require.Equal(t, .5, win.Fraction, "the same maps")
				}
			}
		}
		rows := map[string]int{}
		for _, row := range outcome.Summary {
			if name := row.Params.Text("method"); name != "" {
				require.Contains(t, want, name)
				rows[name]++
			}
		}
		require.Equal(t, rows["weights"], rows[want[2]], study)
		methods := map[string]bool{}
		for _, r := range w.records(study) {
			methods[r.Method] = true
		}
		for _, name := range want {
			require.True(t, methods[name], "%s: %s", study, name)
		}
	}

	// Alone they are called by the method.
	outcome, err := w.run(w.plan("score", subst(`{attributions: DIR/before/maps/weights, metric: sparseness}`, w.dir)), "alone")
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(outcome.Contests[0].Competitors, func(c orchestrate.Competitor) bool { return c.Name == "weights" }))
}
