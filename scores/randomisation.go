package scores

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/assay-xai/assay/internal/usage"
)

func randomisation() Score {
	return Score{
		ID: "randomisation", Summary: "similarity of the map with those of nets whose layers were given new parameters, mean over layers",
		Direction: LowerIsBetter, Inputs: []Input{InputMap, InputMaps, InputNet, InputGraph},
		Paper: "Adebayo et al. 2018 (Sanity checks), model parameter randomisation", Version: 1,
		Parameters: []Parameter{
			{Name: "mode", Type: "string", Default: "cascading", Choices: []string{"cascading", "independent"}, Summary: "cascading: layer after layer from the output down, staying new; independent: one layer at a time"},
			{Name: "layers", Type: "string", Default: "all", Choices: []string{"all", "convolutions"}, Summary: "which layers with parameters"},
			similarityParameter(),
			reduceParameter("sum", false),
		},
		Also: similarityQuantities(),
		cost: func(s Subject, p values) Cost {
			return Cost{Maps: float64(len(chosenLayers(s.Layers, p.text("layers"))))}
		},
		compute: computeRandomisation,
	}
}

// chosenLayers lists layers from the output down.
func chosenLayers(layers []Layer, which string) []Layer {
	out := slices.DeleteFunc(slices.Clone(layers), func(l Layer) bool {
		return which == "convolutions" && l.Op != "conv2d" && l.Op != "conv_transpose2d"
	})
	slices.Reverse(out)
	return out
}

func computeRandomisation(ctx context.Context, g *group, p values) (results []Result, err error) {
	layers := chosenLayers(g.Layers(), p.text("layers"))
	if len(layers) == 0 {
		return nil, usage.Errorf("the net has no layers of which the parameters are known (layers %s)", p.text("layers"))
	}
	comparison, err := newComparison(g, p)
	if err != nil {
		return nil, err
	}
	cascading := p.text("mode") == "cascading"
	now := g.Stage // never closed here, but for copies
	defer func() {
		if now != g.Stage {
			err = errors.Join(err, now.Close())
		}
	}()
	for _, l := range layers {
		next, err := now.Randomise(ctx, []string{l.Name}, g.seed)
		if err != nil {
			return nil, err
		}
		maps, err := g.explainAll(ctx, next, func(m member) int { return m.Target })
		if !cascading {
			if e := next.Close(); err == nil {
				err = e
			}
		} else {
			before := now
			if now = next; before != g.Stage {
				if e := before.Close(); err == nil {
					err = e
				}
			}
		}
		if err == nil {
			err = comparison.add(ctx, l.Name, maps)
		}
		if err != nil {
			return nil, fmt.Errorf("randomising %s: %w", l.Name, err)
		}
	}
	return comparison.results(), nil
}

// explainAll asks for maps of the group's images; rows that are not scored are
// explained too, and left out.
func (g *group) explainAll(ctx context.Context, on Stage, target func(m member) int) ([]Map, error) {
	targets := make([]int, len(g.ids))
	for _, m := range g.images {
		targets[m.row] = target(m)
	}
	all, err := on.Explain(ctx, targets)
	if err != nil {
		return nil, err
	}
	if len(all) != len(targets) {
		return nil, fmt.Errorf("%d maps for %d images", len(all), len(targets))
	}
	maps := make([]Map, len(g.images))
	for i, m := range g.images {
		maps[i] = all[m.row]
	}
	return maps, nil
}

func randomLogit() Score {
	return Score{
		ID: "random-logit", Summary: "similarity of the map with that of another class, drawn uniformly", Direction: LowerIsBetter,
		Inputs: []Input{InputMap, InputMaps, InputNet}, Paper: "Sixt et al. 2020 (When explanations lie), random logit", Version: 1,
		Parameters: []Parameter{similarityParameter(), reduceParameter("sum", false)},
		Also:       append(similarityQuantities(), Quantity{"class", "the other class"}),
		cost:       func(Subject, values) Cost { return Cost{Maps: 1} },
		compute: func(ctx context.Context, g *group, p values) ([]Result, error) {
			classes := g.Classes()
			if classes < 2 {
				return slices.Repeat([]Result{undefined(OneClass)}, len(g.images)), nil
			}
			other := func(m member) int {
				c := g.stream("random-logit", m).IntN(0, 0, classes-1)
				if c >= m.Target {
					c++
				}
				return c
			}
			comparison, err := newComparison(g, p)
			if err != nil {
				return nil, err
			}
			maps, err := g.explainAll(ctx, g.Stage, other)
			if err != nil {
				return nil, err
			}
			if err := comparison.add(ctx, "", maps); err != nil {
				return nil, err
			}
			results := comparison.results()
			for i := range results {
				if results[i].Curves = nil; results[i].Undefined == "" {
					results[i].Also["class"] = float64(other(g.images[i]))
				}
			}
			return results, nil
		},
	}
}

// comparison compares the group's maps with others, again and again.
type comparison struct {
	g      *group
	by     string   // what the value is
	all    []string // what is computed
	reduce string
	before []portrait
	labels []string
	// found[s][i][k]: similarity s of image i at label k.
	found map[string][][]likeness
}

// likeness is a similarity, if it is defined.
type likeness struct {
	value   float64
	defined bool
}

func newComparison(g *group, p values) (*comparison, error) {
	c := &comparison{g: g, by: p.text("similarity"), all: similaritiesFor(g.Shape()), reduce: p.text("reduce"), found: map[string][][]likeness{}}
	if err := checkSimilarity(g.Shape(), c.by); err != nil {
		return nil, err
	}
	c.before = make([]portrait, len(g.images))
	for i, m := range g.images {
		var err error
		if c.before[i], err = portray(m.Map, c.reduce); err != nil {
			return nil, err
		}
	}
	for _, by := range c.all {
		c.found[by] = make([][]likeness, len(g.images))
	}
	return c, nil
}

// add compares with maps of the same images.
func (c *comparison) add(ctx context.Context, label string, maps []Map) error {
	c.labels = append(c.labels, label)
	work, _ := errgroup.WithContext(ctx)
	work.SetLimit(runtime.GOMAXPROCS(0))
	for i, m := range maps {
		work.Go(func() error {
			var now portrait
			if len(m.Values) != len(c.g.images[i].Map.Values) {
				return fmt.Errorf("the map of %s is %v, and was %v", c.g.images[i].ID, m.Shape, c.g.images[i].Map.Shape)
			}
			if finiteMap(m.Values) {
				var err error
				if now, err = portray(m, c.reduce); err != nil {
					return err
				}
			}
			for _, by := range c.all {
				value, defined := similar(c.before[i], now, by)
				c.found[by][i] = append(c.found[by][i], likeness{value, defined && isFinite(value)})
			}
			return nil
		})
	}
	return work.Wait()
}

// results takes the mean over the labels at which a similarity is defined.
func (c *comparison) results() []Result {
	out := make([]Result, len(c.g.images))
	for i := range out {
		r := &out[i]
		r.Also = map[string]float64{}
		for _, by := range c.all {
			curve := Curve{Name: by}
			sum := 0.0
			for k, p := range c.found[by][i] {
				if p.defined {
					curve.X, curve.Labels, curve.Y = append(curve.X, float64(k)), append(curve.Labels, c.labels[k]), append(curve.Y, p.value)
					sum += p.value
				}
			}
			if len(curve.Y) == 0 {
				continue
			}
			r.Also[by] = sum / float64(len(curve.Y))
			r.Curves = append(r.Curves, curve)
			if missing := len(c.labels) - len(curve.Y); by == c.by && missing > 0 {
				r.Warnings = append(r.Warnings, fmt.Sprintf("%d of %d maps of other nets are constant or not finite: left out of the mean", missing, len(c.labels)))
			}
		}
		value, ok := r.Also[c.by]
		if !ok {
			*r = undefined(ConstantMap)
			continue
		}
		r.Value = value
	}
	return out
}
