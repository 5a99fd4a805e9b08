package orchestrate_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

const ownNet = `{"net": "tiny", "classes": 10, "weights": "tiny.safetensors", "preset": "digits"}`

// filePlan evaluates the net in a file.
func (w *world) filePlan(file, content string) *orchestrate.Plan {
	if content != "" {
		require.NoError(w.t, os.WriteFile(w.path(file), []byte(content), 0o666))
	}
	p := w.plan("eval", "{}")
	p.Nets = []orchestrate.NetPlan{{Net: w.path(file)}}
	return p
}

func TestANetFileIsEvaluatedLikeTheSameNetOfTheCatalogue(t *testing.T) {
	w := newWorld(t, 9)
	_, err := w.run(w.filePlan("own.json", ownNet), "file")
	require.NoError(t, err)
	p := w.plan("eval", "{}")
	p.Nets = []orchestrate.NetPlan{{Net: "tiny", Weights: w.path("tiny.safetensors"), Preset: orchestrate.PresetChoice{Name: "digits"}}}
	_, err = w.run(p, "catalogue")
	require.NoError(t, err)
	want := map[string]any{}
	for _, r := range w.records("catalogue") {
		want[r.Image] = r.Prediction
	}
	got := map[string]any{}
	for _, r := range w.records("file") {
		require.Equal(t, "own", r.Net)
		got[r.Image] = r.Prediction
	}
	require.Equal(t, want, got)
}

func TestANetFileIsPartOfTheResult(t *testing.T) {
	w := newWorld(t, 3)
	_, err := w.run(w.filePlan("own.json", ownNet), "out")
	require.NoError(t, err)
	// The same again is the same plan.
	again, err := w.run(w.filePlan("own.json", ""), "out")
	require.NoError(t, err)
	require.Equal(t, again.Units, again.Before)
	_, err = w.run(w.filePlan("own.json", strings.Replace(ownNet, `"net"`, `"changed": 1, "net"`, 1)), "out")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "nets[0].weights (hash)")
}

func TestNetFilesThatCannotBe(t *testing.T) {
	w := newWorld(t, 3)
	for name, c := range map[string]struct{ file, content, want string }{
		"not there":            {"none.json", "", "no such file"},
		"not JSON":             {"own.json", "{", "neither a net file"},
		"no weights named":     {"own.json", `{"net": "tiny"}`, "names no weights: give a file with --weights"},
		"weights not there":    {"own.json", `{"net": "tiny", "weights": "gone.safetensors"}`, "gone.safetensors"},
		"weights do not fit":   {"own.json", `{"net": "tiny", "classes": 3, "weights": "tiny.safetensors"}`, "does not fit net own.json"},
		"unknown preset":       {"own.json", `{"net": "tiny", "weights": "tiny.safetensors", "preset": "imagenett"}`, "did you mean imagenet"},
		"only weights, no net": {"tiny.safetensors.pt", "\x80\x02}", "weights alone go with --weights"},
	} {
		t.Run(name, func(t *testing.T) {
			p := w.filePlan(c.file, c.content)
			_, err := w.run(p, "bad")
			require.ErrorIs(t, err, usage.Err)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
			w.closed()
		})
	}
}
