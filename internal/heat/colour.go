// Package heat draws numbers at places: the colour maps of reports, and maps of
// attribution over images.
package heat

import (
	"image/color"
	"math"
)

// stop is a place of the colour map in OKLCh: lightness 0..1, chroma, hue in
// degrees (B. Ottosson, "A perceptual color space for image processing", 2020).
type stop struct{ at, lightness, chroma, hue float64 }

// sequentialStops go from near black through violet, red and orange to pale yellow.
// Lightness rises evenly, so the order can be read without seeing the hues and
// on a grey printer.
var sequentialStops = []stop{
	{0, .12, .03, 285},
	{.2, .29, .15, 292},
	{.4, .46, .19, 350},
	{.6, .63, .20, 385},
	{.8, .80, .155, 427},
	{1, .97, .10, 468},
}

// Sequential maps 0..1 to a colour; values outside are clamped.
func Sequential(v float64) color.NRGBA {
	v = min(max(v, 0), 1)
	i := 1
	for i < len(sequentialStops)-1 && v > sequentialStops[i].at {
		i++
	}
	a, b := sequentialStops[i-1], sequentialStops[i]
	f := (v - a.at) / (b.at - a.at)
	mix := func(x, y float64) float64 { return x + f*(y-x) }
	return okLCh(mix(a.lightness, b.lightness), mix(a.chroma, b.chroma), mix(a.hue, b.hue))
}

// okLCh converts to sRGB; chroma outside its gamut is taken back.
func okLCh(lightness, chroma, hue float64) color.NRGBA {
	for {
		r, g, b := okLab(lightness, chroma*math.Cos(hue*math.Pi/180), chroma*math.Sin(hue*math.Pi/180))
		const slack = .002
		if min(r, g, b) >= -slack && max(r, g, b) <= 1+slack || chroma < 1e-4 {
			return color.NRGBA{encode(r), encode(g), encode(b), 255}
		}
		chroma *= .97
	}
}

// okLab converts OKLab to linear sRGB.
func okLab(lightness, a, b float64) (red, green, blue float64) {
	l := lightness + .3963377774*a + .2158037573*b
	m := lightness - .1055613458*a - .0638541728*b
	s := lightness - .0894841775*a - 1.2914855480*b
	l, m, s = l*l*l, m*m*m, s*s*s
	return 4.0767416621*l - 3.3077115913*m + .2309699292*s,
		-1.2684380046*l + 2.6097574011*m - .3413193965*s,
		-.0041960863*l - .7034186147*m + 1.7076147010*s
}

// encode applies sRGB's transfer function.
func encode(linear float64) uint8 {
	linear = min(max(linear, 0), 1)
	v := 12.92 * linear
	if linear > .0031308 {
		v = 1.055*math.Pow(linear, 1/2.4) - .055
	}
	return uint8(math.Round(v * 255))
}

// Hues of negative and positive values, which people who do not see red and green
// apart tell apart too.
const (
	negativeHue = 255
	positiveHue = 32
)

// Diverging maps -1..1 to a colour with an opacity: blue below 0, red above, and
// nothing at 0; values outside are clamped.
func Diverging(v float64) color.NRGBA {
	hue := float64(positiveHue)
	if v < 0 {
		hue = negativeHue
	}
	a := min(math.Abs(v), 1)
	c := okLCh(.78-.2*a, .09+.12*a, hue)
	c.A = uint8(math.Round(235 * math.Pow(a, .75)))
	return c
}
