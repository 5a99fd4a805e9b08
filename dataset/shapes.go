package dataset

import (
	"math"

	"github.com/assay-xai/assay/internal/rng"
)

// shape is a figure: whether (x, y) lies in it, in units of its radius, all of
// it within the unit circle.
type shape struct {
	name   string
	inside func(x, y float64) bool
}

// shapes lists the figures, in the order of their classes.
func shapes() []shape {
	return []shape{
		{"circle", func(x, y float64) bool { return x*x+y*y <= 1 }},
		{"square", func(x, y float64) bool { return math.Abs(x) <= math.Sqrt2/2 && math.Abs(y) <= math.Sqrt2/2 }},
		{"triangle", func(x, y float64) bool { return insidePolygon(x, y, 3) }},
		{"cross", func(x, y float64) bool {
			x, y = math.Abs(x), math.Abs(y)
			return min(x, y) <= .28 && max(x, y) <= .95
		}},
		{"ring", func(x, y float64) bool { r := x*x + y*y; return r <= 1 && r >= .55*.55 }},
		{"star", insideStar},
	}
}

func shapeNames() []string {
	var names []string
	for _, s := range shapes() {
		names = append(names, s.name)
	}
	return names
}

// insidePolygon is true of points in the regular polygon whose corners are on
// the unit circle, one of them at (1, 0).
func insidePolygon(x, y float64, corners int) bool {
	apothem := math.Cos(math.Pi / float64(corners))
	for k := range corners {
		angle := float64(2*k+1) * math.Pi / float64(corners)
		if x*math.Cos(angle)+y*math.Sin(angle) > apothem {
			return false
		}
	}
	return true
}

// insideStar is true of points in a star of five points, whose inner corners
// are at .42 of the radius.
func insideStar(x, y float64) bool {
	const inner = .42
	r, angle := math.Hypot(x, y), math.Atan2(y, x)
	// Fold into half a point: the angle from the nearest tip, 0..pi/5.
	angle = math.Abs(math.Mod(angle+2*math.Pi+math.Pi/5, 2*math.Pi/5) - math.Pi/5)
	px, py := r*math.Cos(angle), r*math.Sin(angle)
	// The edge goes from the tip (1, 0) to the inner corner.
	cx, cy := inner*math.Cos(math.Pi/5), inner*math.Sin(math.Pi/5)
	return (cx-1)*py-cy*(px-1) >= 0
}

// placed is a shape in an image: its centre and radius in pixels, its angle.
type placed struct {
	shape                  shape
	x, y, radius, cos, sin float64
}

// place puts a shape at random into a square of size pixels, wholly inside:
// radius .2 to .4 of the side.
func place(s rng.Stream, item uint64, figure shape, size int) placed {
	side := float64(size)
	radius := side * (.2 + .2*s.Float64(item, drawRadius))
	room := side - 2*radius
	angle := 2 * math.Pi * s.Float64(item, drawAngle)
	return placed{figure, radius + room*s.Float64(item, drawX), radius + room*s.Float64(item, drawY), radius, math.Cos(angle), math.Sin(angle)}
}

// mask is true of the pixels whose centre lies in the shape.
func (p placed) mask(size int) []bool {
	mask := make([]bool, size*size)
	for row := range size {
		for column := range size {
			dx, dy := (float64(column)+.5-p.x)/p.radius, (float64(row)+.5-p.y)/p.radius
			mask[row*size+column] = p.shape.inside(p.cos*dx+p.sin*dy, p.cos*dy-p.sin*dx)
		}
	}
	return mask
}

// The draws of an item, by what they are for. Those of the background's lattice
// and of the noise are many.
const (
	drawRadius = iota
	drawAngle
	drawX
	drawY
	drawBright
	drawOdd
	drawFigure     // three, for the colour of the figure
	drawBackground = drawFigure + 3
	drawCell       = drawBackground + 3
	drawPhase      = drawCell + 1
	drawLattice    = 1 << 16
	drawNoise      = 1 << 30
)

// pictures are images with a figure before a background.
type pictures struct {
	stream rng.Stream
	size   int
	// figure is the figure of a row; background paints what is behind it.
	figure     func(row int) shape
	background func(p *pictures, row int, pixels []byte)
}

func (p *pictures) shape() []int { return []int{3, p.size, p.size} }

func (p *pictures) foreground(row int) []bool {
	return place(p.stream, uint64(row), p.figure(row), p.size).mask(p.size)
}

func (p *pictures) pixels(row int) ([]byte, []int, error) {
	area := p.size * p.size
	pixels := make([]byte, 3*area)
	p.background(p, row, pixels)
	colour := p.colour(row)
	mask := p.foreground(row)
	for c := range 3 {
		plane := pixels[c*area:][:area]
		for i, in := range mask {
			if in {
				plane[i] = colour[c]
			}
		}
	}
	p.addNoise(row, pixels)
	return pixels, p.shape(), nil
}

func (p *pictures) row(i int) ([]float32, []int, error) {
	b, shape, err := p.pixels(i)
	return floats(b), shape, err
}

func (p *pictures) Close() error { return nil }

// noiseLevels is the spread of the noise that lies over everything.
const noiseLevels = 24

// addNoise adds -12..11 to every value.
func (p *pictures) addNoise(row int, pixels []byte) {
	noise := make([]byte, len(pixels))
	p.stream.Bytes(uint64(row), drawNoise, noise)
	for i, n := range noise {
		pixels[i] = clip(int(pixels[i]) + int(n)*noiseLevels/256 - noiseLevels/2)
	}
}

func clip(v int) byte { return byte(max(0, min(255, v))) }

// bright is true where the figure is lighter than what is behind it.
func (p *pictures) bright(row int) bool { return p.stream.IntN(uint64(row), drawBright, 2) == 1 }

// colour is the figure's: two channels far from the background's, the third
// anything, so that colours are many and tell nothing of the class.
func (p *pictures) colour(row int) [3]byte {
	var colour [3]byte
	odd := p.stream.IntN(uint64(row), drawOdd, 3)
	for c := range colour {
		level := p.stream.IntN(uint64(row), uint64(drawFigure+c), 256)
		switch {
		case c == odd:
		case p.bright(row):
			level = 165 + level*90/255
		default:
			level = level * 90 / 255
		}
		colour[c] = byte(level)
	}
	return colour
}

// lattice is smooth random texture: values of -span/2..span/2 at the corners of
// cells, whole numbers between them by bilinear interpolation.
type lattice struct {
	cell, width int
	corners     []int
}

func (p *pictures) lattice(row, cell, span int) lattice {
	width := p.size/cell + 2
	raw := make([]byte, width*width)
	p.stream.Bytes(uint64(row), drawLattice, raw)
	l := lattice{cell, width, make([]int, len(raw))}
	for i, v := range raw {
		l.corners[i] = int(v)*span/255 - span/2
	}
	return l
}

func (l lattice) at(x, y int) int {
	cx, cy := x/l.cell, y/l.cell
	fx, fy := x%l.cell, y%l.cell
	k := cy*l.width + cx
	top := l.corners[k]*(l.cell-fx) + l.corners[k+1]*fx
	bottom := l.corners[k+l.width]*(l.cell-fx) + l.corners[k+l.width+1]*fx
	return (top*(l.cell-fy) + bottom*fy) / (l.cell * l.cell)
}

// openShapes opens synthetic:shapes.
func openShapes(p *syntheticParams, split string) (*rowData, error) {
	size, count := p.integer("size", 16, 1024), p.integer("classes", 2, len(shapes()))
	if p.err != nil {
		return nil, p.err
	}
	even := make([]int, count)
	for i := range even {
		even[i] = 1
	}
	classes := inBlocks(p.stream("shapes/classes", split), even, p.count)
	list := shapes()
	pictures := &pictures{stream: p.stream("shapes/pixels", split), size: size, background: textured,
		figure: func(row int) shape { return list[classes[row]] }}
	return &rowData{kind: Arrays, reader: pictures, classes: integers8(classes), names: shapeNames()[:count]}, nil
}

// textured paints a colour with smooth texture, cells of an eighth to a quarter
// of the side.
func textured(p *pictures, row int, pixels []byte) {
	cell := p.size/8 + p.stream.IntN(uint64(row), drawCell, p.size/8+1)
	texture := p.lattice(row, cell, 70)
	area := p.size * p.size
	for c := range 3 {
		level := 35 + p.stream.IntN(uint64(row), uint64(drawBackground+c), 70) // 35..104
		if !p.bright(row) {
			level = 255 - level
		}
		for y := range p.size {
			for x := range p.size {
				pixels[c*area+y*p.size+x] = clip(level + texture.at(x, y))
			}
		}
	}
}
