package orchestrate_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

// The faults of all files are in one message, and each once for any number of points.
func TestFaultsOfSeveralFiles(t *testing.T) {
	w := newWorld(t, 3)
	w.writeMaps("one.npz", map[string][]float32{"a/0000.jpg": rising(64)}, nil)
	w.writeMaps("two.npz", map[string][]float32{"z/0.jpg": rising(64)}, nil)
	_, err := w.run(w.plan("road", subst("{attributions: [DIR/one.npz, DIR/two.npz], imputer: zero, order: [morf, lerf]}", w.dir)), "no")
	require.ErrorIs(t, err, usage.Err)
	require.Equal(t, 1, strings.Count(err.Error(), "one.npz: 2 of 3 images have no map"), err)
	require.Equal(t, 1, strings.Count(err.Error(), "two.npz: 3 of 3 images have no map (a/0000.jpg, b/0001.jpg, and 1 more): it has maps of z/0.jpg; 1 maps of no image"), err)
	require.NoDirExists(t, w.path("no"))
}

// What was given for maps is said.
func TestAttributionsThatAreNoMaps(t *testing.T) {
	w := newWorld(t, 3)
	_, err := orchestrate.AttributionFolders(w.path("nowhere"))
	require.ErrorIs(t, err, usage.Err)
	require.EqualError(t, err, "attributions: "+w.path("nowhere")+": there is no such file or folder")

	_, err = w.run(w.plan("eval", "{}"), "other")
	require.NoError(t, err)
	_, err = orchestrate.AttributionFolders(w.path("other"))
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "is a run of eval: want an explain run")
	for _, study := range []string{"score", "road"} {
		p := w.plan(study, "{}")
		p.Grid = map[string]any{"attributions": w.path("other")}
		_, err = w.run(p, "no")
		require.ErrorIs(t, err, usage.Err)
		require.ErrorContains(t, err, "is a run of eval: want an explain run")
		p.Grid["attributions"] = w.path("nowhere")
		_, err = w.run(p, "no")
		require.ErrorContains(t, err, w.path("nowhere")+": there is no such file or folder")
		require.NotContains(t, err.Error(), "stat")
	}
}

// Maps of a run that has not ended say so.
func TestAttributionsOfUnfinishedRuns(t *testing.T) {
	w := newWorld(t, 3)
	p := w.plan("explain", "{method: [weights, random]}")
	p.Data[0].Limit = 2
	_, err := w.run(p, "maps")
	require.NoError(t, err)
	given := w.plan("road", subst("{attributions: DIR/maps/maps/weights, target: predicted, imputer: zero}", w.dir))
	_, err = w.run(given, "no")
	require.ErrorContains(t, err, "1 of 3 images have no map")
	require.NotContains(t, err.Error(), "unfinished")
	require.NoError(t, os.Remove(w.path("maps/summary.json")))
	_, err = w.run(given, "no")
	require.ErrorContains(t, err, "the run "+w.path("maps")+" is unfinished")

	require.NoError(t, os.RemoveAll(w.path("maps/maps")))
	folders, err := orchestrate.AttributionFolders(w.path("maps"))
	require.NoError(t, err)
	given.Grid = map[string]any{"attributions": folders[0]}
	_, err = w.run(given, "no")
	require.ErrorContains(t, err, "is an explain run that is unfinished and has no maps yet")
}

// One warning tells of all maps of another class, and none where they agree.
func TestMapsOfOtherTargets(t *testing.T) {
	w := newWorld(t, 3)
	_, err := w.run(w.plan("explain", "{method: [weights, random, plain], target: predicted}"), "maps")
	require.NoError(t, err)
	folders, err := orchestrate.AttributionFolders(w.path("maps"))
	require.NoError(t, err)
	require.Len(t, folders, 3)
	warnings := func(target, out string) (list []string) {
		p := w.plan("road", "{}")
		p.Grid = map[string]any{"attributions": []any{folders[0], folders[1], folders[2]}, "target": target, "imputer": "zero", "fractions": []any{.5}}
		_, err := orchestrate.Run(t.Context(), orchestrate.Job{Plan: p, Out: w.path(out), Open: w.backend.Opener(), Progress: func(e orchestrate.Event) {
			if e.Kind == orchestrate.Warning && strings.Contains(e.Message, "--target") {
				list = append(list, e.Message)
			}
		}})
		require.NoError(t, err)
		return list
	}
	require.Empty(t, warnings("predicted", "same"))
	got := warnings("label", "other")
	require.Len(t, got, 1)
	require.Regexp(t, `^the maps of 3 methods \(.*, and 1 more\) explain the class by --target predicted, and this run is about that by --target label$`, got[0])
}
