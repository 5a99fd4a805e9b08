package fake

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/scores"
	"github.com/assay-xai/assay/trace"
)

// stage scores maps of the fake's images.
type stage struct {
	n      *net
	spec   orchestrate.StageSpec
	images *images
	owned  bool // the net is a copy
	closed atomic.Bool
}

// Stage puts images on the stage.
func (n *net) Stage(ctx context.Context, in orchestrate.Images, spec orchestrate.StageSpec) (scores.Stage, error) {
	from := in.(*images)
	out := &stage{n: n, spec: spec, images: &images{b: n.b, shape: from.shape}}
	if spec.Rows == nil {
		for i := range from.rows {
			spec.Rows = append(spec.Rows, i)
		}
	}
	for _, r := range spec.Rows {
		out.images.rows = append(out.images.rows, from.rows[r])
	}
	if spec.Method != nil && len(spec.Keys) != len(spec.Rows) {
		return nil, usage.Errorf("fake: %d keys for %d rows", len(spec.Keys), len(spec.Rows))
	}
	n.b.OpenStages.Add(1)
	return out, ctx.Err()
}

func (s *stage) Shape() []int { return s.images.shape }
func (s *stage) Classes() int { return s.n.info.Classes }
func (s *stage) Batch() int   { return s.spec.Batch }

func (s *stage) Layers() []scores.Layer { return []scores.Layer{{Name: "fc", Op: "linear"}} }

func (s *stage) Close() error {
	if !s.closed.Swap(true) {
		s.n.b.OpenStages.Add(-1)
		if s.owned {
			return s.n.Close()
		}
	}
	return nil
}

type stageScene struct {
	orchestrate.Scene
	s *scene
}

// Scene makes room for the images with features deleted.
func (s *stage) Scene(ctx context.Context, spec scores.SceneSpec) (scores.Scene, error) {
	reference, err := orchestrate.ParseSpec(spec.Reference)
	if err != nil {
		return nil, err
	}
	opened, err := s.n.Scene(ctx, orchestrate.SceneSpec{Slots: s.images.Len(), Shape: s.images.shape, Features: spec.Features,
		FeatureMap: spec.FeatureMap, Preset: s.spec.Preset, Other: s.spec.Other, Batch: s.spec.Batch,
		Reference: orchestrate.Reference{ID: reference.Name, Params: reference.Params}})
	if err != nil {
		return nil, err
	}
	for i := range s.images.rows {
		if err := opened.Put(ctx, i, s.images, i, spec.Keys[i]); err != nil {
			opened.Close()
			return nil, err
		}
	}
	return &stageScene{opened, opened.(*scene)}, nil
}

// Difference is x - reference.
func (s *stageScene) Difference(ctx context.Context, row int) ([]float32, error) {
	out := slices.Clone(s.s.rows[row])
	for i, v := range s.s.reference[row] {
		out[i] -= v
	}
	return out, ctx.Err()
}

// Scaled scores images times masks.
func (s *stage) Scaled(ctx context.Context, rows []scores.Scaled) ([]trace.Score, error) {
	if err := s.n.b.wait(ctx); err != nil {
		return nil, err
	}
	out := make([]trace.Score, len(rows))
	for i, r := range rows {
		x := slices.Clone(s.images.rows[r.Row])
		for j := range x {
			x[j] *= r.Mask[j%len(r.Mask)]
		}
		logits := s.n.logits(x)
		out[i] = trace.Score{Logit: logits[r.Target], Prob: softmax(logits)[r.Target]}
	}
	return out, nil
}

// Noisy adds noise.
func (s *stage) Noisy(ctx context.Context, draws []scores.Draw, radius float64) (scores.Stage, error) {
	out := &stage{n: s.n, spec: s.spec, images: &images{b: s.n.b, shape: s.images.shape}}
	out.spec.Keys = nil
	for _, d := range draws {
		x := slices.Clone(s.images.rows[d.Row])
		for j := range x {
			x[j] += float32(radius * (2*rng.Stream{Key: d.Key}.Float64(uint64(j), d.Sample) - 1))
		}
		out.images.rows = append(out.images.rows, x)
		if s.spec.Keys != nil {
			out.spec.Keys = append(out.spec.Keys, s.spec.Keys[d.Row])
		}
	}
	s.n.b.OpenStages.Add(1)
	return out, ctx.Err()
}

// Explain asks the method.
func (s *stage) Explain(ctx context.Context, targets []int) ([]scores.Map, error) {
	if s.spec.Method == nil {
		return nil, usage.Errorf("no method to ask for maps")
	}
	made, err := s.n.Attribute(ctx, s.images, orchestrate.AttributionSpec{Method: *s.spec.Method, Targets: targets, Keys: s.spec.Keys,
		Preset: s.spec.Preset, Batch: s.spec.Batch})
	if err != nil {
		return nil, err
	}
	var out []scores.Map
	for _, values := range made.Maps {
		out = append(out, scores.Map{Shape: made.Shape, Values: values})
	}
	return out, nil
}

// Randomise draws new weights.
func (s *stage) Randomise(ctx context.Context, layers []string, seed uint64) (scores.Stage, error) {
	copied := &net{b: s.n.b, info: s.n.info, w: slices.Clone(s.n.w)}
	for _, l := range layers {
		if l != "fc" {
			return nil, usage.Errorf("layer %q: want fc", l)
		}
		for i := range copied.w {
			copied.w[i] = rng.New(seed, "fake/initial", l).Float64(uint64(i), 0) - .5
		}
	}
	s.n.b.OpenNets.Add(1)
	s.n.b.OpenStages.Add(1)
	out := &stage{n: copied, spec: s.spec, images: s.images, owned: true}
	return out, ctx.Err()
}

// Stage is not there: scores are tested with the other nets.
func (n *softmaxRegression) Stage(context.Context, orchestrate.Images, orchestrate.StageSpec) (scores.Stage, error) {
	return nil, fmt.Errorf("net %s: %w", n.Info().Net, usage.Errorf("the fake scores no maps with it"))
}
