package dataset

import (
	"fmt"
	"math"

	"github.com/assay-xai/assay/internal/rng"
)

// gaussians are the rows of synthetic:gaussians: column j of a row of class c
// is N(+-mean, std^2), + for class 1, in the first informative columns, and
// N(0, std^2) in the others.
type gaussians struct {
	stream                rng.Stream
	classes               []uint8
	features, informative int
	mean, std             float64
}

func openGaussians(p *syntheticParams, split string) (*rowData, error) {
	g := &gaussians{stream: p.stream("gaussians/values", split), features: p.integer("features", 1, 4096)}
	g.informative = g.features
	if p.text("informative") != "" {
		g.informative = p.integer("informative", 1, g.features)
	}
	if p.either("mean", "distance") {
		g.mean = p.positive("distance", true) / 2 / math.Sqrt(float64(g.informative))
	} else {
		g.mean = p.positive("mean", true)
	}
	if p.either("std", "variance") {
		g.std = math.Sqrt(p.positive("variance", false))
	} else {
		g.std = p.positive("std", false)
	}
	if p.err != nil {
		return nil, p.err
	}
	g.classes = inBlocks(p.stream("gaussians/classes", split), []int{1, 1}, p.count)
	schema := &Schema{Label: "class"}
	for j := range g.features {
		// Of the distribution, not of the rows: those differ by little.
		std := g.std
		if j < g.informative {
			std = math.Hypot(g.std, g.mean)
		}
		schema.Columns = append(schema.Columns, Column{Name: fmt.Sprintf("x%d", j), Std: std})
	}
	return &rowData{kind: Table, reader: g, schema: schema, classes: integers8(g.classes), names: []string{"minus", "plus"}}, nil
}

func integers8(list []uint8) []int {
	out := make([]int, len(list))
	for i, v := range list {
		out[i] = int(v)
	}
	return out
}

func (g *gaussians) row(i int) ([]float32, []int, error) {
	values := make([]float32, g.features)
	for j := range values {
		v := g.std * g.stream.Normal(uint64(i), uint64(j))
		if j < g.informative {
			v += g.meanOf(int(g.classes[i]))
		}
		values[j] = float32(v)
	}
	return values, []int{g.features}, nil
}

func (g *gaussians) meanOf(class int) float64 { return float64(2*class-1) * g.mean }

func (g *gaussians) mixture() Mixture {
	m := Mixture{Std: g.std}
	for c := range m.Means {
		m.Means[c] = make([]float64, g.features)
		for j := range g.informative {
			m.Means[c][j] = g.meanOf(c)
		}
	}
	return m
}

func (g *gaussians) Close() error { return nil }
