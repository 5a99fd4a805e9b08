package trace

import (
	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
)

// Neighbourhood proposes a changed trajectory. Random numbers are addressed by
// the iteration, so that a proposal does not depend on what came before.
type Neighbourhood struct {
	ID, Summary string
	// propose writes a neighbour of tau into out (same length) and returns the
	// range of positions it changed, [lo,hi]: prefixes of lengths lo+1..hi differ.
	propose func(draw rng.Stream, iteration uint64, tau, out []int) (lo, hi int)
}

// Neighbourhoods returns every neighbourhood.
func Neighbourhoods() []Neighbourhood {
	return []Neighbourhood{{
		ID:      "complete",
		Summary: "swap the features at two distinct uniform positions (t(t-1)/2 neighbours)",
		propose: func(draw rng.Stream, iteration uint64, tau, out []int) (int, int) {
			copy(out, tau)
			i := draw.IntN(iteration, 0, len(tau))
			j := draw.IntN(iteration, 1, len(tau)-1)
			if j >= i {
				j++
			}
			out[i], out[j] = out[j], out[i]
			return min(i, j), max(i, j)
		},
	}}
}

func neighbourhoodByID(id string) (Neighbourhood, error) {
	if id == "" {
		id = "complete"
	}
	var ids []string
	for _, n := range Neighbourhoods() {
		if n.ID == id {
			return n, nil
		}
		ids = append(ids, n.ID)
	}
	return Neighbourhood{}, usage.Errorf("trace: neighbourhood %q: want one of %v", id, ids)
}
