package dataset

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
)

// syntheticPrefix marks the paths of data that are made up:
// synthetic:KIND?key=value&key=value, for example
// synthetic:shapes?n=1000&size=32&seed=0. Keys that are left out have their
// defaults, unknown ones are errors.
//
// Every item is made when it is read, from random numbers that are addressed by
// (seed, kind and purpose, split, number of the item): it is the same whatever
// n is and in whatever order items are read, and n may be millions.
const syntheticPrefix = "synthetic:"

// IsFile says whether a path of Open is one of the file system: it is not for
// "embedded:" and "synthetic:".
func IsFile(path string) bool {
	return !strings.HasPrefix(path, embeddedPrefix) && !strings.HasPrefix(path, syntheticPrefix)
}

// SyntheticEntry is one kind of data that is made up. All kinds have splits
// train and test.
type SyntheticEntry struct {
	// Path is what Open takes, without parameters.
	Path       string
	Summary    string
	Parameters []SyntheticParameter
	open       func(p *syntheticParams, split string) (*rowData, error)
}

// SyntheticParameter is a key of the path.
type SyntheticParameter struct {
	Name    string
	Default string
	Summary string
}

// commonParameters are those of every kind.
func commonParameters(more ...SyntheticParameter) []SyntheticParameter {
	return append([]SyntheticParameter{
		{"n", "1000", "items of the split train, 1..10000000"},
		{"test", "", "items of the split test; default: a fifth of n, at least 1"},
		{"seed", "0", "seed of all random numbers, from 0"},
	}, more...)
}

// Synthetic lists the data that can be made up.
func Synthetic() []SyntheticEntry {
	size := SyntheticParameter{"size", "32", "height and width in pixels, 16..1024"}
	return []SyntheticEntry{
		{"synthetic:shapes", "a coloured shape on a textured background: the class is the shape, its mask is known",
			commonParameters(size, SyntheticParameter{"classes", "6", "number of shapes, 2..6: " + strings.Join(shapeNames(), ", ")}), openShapes},
		{"synthetic:groups", "a triangle or a circle on land or water, correlated by the ratios of the four groups, as birds and places are in Waterbirds; the shape is the class, its mask is known",
			commonParameters(size,
				SyntheticParameter{"ratios", "1:1:1:1", "train items of each group: " + strings.Join(groupNames(), ", ")},
				SyntheticParameter{"test-ratios", "1:1:1:1", "the same for test items"}), openGroups},
		{"synthetic:gaussians", "two classes, normally distributed about -mean and +mean in every column, with equal spread: a table whose best possible accuracy is known",
			commonParameters(
				SyntheticParameter{"features", "2", "columns, 1..4096"},
				SyntheticParameter{"informative", "", "columns, the first ones, in which the classes differ; default: all"},
				SyntheticParameter{"mean", "1", "mean of class 1 in each of these; class 0 has its negative"},
				SyntheticParameter{"distance", "", "instead of mean: the Euclidean distance of the two means, 2 mean sqrt(informative)"},
				SyntheticParameter{"std", "1", "standard deviation about the mean in every column"},
				SyntheticParameter{"variance", "", "instead of std: its square"}), openGaussians},
	}
}

// maxSynthetic bounds n: the list of items takes some 100 bytes each.
const maxSynthetic = 10_000_000

func openSynthetic(ctx context.Context, path string, opt Options) (*Set, error) {
	kind, query, _ := strings.Cut(strings.TrimPrefix(path, syntheticPrefix), "?")
	var kinds []string
	for _, e := range Synthetic() {
		id := strings.TrimPrefix(e.Path, syntheticPrefix)
		if id == kind {
			return e.openSet(ctx, path, query, opt)
		}
		kinds = append(kinds, id)
	}
	return nil, usage.Errorf("dataset: %s: unknown kind %q: %swant one of %s", path, kind, didYouMean(kind, kinds), strings.Join(kinds, ", "))
}

// didYouMean offers the nearest name, "" if none is near.
func didYouMean(name string, names []string) string {
	if near := nearest(name, names); near != "" {
		return "did you mean " + near + "? "
	}
	return ""
}

func (e SyntheticEntry) openSet(ctx context.Context, path, query string, opt Options) (*Set, error) {
	p, err := e.parse(path, query)
	if err != nil {
		return nil, err
	}
	splits := []string{"test", "train"}
	split, err := chooseSplit(path, splits, opt.Split)
	if err != nil {
		return nil, err
	}
	p.count = p.integer("n", 1, maxSynthetic)
	test := max(1, p.count/5)
	if p.text("test") != "" {
		test = p.integer("test", 1, maxSynthetic)
	}
	if split == "test" {
		p.count = test
	}
	p.seed = p.unsigned("seed")
	d, err := e.open(p, split)
	if err == nil {
		err = p.err
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	d.count, d.where = p.count, func(row int) string { return path + ": row " + rowID(row) }
	set, err := d.whole(path, opt)
	if err != nil {
		return nil, err
	}
	set.Split, set.Splits = split, splits
	return set, nil
}

// syntheticParams are the parameters of a path. The first that is wrong is
// err; readers then return what is harmless.
type syntheticParams struct {
	path   string
	values map[string]string
	given  map[string]bool
	err    error
	// seed and count, the items of the chosen split, are read for all kinds.
	seed  uint64
	count int
}

func (e SyntheticEntry) parse(path, query string) (*syntheticParams, error) {
	p := &syntheticParams{path: path, values: map[string]string{}, given: map[string]bool{}}
	var names []string
	for _, d := range e.Parameters {
		p.values[d.Name] = d.Default
		names = append(names, d.Name)
	}
	if query == "" {
		return p, nil
	}
	for part := range strings.SplitSeq(query, "&") {
		name, value, found := strings.Cut(part, "=")
		if !found || value == "" {
			return nil, usage.Errorf("dataset: %s: %q: want key=value", path, part)
		}
		if _, known := p.values[name]; !known {
			return nil, usage.Errorf("dataset: %s: unknown key %q: %swant one of %s", path, name, didYouMean(name, names), strings.Join(names, ", "))
		}
		if p.given[name] {
			return nil, usage.Errorf("dataset: %s: %s is there twice", path, name)
		}
		p.values[name], p.given[name] = value, true
	}
	return p, nil
}

// stream is the source of the items' random numbers for one purpose.
func (p *syntheticParams) stream(purpose, split string) rng.Stream {
	return rng.New(p.seed, "dataset/synthetic/"+purpose, split)
}

func (p *syntheticParams) text(name string) string { return p.values[name] }

func (p *syntheticParams) fail(name, want string) {
	if p.err == nil {
		p.err = usage.Errorf("dataset: %s: %s %q: want %s", p.path, name, p.values[name], want)
	}
}

func (p *syntheticParams) integer(name string, low, high int) int {
	n, err := strconv.Atoi(p.values[name])
	if err != nil || n < low || n > high {
		p.fail(name, fmt.Sprintf("a whole number, %d..%d", low, high))
		return low
	}
	return n
}

func (p *syntheticParams) unsigned(name string) uint64 {
	n, err := strconv.ParseUint(p.values[name], 10, 64)
	if err != nil {
		p.fail(name, "a whole number from 0")
	}
	return n
}

// positive reads a number above 0 (zero: from 0 on).
func (p *syntheticParams) positive(name string, zero bool) float64 {
	v, err := strconv.ParseFloat(p.values[name], 64)
	want := "a number above 0"
	if zero {
		want = "a number from 0"
	}
	if err != nil || math.IsNaN(v) || v < 0 || v > 1e6 || v == 0 && !zero {
		p.fail(name, want+" up to 1e6")
		return 1
	}
	return v
}

// either refuses two keys that say the same; it is true where b is given.
func (p *syntheticParams) either(a, b string) bool {
	if p.given[a] && p.given[b] && p.err == nil {
		p.err = usage.Errorf("dataset: %s: %s and %s: want one of the two", p.path, a, b)
	}
	return p.given[b]
}

// maxRatios bounds the sum of ratios: the block in which they hold exactly.
const maxRatios = 1_000_000

// ratios reads whole numbers such as 999:1:1:999, divided by what they have in
// common.
func (p *syntheticParams) ratios(name string, count int) []int {
	words := strings.Split(p.values[name], ":")
	list, sum, divisor := make([]int, len(words)), 0, 0
	for i, w := range words {
		n, err := strconv.Atoi(w)
		if err != nil || n < 0 || n > maxRatios {
			sum = 0
			break
		}
		list[i] = n
		sum += n
		divisor = gcd(divisor, n)
	}
	if len(list) != count || sum < 1 || sum > maxRatios {
		p.fail(name, fmt.Sprintf("%d whole numbers such as 999:1:1:999, together 1..%d", count, maxRatios))
		return append(make([]int, count-1), 1)
	}
	for i := range list {
		list[i] /= divisor
	}
	return list
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// inBlocks deals items out to kinds: in every block of sum(ratios) items there
// are exactly ratios[k] of kind k, in an order of its own. An item's kind
// depends on neither the number of items nor the other blocks.
func inBlocks(stream rng.Stream, ratios []int, count int) []uint8 {
	var block []uint8
	for k, n := range ratios {
		for range n {
			block = append(block, uint8(k))
		}
	}
	kinds := make([]uint8, count)
	for first := 0; first < count; first += len(block) {
		for at, from := range stream.Perm(uint64(first/len(block)), len(block)) {
			if first+at < count {
				kinds[first+at] = block[from]
			}
		}
	}
	return kinds
}
