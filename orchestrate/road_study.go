package orchestrate

import (
	"fmt"
	"slices"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/metrics"
)

// roadStudy removes the pixels that maps rank first or last, imputes them, and asks the
// net again: without retraining, ROAD of Rong et al. 2022, section 5. One unit is the
// curve of one image over all fractions.
func roadStudy() Study {
	return Study{
		ID:         "road",
		Summary:    "what nets say without the pixels that maps find relevant, with imputation and without retraining",
		Code:       "road/1",
		Seeded:     true,
		Parameters: roadParameters(),
		Check:      checkRoad,
		Fit:        fitRoad,
		Rows:       roadRows,
		Files:      openRoadFiles,
		Merge:      mergeRoad,
		WholeData:  roadNeedsMean,
		Run:        runRoad,
		Metrics:    roadMetrics(),
		Along:      fractionKey,
		Pooled:     roadPooled(),
		Together:   roadTogether(),
		Contest:    roadContest,
	}
}

// Parameters of the study beside those of score and explain.
const (
	orderKey     = "order"
	imputerKey   = "imputer"
	fractionsKey = "fractions"
	fractionKey  = "fraction"
	tiesKey      = "ties"

	// OrderMoRF removes the most relevant first, OrderLeRF the least relevant,
	// OrderRandom any: it asks no method.
	OrderMoRF   = "morf"
	OrderLeRF   = "lerf"
	OrderRandom = "random"
)

// removers is the catalogue of imputers, as road calls them.
const removers catalogueOf = "imputer"

// rankReductions are the reductions that leave a value a pixel.
func rankReductions() []string {
	return slices.DeleteFunc(ids(dataset.MapReductions(), func(r dataset.MapReduction) string { return r.ID }),
		func(id string) bool { return id == dataset.NoReduction })
}

func roadParameters() []Parameter {
	return []Parameter{
		targetParameter(targetLabel),
		{Name: methodKey, Type: "spec", Catalogue: methods,
			Summary: "attribution methods of assay list methods, with their parameters; none, and no attributions: gradient"},
		{Name: attributionsKey, Type: fileType, Hidden: true,
			Summary: "maps by image id in place of a method's: an .npz, or a folder of them"},
		{Name: reduceKey, Type: "string", Default: "sum", Choices: rankReductions(),
			Summary: "what becomes of a map's channels, so that it ranks pixels"},
		{Name: orderKey, Type: "string", Default: []any{OrderMoRF, OrderLeRF}, Choices: []string{OrderMoRF, OrderLeRF, OrderRandom},
			Summary: "which pixels are removed first: the most relevant, the least relevant, or any, without a method"},
		{Name: imputerKey, Type: "spec", Default: "noisy-linear", Catalogue: removers,
			Summary: "what removed pixels become: imputers of assay list imputers, with their parameters"},
		{Name: fractionsKey, Type: fractionsType, Default: "0.1,0.2,0.3,0.4,0.5,0.7,0.9", Hidden: true,
			Summary: "fractions of the pixels that are removed, from 0 to 1; one list is one value"},
		{Name: tiesKey, Type: "string", Default: TiesRandom, Choices: []string{TiesRandom, TiesIndex, TiesNoise},
			Summary: "which of equally relevant pixels goes first: by a permutation for each image, by index, or by noise of 1e-4 on the map scaled to 0..1"},
	}
}

// checkRoad finds out whose maps a point is about and leaves out what means nothing:
// without a map there is nothing to reduce and no tie to break.
func checkRoad(r *Resolved, p Params) (Params, error) {
	out := Params{"target": p["target"], orderKey: p[orderKey], imputerKey: p[imputerKey]}
	list := fractionsOf(p)
	out[fractionsKey] = fractionsText(list)
	if given := p.Text(fractionsKey); given != out[fractionsKey] {
		r.warnOnce(fmt.Sprintf("fractions %s: taken in order, each once: %s", given, out[fractionsKey]))
	}
	imputer, err := r.Catalogue.spec(removers, p.Text(imputerKey))
	if err != nil {
		return nil, err
	}
	if why, never := removesNothing()[imputer.entry.ID]; never {
		return nil, usage.Errorf("imputer %s: %s: want one of %s", imputer.short, why, imputerNames(r.Catalogue))
	}
	if p.Text(orderKey) == OrderRandom {
		return out, nil
	}
	var whose []string
	for _, k := range []string{methodKey, attributionsKey} {
		if v, ok := p[k]; ok {
			whose = append(whose, k)
			out[k] = v
		}
	}
	switch {
	case len(whose) > 1:
		return nil, usage.Errorf("road: method and attributions: want one of them in a grid (grids: has several)")
	case len(whose) == 0:
		_, name, err := r.Catalogue.Method("gradient")
		if err != nil {
			return nil, usage.Errorf("road: no method, and no attributions: %w", err)
		}
		out[methodKey] = name
	}
	out[reduceKey], out[tiesKey] = p[reduceKey], p[tiesKey]
	return out, nil
}

// removesNothing are imputers that removal cannot use, and why.
func removesNothing() map[string]string {
	return map[string]string{
		otherImageReference: "removal takes no other image",
		"patch-mean":        "pixels are removed one by one, and the mean of one pixel is that pixel, so that nothing would be removed (it is for trace, which deletes patches)",
	}
}

func imputerNames(c Catalogue) string {
	never := removesNothing()
	return listed(slices.DeleteFunc(ids(c.Imputers, func(e Entry) string { return e.ID }), func(id string) bool { return never[id] != "" }))
}

// fitRoad looks for what a net or data cannot have before anything runs.
func fitRoad(r *Resolved, n *ResolvedNet, d *ResolvedData, p Params) (Params, error) {
	if p.Text(methodKey) != "" {
		if _, err := fitExplain(r, n, d, p); err != nil {
			return nil, err
		}
	}
	shape, err := r.shapeOf(n, d)
	if err != nil {
		return nil, err
	}
	imputer, err := r.Catalogue.spec(imputers, p.Text(imputerKey))
	if err != nil {
		return nil, err
	}
	if err := r.checkRemover(imputerKey, imputer, n, d, shape); err != nil {
		return nil, err
	}
	return p, r.checkAttributions(n, d, p, shape)
}

// roadNeedsMean says that a unit's result depends on the mean of all of the data.
func roadNeedsMean(r *Resolved, p Params) bool {
	list := fractionsOf(p)
	return r.Catalogue.needsMean(p.Text(imputerKey), len(list) > 0 && list[len(list)-1] == 1)
}

// roadRows is the most rows that a forward can have use of.
func roadRows(r *Resolved) int {
	images, rows := 1, 0
	for _, d := range r.Data {
		images = max(images, d.Set.Len())
	}
	orders := map[string]bool{}
	for _, p := range r.Points {
		if order := p.Text(orderKey); !orders[order] {
			orders[order] = true
			rows += len(fractionsOf(p))
		}
	}
	return min(images*max(rows, 1), manyRows)
}

// Metrics of the study that others speak of.
const (
	accuracyMetric     = "accuracy"
	probabilityMetric  = "probability"
	combinedMetric     = "road-combined"
	meanAccuracyMetric = "mean-accuracy"
	meanProbability    = "mean-probability"
	mapVariationMetric = "map-variation"
)

func roadMetrics() []Metric {
	curve := func(id, summary string, get func(record.Road) []float64) Metric {
		return Metric{ID: id, Summary: summary, At: fractionsOf, Curve: func(rec record.Record) []float64 {
			if rec.Road == nil {
				return nil
			}
			return get(*rec.Road)
		}}
	}
	mean := func(id, summary string, get func(record.Road) []float64) Metric {
		return Metric{ID: id, Summary: summary, Value: func(rec record.Record) (float64, bool) {
			if rec.Road == nil {
				return 0, false
			}
			list := get(*rec.Road)
			if len(list) == 0 {
				return 0, false
			}
			return metrics.MeanOfCurve(list), true
		}}
	}
	cost := func(id, summary string, get func(record.Cost) float64) Metric {
		return Metric{ID: id, Summary: summary, Cost: true, Value: func(rec record.Record) (float64, bool) { return get(rec.Cost), rec.Road != nil }}
	}
	return []Metric{
		curve(accuracyMetric, "part of the images whose label is the most probable class", correctness),
		curve(probabilityMetric, "probability of the target", func(c record.Road) []float64 { return c.Probabilities }),
		curve("predicted-probability", "probability of the class that is predicted on the unchanged image", func(c record.Road) []float64 { return c.PredictedProbabilities }),
		curve("mask-variation", "total variation of the mask of removed pixels", func(c record.Road) []float64 { return c.MaskVariation }),
		mean(meanAccuracyMetric, "accuracy, its mean over the fractions", correctness),
		mean(meanProbability, "probability of the target, its mean over the fractions", func(c record.Road) []float64 { return c.Probabilities }),
		{ID: mapVariationMetric, Summary: "total variation of the map, scaled to 0..1", Inner: true, Value: func(rec record.Record) (float64, bool) {
			if rec.Road == nil || rec.Road.MapVariation == nil {
				return 0, false
			}
			return *rec.Road.MapVariation, true
		}},
		cost("seconds", "seconds an image and order (in summaries of plans that ask for it)", func(c record.Cost) float64 { return c.Seconds }),
		cost("removal-seconds", "those without making maps (likewise)", func(c record.Cost) float64 { return c.Seconds - c.MapSeconds }),
		cost("impute-seconds", "those of imputing (likewise)", func(c record.Cost) float64 { return c.ImputeSeconds }),
		cost("forward-seconds", "those of the net (likewise)", func(c record.Cost) float64 { return c.ForwardSeconds }),
		cost("forwards", "rows an image and order that the net ran (likewise)", func(c record.Cost) float64 { return float64(c.Forwards) }),
	}
}

func correctness(c record.Road) []float64 {
	out := make([]float64, len(c.Correct))
	for i, right := range c.Correct {
		if right {
			out[i] = 1
		}
	}
	return out
}

// roadPooled are the numbers of an image that both orders, or any of them, give.
func roadPooled() []Pooled {
	return []Pooled{
		{Metric: Metric{ID: combinedMetric, Summary: "half of how much more probable the target is without the least relevant pixels than without the most relevant, means over the fractions", HigherIsBetter: true},
			Over: orderKey, Of: probabilityMetric, Combine: func(of map[string][]float64) (float64, bool) {
				if of[OrderLeRF] == nil || of[OrderMoRF] == nil {
					return 0, false
				}
				return metrics.RoadCombined(of[OrderLeRF], of[OrderMoRF]), true
			}},
		{Metric: Metric{ID: mapVariationMetric, Summary: "total variation of the map, scaled to 0..1: mean differences of vertical and of horizontal neighbours"},
			Over: orderKey, Of: mapVariationMetric, Combine: func(of map[string][]float64) (float64, bool) {
				for _, order := range []string{OrderMoRF, OrderLeRF} {
					if len(of[order]) == 1 {
						return of[order][0], true
					}
				}
				return 0, false
			}},
	}
}

// roadContest says which rows of the summary are compared: methods in the same setting,
// the lower value the better where the most relevant go first.
func roadContest(metric string, params Params) (higher, ok bool) {
	switch {
	case metric == combinedMetric:
		return true, true
	case params.Text(orderKey) == OrderRandom:
		return false, false
	case slices.Contains([]string{accuracyMetric, probabilityMetric, meanAccuracyMetric, meanProbability}, metric):
		return params.Text(orderKey) == OrderLeRF, true
	}
	return false, false
}
