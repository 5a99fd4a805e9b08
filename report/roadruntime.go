package report

import (
	"fmt"
	"strings"
)

// roadRuntime is what a method and an order took, by imputer.
type roadRuntime struct {
	Rows []runtimeRow
	Maps bool // some were made
}

type runtimeRow struct {
	Net, Imputer, Fractions        string
	Images                         int
	Maps, Impute, Forward, Seconds string
	PerImage                       string
}

// roadRuntime adds up the costs of the units that share net, data and imputer, and
// divides them by the methods, orders and seeds.
func (r *run) roadRuntime() *roadRuntime {
	type key struct{ net, data, imputer, fractions string }
	type sum struct {
		cost   [4]float64
		sets   map[*group]map[uint64]bool
		images map[string]bool
	}
	var order []key
	sums := map[key]*sum{}
	for _, e := range r.entries {
		p := e.group.params
		k := key{e.net, p["data"], p["imputer"], p["fractions"]}
		s := sums[k]
		if s == nil {
			s = &sum{sets: map[*group]map[uint64]bool{}, images: map[string]bool{}}
			sums[k] = s
			order = append(order, k)
		}
		for i, v := range []float64{e.cost.MapSeconds, e.cost.ImputeSeconds, e.cost.ForwardSeconds, e.cost.Seconds} {
			s.cost[i] += v
		}
		if s.sets[e.group] == nil {
			s.sets[e.group] = map[uint64]bool{}
		}
		s.sets[e.group][e.seed] = true
		s.images[e.image] = true
	}
	out := &roadRuntime{}
	for _, k := range order {
		s := sums[k]
		sets := 0
		for _, seeds := range s.sets {
			sets += len(seeds)
		}
		each := s.cost
		for i := range each {
			each[i] /= float64(sets)
		}
		rest := each[3] - each[0]
		out.Maps = out.Maps || each[0] > 0
		out.Rows = append(out.Rows, runtimeRow{Net: strings.TrimSuffix(k.net+" · "+k.data, " · "), Imputer: k.imputer, Fractions: fmt.Sprint(1 + strings.Count(k.fractions, ",")), Images: len(s.images),
			Maps: seconds(each[0]), Impute: seconds(each[1]), Forward: seconds(each[2]), Seconds: seconds(rest), PerImage: seconds(rest / float64(len(s.images)))})
	}
	if len(out.Rows) == 0 {
		return nil
	}
	return out
}
