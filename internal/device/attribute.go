package device

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/torchx"
)

// Attribute explains images by a method of the catalogue.
func (n *net) Attribute(ctx context.Context, images orchestrate.Images, spec orchestrate.AttributionSpec) (orchestrate.Attribution, error) {
	var out orchestrate.Attribution
	in, err := own(images)
	if err != nil {
		return out, err
	}
	method, err := json.Marshal(spec.Method)
	if err != nil {
		return out, fmt.Errorf("method %s: %w", spec.Method.ID, err)
	}
	ask := torchx.AttributeSpec{Method: method, Keys: spec.Keys, Batch: spec.Batch, Features: spec.Features, FeatureMap: spec.FeatureMap}
	for _, t := range spec.Targets {
		ask.Targets = append(ask.Targets, int32(t))
	}
	if len(in.shape) == 3 {
		ask.Mean, ask.Std = channelValues(spec.Preset.Mean, in.shape[0], 0), channelValues(spec.Preset.Std, in.shape[0], 1)
	}
	maps, report, err := n.n.Attribute(ctx, in.values, ask)
	if err != nil {
		return out, fmt.Errorf("explaining %s by %s: %w", n.info.Net, spec.Method.ID, mark(err))
	}
	defer maps.Close()
	_, shape, err := maps.Describe()
	if err != nil {
		return out, err
	}
	each := 1
	for _, d := range shape[1:] {
		out.Shape = append(out.Shape, int(d))
		each *= int(d)
	}
	values, err := floats(maps, n.precision)
	if err != nil {
		return out, err
	}
	for i := range in.Len() {
		out.Maps = append(out.Maps, values[i*each:(i+1)*each:(i+1)*each])
	}
	out.Forwards, out.Backwards, out.Deltas, out.Warnings = report.Forwards, report.Backwards, report.Deltas, report.Warnings
	return out, nil
}

// floats reads a tensor of a net's precision.
func floats(t *torchx.Tensor, precision torchx.Precision) ([]float32, error) {
	if precision != torchx.PrecisionF64 {
		return t.Floats()
	}
	wide, err := t.Doubles()
	if err != nil {
		return nil, err
	}
	out := make([]float32, len(wide))
	for i, v := range wide {
		out[i] = float32(v)
	}
	return out, nil
}
