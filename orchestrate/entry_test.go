package orchestrate

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVariant(t *testing.T) {
	c := Catalogue{Nets: []Entry{
		{ID: "cnn3", Input: []int{1, 8, 8}},
		{ID: "cnn3-fashion", Input: []int{1, 28, 28}},
		{ID: "cnn30-wide", Input: []int{3, 32, 32}},
	}}
	for _, check := range []struct {
		row  []int
		want string
	}{
		{[]int{1, 8, 8}, "cnn3"},
		{[]int{1, 28, 28}, "cnn3-fashion"},
		{[]int{3, 32, 32}, "cnn3"}, // another net's name that only begins alike
		{nil, "cnn3"},
	} {
		require.Equal(t, check.want, c.variant(c.Nets[0], check.row).ID, check.row)
	}
	require.True(t, c.hasVariants(c.Nets[0]))
	require.False(t, c.hasVariants(c.Nets[1]))
}
