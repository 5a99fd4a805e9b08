package dataset

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A limit's choice has the wanted size, ascends, is a part of every larger
// choice, is as even over the classes as their sizes allow, and takes the
// first items of each class.
func TestLimitItems(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes := rapid.SliceOfN(rapid.IntRange(-1, 4), 0, 40).Draw(t, "classes")
		small := rapid.IntRange(1, 45).Draw(t, "small")
		large := rapid.IntRange(small, 45).Draw(t, "large")
		a, err := limitItems(classes, small)
		require.NoError(t, err)
		b, err := limitItems(classes, large)
		require.NoError(t, err)
		require.Len(t, a, min(small, len(classes)))
		require.Subset(t, b, a)
		chosen := map[int]bool{}
		for i, k := range a {
			chosen[k] = true
			require.True(t, i == 0 || a[i-1] < k)
		}
		taken, full := map[int]int{}, map[int]bool{}
		for _, c := range classes {
			full[c] = true
		}
		for i, c := range classes {
			if chosen[i] {
				require.True(t, full[c], "item %d of class %d after one was passed over", i, c)
				taken[c]++
			} else {
				full[c] = false
			}
		}
		for c := range full {
			for d := range full {
				if !full[d] { // d had more to give
					require.LessOrEqual(t, taken[c], taken[d]+1)
					if c > d {
						require.LessOrEqual(t, taken[c], taken[d], "class %d before %d", c, d)
					}
				}
			}
		}
	})
	all, err := limitItems([]int{2, 1, 2}, 0)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 2}, all)
}
