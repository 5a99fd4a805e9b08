package scores

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/assay-xai/assay/internal/usage"
)

// The similarities of two maps, each at most 1, which is: the same.
const (
	bySSIM        = "ssim"
	bySpearman    = "spearman"
	bySpearmanAbs = "spearman-abs"
)

func similarities() []string { return []string{bySSIM, bySpearman, bySpearmanAbs} }

// portrait is a map as similarities look at it, computed once.
type portrait struct {
	h, w        int       // 0: a table
	unit        []float64 // scaled to [0,1]; nil: the map is constant
	ranks       []float64 // average ranks, of the signed values
	absRanks    []float64 // ... of the absolute values
	absConstant bool
}

func portray(m Map, reduce string) (portrait, error) {
	a, err := Reduce(m, reduce)
	if err != nil {
		return portrait{}, err
	}
	var out portrait
	if d := len(m.Shape); d >= 2 {
		out.h, out.w = m.Shape[d-2], m.Shape[d-1]
	}
	lo, hi := slices.Min(a), slices.Max(a)
	if !(hi > lo) || math.IsInf(hi-lo, 0) {
		return out, nil
	}
	out.unit = make([]float64, len(a))
	for i, v := range a {
		out.unit[i] = (v - lo) / (hi - lo)
	}
	out.ranks = averageRanks(a)
	for i, v := range a {
		a[i] = math.Abs(v)
	}
	out.absConstant = constant(a)
	out.absRanks = averageRanks(a)
	return out, nil
}

// averageRanks is metrics.Ranks without a stable sort, which ties do not need here:
// it ranks maps of 50,000 pixels by the hundred.
func averageRanks(values []float64) []float64 {
	type pair struct {
		v float64
		i int
	}
	order := make([]pair, len(values))
	for i, v := range values {
		order[i] = pair{v, i}
	}
	slices.SortFunc(order, func(a, b pair) int { return cmp.Compare(a.v, b.v) })
	ranks := make([]float64, len(values))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && order[to].v == order[from].v {
			to++
		}
		for _, p := range order[from:to] {
			ranks[p.i] = float64(from+to+1) / 2
		}
		from = to
	}
	return ranks
}

// similar returns the similarity of two maps; false where it is not defined: one
// of them is constant.
func similar(a, b portrait, by string) (float64, bool) {
	if a.unit == nil || b.unit == nil {
		return 0, false
	}
	switch by {
	case bySSIM:
		return SSIM(a.unit, b.unit, a.h, a.w), true
	case bySpearman:
		return correlation(a.ranks, b.ranks), true
	default:
		if a.absConstant || b.absConstant {
			return 0, false
		}
		return correlation(a.absRanks, b.absRanks), true
	}
}

func correlation(a, b []float64) float64 {
	return min(1, max(-1, stat.Correlation(a, b, nil)))
}

// The constants of SSIM, for values in [0,1], and the side of its window.
const (
	ssimC1     = .01 * .01
	ssimC2     = .03 * .03
	ssimWindow = 7
)

// SSIM returns the mean structural similarity of two images of h x w pixels with
// values in [0,1] (Wang, Bovik, Sheikh and Simoncelli 2004, Eq. 13) over all
// windows of 7 x 7 pixels that lie inside, equal weights, sample variances (divided
// by 48), K1 = .01, K2 = .03: what skimage.metrics.structural_similarity computes
// with data_range=1 and no other argument. The images must have 7 pixels a side.
func SSIM(a, b []float64, h, w int) float64 {
	const n = ssimWindow * ssimWindow
	product := func(x, y []float64) []float64 {
		out := make([]float64, len(x))
		for i := range out {
			out[i] = x[i] * y[i]
		}
		return windowSums(out, h, w)
	}
	sumA, sumB := windowSums(a, h, w), windowSums(b, h, w)
	sumAA, sumBB, sumAB := product(a, a), product(b, b), product(a, b)
	total := 0.0
	for i := range sumA {
		meanA, meanB := sumA[i]/n, sumB[i]/n
		varA, varB := (sumAA[i]-n*meanA*meanA)/(n-1), (sumBB[i]-n*meanB*meanB)/(n-1)
		both := (sumAB[i] - n*meanA*meanB) / (n - 1)
		total += (2*meanA*meanB + ssimC1) * (2*both + ssimC2) / ((meanA*meanA + meanB*meanB + ssimC1) * (varA + varB + ssimC2))
	}
	return total / float64(len(sumA))
}

// windowSums sums every window that lies inside, row-major.
func windowSums(x []float64, h, w int) []float64 {
	across, down := w-ssimWindow+1, h-ssimWindow+1
	rows := make([]float64, h*across)
	for y := range h {
		for i := range across {
			sum := 0.0
			for _, v := range x[y*w+i : y*w+i+ssimWindow] {
				sum += v
			}
			rows[y*across+i] = sum
		}
	}
	out := make([]float64, down*across)
	for i := range out {
		for k := range ssimWindow {
			out[i] += rows[i+k*across]
		}
	}
	return out
}

// checkSimilarity says whether maps of a shape can be compared so.
func checkSimilarity(shape []int, by string) error {
	if by != bySSIM {
		return nil
	}
	if len(shape) != 3 || min(shape[1], shape[2]) < ssimWindow {
		return usage.Errorf("similarity ssim: inputs of %v have no windows of 7x7 pixels: want spearman or spearman-abs", shape)
	}
	return nil
}

// similaritiesFor lists those that are defined for inputs of a shape.
func similaritiesFor(shape []int) []string {
	return slices.DeleteFunc(similarities(), func(by string) bool { return checkSimilarity(shape, by) != nil })
}

func similarityParameter() Parameter {
	return Parameter{Name: "similarity", Type: "string", Default: bySpearman, Choices: similarities(),
		Summary: "of two maps: rank correlation of signed or absolute values, or SSIM of the maps scaled to [0,1]"}
}

func similarityQuantities() []Quantity {
	return []Quantity{
		{bySSIM, "structural similarity of the maps scaled to [0,1], windows of 7x7"},
		{bySpearman, "rank correlation of the signed values"},
		{bySpearmanAbs, "rank correlation of the absolute values"},
	}
}
