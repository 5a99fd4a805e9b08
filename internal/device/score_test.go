package device_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/device"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/orchestrate"
)

// judgeDigits runs a study on the net and rows that the program carries.
func judgeDigits(t *testing.T, study, out string, limit int, grids ...map[string]any) (orchestrate.Outcome, map[string]map[string]map[string]record.Record) {
	t.Helper()
	plan := &orchestrate.Plan{Version: orchestrate.PlanVersion, Study: study, Device: "cpu", Batch: 8,
		Nets: []orchestrate.NetPlan{{Net: "cnn3"}}, Data: []orchestrate.DataPlan{{Path: "embedded:digits", Limit: limit}}, Grids: grids}
	outcome, err := orchestrate.Run(context.Background(), orchestrate.Job{Plan: plan, Out: out, Open: device.Open})
	require.NoError(t, err)
	found := map[string]map[string]map[string]record.Record{}
	require.NoError(t, record.Scan(filepath.Join(out, record.FileName), func(r record.Record) error {
		metric, _ := r.Params["metric"].(string)
		if found[r.Method] == nil {
			found[r.Method] = map[string]map[string]record.Record{}
		}
		if found[r.Method][metric] == nil {
			found[r.Method][metric] = map[string]record.Record{}
		}
		r.Cost = record.Cost{}
		found[r.Method][metric][r.Image] = r
		return nil
	}))
	return outcome, found
}

// Scores of digits by the real net: a method's are those of its maps from files and
// of fewer images bit by bit, le-mo is what study trace says of the same order, no
// map does better than the searched optimum, and a gradient does better than chance.
func TestScoreDigits(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	metrics := []any{"deletion", "insertion(reference=zero)", "le-mo(edge=4)", "average-drop", "infidelity(patch=2)", "sparseness",
		"faithfulness-correlation(runs=16,features=8)"}
	again := []any{"max-sensitivity(samples=2)", "randomisation", "random-logit"}
	methods := []any{"integrated-gradients(steps=8)", "random"}
	outcome, made := judgeDigits(t, "score", at("made"), 6, map[string]any{"method": methods, "metric": append(append([]any{}, metrics...), again...)},
		map[string]any{"baseline": "trace(iterations=300)", "metric": "le-mo(edge=4)"})
	require.Equal(t, 6*(2*10+1), outcome.Units)

	_, few := judgeDigits(t, "score", at("few"), 2, map[string]any{"method": methods, "metric": append(append([]any{}, again...), metrics...)})
	for method, list := range few {
		require.Len(t, list, 10)
		for metric, images := range list {
			require.Len(t, images, 2)
			for image, r := range images {
				require.Equal(t, made[method][metric][image], r, "%s of %s", metric, method)
			}
		}
	}

	judgeDigits(t, "explain", at("maps"), 6, map[string]any{"method": methods})
	folders, err := orchestrate.AttributionFolders(at("maps"))
	require.NoError(t, err)
	_, given := judgeDigits(t, "score", at("given"), 6, map[string]any{"attributions": []any{folders[0], folders[1]}, "metric": metrics})
	require.Len(t, given, 2)
	for method, list := range given {
		require.Len(t, list, len(metrics))
		for metric, images := range list {
			for image, r := range images {
				require.Equal(t, made[method][metric][image].Score, r.Score, "%s of %s", metric, method)
			}
		}
	}

	_, orders := judgeDigits(t, "trace", at("orders"), 6, map[string]any{"edge": 4, "solver": "order", "map": at("maps/maps/random")})
	for image, r := range orders[""][""] {
		require.Equal(t, r.Value, *made["random"]["le-mo(edge=4)"][image].Score.Value)
		require.LessOrEqual(t, r.Value, *made["trace optimum"]["le-mo(edge=4)"][image].Score.Value)
	}

	for _, c := range outcome.Contests {
		mean := map[string]float64{}
		for _, one := range c.Competitors {
			mean[one.Name] = one.Mean
		}
		switch c.Metric {
		case "deletion", "le-mo(edge=4)":
			require.Equal(t, c.HigherIsBetter, mean["integrated-gradients(steps=8)"] > mean["random"], c.Metric)
		}
	}
}
