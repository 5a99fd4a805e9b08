package dataset

// What synthetic:groups shows: figure and background have two kinds each, and
// the four groups are their pairs, group = 2 class + background, in the order
// of Waterbirds (Sagawa, Koh, Hashimoto and Liang, "Distributionally robust
// neural networks for group shifts", ICLR 2020, section 3). As there, the
// background is easier to tell than the figure.

func groupClasses() []string { return []string{"triangle", "circle"} }

func groupNames() []string {
	var names []string
	for _, class := range groupClasses() {
		names = append(names, class+" on land", class+" on water")
	}
	return names
}

// groups are the pictures of synthetic:groups.
type groups struct {
	*pictures
	list []uint8
}

func (g *groups) group(row int) int    { return int(g.list[row]) }
func (g *groups) groupNames() []string { return groupNames() }

func openGroups(p *syntheticParams, split string) (*rowData, error) {
	size := p.integer("size", 16, 1024)
	ratios, test := p.ratios("ratios", 4), p.ratios("test-ratios", 4)
	if p.err != nil {
		return nil, p.err
	}
	if split == "test" {
		ratios = test
	}
	list := inBlocks(p.stream("groups/groups", split), ratios, p.count)
	figures := make([]shape, 0, 2)
	for _, name := range groupClasses() {
		for _, s := range shapes() {
			if s.name == name {
				figures = append(figures, s)
			}
		}
	}
	g := &groups{list: list, pictures: &pictures{stream: p.stream("groups/pixels", split), size: size,
		figure: func(row int) shape { return figures[list[row]/2] },
		background: func(p *pictures, row int, pixels []byte) {
			if list[row]%2 == 0 {
				land(p, row, pixels)
			} else {
				water(p, row, pixels)
			}
		}}}
	classes := make([]int, len(list))
	for i, group := range list {
		classes[i] = int(group / 2)
	}
	return &rowData{kind: Arrays, reader: g, classes: classes, names: groupClasses()}, nil
}

// land paints green and brown patches.
func land(p *pictures, row int, pixels []byte) {
	texture := p.lattice(row, max(2, p.size/8), 110)
	p.paint(row, pixels, [3]int{95, 125, 60}, func(x, y int) int { return texture.at(x, y) })
}

// water paints blue waves, from side to side.
func water(p *pictures, row int, pixels []byte) {
	texture := p.lattice(row, max(2, p.size/4), 60)
	period := max(4, p.size/6)
	phase := p.stream.IntN(uint64(row), drawPhase, period)
	p.paint(row, pixels, [3]int{50, 100, 165}, func(x, y int) int {
		// A triangular wave of height 50, bent by the texture.
		at := (y + phase + texture.at(x, y)*period/120 + period) % period
		return 100*min(at, period-at)/period - 25 + texture.at(x, y)/3
	})
}

// paint adds a texture to a colour, which varies by 15 either way.
func (p *pictures) paint(row int, pixels []byte, colour [3]int, texture func(x, y int) int) {
	area := p.size * p.size
	for c := range 3 {
		level := colour[c] - 15 + p.stream.IntN(uint64(row), uint64(drawBackground+c), 31)
		for y := range p.size {
			for x := range p.size {
				pixels[c*area+y*p.size+x] = clip(level + texture(x, y))
			}
		}
	}
}
