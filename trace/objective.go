package trace

import (
	"fmt"
	"math"

	"github.com/assay-xai/assay/internal/usage"
)

// Objective is what a search maximises: a combination of the sums of the LeRF
// and the MoRF curve over their t+1 points (section 3, Eqs. 3-5).
type Objective struct {
	ID      string
	Summary string
	// Le and Mo are the weights of the two sums: 1 or 0, and -1 or 0.
	Le, Mo int64
}

// Objectives returns every objective. Eq. 3 of the paper prints a minimum for
// TRACE-Le; all three are maximised, as its text and results say.
func Objectives() []Objective {
	return []Objective{
		{"le", "sum of the LeRF curve: deleting the least relevant features should change nothing", 1, 0},
		{"mo", "minus the sum of the MoRF curve: deleting the most relevant features should change all", 0, -1},
		{"le-mo", "LeRF sum minus MoRF sum", 1, -1},
	}
}

// ObjectiveByID returns the objective of that name, or an error of usage.
func ObjectiveByID(id string) (Objective, error) {
	for _, o := range Objectives() {
		if o.ID == id {
			return o, nil
		}
	}
	return Objective{}, usage.Errorf("trace: objective %q: want le, mo or le-mo", id)
}

// ScoreOns returns the outputs that a search may look at.
func ScoreOns() []string { return []string{"prob", "logit"} }

// unit is one in fixed point. Scores are summed as integers, multiples of
// 2^-40, so that no order of summation matters and the plain loop and the fast
// one agree to the bit.
const unit = 1 << 40

// toFloat turns a fixed-point sum into a number.
func toFloat(fixed int64) float64 { return float64(fixed) / unit }

// ValueOf is the objective's value of two curves by probability or by logit, which
// all is finite of: to the bit what solver order gives for them.
func (o Objective) ValueOf(c Curve, logit bool) float64 {
	var sum int64
	for sign, points := range map[int64][]float64{o.Le: c.Le, o.Mo: c.Mo} {
		for _, v := range points {
			if !logit {
				v = min(max(v, 0), 1)
			}
			sum += sign * int64(math.RoundToEven(v*unit))
		}
	}
	return toFloat(sum)
}

// NotFiniteError says that a net returned NaN or an infinite output, which ends
// the search of that image.
type NotFiniteError struct {
	Score   Score
	Deleted int // number of deleted features of the state
	T       int
}

func (e *NotFiniteError) Error() string {
	return fmt.Sprintf("the net returned logit %v, probability %v with %d of %d features deleted", e.Score.Logit, e.Score.Prob, e.Deleted, e.T)
}

// fix returns a score's fixed-point value on one output. Probabilities are
// clamped to [0,1]; logits must be small enough for t+1 of them to be summed
// twice in 63 bits: below 2^21/(t+1) in size.
func fix(s Score, logit bool, t int) (int64, error) {
	v := s.Prob
	if logit {
		v = s.Logit
		if limit := math.Ldexp(1, 21) / float64(t+1); math.Abs(v) >= limit {
			return 0, fmt.Errorf("the net returned logit %v: searches on logits want them below %.4g for %d features", v, limit, t)
		}
	} else {
		v = min(max(v, 0), 1)
	}
	return int64(math.RoundToEven(v * unit)), nil
}

func finite(s Score) bool {
	return !math.IsNaN(s.Prob) && !math.IsInf(s.Prob, 0) && !math.IsNaN(s.Logit) && !math.IsInf(s.Logit, 0)
}
