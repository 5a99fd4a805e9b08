package scores

import (
	"context"

	"github.com/assay-xai/assay/internal/usage"
)

// Region is what is to be found in an image: the pixels in any of the boxes or in
// the mask.
type Region struct {
	Boxes []Box
	Mask  []bool // an entry a pixel of the map, row-major; nil: none
}

// Box has the pixels X0 <= x < X1, Y0 <= y < Y1 of the image that the net sees.
type Box struct{ X0, Y0, X1, Y1 int }

// mask is the region's pixels, false where there are none.
func (r *Region) mask(h, w int) ([]bool, bool, error) {
	if r.Mask != nil && len(r.Mask) != h*w {
		return nil, false, usage.Errorf("a mask of %d pixels for a map of %dx%d", len(r.Mask), h, w)
	}
	out := make([]bool, h*w)
	copy(out, r.Mask)
	any := false
	for _, b := range r.Boxes {
		for y := max(0, b.Y0); y < min(h, b.Y1); y++ {
			for x := max(0, b.X0); x < min(w, b.X1); x++ {
				out[y*w+x] = true
			}
		}
	}
	for _, in := range out {
		any = any || in
	}
	return out, any, nil
}

func pointingGame() Score {
	return Score{
		ID: "pointing-game", Summary: "whether the map's largest value lies on what is to be found: 1 or 0", Direction: HigherIsBetter,
		Inputs: []Input{InputMap, InputRegion}, Paper: "Zhang et al. 2018 (Top-down neural attention by excitation backprop), the pointing game", Version: 1,
		Parameters: []Parameter{
			{Name: "tolerance", Type: "int", Default: 15, Minimum: number(0), Maximum: number(1 << 15), Summary: "a point so many pixels away counts too"},
			reduceParameter("sum", false),
		},
		compute: func(_ context.Context, g *group, p values) ([]Result, error) {
			results := make([]Result, len(g.images))
			for i, m := range g.images {
				r, err := point(g, m, p)
				if err != nil {
					return nil, err
				}
				results[i] = r
			}
			return results, nil
		},
	}
}

func point(g *group, m member, p values) (Result, error) {
	a, err := Reduce(m.Map, p.text("reduce"))
	if err != nil {
		return Result{}, err
	}
	if len(m.Map.Shape) < 2 {
		return Result{}, usage.Errorf("map of %s is %v: want one of an image", m.ID, m.Map.Shape)
	}
	if m.Region == nil {
		return undefined(NoRegion), nil
	}
	h, w := m.Map.Shape[len(m.Map.Shape)-2], m.Map.Shape[len(m.Map.Shape)-1]
	mask, any, err := m.Region.mask(h, w)
	switch {
	case err != nil:
		return Result{}, err
	case !any:
		return undefined(NoRegion), nil
	case constant(a):
		return undefined(ConstantMap), nil
	}
	at := Descending(a, g.seed, m.ID)[0]
	x, y, reach := at%w, at/w, p.int("tolerance")
	for v := max(0, y-reach); v <= min(h-1, y+reach); v++ {
		for u := max(0, x-reach); u <= min(w-1, x+reach); u++ {
			if mask[v*w+u] && (u-x)*(u-x)+(v-y)*(v-y) <= reach*reach {
				return Result{Value: 1}, nil
			}
		}
	}
	return Result{}, nil
}
