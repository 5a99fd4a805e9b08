package fake

import (
	"context"
	"fmt"

	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

// methods are what the fake explains by: "weights" is the class's weight of every
// number, "random" draws, "scaled" multiplies another's map.
func methods() []orchestrate.Entry {
	zero := 0.0
	return []orchestrate.Entry{
		{ID: "weights", Summary: "the class's weights", Family: "gradient", Needs: "input gradient", Paper: "none"},
		{ID: "random", Summary: "uniform numbers", Family: "control", Paper: "none"},
		{ID: "scaled", Summary: "another map times a factor", Family: "gradient", Needs: "input gradient", Paper: "none", Base: "weights",
			Parameters: []orchestrate.EntryParameter{{Name: "factor", Type: "float", Default: 2.0, Minimum: &zero}}},
		{ID: "plain", Summary: "one number for all", Family: "control", OneChannel: true, Paper: "none"},
	}
}

// Attribute makes maps.
func (n *net) Attribute(ctx context.Context, in orchestrate.Images, spec orchestrate.AttributionSpec) (orchestrate.Attribution, error) {
	out := orchestrate.Attribution{Shape: in.Shape()}
	if n.b.Memory > 0 && spec.Batch > n.b.Memory {
		return out, fmt.Errorf("batch %d: %w", spec.Batch, orchestrate.ErrOutOfMemory)
	}
	call := n.b.calls.Add(1)
	if n.b.Fail != nil {
		if err := n.b.Fail(call); err != nil {
			return out, err
		}
	}
	if err := n.b.wait(ctx); err != nil {
		return out, err
	}
	if spec.Method.ID == "plain" && len(out.Shape) == 3 {
		out.Shape = append([]int{1}, out.Shape[1:]...)
	}
	for i, row := range in.(*images).rows {
		values, err := n.explain(spec.Method, row, spec.Targets[i], spec.Keys[i])
		if err != nil {
			return out, err
		}
		size := 1
		for _, d := range out.Shape {
			size *= d
		}
		out.Maps = append(out.Maps, values[:size])
	}
	out.Forwards = int64(len(out.Maps))
	return out, nil
}

func (n *net) explain(m orchestrate.MethodSpec, x []float32, target int, key uint64) ([]float32, error) {
	out := make([]float32, len(x))
	switch m.ID {
	case "weights":
		for i := range out {
			out[i] = float32(n.w[target*inputs+i%inputs])
		}
	case "random":
		for i := range out {
			out[i] = float32(rng.Stream{Key: key}.Float64(uint64(i), 0))
		}
	case "scaled":
		base, err := n.explain(*m.Base, x, target, key)
		if err != nil {
			return nil, err
		}
		for i, v := range base {
			out[i] = v * float32(m.Params["factor"].(float64))
		}
	case "plain":
		for i := range out {
			out[i] = 1
		}
	default:
		return nil, usage.Errorf("no method %s", m.ID)
	}
	return out, nil
}

// Attribute is not there: explanations are tested with the other nets.
func (n *softmaxRegression) Attribute(context.Context, orchestrate.Images, orchestrate.AttributionSpec) (orchestrate.Attribution, error) {
	return orchestrate.Attribution{}, usage.Errorf("net %s explains nothing", n.Info().Net)
}
