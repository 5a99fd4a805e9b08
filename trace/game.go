package trace

import (
	"context"
	"fmt"

	"github.com/assay-xai/assay/internal/rng"
)

// game is the deletion game of one image for one search: it scores states,
// remembers them, and counts.
type game struct {
	t      int
	logit  bool
	scorer Scorer
	forget bool // savings without the memo
	// progress, if not nil, is called after every call of the scorer.
	progress func()
	// feature[f] is what f adds to the key of a set, whole the key of all features.
	feature []stateKey
	whole   stateKey
	memo    map[stateKey]Score
	asked   map[uint64]struct{}

	evaluations int64 // nominal: different states that the plain loop asks for
	forwards    int64 // states really scored
}

// stateKey stands for a set of features: the set itself where t <= 64, else the
// exclusive or of 128 random bits for every feature (Zobrist, "A new hashing
// method with application for game playing", 1970). Two of the 10^7 states of a
// long search share a key with a probability below 10^-24.
type stateKey [2]uint64

func (k stateKey) xor(o stateKey) stateKey { return stateKey{k[0] ^ o[0], k[1] ^ o[1]} }

const (
	// memoLimit is the number of states that a search remembers at most: 64 MB.
	// Then it begins anew, which costs forwards and no decision.
	memoLimit = 1 << 20
	// askedLimit is the number of states up to which nominal evaluations know
	// those that were asked for before; then they begin anew.
	askedLimit = 1 << 22
)

func newGame(p Problem, logit bool) *game {
	g := &game{t: p.T, logit: logit, scorer: p.Scorer, memo: map[stateKey]Score{}, asked: map[uint64]struct{}{}}
	g.feature = make([]stateKey, p.T)
	stream := rng.New(0, "trace/state key", "")
	for f := range g.feature {
		if p.T <= 64 {
			g.feature[f] = stateKey{1 << f, 0}
		} else {
			g.feature[f] = stateKey{stream.Uint64(uint64(f), 0), stream.Uint64(uint64(f), 1)}
		}
		g.whole = g.whole.xor(g.feature[f])
	}
	return g
}

func (g *game) key(s Set) stateKey {
	if g.t <= 64 {
		return stateKey{s[0], 0}
	}
	var k stateKey
	for f, bits := range g.feature {
		if s.Has(f) {
			k = k.xor(bits)
		}
	}
	return k
}

// ask counts a state that the plain loop scores here.
func (g *game) ask(k stateKey) {
	if _, before := g.asked[k[0]]; before {
		return
	}
	if len(g.asked) >= askedLimit {
		clear(g.asked)
	}
	g.asked[k[0]] = struct{}{}
	g.evaluations++
}

func (g *game) known(k stateKey) (Score, bool) {
	v, ok := g.memo[k]
	return v, ok
}

// score asks the net for sets, whose keys are different, and remembers what it
// says, NaN included.
func (g *game) score(ctx context.Context, keys []stateKey, sets []Set) ([]Score, error) {
	if len(sets) == 0 {
		return nil, nil
	}
	scored, err := g.scorer.Scores(ctx, sets)
	if err != nil {
		return nil, err
	}
	if len(scored) != len(sets) {
		return nil, fmt.Errorf("trace: %d scores for %d states", len(scored), len(sets))
	}
	g.forwards += int64(len(sets))
	if g.progress != nil {
		g.progress()
	}
	if g.forget {
		return scored, nil
	}
	if len(g.memo) > memoLimit {
		clear(g.memo)
	}
	for i, v := range scored {
		g.memo[keys[i]] = v
	}
	return scored, nil
}

// scores returns the score of every set, asking the net once for each that is
// not known, and counts them as asked for.
func (g *game) scores(ctx context.Context, sets []Set) ([]Score, error) {
	keys := make([]stateKey, len(sets))
	for i, s := range sets {
		keys[i] = g.key(s)
		g.ask(keys[i])
	}
	return g.look(ctx, keys, func(i int) Set { return sets[i] })
}

// look returns the scores of the states of keys, where set(i) makes the set of
// one that the net has to be asked for.
func (g *game) look(ctx context.Context, keys []stateKey, set func(i int) Set) ([]Score, error) {
	out := make([]Score, len(keys))
	place := map[stateKey]int{} // in missing
	var missing []stateKey
	var sets []Set
	var where []int
	for i, k := range keys {
		v, ok := g.known(k)
		if ok {
			if !finite(v) {
				return nil, &NotFiniteError{Score: v, Deleted: set(i).Len(), T: g.t}
			}
			out[i] = v
			continue
		}
		where = append(where, i)
		if _, twice := place[k]; !twice {
			place[k] = len(missing)
			missing, sets = append(missing, k), append(sets, set(i))
		}
	}
	scored, err := g.score(ctx, missing, sets)
	if err != nil {
		return nil, err
	}
	for i, v := range scored {
		if !finite(v) {
			return nil, &NotFiniteError{Score: v, Deleted: sets[i].Len(), T: g.t}
		}
	}
	for _, i := range where {
		out[i] = scored[place[keys[i]]]
	}
	return out, nil
}
