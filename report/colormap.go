package report

import (
	"fmt"
	"image/color"

	"github.com/assay-xai/assay/internal/heat"
)

// heatColor maps 0..1 to a colour; values outside are clamped.
func heatColor(v float64) color.NRGBA { return heat.Sequential(v) }

func hex(c color.NRGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// heatGradient is the colour map as a CSS gradient's stops.
func heatGradient() string {
	const steps = 16
	s := ""
	for i := range steps + 1 {
		if i > 0 {
			s += ","
		}
		s += hex(heatColor(float64(i) / steps))
	}
	return s
}
