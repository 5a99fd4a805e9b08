package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShortSpin(t *testing.T) {
	got, wanted := shortSpin([]string{"HOME=/home/me"})
	require.True(t, wanted)
	require.Equal(t, []string{"HOME=/home/me", "GOMP_SPINCOUNT=4000"}, got)
	_, wanted = shortSpin(got)
	require.False(t, wanted, "the program starts anew once")
	_, wanted = shortSpin([]string{"OMP_WAIT_POLICY=active"})
	require.False(t, wanted)
}
