package orchestrate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/mutate"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/internal/yamlfile"
	"github.com/assay-xai/assay/orchestrate"
)

// errEnough ends a run where the plan is understood and the work would begin.
var errEnough = errors.New("the plan is understood")

// stopper is a backend that describes no net.
type stopper struct{ orchestrate.Backend }

func (stopper) Describe(context.Context, string, int, int) (orchestrate.NetInfo, error) {
	return orchestrate.NetInfo{}, errEnough
}

// planSeeds are plans over the world's data that use all that plans have.
func planSeeds(dir string) map[string][]byte {
	seeds := map[string][]byte{
		"eval": []byte(planText(dir, "eval", "{target: predicted}") + "title: A title\nsource: Table 1\nprecision: f32\n"),
		"trace": []byte(planText(dir, "trace", "{edge: [2, 4], solver: [sa, greedy], objective: [le, mo], iterations: 30, reference: ['blur(kernel=3,sigma=2)', zero]}") +
			"seeds: [0, 1, 2]\nscale:\n  small: {limit: 1, grid: {edge: 2}, seeds: [3]}\n" +
			"reference:\n- {metric: value, edge: 4, value: 0.5, spread: 0.1, note: 'Table 2'}\nreport: {images: 3, alpha: 1.5}\n"),
		"blocks": []byte(subst(`# a comment
version: 1
study: trace
nets:
  - net: tiny
    name: &name one
    weights: DIR/tiny.safetensors
    preset:
      resize: shorter
      height: 8
      cropHeight: 8
      cropWidth: 8
      mean: [0.5, 0.5, 0.5]
  - net: tiny
    name: two
    weights: DIR/tiny.safetensors
data:
  - path: DIR/data
    limit: 3
    name: *name
grid:
  solver: greedy
  objective: le
batch: auto
threads: 2
`, dir)),
	}
	return seeds
}

// Damaged plans, 2,000 of them: internal/mutate.Every says what is demanded.
func TestMutatedPlans(t *testing.T) {
	w := newWorld(t, 3)
	open := func(device string, threads int) (orchestrate.Backend, error) {
		b, err := w.backend.Opener()(device, threads)
		return stopper{b}, err
	}
	read := func(path string) error {
		p, err := orchestrate.LoadPlan(path)
		if err == nil {
			if _, err := p.Marshal(); err != nil {
				return err
			}
			for name := range p.Scale {
				if _, err := p.Scaled(name); err != nil {
					return err
				}
			}
			_, err = orchestrate.Run(t.Context(), orchestrate.Job{Plan: p, Out: w.path("none"), Open: open})
		}
		if errors.Is(err, errEnough) {
			return nil
		}
		if err != nil && !errors.Is(err, usage.Err) {
			t.Errorf("not marked as bad input: %v", err)
		}
		return err
	}
	// The parser takes some 400 bytes for a byte of text, of which there may be 128 KiB.
	mutate.Every(t, mutate.Format{Name: "plan", Seeds: planSeeds(w.dir), Mutators: []mutate.Mutator{mutate.YAML}}, mutate.Reader{Ending: ".yaml", Read: read, Fixed: 400 * yamlfile.MaxBytes})
	require.NoDirExists(t, w.path("none"))
	w.closed()
}

// FuzzPlan: any text is a plan that can be written and read again, or the
// user's mistake in one line.
func FuzzPlan(f *testing.F) {
	for _, b := range planSeeds("data") {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := orchestrate.ParsePlan("plan.yaml", text)
		if err != nil {
			require.ErrorIs(t, err, usage.Err)
			require.Empty(t, mutate.OneLine(err, "plan.yaml"), err.Error())
			return
		}
		again, err := p.Marshal()
		require.NoError(t, err)
		_, err = orchestrate.ParsePlan("plan.yaml", again)
		require.NoError(t, err, "%s", again)
	})
}
