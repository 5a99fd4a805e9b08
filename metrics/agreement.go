package metrics

import "math"

// Setting is one way of ranking competitors (attribution methods by removal in one
// order with one imputer, say), measured several times.
type Setting struct {
	HigherIsBetter bool
	// Scores are [repeat][competitor]; NaN: not measured. What a repeat is (a seed, a
	// fraction, one of both) is the same in all settings that are compared.
	Scores [][]float64
}

// Agreement says how alike two settings rank the same competitors: 1 in the same
// order, -1 in the opposite one.
type Agreement struct {
	// Correlations of places, one a repeat, and their spread over the repeats.
	Spearman, Kendall Spread
	// Undefined counts the repeats without a correlation, which the spreads leave
	// out: fewer than two competitors measured by both, or one setting that ranks
	// them all alike.
	Undefined int
}

// Agree correlates the places (Places) that two settings give in each of their
// repeats, and averages over repeats (Rong et al. 2022, section 6.1, tables 2 and 3).
// A competitor that one of the two has not measured in a repeat is left out of it.
// Settings of unequal numbers of repeats or competitors do not compare: all repeats
// count as undefined.
func Agree(a, b Setting) Agreement {
	repeats := max(len(a.Scores), len(b.Scores))
	spearman, kendall := make([]float64, repeats), make([]float64, repeats)
	var out Agreement
	for r := range repeats {
		spearman[r], kendall[r] = math.NaN(), math.NaN()
		if len(a.Scores) == len(b.Scores) && len(a.Scores[r]) == len(b.Scores[r]) {
			x, y := shared(a.Scores[r], b.Scores[r])
			x, y = Places(x, a.HigherIsBetter), Places(y, b.HigherIsBetter)
			spearman[r], kendall[r] = Spearman(x, y), Kendall(x, y)
		}
		if math.IsNaN(spearman[r]) {
			out.Undefined++
		}
	}
	out.Spearman, out.Kendall = SpreadOf(spearman), SpreadOf(kendall)
	return out
}

// Agreements are those of all pairs, [setting][setting], symmetric.
func Agreements(settings []Setting) [][]Agreement {
	out := make([][]Agreement, len(settings))
	for i := range settings {
		out[i] = make([]Agreement, len(settings))
		for j := range i + 1 {
			out[i][j] = Agree(settings[i], settings[j])
			out[j][i] = out[i][j]
		}
	}
	return out
}

// shared are the pairs without NaN.
func shared(a, b []float64) (x, y []float64) {
	for i := range a {
		if !math.IsNaN(a[i]) && !math.IsNaN(b[i]) {
			x, y = append(x, a[i]), append(y, b[i])
		}
	}
	return x, y
}

// RoadCombined is half of how far an image's mean target probability is higher where
// the least relevant pixels are removed than where the most relevant are: at best .5,
// about 0 for a random map (ROADCombined of pytorch-grad-cam; not in Rong et al.
// 2022). leastFirst and mostFirst hold one probability a fraction, the same fractions.
// NaN for none, for unequal numbers and where a probability is NaN.
func RoadCombined(leastFirst, mostFirst []float64) float64 {
	if len(leastFirst) != len(mostFirst) {
		return math.NaN()
	}
	return (MeanOfCurve(leastFirst) - MeanOfCurve(mostFirst)) / 2
}
