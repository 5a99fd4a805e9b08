package metrics

import (
	"math"
	"slices"
)

// Wins compares two competitors thing by thing.
type Wins struct {
	// Fraction of the things of which a has the better value; equal ones count half.
	// NaN where there are none.
	Fraction float64
	// N is the number of things of which both have a value.
	N int
	// Test says whether differences lie about 0.
	Test SignedRank
}

// Compare compares a with b, values of the same things in the same order; NaN is
// no value, and things of which either has none are left out.
func Compare(a, b []float64, higherIsBetter bool) Wins {
	w := Wins{}
	wins := 0.0
	var differences []float64
	for i := range min(len(a), len(b)) {
		if math.IsNaN(a[i]) || math.IsNaN(b[i]) {
			continue
		}
		w.N++
		switch {
		case a[i] == b[i]:
			wins += .5
		case a[i] > b[i] == higherIsBetter:
			wins++
		}
		differences = append(differences, a[i]-b[i])
	}
	w.Fraction = wins / float64(w.N)
	w.Test = Wilcoxon(differences)
	return w
}

// SignedRank is the result of Wilcoxon's signed-rank test, two-sided.
type SignedRank struct {
	// Statistic is the smaller of the sums of the ranks of positive and of negative
	// differences.
	Statistic float64
	// P is the probability, if differences were as likely positive as negative, of a
	// statistic at least as extreme; 1 where all differences are zero.
	P float64
	// N counts the differences that are not zero.
	N int
	// Exact says that P is the sum over all assignments of signs, not the normal
	// approximation.
	Exact bool
}

// exactDifferences is up to how many differences P is exact.
const exactDifferences = 50

// Wilcoxon tests whether differences are symmetric about zero (Wilcoxon 1945).
// Zeros are left out (Wilcoxon's own treatment, SciPy's zero_method="wilcox"), equal
// magnitudes share the mean of their ranks. Up to 50 differences P is exact: the
// distribution over all 2^n signs of the ranks as they are, shared ones included
// (SciPy does this with a PermutationMethod over all signs, and by default for ranks
// that are not shared). For more it is the normal approximation with the variance
// corrected for shared ranks and without a correction for continuity (SciPy's
// method="asymptotic").
func Wilcoxon(differences []float64) SignedRank {
	var d []float64
	for _, v := range differences {
		if v != 0 && !math.IsNaN(v) {
			d = append(d, v)
		}
	}
	n := len(d)
	if n == 0 {
		return SignedRank{P: 1, Exact: true}
	}
	slices.SortFunc(d, func(a, b float64) int {
		switch x, y := math.Abs(a), math.Abs(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	ranks := make([]int, n) // doubled, so that shared ones are whole
	ties := 0.0
	positive := 0
	for from := 0; from < n; {
		to := from + 1
		for to < n && math.Abs(d[to]) == math.Abs(d[from]) {
			to++
		}
		for i := from; i < to; i++ {
			ranks[i] = from + to + 1
			if d[i] > 0 {
				positive += ranks[i]
			}
		}
		size := float64(to - from)
		ties += size*size*size - size
		from = to
	}
	total := n * (n + 1) // of doubled ranks
	out := SignedRank{Statistic: float64(min(positive, total-positive)) / 2, N: n, Exact: n <= exactDifferences}
	if out.Exact {
		out.P = exactP(ranks, min(positive, total-positive))
		return out
	}
	mean := float64(n) * float64(n+1) / 4
	variance := float64(n)*float64(n+1)*float64(2*n+1)/24 - ties/48
	z := math.Abs(out.Statistic-mean) / math.Sqrt(variance)
	out.P = min(1, math.Erfc(z/math.Sqrt2))
	return out
}

// exactP is twice the share of the assignments of signs whose sum of positive ranks
// is at most so much; the distribution is symmetric.
func exactP(ranks []int, most int) float64 {
	counts := make([]float64, most+1) // up to 2^50: exact
	counts[0] = 1
	for _, r := range ranks {
		for s := most; s >= r; s-- {
			counts[s] += counts[s-r]
		}
	}
	sum := 0.0
	for _, c := range counts {
		sum += c
	}
	return min(1, 2*sum/math.Pow(2, float64(len(ranks))))
}

// Holm adjusts the probabilities of several tests so that those at most alpha can be
// called significant with a chance of at most alpha that any of them is so by
// accident (Holm 1979). NaN stays NaN and counts as no test.
func Holm(p []float64) []float64 {
	order := make([]int, 0, len(p))
	out := make([]float64, len(p))
	for i, v := range p {
		if out[i] = v; !math.IsNaN(v) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case p[a] < p[b]:
			return -1
		case p[a] > p[b]:
			return 1
		}
		return 0
	})
	largest := 0.0
	for k, i := range order {
		largest = max(largest, min(1, float64(len(order)-k)*p[i]))
		out[i] = largest
	}
	return out
}
