package trace

import (
	"slices"

	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
)

// Neighbourhood proposes a changed trajectory (appendix B.4). Random numbers are
// addressed by the iteration, so that a proposal does not depend on what came
// before. From two features on, a proposal is never the trajectory itself, and
// every neighbour is as likely as any other; "mix" is so within each of its three
// kinds.
type Neighbourhood struct {
	ID, Summary string
	// propose writes a neighbour of tau into out (same length, at least 2) and
	// returns the range of positions it changed, [lo,hi]: prefixes of lengths
	// lo+1..hi differ, all of them, and no others.
	propose func(draw rng.Stream, iteration uint64, tau, out []int) (lo, hi int)
}

// starCentre is the position that the star neighbourhood swaps with. The paper
// leaves it open (S_star,i for any i); the first is that of the star graph of
// Akers and Krishnamurthy ("A group-theoretic model for symmetric interconnection
// networks", IEEE Transactions on Computers 38, 1989), where B.4 has the graph's
// diameter from.
const starCentre = 0

// The shares of the mix in hundredths (Geng, Chen, Yang, Shi and Zhao, "Solving
// the traveling salesman problem based on an adaptive simulated annealing
// algorithm with greedy search", Applied Soft Computing 11, 2011).
const (
	mixReverse = 89
	mixInsert  = 10
	mixAll     = 100 // the rest are block insertions
)

// Neighbourhoods returns every neighbourhood.
func Neighbourhoods() []Neighbourhood {
	return []Neighbourhood{
		{"complete", "swap the features at two distinct uniform positions (t(t-1)/2 neighbours)", proposeComplete},
		{"bubble-sort", "swap the features at two adjacent positions (t-1 neighbours)", proposeBubbleSort},
		{"star", "swap the least relevant feature with that at a uniform position (t-1 neighbours)", proposeStar},
		{"vertex-insertion", "take a feature out and put it in elsewhere ((t-1)^2 neighbours)", proposeVertexInsertion},
		{"block-reverse", "reverse the features between two positions (t(t-1)/2 neighbours)", proposeBlockReverse},
		{"block-insertion", "take a block of features out and put it in elsewhere ((t+1)t(t-1)/6 neighbours)", proposeBlockInsertion},
		{"mix", "block-reverse (.89), vertex-insertion (.10) or block-insertion (.01)", proposeMix},
	}
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

// twoOf draws two distinct positions of n, the smaller first.
func twoOf(draw rng.Stream, iteration uint64, n int) (lo, hi int) {
	i := draw.IntN(iteration, 0, n)
	j := draw.IntN(iteration, 1, n-1)
	if j >= i {
		j++
	}
	return min(i, j), max(i, j)
}

func swap(tau, out []int, i, j int) (lo, hi int) {
	copy(out, tau)
	out[i], out[j] = out[j], out[i]
	return min(i, j), max(i, j)
}

func proposeComplete(draw rng.Stream, iteration uint64, tau, out []int) (int, int) {
	i, j := twoOf(draw, iteration, len(tau))
	return swap(tau, out, i, j)
}

func proposeBubbleSort(draw rng.Stream, iteration uint64, tau, out []int) (int, int) {
	i := draw.IntN(iteration, 0, len(tau)-1)
	return swap(tau, out, i, i+1)
}

func proposeStar(draw rng.Stream, iteration uint64, tau, out []int) (int, int) {
	j := draw.IntN(iteration, 0, len(tau)-1)
	if j >= starCentre {
		j++
	}
	return swap(tau, out, starCentre, j)
}

// proposeVertexInsertion moves a feature from position i to another, j. Moving it
// one place up is what moving its neighbour one place down is: of the two only
// the former is drawn.
func proposeVertexInsertion(draw rng.Stream, iteration uint64, tau, out []int) (int, int) {
	n := len(tau) - 1
	k := draw.IntN(iteration, 0, n*n)
	if k < n { // the first feature has n places to go to, every other n-1
		return exchange(tau, out, 0, 1, k+2)
	}
	i, j := 1+(k-n)/(n-1), (k-n)%(n-1)
	if j < i-1 {
		return exchange(tau, out, j, i, i+1)
	}
	return exchange(tau, out, i, i+1, j+3)
}

func proposeBlockReverse(draw rng.Stream, iteration uint64, tau, out []int) (int, int) {
	lo, hi := twoOf(draw, iteration, len(tau))
	copy(out, tau)
	slices.Reverse(out[lo : hi+1])
	return lo, hi
}

// proposeBlockInsertion exchanges two blocks that lie side by side, which is what
// inserting either behind or before the other is: three distinct cuts of the t+1
// between and around the features.
func proposeBlockInsertion(draw rng.Stream, iteration uint64, tau, out []int) (int, int) {
	cuts := len(tau) + 1
	a, c := twoOf(draw, iteration, cuts)
	b := draw.IntN(iteration, 2, cuts-2)
	// The b-th of the cuts that are neither a nor c.
	if b >= a {
		b++
	}
	if b >= c {
		b++
	}
	if b < a {
		a, b = b, a
	}
	if b > c {
		b, c = c, b
	}
	return exchange(tau, out, a, b, c)
}

func proposeMix(draw rng.Stream, iteration uint64, tau, out []int) (int, int) {
	switch u := draw.IntN(iteration, 3, mixAll); {
	case u < mixReverse:
		return proposeBlockReverse(draw, iteration, tau, out)
	case u < mixReverse+mixInsert:
		return proposeVertexInsertion(draw, iteration, tau, out)
	}
	return proposeBlockInsertion(draw, iteration, tau, out)
}

// exchange puts the block [b,c) before the block [a,b).
func exchange(tau, out []int, a, b, c int) (lo, hi int) {
	copy(out, tau)
	n := copy(out[a:], tau[b:c])
	copy(out[a+n:], tau[a:b])
	return a, c - 1
}
