package orchestrate

import (
	"math"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/trace"
)

// Foreground says how much of what a trajectory holds for relevant lies on the
// object of an image, where the data knows the object. All are fractions of
// pixels, a pixel having the rank of its patch: rank 1..t from the first
// deleted (least relevant) to the last.
type Foreground struct {
	// Area is the part of the image that is foreground: what an order that knows
	// nothing has in Last, too.
	Area float64
	// Mass is the part of the heat map psi = (rank/t)^alpha that is on the
	// foreground, sum of psi over its pixels by the sum over all, divided by
	// Area: 1 for an order that knows nothing, more where it looks at the object.
	Mass float64
	// Last has for each of ForegroundLast the part of the pixels of the last
	// ceil(q t) patches that is foreground.
	Last []float64
}

// ForegroundLast are the fractions q of the patches that count as the most
// relevant.
func ForegroundLast() []float64 { return []float64{.10, .25, .50} }

// MeasureForeground looks at a trajectory (patches, least relevant first) with
// the map from pixels to patches and the mask of the foreground, [H*W] both.
// ok is false where the image is all foreground or has none.
func MeasureForeground(trajectory []int, patches []int32, mask []bool, alpha float64) (f Foreground, ok bool) {
	t := len(trajectory)
	size, object := make([]float64, t), make([]float64, t) // pixels by patch
	all, inside := 0.0, 0.0
	for i, p := range patches {
		size[p]++
		all++
		if mask[i] {
			object[p]++
			inside++
		}
	}
	if inside == 0 || inside == all {
		return f, false
	}
	f.Area = inside / all
	sum, on := 0.0, 0.0
	for i, p := range trajectory {
		psi := math.Pow(float64(i+1)/float64(t), alpha)
		sum += psi * size[p]
		on += psi * object[p]
	}
	f.Mass = on / sum / f.Area
	for _, q := range ForegroundLast() {
		sum, on := 0.0, 0.0
		for _, p := range trajectory[t-int(math.Ceil(q*float64(t)-1e-9)):] {
			sum += size[p]
			on += object[p]
		}
		f.Last = append(f.Last, on/sum)
	}
	return f, true
}

// defaultAlpha is the exponent of heat maps.
const defaultAlpha = 2

// foreground measures a record of an image whose object is known.
func foreground(r *Resolved, u *Unit, rec record.Record) (f Foreground, ok bool, err error) {
	if rec.Trace == nil || rec.Bound || rec.EdgePatches == 0 || !u.Data.Set.HasForeground() {
		return f, false, nil
	}
	mask, err := u.Data.Set.Foreground(u.Item)
	if err != nil {
		return f, false, err
	}
	_, shape, err := u.Data.Set.Values(u.Item)
	if err != nil {
		return f, false, err
	}
	patches, err := trace.PatchMap(rec.EdgePatches, shape[len(shape)-2], shape[len(shape)-1])
	if err != nil {
		return f, false, err
	}
	alpha := r.Plan.Report.Alpha
	if alpha == 0 {
		alpha = defaultAlpha
	}
	f, ok = MeasureForeground(rec.Trajectory, patches, mask, alpha)
	return f, ok, nil
}

func foregroundMetrics() []Metric {
	metric := func(id, summary string, get func(Foreground) float64) Metric {
		return Metric{ID: id, Summary: summary, HigherIsBetter: true,
			OfUnit: func(r *Resolved, u *Unit, rec record.Record) (float64, bool, error) {
				f, ok, err := foreground(r, u, rec)
				if !ok || err != nil {
					return 0, false, err
				}
				return get(f), true, nil
			}}
	}
	list := []Metric{
		metric("foreground-mass", "share of the heat map (rank/t)^alpha that is on the known object, divided by the object's share of the image: 1 for an order that knows nothing", func(f Foreground) float64 { return f.Mass }),
		metric("foreground-area", "the known object's share of the image", func(f Foreground) float64 { return f.Area }),
	}
	for i, id := range []string{"foreground-last-10", "foreground-last-25", "foreground-last-50"} {
		list = append(list, metric(id, "share of the known object among the last deleted "+id[len("foreground-last-"):]+" % of the patches", func(f Foreground) float64 { return f.Last[i] }))
	}
	return list
}

// costMetrics are what a search took.
func costMetrics() []Metric {
	metric := func(id, summary string, get func(record.Cost) float64) Metric {
		return Metric{ID: id, Summary: summary, Cost: true, Value: func(r record.Record) (float64, bool) {
			return get(r.Cost), r.Trace != nil
		}}
	}
	return []Metric{
		metric("seconds", "seconds an image (in summaries of plans that ask for it)", func(c record.Cost) float64 { return c.Seconds }),
		metric("evaluations", "states an image that the plain loop would score (likewise)", func(c record.Cost) float64 { return float64(c.Evaluations) }),
		metric("forwards", "states an image that the net scored (likewise)", func(c record.Cost) float64 { return float64(c.Forwards) }),
	}
}
