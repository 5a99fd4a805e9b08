package report

import (
	"encoding/base64"
	"image"
	"image/color"
	"image/png"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/assay-xai/assay/trace"
)

// Patch 2 goes first (rank 1), then 0, 3, 1: (rank/4)^2 by patch, by hand.
func TestRelevance(t *testing.T) {
	tau := []int{2, 0, 3, 1}
	require.Equal(t, []int{2, 4, 1, 3}, ranks(tau))
	require.Equal(t, []float64{.25, 1, .0625, .5625}, trace.Heat(tau, 2))
	require.Equal(t, []float64{.5, 1, .25, .75}, trace.Heat(tau, 1))
	require.InDeltaSlice(t, []float64{.125, 1, .015625, .421875}, trace.Heat(tau, 3), 1e-15)
}

// A 5 x 4 image of 2 x 2 patches: the last row of patches takes the odd row.
func TestHeatMapPaintsPatches(t *testing.T) {
	patches, err := trace.PatchMap(2, 5, 4)
	require.NoError(t, err)
	img := heatMap(trace.Heat([]int{2, 0, 3, 1}, 2), patches, 5, 4)
	require.Equal(t, image.Rect(0, 0, 4, 5), img.Bounds())
	at := func(psi float64) color.NRGBA { return heatColor(math.Round(psi*255) / 255) }
	want := map[image.Point]float64{
		{0, 0}: .25, {1, 1}: .25, {2, 0}: 1, {3, 1}: 1,
		{0, 2}: .0625, {1, 4}: .0625, {2, 2}: .5625, {3, 4}: .5625,
	}
	for p, psi := range want {
		require.Equal(t, at(psi), color.NRGBAModel.Convert(img.At(p.X, p.Y)), "%v", p)
	}
	mask := deletedMask([]int{2}, 4, patches, 5, 4)
	for y := range 5 {
		for x := range 4 {
			_, _, _, a := mask.At(x, y).RGBA()
			require.Equal(t, x < 2 && y >= 2, a == 0xffff, "%d,%d", x, y)
		}
	}
}

// CIE lightness (CIE 15) of the colours rises all the way, so that order shows
// without hue; the ends are nearly black and nearly white.
func TestHeatColorsRiseInLightness(t *testing.T) {
	last := -1.0
	for i := range 256 {
		l := cieLightness(heatColor(float64(i) / 255))
		require.Greater(t, l, last-.25, "at %d", i) // quantised to 8 bits
		last = max(last, l)
	}
	require.Less(t, cieLightness(heatColor(0)), 8.0)
	require.Greater(t, cieLightness(heatColor(1)), 92.0)
	require.Equal(t, heatColor(0), heatColor(-1))
	require.Equal(t, heatColor(1), heatColor(2))
}

func cieLightness(c color.NRGBA) float64 {
	linear := func(v uint8) float64 {
		f := float64(v) / 255
		if f <= .04045 {
			return f / 12.92
		}
		return math.Pow((f+.055)/1.055, 2.4)
	}
	y := .2126*linear(c.R) + .7152*linear(c.G) + .0722*linear(c.B)
	if y <= 216.0/24389 {
		return y * 24389 / 27
	}
	return 116*math.Cbrt(y) - 16
}

func TestReferences(t *testing.T) {
	img := image.NewNRGBA(image.Rect(0, 0, 4, 4))
	for y := range 4 {
		for x := range 4 {
			img.SetNRGBA(x, y, color.NRGBA{uint8(40 * x), uint8(20 * y), 100, 255})
		}
	}
	p := newPixels(img)
	patches, err := trace.PatchMap(2, 4, 4)
	require.NoError(t, err)
	n := normalisation{[3]float64{.5, .4, .3}, [3]float64{.25, .25, .5}}

	require.Equal(t, color.NRGBA{128, 102, 77, 255}, newReference("zero", p, n, true, patches).flat) // .5*255 = 127.5, 102, 76.5
	require.Equal(t, color.NRGBA{60, 30, 100, 255}, newReference("channel-mean", p, n, true, patches).flat)
	require.Equal(t, color.NRGBA{255, 255, 255, 255}, newReference("constant(value=1)", p, n, true, patches).flat)
	// Normalised channel means: (60/255-.5)/.25, (30/255-.4)/.25, (100/255-.3)/.5;
	// (-1.05882 - 1.12941 + .18431)/3 = -.66797, and back in pixels 84.9, 59.4, -8.7.
	require.Equal(t, color.NRGBA{85, 59, 0, 255}, newReference("mean", p, n, true, patches).flat)

	for _, unknown := range []reference{newReference("zero", p, n, false, patches), newReference("uniform", p, n, true, patches),
		newReference("image(path=x)", p, n, true, patches), newReference("", p, n, true, patches)} {
		require.True(t, unknown.sketch)
		require.Equal(t, grey, unknown.flat)
	}
	mean := newReference("patch-mean(perChannel=true)", p, n, true, patches).image
	require.Equal(t, color.NRGBA{20, 10, 100, 255}, mean.At(0, 0)) // x 0,1; y 0,1
	require.Equal(t, color.NRGBA{100, 50, 100, 255}, mean.At(3, 3))
}

// A blur leaves what is constant along an axis, keeps means away from borders,
// and a box kernel (sigma large) of 3 averages neighbours.
func TestBlur(t *testing.T) {
	p := pixels{3, 5, make([]float64, 45)}
	for i := range 15 {
		for c := range 3 {
			p.rgb[3*i+c] = []float64{0, 30, 60, 30, 0}[i%5]
		}
	}
	got, ok := p.blur(3, 1e6)
	require.True(t, ok)
	for i := range 15 {
		require.InDelta(t, []float64{20, 30, 40, 30, 20}[i%5], got.rgb[3*i], 1e-6, "x %d", i%5)
	}
	_, ok = p.blur(7, 1)
	require.False(t, ok, "the kernel reaches beyond the reflection")
	same, ok := p.blur(1, 5)
	require.True(t, ok)
	require.Equal(t, p, same)
}

func TestHeatMapIsAPermutationOfRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		edge := rapid.SampledFrom([]int{2, 4, 7, 8}).Draw(t, "edge")
		tau := rapid.Permutation(identity(edge*edge)).Draw(t, "trajectory")
		psi := trace.Heat(tau, rapid.Float64Range(.1, 5).Draw(t, "alpha"))
		for i := 1; i < len(tau); i++ {
			if psi[tau[i-1]] >= psi[tau[i]] {
				t.Fatalf("position %d: relevance falls from %v to %v", i, psi[tau[i-1]], psi[tau[i]])
			}
		}
	})
}

func identity(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// decodePNG reads a data URI.
func decodePNG(t *testing.T, url string) image.Image {
	t.Helper()
	text, ok := strings.CutPrefix(url, "data:image/png;base64,")
	require.True(t, ok, "want a PNG: %.40s", url)
	img, err := png.Decode(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
	require.NoError(t, err)
	return img
}
