package orchestrate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/assay-xai/assay/internal/usage"
)

// Shard is one of several parts of a plan's units, each of which is run in a folder
// of its own and by whatever machine; [Merge] makes one run of them. The zero value
// is the whole. A shard is not part of units' ids: what a unit gives does not depend
// on the shard that it is in.
type Shard struct {
	// Index is 1..Of.
	Index, Of int
}

// maxShards bounds the number of shards: more is a mistake.
const maxShards = 1 << 16

// ParseShard reads "i/n", i from 1 to n.
func ParseShard(text string) (Shard, error) {
	index, of, ok := strings.Cut(text, "/")
	i, err := strconv.Atoi(index)
	n, err2 := strconv.Atoi(of)
	if !ok || err != nil || err2 != nil || n < 1 || n > maxShards {
		return Shard{}, usage.Errorf("shard %q: want i/n, such as 2/4: part i of n, n at most %d", text, maxShards)
	}
	if i < 1 || i > n {
		return Shard{}, usage.Errorf("shard %q: want one of 1/%d to %d/%d", text, n, n, n)
	}
	return Shard{i, n}, nil
}

// String is what ParseShard reads, "" for the whole.
func (s Shard) String() string {
	if s.IsZero() {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Of)
}

// Words names the shard in sentences.
func (s Shard) Words() string {
	if s.IsZero() {
		return "the whole run"
	}
	return fmt.Sprintf("shard %d of %d", s.Index, s.Of)
}

// IsZero is true of the whole.
func (s Shard) IsZero() bool { return s == Shard{} }

// UnmarshalYAML reads "i/n".
func (s *Shard) UnmarshalYAML(node ast.Node) error {
	parsed, err := ParseShard(strings.Trim(node.String(), `"'`))
	if err != nil {
		return &yaml.SyntaxError{Message: err.Error(), Token: node.GetToken()}
	}
	*s = parsed
	return nil
}

// MarshalYAML writes what UnmarshalYAML reads.
func (s Shard) MarshalYAML() (any, error) { return s.String(), nil }

// shares deals a plan's units out to n shards and returns the shard, 1..n, of each.
// All units of an image go to one, so that what is decoded, explained and batched
// together stays together, and with them the units that read their records. Shards
// are blocks of consecutive images whose numbers differ by one at most.
func shares(units []Unit, n int) ([]int, error) {
	type image struct{ data, item int }
	of := func(u *Unit) image {
		for u.Source != nil {
			u = u.Source
		}
		return image{u.Data.Index, u.Item}
	}
	place := map[image]int{}
	var images []image
	for i := range units {
		key := of(&units[i])
		if _, ok := place[key]; !ok {
			place[key] = 0
			images = append(images, key)
		}
	}
	if n > len(images) {
		return nil, usage.Errorf("%d shards: the plan's units are of %d images: want at most so many shards", n, len(images))
	}
	slices.SortFunc(images, func(a, b image) int { return cmp.Or(a.data-b.data, a.item-b.item) })
	for i := range n {
		for _, key := range images[i*len(images)/n : (i+1)*len(images)/n] {
			place[key] = i + 1
		}
	}
	out := make([]int, len(units))
	for i := range units {
		out[i] = place[of(&units[i])]
	}
	return out, nil
}

// choose returns the shard's units, in plan order.
func (s Shard) choose(units []Unit) ([]Unit, error) {
	if s.IsZero() {
		return units, nil
	}
	share, err := shares(units, s.Of)
	if err != nil {
		return nil, err
	}
	var out []Unit
	for i, u := range units {
		if share[i] == s.Index {
			out = append(out, u)
		}
	}
	return out, nil
}

// checkShard refuses a folder that holds another part of a plan than this one.
func checkShard(out string, prior, plan *Plan) error {
	if prior == nil || prior.Shard == plan.Shard {
		return nil
	}
	hint := "give --shard " + prior.Shard.String()
	if prior.Shard.IsZero() {
		hint = "leave --shard out"
	}
	return usage.Errorf("out: %s holds %s, and this is %s: %s, or choose another folder", out, prior.Shard.Words(), plan.Shard.Words(), hint)
}

// sameRun names the first fact in which the run that a folder holds differs from
// this one. A shard does not go on with nets and data that were absent when it began:
// the other shards would have others.
func sameRun(prior, plan *Plan) string {
	if plan.Shard.IsZero() {
		return difference(present(prior, plan))
	}
	return difference(prior, plan)
}
