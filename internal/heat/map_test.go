package heat

import (
	"image"
	"image/color"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// 200 magnitudes 1..200: the 99th percentile is the 198th.
func TestScaleIsThe99thPercentile(t *testing.T) {
	values := make([]float32, 200)
	for i := range values {
		values[i] = float32(i + 1)
		if i%2 == 1 {
			values[i] = -values[i]
		}
	}
	m := NewMap(values, []int{1, 10, 20})
	require.Equal(t, 198., m.Scale)
	require.True(t, m.Signed)
	require.InDelta(t, 1/198., m.Values[0], 1e-12)
	one := NewMap([]float32{0, 0, 0, 7}, []int{2, 2})
	require.Equal(t, 7., one.Scale)
	require.False(t, one.Signed)
	none := NewMap([]float32{0, 0, 0, 0}, []int{2, 2})
	require.Equal(t, 1., none.Scale)
}

func TestChannelsAreSummedAndNaNIsNoValue(t *testing.T) {
	m := NewMap([]float32{1, 2, float32(math.NaN()), 4, -3, 2, 1, 0}, []int{2, 2, 2})
	require.Equal(t, 4., m.Scale)
	require.InDeltaSlice(t, []float64{-.5, 1}, m.Values[:2], 1e-12)
	require.True(t, math.IsNaN(m.Values[2]))
	img := m.Image()
	require.Equal(t, []uint8{1 + 64, 255, 0, 255}, img.Pix)
	_, _, _, alpha := img.At(0, 1).RGBA()
	require.Zero(t, alpha, "no number: see-through")
	r, _, b, _ := img.At(0, 0).RGBA()
	require.Greater(t, b, r, "negative is blue")
	r, _, b, _ = img.At(1, 0).RGBA()
	require.Greater(t, r, b, "positive is red")
}

func TestShrunkAverages(t *testing.T) {
	m := NewMap([]float32{1, 3, 0, 0, 5, 7, 0, 8, 1, 1, 2, 2}, []int{3, 4})
	s := m.Shrunk(2)
	require.Equal(t, [2]int{2, 2}, [2]int{s.H, s.W})
	for i, want := range []float64{4, 2, 1, 2} {
		require.InDelta(t, want, s.Values[i]*s.Scale, 1e-12)
	}
	require.Equal(t, m, m.Shrunk(4))
}

// Where a signed map says nothing the image is seen in grey; small images are
// enlarged.
func TestOverlay(t *testing.T) {
	img := image.NewNRGBA(image.Rect(0, 0, 2, 1))
	img.Set(0, 0, color.NRGBA{90, 90, 90, 255})
	img.Set(1, 0, color.NRGBA{90, 90, 90, 255})
	out := Overlay(img, NewMap([]float32{0, -1}, []int{1, 1, 2}))
	require.Equal(t, image.Rect(0, 0, 224, 112), out.Bounds())
	require.Equal(t, color.NRGBA{204, 204, 204, 255}, out.NRGBAAt(111, 111), ".7 + .28*90/255 of 255")
	plain := Overlay(img, NewMap([]float32{0, 1}, []int{1, 1, 2})).NRGBAAt(111, 111)
	require.InDelta(t, 90*97./255+4*158./255, plain.R, 2, "not signed: 62 % of near black over the grey")
	blue := out.NRGBAAt(112, 0)
	require.Greater(t, blue.B, blue.R)
	none := Overlay(image.NewGray(image.Rect(0, 0, 5, 5)), NewMap([]float32{0, -1}, []int{1, 1, 2}))
	require.Equal(t, color.NRGBA{255, 255, 255, 255}, none.NRGBAAt(0, 0), "an image of another size is left out")
}
