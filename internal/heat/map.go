package heat

import (
	"image"
	"image/color"
	"math"
	"slices"
)

// Percentile is the share of a map's magnitudes that the colours resolve: larger ones
// have the colour of the end.
const Percentile = .99

// Map is a map of attribution made ready to be drawn: one value a pixel.
type Map struct {
	H, W int
	// Values are row-major, divided by Scale; NaN where the map has no number.
	Values []float64
	// Signed is true of maps with negative values: their scale is symmetric.
	Signed bool
	// Scale is the magnitude that the colours end at.
	Scale float64
}

// NewMap sums a map [C,H,W] or [H,W] over its channels and scales it by the 99th
// percentile of the magnitudes (the largest where that is 0, 1 where all are).
func NewMap(values []float32, shape []int) Map {
	h, w := shape[len(shape)-2], shape[len(shape)-1]
	m := Map{H: h, W: w, Values: make([]float64, h*w)}
	for i, v := range values {
		m.Values[i%len(m.Values)] += float64(v)
	}
	m.scale()
	return m
}

func (m *Map) scale() {
	var sizes []float64
	for i, v := range m.Values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			m.Values[i] = math.NaN()
			continue
		}
		m.Signed = m.Signed || v < 0
		sizes = append(sizes, math.Abs(v))
	}
	slices.Sort(sizes)
	m.Scale = 1
	if n := len(sizes); n > 0 {
		if s := sizes[int(math.Ceil(Percentile*float64(n)))-1]; s > 0 {
			m.Scale = s
		} else if sizes[n-1] > 0 {
			m.Scale = sizes[n-1]
		}
	}
	for i := range m.Values {
		m.Values[i] /= m.Scale
	}
}

// Shrunk is the map with blocks of pixels averaged so that no side is longer than
// side, scaled anew; m itself where it fits.
func (m Map) Shrunk(side int) Map {
	k := (max(m.H, m.W) + side - 1) / side
	if k <= 1 {
		return m
	}
	out := Map{H: (m.H + k - 1) / k, W: (m.W + k - 1) / k}
	out.Values = make([]float64, out.H*out.W)
	count := make([]float64, len(out.Values))
	for i, v := range m.Values {
		at := i/m.W/k*out.W + i%m.W/k
		out.Values[at] += v
		count[at]++
	}
	for i := range out.Values {
		out.Values[i] *= m.Scale / count[i]
	}
	out.scale()
	return out
}

// sequentialOpacity is that of maps without negative values over images.
const sequentialOpacity = 158

// color of a scaled value: diverging with an opacity of its own, or sequential; none
// for NaN.
func (m Map) color(v float64) color.NRGBA {
	switch {
	case math.IsNaN(v):
		return color.NRGBA{}
	case m.Signed:
		return Diverging(v)
	}
	c := Sequential(v)
	c.A = sequentialOpacity
	return c
}

// Image paints the map alone, to be laid over an image: see-through where it says
// nothing.
func (m Map) Image() *image.Paletted {
	const levels = 255 // and one for what is no number
	low := 0.
	if m.Signed {
		low = -1
	}
	palette := make(color.Palette, levels+1)
	palette[0] = color.NRGBA{}
	for i := range levels {
		palette[i+1] = m.color(low + (1-low)*float64(i)/(levels-1))
	}
	out := image.NewPaletted(image.Rect(0, 0, m.W, m.H), palette)
	for i, v := range m.Values {
		if !math.IsNaN(v) {
			out.Pix[i] = 1 + uint8(math.Round((min(max(v, low), 1)-low)/(1-low)*(levels-1)))
		}
	}
	return out
}

// smallest side of an overlay: smaller images are enlarged by a whole factor.
const overlaySide = 224

// Overlay paints the map over the image in grey. Images of another size than the map's
// are left out.
func Overlay(img image.Image, m Map) *image.NRGBA {
	b := img.Bounds()
	same := b.Dx() == m.W && b.Dy() == m.H
	k := max(1, overlaySide/max(m.W, m.H))
	out := image.NewNRGBA(image.Rect(0, 0, m.W*k, m.H*k))
	for y := range m.H {
		for x := range m.W {
			back := uint8(255)
			if same {
				back = m.backdrop(color.GrayModel.Convert(img.At(b.Min.X+x, b.Min.Y+y)).(color.Gray).Y)
			}
			c := over(m.color(m.Values[y*m.W+x]), back)
			for j := range k * k {
				out.SetNRGBA(x*k+j%k, y*k+j/k, c)
			}
		}
	}
	return out
}

// backdrop is the grey below a map: pale below a signed one, whose colours would drown
// in an image's own contrast.
func (m Map) backdrop(grey uint8) uint8 {
	if !m.Signed {
		return grey
	}
	return uint8(math.Round(paleBase + paleSlope*float64(grey)))
}

// The report's pale filter has these too.
const (
	paleBase  = 178.5
	paleSlope = .28
)

// over lays a colour over a grey.
func over(c color.NRGBA, grey uint8) color.NRGBA {
	a := float64(c.A) / 255
	mix := func(v uint8) uint8 { return uint8(math.Round(a*float64(v) + (1-a)*float64(grey))) }
	return color.NRGBA{mix(c.R), mix(c.G), mix(c.B), 255}
}
