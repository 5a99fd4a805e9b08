package report

import (
	"image"
	"image/color"
	"math"
	"strconv"
	"strings"
)

// pixels is a view: 8-bit values in RGB order.
type pixels struct {
	h, w int
	rgb  []float64 // 0..255, [h,w,3]
}

func newPixels(img image.Image) pixels {
	b := img.Bounds()
	p := pixels{b.Dy(), b.Dx(), make([]float64, 0, 3*b.Dx()*b.Dy())}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			c := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
			p.rgb = append(p.rgb, float64(c.R), float64(c.G), float64(c.B))
		}
	}
	return p
}

func (p pixels) image() image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, p.w, p.h))
	for i := range p.h * p.w {
		for c := range 3 {
			img.Pix[4*i+c] = level(p.rgb[3*i+c])
		}
		img.Pix[4*i+3] = 255
	}
	return img
}

func level(v float64) uint8 { return uint8(math.Round(min(max(v, 0), 255))) }

// normalisation is a preset's mean and std by channel, in pixel space 0..1.
type normalisation struct{ mean, std [3]float64 }

// newNormalisation reads mean and std of a preset of a resolved plan; a single
// channel counts thrice.
func newNormalisation(preset any) (normalisation, bool) {
	m, ok := preset.(map[string]any)
	if !ok {
		return normalisation{}, false
	}
	var n normalisation
	return n, triple(m["mean"], &n.mean) && triple(m["std"], &n.std)
}

func triple(v any, out *[3]float64) bool {
	list, ok := v.([]any)
	if !ok || len(list) != 1 && len(list) != 3 {
		return false
	}
	for c := range out {
		x, ok := number(list[min(c, len(list)-1)])
		if !ok {
			return false
		}
		out[c] = x
	}
	return true
}

func number(v any) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, !math.IsNaN(x) && !math.IsInf(x, 0)
	case int:
		return float64(x), true
	case int64:
		return float64(x), true
	case uint64:
		return float64(x), true
	}
	return 0, false
}

// reference is what deleted patches look like: one colour, or an image.
type reference struct {
	flat  color.NRGBA
	image image.Image // nil: flat
	// sketch is true where the page cannot know the reference and shows grey.
	sketch bool
}

// grey stands for references that are not known here.
var grey = color.NRGBA{127, 127, 127, 255}

// newReference draws the reference named spec ("zero", "blur(kernel=31,...)")
// of a view, from the 8-bit view: up to rounding what the net saw.
func newReference(spec string, view pixels, n normalisation, known bool, patches []int32) reference {
	name, args := parseSpec(spec)
	channels := view.means()
	switch {
	case name == "zero" && known:
		return reference{flat: rgb(n.mean[0]*255, n.mean[1]*255, n.mean[2]*255)}
	case name == "mean" && known:
		sum := 0.0
		for c, v := range channels {
			sum += (v/255 - n.mean[c]) / n.std[c] / 3
		}
		var out [3]float64
		for c := range out {
			out[c] = (sum*n.std[c] + n.mean[c]) * 255
		}
		return reference{flat: rgb(out[0], out[1], out[2])}
	case name == "channel-mean":
		return reference{flat: rgb(channels[0], channels[1], channels[2])}
	case name == "constant":
		v := args.number("value", 0) * 255
		return reference{flat: rgb(v, v, v)}
	case name == "patch-mean" && known:
		return reference{image: view.patchMeans(n, patches, args["perChannel"] == "true").image()}
	case name == "blur":
		if img, ok := view.blur(int(args.number("kernel", 31)), args.number("sigma", 56)); ok {
			return reference{image: img.image()}
		}
	}
	return reference{flat: grey, sketch: true}
}

func rgb(r, g, b float64) color.NRGBA { return color.NRGBA{level(r), level(g), level(b), 255} }

type specArgs map[string]string

func (a specArgs) number(name string, otherwise float64) float64 {
	if v, err := strconv.ParseFloat(a[name], 64); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
		return v
	}
	return otherwise
}

// parseSpec reads "name(key=value,...)"; what it does not understand it leaves out.
func parseSpec(spec string) (string, specArgs) {
	name, rest, _ := strings.Cut(spec, "(")
	args := specArgs{}
	for part := range strings.SplitSeq(strings.TrimSuffix(rest, ")"), ",") {
		if k, v, ok := strings.Cut(part, "="); ok {
			args[strings.TrimSpace(k)] = strings.TrimSpace(v)
		}
	}
	return strings.TrimSpace(name), args
}

// means are by channel, 0..255.
func (p pixels) means() [3]float64 {
	var out [3]float64
	for i, v := range p.rgb {
		out[i%3] += v
	}
	for c := range out {
		out[c] /= float64(p.h * p.w)
	}
	return out
}

// patchMeans fills every patch with its mean, by channel or as one number in
// normalised space.
func (p pixels) patchMeans(n normalisation, patches []int32, perChannel bool) pixels {
	type cell struct {
		sum   [3]float64
		count float64
	}
	cells := map[int32]*cell{}
	for i, id := range patches {
		c := cells[id]
		if c == nil {
			c = &cell{}
			cells[id] = c
		}
		c.count++
		for k := range 3 {
			c.sum[k] += (p.rgb[3*i+k]/255 - n.mean[k]) / n.std[k]
		}
	}
	out := pixels{p.h, p.w, make([]float64, len(p.rgb))}
	for i, id := range patches {
		c := cells[id]
		all := (c.sum[0] + c.sum[1] + c.sum[2]) / 3
		for k := range 3 {
			v := all
			if perChannel {
				v = c.sum[k]
			}
			out.rgb[3*i+k] = (v/c.count*n.std[k] + n.mean[k]) * 255
		}
	}
	return out
}

// blur convolves with a Gaussian of kernel pixels, reflecting at the borders
// without repeating them; false where the kernel does not fit.
func (p pixels) blur(kernel int, sigma float64) (pixels, bool) {
	radius := kernel / 2
	if kernel < 1 || kernel%2 == 0 || radius >= min(p.h, p.w) || sigma <= 0 {
		return pixels{}, false
	}
	weights, sum := make([]float64, kernel), 0.0
	for i := range weights {
		d := float64(i-radius) / sigma
		weights[i] = math.Exp(-d * d / 2)
		sum += weights[i]
	}
	for i := range weights {
		weights[i] /= sum
	}
	return p.convolve(weights, false).convolve(weights, true), true
}

// convolve filters along rows, or down columns.
func (p pixels) convolve(weights []float64, down bool) pixels {
	out := pixels{p.h, p.w, make([]float64, len(p.rgb))}
	n, lines, step, next := p.w, p.h, 3, 3*p.w
	if down {
		n, lines, step, next = p.h, p.w, 3*p.w, 3
	}
	radius := len(weights) / 2
	for line := range lines {
		for at := range n {
			for c := range 3 {
				sum := 0.0
				for k, weight := range weights {
					i := at + k - radius
					if i < 0 {
						i = -i
					} else if i >= n {
						i = 2*(n-1) - i
					}
					sum += weight * p.rgb[line*next+i*step+c]
				}
				out.rgb[line*next+at*step+c] = sum
			}
		}
	}
	return out
}
