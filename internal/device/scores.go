package device

import (
	"context"
	"errors"
	"fmt"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/scores"
	"github.com/assay-xai/assay/torchx"
	"github.com/assay-xai/assay/trace"
)

// stage is images and a net for scores of maps.
type stage struct {
	n      *net
	spec   orchestrate.StageSpec
	images *images
	layers []scores.Layer
	// owned is what closes with the stage: rows that were copied, a net.
	owned []interface{ Close() error }
}

// Stage puts images on the device for scores.
func (n *net) Stage(ctx context.Context, from orchestrate.Images, spec orchestrate.StageSpec) (scores.Stage, error) {
	in, err := own(from)
	if err != nil {
		return nil, err
	}
	rows := in.Len()
	if spec.Rows != nil {
		rows = len(spec.Rows)
	}
	if spec.Method != nil && len(spec.Keys) != rows {
		return nil, fmt.Errorf("a stage of %d rows with %d keys", rows, len(spec.Keys))
	}
	if spec.Batch < 1 {
		return nil, usage.Errorf("batch %d: want at least 1", spec.Batch)
	}
	out := &stage{n: n, spec: spec, images: in}
	if err := out.list(); err != nil {
		return nil, err
	}
	if spec.Rows == nil {
		return out, nil
	}
	draws := make([]scores.Draw, rows)
	for i, r := range spec.Rows {
		draws[i].Row = r
	}
	if out.images, err = in.noisy(ctx, n.b, draws, 0); err != nil {
		return nil, fmt.Errorf("putting %d images on the stage: %w", rows, err)
	}
	out.owned = append(out.owned, out.images)
	return out, nil
}

// noisy makes rows with noise.
func (m *images) noisy(ctx context.Context, b *Backend, draws []scores.Draw, radius float64) (*images, error) {
	list := make([]torchx.Draw, len(draws))
	for i, d := range draws {
		list[i] = torchx.Draw{Row: d.Row, Key: d.Key, Sample: d.Sample}
	}
	values, err := b.d.Noisy(ctx, m.values, list, radius)
	if err != nil {
		return nil, mark(err)
	}
	return newImages(values, nil)
}

// list finds the layers that have parameters.
func (s *stage) list() error {
	layers, err := s.n.n.Parametrised()
	for _, l := range layers {
		s.layers = append(s.layers, scores.Layer{Name: l.Name, Op: l.Op})
	}
	return err
}

func (s *stage) Shape() []int           { return s.images.Shape() }
func (s *stage) Classes() int           { return s.n.info.Classes }
func (s *stage) Batch() int             { return s.spec.Batch }
func (s *stage) Layers() []scores.Layer { return s.layers }

func (s *stage) Close() error {
	var err error
	for _, o := range s.owned {
		err = errors.Join(err, o.Close())
	}
	return err
}

// stageScene is a scene of all rows, with their references.
type stageScene struct {
	*scene
	images     *images
	references *torchx.Tensor
}

// Scene makes room for the images with features deleted.
func (s *stage) Scene(ctx context.Context, spec scores.SceneSpec) (scores.Scene, error) {
	reference, err := orchestrate.ParseSpec(spec.Reference)
	if err != nil {
		return nil, usage.Errorf("reference %w", err)
	}
	opened, err := s.n.Scene(ctx, orchestrate.SceneSpec{Slots: s.images.Len(), Shape: s.images.shape, Features: spec.Features,
		FeatureMap: spec.FeatureMap, Preset: s.spec.Preset, Other: s.spec.Other, Batch: s.spec.Batch,
		Reference: orchestrate.Reference{ID: reference.Name, Params: reference.Params}})
	if err != nil {
		return nil, err
	}
	out := &stageScene{scene: opened.(*scene), images: s.images}
	if err := out.fill(ctx, spec.Keys); err != nil {
		return nil, errors.Join(fmt.Errorf("reference %s: %w", spec.Reference, err), out.Close())
	}
	return out, nil
}

// fill puts every image and its reference into its slot.
func (s *stageScene) fill(ctx context.Context, keys []uint64) error {
	spec := s.reference
	spec.Keys = keys
	var err error
	if s.references, err = s.n.b.d.Reference(ctx, s.images.values, spec); err != nil {
		return mark(err)
	}
	for i := range s.images.n {
		x, err := s.images.values.Row(i)
		if err != nil {
			return err
		}
		r, err := s.references.Row(i)
		if err == nil {
			err = s.s.Put(ctx, i, x, r)
			r.Close()
		}
		x.Close()
		if err != nil {
			return mark(err)
		}
	}
	return nil
}

// Difference is x - reference of a row.
func (s *stageScene) Difference(_ context.Context, row int) ([]float32, error) {
	out, err := s.images.Values(row)
	if err != nil {
		return nil, err
	}
	reference, err := (&images{values: s.references}).Values(row)
	if err != nil {
		return nil, err
	}
	for i, v := range reference {
		out[i] -= v
	}
	return out, nil
}

// Close frees the scene.
func (s *stageScene) Close() error { return errors.Join(s.scene.Close(), s.references.Close()) }

// Explain asks the method that is judged.
func (s *stage) Explain(ctx context.Context, targets []int) ([]scores.Map, error) {
	if s.spec.Method == nil {
		return nil, usage.Errorf("maps that come from files cannot be asked for more: want a method")
	}
	made, err := s.n.Attribute(ctx, s.images, orchestrate.AttributionSpec{Method: *s.spec.Method, Targets: targets, Keys: s.spec.Keys,
		Preset: s.spec.Preset, Features: s.spec.Features, FeatureMap: s.spec.FeatureMap, Batch: s.spec.Batch})
	if err != nil {
		return nil, err
	}
	out := make([]scores.Map, len(made.Maps))
	for i, values := range made.Maps {
		out[i] = scores.Map{Shape: made.Shape, Values: values}
	}
	return out, nil
}

// Scaled scores images times masks.
func (s *stage) Scaled(ctx context.Context, rows []scores.Scaled) ([]trace.Score, error) {
	index, targets := make([]int32, len(rows)), make([]int32, len(rows))
	var masks []float32
	for i, r := range rows {
		index[i], targets[i] = int32(r.Row), int32(r.Target)
		masks = append(masks, r.Mask...)
	}
	logits, probabilities, err := s.n.n.Scaled(ctx, s.images.values, index, masks, targets, s.spec.Batch)
	if err != nil {
		return nil, fmt.Errorf("scoring %d dimmed images with %s: %w", len(rows), s.n.info.Net, mark(err))
	}
	out := make([]trace.Score, len(rows))
	for i := range out {
		out[i] = trace.Score{Logit: logits[i], Prob: probabilities[i]}
	}
	return out, nil
}

// Noisy is a stage of rows with noise.
func (s *stage) Noisy(ctx context.Context, draws []scores.Draw, radius float64) (scores.Stage, error) {
	noisy, err := s.images.noisy(ctx, s.n.b, draws, radius)
	if err != nil {
		return nil, fmt.Errorf("adding noise to %d images: %w", len(draws), err)
	}
	out := &stage{n: s.n, spec: s.spec, images: noisy, layers: s.layers, owned: []interface{ Close() error }{noisy}}
	if s.spec.Keys != nil {
		out.spec.Keys = make([]uint64, len(draws))
		for i, d := range draws {
			out.spec.Keys[i] = s.spec.Keys[d.Row]
		}
	}
	return out, nil
}

// Randomise is a stage with a copy of the net.
func (s *stage) Randomise(ctx context.Context, layers []string, seed uint64) (scores.Stage, error) {
	copied, err := s.n.n.Randomised(ctx, layers, seed)
	if err != nil {
		return nil, fmt.Errorf("net %s with new parameters: %w", s.n.info.Net, mark(err))
	}
	other := *s.n
	other.n = copied
	return &stage{n: &other, spec: s.spec, images: s.images, layers: s.layers, owned: []interface{ Close() error }{&other}}, nil
}
