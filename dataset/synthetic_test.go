package dataset

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Shape and parameters of each kind, for tests that hold for all.
func syntheticPaths() []string {
	return []string{"synthetic:shapes?size=20", "synthetic:groups?size=20&ratios=9:1:1:9", "synthetic:gaussians?features=5"}
}

// An item depends on its number, split and seed, not on how many there are or
// which were read before.
func TestSyntheticItemsAreAddressed(t *testing.T) {
	for _, path := range syntheticPaths() {
		t.Run(path, func(t *testing.T) {
			few := open(t, path+"&n=30", Options{Split: "train"})
			many := open(t, path+"&n=5003", Options{Split: "train"})
			require.Equal(t, 30, few.Len())
			require.Equal(t, []string{"test", "train"}, few.Splits)
			require.True(t, few.HasLabels)
			require.Equal(t, classes(few), classes(many)[:30])
			seen := map[string]bool{}
			hashes := func(set *Set, i int) string {
				h, err := set.ItemHash(context.Background(), i)
				require.NoError(t, err)
				return h
			}
			for i := 29; i >= 0; i-- {
				require.Equal(t, hashes(few, i), hashes(many, i))
				require.Equal(t, fmt.Sprintf("%06d", i), many.Items()[i].ID)
				seen[hashes(few, i)] = true
			}
			test := open(t, path+"&n=30", Options{})
			require.Equal(t, "test", test.Split)
			require.Equal(t, 6, test.Len())
			other := open(t, path+"&n=30&seed=1&test=6", Options{})
			for i := range 6 {
				seen[hashes(test, i)], seen[hashes(other, i)] = true, true
			}
			require.Len(t, seen, 42, "splits and seeds differ")
			limited := open(t, path+"&n=5003", Options{Split: "train", Limit: 7})
			for i, item := range limited.Items() {
				var row int
				_, err := fmt.Sscanf(item.ID, "%d", &row)
				require.NoError(t, err)
				require.Equal(t, hashes(many, row), hashes(limited, i))
			}
		})
	}
	set := open(t, "synthetic:shapes?n=1000000&test=1", Options{Split: "train"})
	require.Equal(t, 1_000_000, set.Len())
	_, _, ok, err := set.Pixels(999_999)
	require.NoError(t, err)
	require.True(t, ok)
}

func TestSyntheticErrors(t *testing.T) {
	for path, want := range map[string]string{
		"synthetic:shape?n=1":                              `did you mean shapes? want one of shapes, groups, gaussians`,
		"synthetic:":                                       "want one of shapes",
		"synthetic:shapes?sise=3":                          `unknown key "sise": did you mean size? want one of n, test, seed, size, classes`,
		"synthetic:shapes?n":                               `"n": want key=value`,
		"synthetic:shapes?n=":                              `"n=": want key=value`,
		"synthetic:shapes?n=1&n=2":                         "n is there twice",
		"synthetic:shapes?n=0":                             `n "0": want a whole number, 1..10000000`,
		"synthetic:shapes?n=ten":                           `n "ten"`,
		"synthetic:shapes?n=99999999999999999999":          "1..10000000",
		"synthetic:shapes?size=15":                         `size "15": want a whole number, 16..1024`,
		"synthetic:shapes?classes=7":                       "2..6",
		"synthetic:shapes?seed=-1":                         `seed "-1": want a whole number from 0`,
		"synthetic:shapes?test=0":                          `test "0"`,
		"synthetic:shapes?features=3":                      `unknown key "features"`,
		"synthetic:groups?ratios=1:1:1":                    `ratios "1:1:1": want 4 whole numbers such as 999:1:1:999`,
		"synthetic:groups?ratios=0:0:0:0":                  "together 1..1000000",
		"synthetic:groups?ratios=1:1:1:-1":                 `ratios "1:1:1:-1"`,
		"synthetic:groups?test-ratios=1:1:1:1000000":       "test-ratios",
		"synthetic:gaussians?mean=1&distance=2":            "mean and distance: want one of the two",
		"synthetic:gaussians?std=1&variance=2":             "std and variance",
		"synthetic:gaussians?std=0":                        `std "0": want a number above 0`,
		"synthetic:gaussians?mean=NaN":                     `mean "NaN": want a number from 0`,
		"synthetic:gaussians?features=3&informative=4":     `informative "4": want a whole number, 1..3`,
		"synthetic:gaussians?features=1000000000000000000": "1..4096",
	} {
		_, err := Open(context.Background(), path, Options{})
		requireUsage(t, err, path, want)
	}
	_, err := Open(context.Background(), "synthetic:shapes", Options{Split: "val"})
	requireUsage(t, err, "test, train")
	_, err = Open(context.Background(), "synthetic:shapes", Options{Classes: 5})
	requireUsage(t, err, "want 0..4")
	require.False(t, IsFile("synthetic:shapes"))
	require.False(t, IsFile("embedded:photos"))
	require.True(t, IsFile("data/synthetic:shapes"))
	for _, e := range Synthetic() { // what is listed opens, every default is valid
		path, join := e.Path, "?"
		for _, p := range e.Parameters {
			require.NotEmpty(t, p.Summary)
			if p.Default != "" {
				path, join = path+join+p.Name+"="+p.Default, "&"
			}
		}
		require.Equal(t, 200, open(t, path, Options{}).Len())
	}
}

// Areas from geometry, in units of the radius squared; all within the circle.
func TestShapeAreas(t *testing.T) {
	const step = .002
	want := map[string]float64{
		"circle": math.Pi, "square": 2, "triangle": 3 * math.Sqrt(3) / 4, "ring": math.Pi * (1 - .55*.55),
		"cross": 2*2*.95*2*.28 - 4*.28*.28, "star": 10 * .5 * .42 * math.Sin(math.Pi/5),
	}
	require.Len(t, shapes(), len(want))
	for _, s := range shapes() {
		area := 0.0
		for x := -1.1 + step/2; x < 1.1; x += step {
			for y := -1.1 + step/2; y < 1.1; y += step {
				if s.inside(x, y) {
					area += step * step
					if x*x+y*y > 1+1e-9 {
						t.Fatalf("%s reaches to (%v, %v)", s.name, x, y)
					}
				}
			}
		}
		require.InEpsilon(t, want[s.name], area, .005, s.name)
	}
}

// The mask is where the figure is: there the colour is one but for noise of 24
// levels, it differs from what is behind, and the size is one of the allowed.
func TestForeground(t *testing.T) {
	areas := map[string][2]float64{"circle": {math.Pi, math.Pi}, "triangle": {1.29, 1.31}} // others: up to the circle's
	for _, path := range []string{"synthetic:shapes?size=48&test=120", "synthetic:groups?size=48&test=120"} {
		set := open(t, path, Options{})
		require.True(t, set.HasForeground())
		for i, item := range set.Items() {
			mask, err := set.Foreground(i)
			require.NoError(t, err)
			pixels, shape, ok, err := set.Pixels(i)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, []int{3, 48, 48}, shape)
			require.Len(t, mask, 48*48)
			values, _, err := set.Values(i)
			require.NoError(t, err)
			require.Equal(t, floats(pixels), values)
			contrast, area := 0.0, 0
			for c := range 3 {
				var in, out []float64
				for k, v := range pixels[c*48*48:][:48*48] {
					if mask[k] {
						in = append(in, float64(v))
					} else {
						out = append(out, float64(v))
					}
				}
				area = len(in)
				require.LessOrEqual(t, slices.Max(in)-slices.Min(in), 23.)
				require.Greater(t, slices.Max(out)-slices.Min(out), 23., "what is behind has a texture")
				contrast = max(contrast, math.Abs(stat.Mean(in, nil)-stat.Mean(out, nil)))
			}
			require.Greater(t, contrast, 15., "%s of %s", item.ID, path)
			bounds := [2]float64{1.2, math.Pi}
			if b, ok := areas[set.ClassName(item.Class)]; ok {
				bounds = b
			}
			fraction := float64(area) / (48 * 48)
			require.InDelta(t, (bounds[0]*.04+bounds[1]*.16)/2, fraction, (bounds[1]*.16-bounds[0]*.04)/2+.01, "%s of %s", item.ID, path)
		}
	}
	_, err := open(t, "embedded:digits", Options{}).Foreground(0)
	requireUsage(t, err, "embedded:digits", "not known")
	set := open(t, "synthetic:gaussians", Options{})
	require.False(t, set.HasForeground())
	_, err = set.Foreground(0)
	requireUsage(t, err, "not known")
	_, ok := set.Group(0)
	require.False(t, ok)
	require.Nil(t, set.GroupNames())
	require.False(t, open(t, "embedded:photos", Options{}).HasForeground())
}

func groupCounts(t testing.TB, set *Set) []int {
	counts := make([]int, 4)
	for i, item := range set.Items() {
		g, ok := set.Group(i)
		require.True(t, ok)
		require.Equal(t, g/2, item.Class)
		counts[g]++
	}
	return counts
}

func TestGroups(t *testing.T) {
	path := "synthetic:groups?n=4000&ratios=999:1:1:999&test=400"
	train := open(t, path, Options{Split: "train"})
	require.Equal(t, []int{1998, 2, 2, 1998}, groupCounts(t, train))
	require.Equal(t, []string{"triangle on land", "triangle on water", "circle on land", "circle on water"}, train.GroupNames())
	require.Equal(t, []string{"triangle", "circle"}, train.ClassNames)
	test := open(t, path, Options{})
	require.Equal(t, []int{100, 100, 100, 100}, groupCounts(t, test))
	skewed := open(t, path+"&test-ratios=0:2:6:0", Options{})
	require.Equal(t, []int{0, 100, 300, 0}, groupCounts(t, skewed))
	// The groups of Waterbirds' training images, one block of them.
	birds := open(t, "synthetic:groups?n=4795&ratios=3498:184:56:1057", Options{Split: "train"})
	require.Equal(t, []int{3498, 184, 56, 1057}, groupCounts(t, birds))
	// Water is bluer than green, land is not; and the figure's place tells nothing.
	for i := range test.Items() {
		pixels, _, _, err := test.Pixels(i)
		require.NoError(t, err)
		mask, err := test.Foreground(i)
		require.NoError(t, err)
		blue := 0
		for k, in := range mask {
			if !in {
				blue += int(pixels[2*len(mask)+k]) - int(pixels[len(mask)+k])
			}
		}
		group, _ := test.Group(i)
		require.Equal(t, group%2 == 1, blue > 0, test.Items()[i].ID)
	}
}

// The accuracy of the nearer mean on many rows against the formula, and the
// formula against gonum's normal distribution.
func TestGaussians(t *testing.T) {
	for path, want := range map[string]float64{
		"synthetic:gaussians":                                                  distuv.UnitNormal.CDF(math.Sqrt2),
		"synthetic:gaussians?features=1&mean=0.5":                              distuv.UnitNormal.CDF(.5),
		"synthetic:gaussians?features=9&informative=4&distance=3&std=2":        distuv.UnitNormal.CDF(.75),
		"synthetic:gaussians?features=3&mean=0":                                .5,
		"synthetic:gaussians?features=64&variance=0.3&n=10000&seed=5":          1,
		"synthetic:gaussians?features=64&variance=16&mean=0.25&informative=16": distuv.UnitNormal.CDF(.25),
	} {
		join := "?"
		if slices.Contains([]byte(path), '?') {
			join = "&"
		}
		set := open(t, path+join+"test=20000", Options{})
		require.Equal(t, Table, set.Kind)
		mixture, ok := set.Mixture()
		require.True(t, ok)
		require.InDelta(t, want, mixture.BayesAccuracy(), 1e-12, path)
		n, right := set.Len(), 0
		sums, squares := make([]float64, len(mixture.Means[0])), make([]float64, len(mixture.Means[0]))
		perClass := make([]int, 2)
		for i, item := range set.Items() {
			values, shape, err := set.Values(i)
			require.NoError(t, err)
			if len(shape) != 1 || shape[0] != len(sums) {
				t.Fatalf("shape %v", shape)
			}
			perClass[item.Class]++
			distance := [2]float64{}
			for j, v := range values {
				sums[j] += float64(v)
				squares[j] += float64(v) * float64(v)
				for c := range 2 {
					d := float64(v) - mixture.Means[c][j]
					distance[c] += d * d
				}
			}
			nearer := 0
			if distance[1] < distance[0] {
				nearer = 1
			}
			if nearer == item.Class {
				right++
			}
		}
		require.Equal(t, []int{n / 2, n / 2}, perClass)
		require.InDelta(t, want, float64(right)/float64(n), 4*math.Sqrt(.25/float64(n)), path)
		for j, column := range set.Schema.Columns {
			// Four standard errors of a mean, and of a variance (at most that of a normal one).
			require.InDelta(t, column.Mean, sums[j]/float64(n), 4*column.Std/math.Sqrt(float64(n)), path)
			require.InDelta(t, column.Std*column.Std, squares[j]/float64(n), 4*column.Std*column.Std*math.Sqrt(2/float64(n)), path)
		}
	}
	_, ok := open(t, "embedded:iris", Options{}).Mixture()
	require.False(t, ok)
	// GOAR's mixture: means of -1 and +1, covariance .3 times the identity.
	set := open(t, "synthetic:gaussians?features=64&variance=0.3&n=10000", Options{Split: "train"})
	m, _ := set.Mixture()
	require.Equal(t, 16., m.Distance())
	require.InDelta(t, .3, m.Std*m.Std, 1e-12)
	preset, err := PresetByID("table")
	require.NoError(t, err)
	require.InDelta(t, math.Sqrt(1.3), preset.ForSet(set).Std[63], 1e-12)
}
