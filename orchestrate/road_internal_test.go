package orchestrate

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Counts against exact arithmetic: both ends of a ranking make the whole, and neither is
// more than half a pixel away from its fraction.
func TestRemovedCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300*300).Draw(t, "n")
		thousandths := rapid.IntRange(0, 1000).Draw(t, "thousandths")
		p, rest := float64(thousandths)/1000, float64(1000-thousandths)/1000
		exact := big.NewRat(int64(n)*int64(thousandths), 1000)
		floor := func(r *big.Rat) int {
			return int(new(big.Int).Div(r.Num(), r.Denom()).Int64()) // Euclidean, r is not negative
		}
		want := floor(new(big.Rat).Add(exact, big.NewRat(1, 2)))
		require.Equal(t, want, removedCount(p, n, false))
		require.Equal(t, n-want, removedCount(rest, n, true), "what is left is what the other end removes")
	})
	require.Equal(t, 7, removedCount(.1, 65, false), "6.5 up")
	require.Equal(t, 6, removedCount(.1, 65, true), "6.5 down")
	require.Equal(t, 102, removedCount(.1, 1024, false))
	require.Equal(t, 922, removedCount(.9, 1024, false))
	require.Equal(t, 3, removedCount(.1+.2, 9, false), "2.7 whatever the last bit says")
	for _, least := range []bool{false, true} {
		require.Equal(t, 0, removedCount(0, 1024, least))
		require.Equal(t, 1024, removedCount(1, 1024, least))
	}
}

func TestFractions(t *testing.T) {
	parameter := Parameter{Name: "fractions", Type: fractionsType}
	for _, c := range []struct {
		given any
		want  []string
	}{
		{[]any{.1, .5}, []string{"0.1,0.5"}},
		{[]any{0, 1}, []string{"0,1"}},
		{.5, []string{"0.5"}},
		{".1, .5,1e-1", []string{"0.1,0.5,0.1"}},
		{[]any{"0.1,0.2", "0.5"}, []string{"0.1,0.2", "0.5"}},
		{[]any{[]any{.1, .2}, []any{.5}, .7}, []string{"0.1,0.2", "0.5", "0.7"}},
		{[]any{"0.1", "0.2"}, []string{"0.1", "0.2"}}, // as resolved plans write two lists of one
	} {
		lists := parameter.lists(c.given)
		if lists == nil {
			lists = []any{c.given}
		}
		var got []string
		for _, l := range lists {
			text, err := parameter.coerce(l)
			require.NoError(t, err)
			got = append(got, text.(string))
		}
		require.Equal(t, c.want, got)
	}
	require.Nil(t, Parameter{Name: "edge", Type: "int"}.lists([]any{1, 2}), "of other types the list is the values")
}

func TestPartner(t *testing.T) {
	there := []float64{.1, .3, .5, .7, .9}
	for _, c := range []struct {
		f       float64
		pairing string
		want    float64
		ok      bool
	}{{.1, PairByRemoved, .1, true}, {.2, PairByRemoved, 0, false}, {.1, PairByIndex, .9, true}, {.3, PairByIndex, .7, true}, {.4, PairByIndex, 0, false}} {
		got, ok := partner(c.f, there, c.pairing)
		require.Equal(t, c.ok, ok)
		require.Equal(t, c.want, got)
	}
}
