package heat

import (
	"image/color"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Reference values of OKLab (Ottosson 2020): white is (1,0,0), and sRGB red
// (.62796, .22486, .12585).
func TestOKLab(t *testing.T) {
	require.Equal(t, color.NRGBA{255, 255, 255, 255}, okLCh(1, 0, 0))
	c, h := math.Hypot(.22486, .12585), math.Atan2(.12585, .22486)*180/math.Pi
	require.Equal(t, color.NRGBA{255, 0, 0, 255}, okLCh(.62796, c, h))
}

// Stronger is darker and more opaque on both sides; nothing is see-through.
func TestDiverging(t *testing.T) {
	require.Zero(t, Diverging(0).A)
	require.Equal(t, Diverging(1), Diverging(3))
	for i := range 10 {
		a, b := float64(i)/10, float64(i+1)/10
		for _, sign := range []float64{-1, 1} {
			require.Less(t, Diverging(sign*a).A, Diverging(sign*b).A)
		}
		require.Greater(t, Diverging(b).R, Diverging(b).B)
		require.Greater(t, Diverging(-b).B, Diverging(-b).R)
	}
}
