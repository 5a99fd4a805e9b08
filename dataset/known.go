package dataset

import (
	"context"
	"math"

	"github.com/assay-xai/assay/internal/usage"
)

// What is known of made-up data beyond their classes: rowReaders that know it
// have these methods.
type (
	foregroundReader interface {
		// foreground is the mask of a row, [H*W], row-major.
		foreground(row int) []bool
	}
	groupReader interface {
		// group is the group of a row, names what the groups are called.
		group(row int) int
		groupNames() []string
	}
	mixtureReader interface{ mixture() Mixture }
)

// reader is the reader of a set of rows, nil for images.
func (s *Set) reader() rowReader {
	if rows, ok := s.store.(*rowStore); ok {
		return rows.reader
	}
	return nil
}

// HasForeground says whether Foreground knows the masks of this set.
func (s *Set) HasForeground() bool {
	_, ok := s.reader().(foregroundReader)
	return ok
}

// Foreground is the true mask of the object in image i, [H*W], row-major: true
// where the object is. Only some made-up data know it, see Synthetic; for
// others it is an error. The caller owns the mask.
func (s *Set) Foreground(i int) ([]bool, error) {
	if err := s.check(context.Background(), i); err != nil {
		return nil, err
	}
	r, ok := s.reader().(foregroundReader)
	if !ok {
		return nil, usage.Errorf("dataset: %s: the foreground is not known: want synthetic:shapes or synthetic:groups", s.Path)
	}
	return r.foreground(s.store.(*rowStore).rows[i]), nil
}

// GroupNames names the groups that Group numbers, group 0 first; nil for data
// without groups.
func (s *Set) GroupNames() []string {
	if r, ok := s.reader().(groupReader); ok {
		return r.groupNames()
	}
	return nil
}

// Group is the group of item i, from 0; ok is false for data without groups.
func (s *Set) Group(i int) (group int, ok bool) {
	r, ok := s.reader().(groupReader)
	if !ok || i < 0 || i >= s.Len() {
		return 0, false
	}
	return r.group(s.store.(*rowStore).rows[i]), true
}

// Mixture describes two classes of equal probability, each normally distributed
// about its mean with the same standard deviation in every column.
type Mixture struct {
	// Means has the mean of class 0 and of class 1, [F].
	Means [2][]float64
	Std   float64
}

// Mixture describes the distribution of synthetic:gaussians; ok is false for
// other data.
func (s *Set) Mixture() (m Mixture, ok bool) {
	if r, ok := s.reader().(mixtureReader); ok {
		return r.mixture(), true
	}
	return Mixture{}, false
}

// Distance is the Euclidean distance of the two means.
func (m Mixture) Distance() float64 {
	sum := 0.0
	for i := range m.Means[0] {
		d := m.Means[1][i] - m.Means[0][i]
		sum += d * d
	}
	return math.Sqrt(sum)
}

// BayesAccuracy is the accuracy that no classifier exceeds, and that the one
// reaches which takes the nearer mean: Phi(distance / (2 std)), where Phi is the
// distribution function of the standard normal distribution (Duda, Hart and
// Stork, "Pattern Classification", 2nd edition, sections 2.6.1 and 2.7).
func (m Mixture) BayesAccuracy() float64 {
	return math.Erfc(-m.Distance()/(2*m.Std)/math.Sqrt2) / 2
}
