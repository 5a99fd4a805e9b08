package device

import (
	"context"
	"fmt"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/torchx"
)

// Remove deletes features of images by rank, imputes them and runs what is left.
func (n *net) Remove(ctx context.Context, images orchestrate.Images, spec orchestrate.RemovalSpec) (orchestrate.Removal, error) {
	var out orchestrate.Removal
	in, err := own(images)
	if err != nil {
		return out, err
	}
	ask, err := n.removal(in, spec)
	if err != nil {
		return out, err
	}
	if ask.Generator, err = n.b.generator(ctx, spec.Generator, n.precision); err != nil {
		return out, err
	}
	got, err := n.n.Remove(ctx, in.values, ask)
	if err != nil {
		return out, fmt.Errorf("removing features for %s by %s: %w", n.info.Net, spec.Imputer.ID, mark(err))
	}
	defer got.Inputs.Close()
	out = orchestrate.Removal{Variations: got.Variations, Forwards: int64(len(spec.Rows)),
		ImputeSeconds: got.ImputeSeconds, ForwardSeconds: got.ForwardSeconds}
	each := ask.TargetsEach
	for r := range spec.Rows {
		out.Classes = append(out.Classes, int(got.Classes[r]))
		out.Iterations = append(out.Iterations, int(got.Iterations[r]))
		out.Probabilities = append(out.Probabilities, got.Probabilities[r*each:(r+1)*each:(r+1)*each])
	}
	if !spec.Inputs {
		return out, nil
	}
	values, err := floats(got.Inputs, n.precision)
	if err != nil {
		return out, err
	}
	size := len(values) / len(spec.Rows)
	for r := range spec.Rows {
		out.Inputs = append(out.Inputs, values[r*size:(r+1)*size:(r+1)*size])
	}
	return out, nil
}

// removal is the spec as torchx wants it.
func (n *net) removal(in *images, spec orchestrate.RemovalSpec) (torchx.RemovalSpec, error) {
	imputer, err := referenceJSON(spec.Imputer)
	if err != nil {
		return torchx.RemovalSpec{}, err
	}
	ask := torchx.RemovalSpec{Imputer: imputer, Ties: spec.Ties, TieKeys: spec.TieKeys, NoiseKeys: spec.NoiseKeys,
		DatasetMean: spec.DatasetMean, Batch: spec.Batch, Inputs: spec.Inputs}
	for _, r := range spec.Rows {
		ask.Rows = append(ask.Rows, torchx.RemovalRow{Image: r.Image, Removed: r.Removed, Least: r.Least})
	}
	if len(in.shape) == 3 {
		ask.Mean, ask.Std = channelValues(spec.Preset.Mean, in.shape[0], 0), channelValues(spec.Preset.Std, in.shape[0], 1)
	}
	if spec.Maps != nil && len(spec.Maps) != in.Len() {
		return ask, usage.Errorf("%d maps for %d images", len(spec.Maps), in.Len())
	}
	for _, m := range spec.Maps {
		ask.Maps = append(ask.Maps, m...)
	}
	if len(spec.Targets) > 0 {
		ask.TargetsEach = len(spec.Targets[0])
	}
	for i, list := range spec.Targets {
		if len(list) != ask.TargetsEach {
			return ask, usage.Errorf("%d targets for image %d, %d for the first: want as many for each", len(list), i, ask.TargetsEach)
		}
		for _, t := range list {
			ask.Targets = append(ask.Targets, int32(t))
		}
	}
	return ask, nil
}
