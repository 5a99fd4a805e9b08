package device

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/torchx"
	"github.com/assay-xai/assay/trace"
)

type scene struct {
	n         *net
	s         *torchx.Scene
	reference torchx.ReferenceSpec
	other     *torchx.Tensor // what reference "image" takes, else nil
	batch     int
	words     int
	imputed   bool // by an imputer that depends on what else is deleted
}

// Scene makes room for images whose features are deleted.
func (n *net) Scene(ctx context.Context, spec orchestrate.SceneSpec) (orchestrate.Scene, error) {
	if spec.Batch < 1 {
		return nil, usage.Errorf("batch %d: want at least 1", spec.Batch)
	}
	text, err := referenceJSON(spec.Reference)
	if err != nil {
		return nil, err
	}
	s, err := n.b.d.NewScene(ctx, spec.Slots, spec.Shape, spec.Features, spec.FeatureMap)
	if err != nil {
		return nil, mark(err)
	}
	out := &scene{n: n, s: s, batch: spec.Batch, words: trace.Words(spec.Features)}
	out.reference = torchx.ReferenceSpec{JSON: text, Features: spec.Features, FeatureMap: spec.FeatureMap, DatasetMean: spec.DatasetMean}
	if out.reference.Generator, err = n.b.generator(ctx, spec.Generator, n.precision); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if out.imputed, err = n.b.dependsOnMask(ctx, spec.Reference.ID); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if len(spec.Shape) == 3 {
		out.reference.Mean = channelValues(spec.Preset.Mean, spec.Shape[0], 0)
		out.reference.Std = channelValues(spec.Preset.Std, spec.Shape[0], 1)
	}
	if spec.Other != nil {
		other, err := own(spec.Other)
		if err == nil {
			out.other, err = other.values.Row(0)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("the reference's other image: %w", err), s.Close())
		}
		out.reference.Other = out.other
	}
	return out, nil
}

// dependsOnMask says whether an imputer of the catalogue is more than a reference.
func (b *Backend) dependsOnMask(ctx context.Context, id string) (bool, error) {
	c, err := b.Catalogue(ctx)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(c.Imputers, func(e orchestrate.Entry) bool { return e.ID == id })
	return i >= 0 && c.Imputers[i].Needs == orchestrate.NeedsMask, nil
}

func referenceJSON(r orchestrate.Reference) ([]byte, error) {
	spec := map[string]any{"id": r.ID}
	for name, value := range r.Params {
		spec[name] = value
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("reference %s: %w", r.ID, err)
	}
	return text, nil
}

// Put places an image and its reference into a slot.
func (s *scene) Put(ctx context.Context, slot int, from orchestrate.Images, i int, key uint64) (err error) {
	in, err := own(from)
	if err != nil {
		return err
	}
	image, err := in.values.Rows(i, i+1, false)
	if err != nil {
		return err
	}
	defer image.Close()
	spec := s.reference
	spec.Keys = []uint64{key}
	if s.imputed {
		x, err := image.Row(0)
		if err != nil {
			return err
		}
		defer x.Close()
		return mark(s.s.PutImputed(ctx, slot, x, spec))
	}
	references, err := s.n.b.d.Reference(ctx, image, spec)
	if err != nil {
		return mark(err)
	}
	defer references.Close()
	x, err := image.Row(0)
	if err != nil {
		return err
	}
	defer x.Close()
	r, err := references.Row(0)
	if err != nil {
		return err
	}
	defer r.Close()
	return s.s.Put(ctx, slot, x, r)
}

// ScoreRows scores states, batch rows at a time.
func (s *scene) ScoreRows(ctx context.Context, rows []trace.Row) ([]trace.Score, error) {
	slots, targets := make([]int32, len(rows)), make([]int32, len(rows))
	sets := make([]uint64, 0, len(rows)*s.words)
	for i, r := range rows {
		if len(r.Set) != s.words {
			return nil, fmt.Errorf("a state of %d words: want %d", len(r.Set), s.words)
		}
		slots[i], targets[i] = int32(r.Slot), int32(r.Target)
		sets = append(sets, r.Set...)
	}
	logits, probabilities, err := s.n.n.Masked(ctx, s.s, slots, sets, targets, s.batch)
	if err != nil {
		return nil, fmt.Errorf("scoring %d states with %s: %w", len(rows), s.n.info.Net, mark(err))
	}
	out := make([]trace.Score, len(rows))
	for i := range out {
		out[i] = trace.Score{Logit: logits[i], Prob: probabilities[i]}
	}
	return out, nil
}

// Close frees the scene.
func (s *scene) Close() error { return errors.Join(s.s.Close(), s.other.Close()) }
