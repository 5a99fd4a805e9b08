package scores

import "github.com/assay-xai/assay/dataset"

// noReduction keeps the channels.
const noReduction = dataset.NoReduction

// Reductions returns the names that Reduce takes, "none" first: those of
// dataset.MapReductions.
func Reductions() []string {
	var out []string
	for _, r := range dataset.MapReductions() {
		out = append(out, r.ID)
	}
	return out
}

// Reduce makes one value a pixel of a map, as dataset.MapReduction does, so that a
// map that was reduced before it was kept scores the same; "none" returns all values.
func Reduce(m Map, by string) ([]float64, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	reduction, err := dataset.MapReductionByID(by)
	if err != nil {
		return nil, err
	}
	values, _ := reduction.Reduce(m.Values, m.Shape)
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out, nil
}

func finiteMap(values []float32) bool {
	for _, v := range values {
		if v-v != 0 {
			return false
		}
	}
	return true
}

func constant(values []float64) bool {
	for _, v := range values {
		if v != values[0] {
			return false
		}
	}
	return true
}
