package fake

import (
	"context"
	"fmt"
	"math"

	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

// methods are what the fake explains by: "weights" is the class's weight of every
// number, "random" draws, "scaled" multiplies another's map, "plain" ranks nothing,
// "holes" has a value that is no number, "layered" names a layer, and "picky" refuses
// images whose first number is below one half.
func methods() []orchestrate.Entry {
	zero, one := 0.0, 1.0
	return []orchestrate.Entry{
		{ID: "weights", Summary: "the class's weights", Family: "gradient", Needs: "input gradient", Paper: "none"},
		{ID: "random", Summary: "uniform numbers", Family: "control", Paper: "none"},
		{ID: "scaled", Summary: "another map times a factor", Family: "gradient", Needs: "input gradient", Paper: "none", Base: "weights",
			Parameters: []orchestrate.EntryParameter{{Name: "factor", Type: "float", Default: 2.0, Minimum: &zero}}},
		{ID: "mean", Summary: "the mean of another's maps", Family: "gradient", Needs: "input gradient", Paper: "none", Base: "weights",
			Parameters: []orchestrate.EntryParameter{{Name: "samples", Type: "int", Default: 5, Minimum: &one}}},
		{ID: "holes", Summary: "the class's weights, the first of them no number", Family: "gradient", Needs: "input gradient", Paper: "none"},
		{ID: "layered", Summary: "the class's weights", Family: "cam", Needs: "graph", Paper: "none",
			Parameters: []orchestrate.EntryParameter{{Name: "layer", Type: "string", Default: ""}}},
		{ID: "picky", Summary: "the class's weights, of some images", Family: "perturbation", Needs: "forward", Paper: "none"},
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
	out.Forwards = int64(len(out.Maps) * rowsOf(spec.Method))
	out.Backwards = out.Forwards
	if spec.Method.ID == "weights" { // as if it were complete
		for _, m := range out.Maps {
			sum := 0.0
			for _, v := range m {
				sum += float64(v)
			}
			out.Deltas = append(out.Deltas, sum-1)
		}
	}
	return out, nil
}

// rowsOf is what an image takes.
func rowsOf(m orchestrate.MethodSpec) int {
	n := 1
	if samples, ok := m.Params["samples"].(int); ok {
		n = samples
	}
	if m.Base != nil {
		n *= rowsOf(*m.Base)
	}
	return n
}

func (n *net) explain(m orchestrate.MethodSpec, x []float32, target int, key uint64) ([]float32, error) {
	out := make([]float32, len(x))
	switch m.ID {
	case "weights", "holes", "layered", "picky":
		if m.ID == "picky" && x[0] < .5 {
			return nil, usage.Errorf("picky: the first number is %.3f: want at least 0.5", x[0])
		}
		for i := range out {
			out[i] = float32(n.w[target*inputs+i%inputs])
		}
		if m.ID == "holes" {
			out[0] = float32(math.NaN())
		}
	case "mean":
		return n.explain(*m.Base, x, target, key)
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
