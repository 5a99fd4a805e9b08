package orchestrate

import (
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/metrics"
)

// cell collects one number of every unit of a group.
type cell struct {
	units *[]*Unit
	// values are in the order of units, NaN for none.
	values []float64
	once   sync.Once
	drawn  resampled // once it was asked for
}

// resampled is a cell's values by image with their means in bootstrap samples.
type resampled struct {
	items          []int
	values, sample []float64
}

// resample draws samples of the cell's images, once for all that asks for them.
func (c *cell) resample(drawn *samples) *resampled {
	c.once.Do(func() {
		means := c.means()
		c.drawn.items = sortedItems(means)
		for _, item := range c.drawn.items {
			c.drawn.values = append(c.drawn.values, means[item])
		}
		c.drawn.sample = drawn.of(len(c.drawn.values)).Means(c.drawn.values)
	})
	return &c.drawn
}

// newCell is an empty cell of units.
func newCell(units *[]*Unit) *cell {
	c := &cell{units: units, values: make([]float64, len(*units))}
	for i := range c.values {
		c.values[i] = math.NaN()
	}
	return c
}

// any says that some unit has a value.
func (c *cell) any() bool {
	return c != nil && slices.ContainsFunc(c.values, func(v float64) bool { return !math.IsNaN(v) })
}

// means are the values of images, by item: an image counts once, with the mean over its
// seeds, summed in unit order.
func (c *cell) means() map[int]float64 {
	sum, count := map[int]float64{}, map[int]int{}
	for i, v := range c.values {
		if !math.IsNaN(v) {
			item := (*c.units)[i].Item
			sum[item] += v
			count[item]++
		}
	}
	for item := range sum {
		sum[item] /= float64(count[item])
	}
	return sum
}

// perImage are the values of means in the data's order.
func (c *cell) perImage() []float64 {
	means := c.means()
	out := make([]float64, 0, len(means))
	for _, item := range sortedItems(means) {
		out = append(out, means[item])
	}
	return out
}

func sortedItems(means map[int]float64) []int {
	items := make([]int, 0, len(means))
	for item := range means {
		items = append(items, item)
	}
	slices.Sort(items)
	return items
}

// ofSeeds are the means over images for each seed, NaN where a seed has no value.
func (c *cell) ofSeeds(seeds []uint64) []float64 {
	sum, count := make([]float64, len(seeds)), make([]float64, len(seeds))
	for i, v := range c.values {
		if s := slices.Index(seeds, (*c.units)[i].Seed); s >= 0 && !math.IsNaN(v) {
			sum[s] += v
			count[s]++
		}
	}
	for s := range sum {
		sum[s] /= count[s]
	}
	return sum
}

// column is a metric of a group, of curves at one place.
type column struct {
	metric Metric
	at     float64
	curve  bool
	cell   *cell
}

// group is what units of one net, data and point came to.
type group struct {
	net       *ResolvedNet
	data      *ResolvedData
	point     Params
	units     []*Unit
	columns   []column
	undefined map[int]bool // items
}

// columnsOf are the columns of a point.
func (s Study) columnsOf(point Params) []column {
	var out []column
	for _, m := range s.Metrics {
		if m.Curve == nil {
			out = append(out, column{metric: m})
			continue
		}
		for _, at := range m.At(point) {
			out = append(out, column{metric: m, at: at, curve: true})
		}
	}
	return out
}

// place is where a unit's numbers go.
type place struct {
	group *group
	slot  int
}

// groups divides units by net, data and point, in plan order; places are those of the
// units.
func (r *Resolved) groups(units []Unit) ([]*group, []place) {
	var order []*group
	byKey := map[string]*group{}
	places := make([]place, len(units))
	var last *group // most units have the net, data and parameters of the one before
	var lastParams uintptr
	for i := range units {
		u := &units[i]
		params := reflect.ValueOf(u.Params).Pointer()
		g := last
		if g == nil || params != lastParams || g.net != u.Net || g.data != u.Data {
			key := fmt.Sprint(u.Net.Index, u.Data.Index, string(canonical(u.Params)))
			if g = byKey[key]; g == nil {
				g = &group{net: u.Net, data: u.Data, point: u.Params, undefined: map[int]bool{}}
				byKey[key] = g
				order = append(order, g)
			}
			last, lastParams = g, params
		}
		places[i] = place{g, len(g.units)}
		g.units = append(g.units, u)
	}
	for _, g := range order {
		g.columns = r.Study.columnsOf(g.point)
		for i := range g.columns {
			g.columns[i].cell = newCell(&g.units)
		}
	}
	return order, places
}

// take puts the numbers of a record in its group.
func (r *Resolved) take(p place, rec record.Record) error {
	u := p.group.units[p.slot]
	var curve []float64
	at := 0
	for i, c := range p.group.columns {
		m := c.metric
		if m.Cost && !r.Plan.wantsCost(m.ID) {
			continue
		}
		switch {
		case m.Curve != nil:
			if i == 0 || p.group.columns[i-1].metric.ID != m.ID {
				curve, at = m.Curve(rec), 0
			}
			if at < len(curve) {
				c.cell.values[p.slot] = curve[at]
			}
			at++
		case m.Value != nil:
			if v, ok := m.Value(rec); ok {
				c.cell.values[p.slot] = v
			}
		default:
			v, ok, err := m.OfUnit(r, u, rec)
			if err != nil {
				return fmt.Errorf("metric %s of %s: %w", m.ID, rec.Image, err)
			}
			if ok {
				c.cell.values[p.slot] = v
			}
		}
	}
	return nil
}

// pool makes the groups of pooled metrics: those of points that differ in one parameter.
func (r *Resolved) pool(groups []*group) []*group {
	var out []*group
	for i, p := range r.Study.Pooled {
		if slices.ContainsFunc(r.Study.Pooled[:i], func(o Pooled) bool { return o.Over == p.Over }) {
			continue // done with the first of its parameter
		}
		over := func(g *group) string {
			return fmt.Sprint(g.net.Index, " ", g.data.Index, " ", string(canonical(without(g.point, p.Over))))
		}
		for _, list := range grouped(groups, over) {
			out = append(out, r.pooled(list, p.Over))
		}
	}
	return out
}

// pooled is the group of several that differ in the value of a parameter.
func (r *Resolved) pooled(list []*group, over string) *group {
	out := &group{net: list[0].net, data: list[0].data, point: without(list[0].point, over)}
	type image struct {
		item int
		seed uint64
	}
	at := map[image]int{}
	places := make([][]int, len(list)) // of units of out in those of list, -1 for none
	for _, g := range list {
		for _, u := range g.units {
			k := image{u.Item, u.Seed}
			if _, there := at[k]; !there {
				at[k] = len(out.units)
				out.units = append(out.units, u)
			}
		}
	}
	for i, g := range list {
		places[i] = slices.Repeat([]int{-1}, len(out.units))
		for slot, u := range g.units {
			places[i][at[image{u.Item, u.Seed}]] = slot
		}
	}
	for _, p := range r.Study.Pooled {
		if p.Over != over {
			continue
		}
		c := column{metric: p.Metric, cell: newCell(&out.units)}
		for k := range out.units {
			of := map[string][]float64{}
			for i, g := range list {
				if slot := places[i][k]; slot >= 0 {
					if values := g.at(p.Of, slot); values != nil {
						of[g.point.Text(over)] = values
					}
				}
			}
			if v, ok := p.Combine(of); ok {
				c.cell.values[k] = v
			}
		}
		out.columns = append(out.columns, c)
	}
	return out
}

// at are the values that a unit has of a metric, nil unless it has all.
func (g *group) at(metric string, slot int) []float64 {
	var out []float64
	for _, c := range g.columns {
		if c.metric.ID != metric {
			continue
		}
		v := c.cell.values[slot]
		if math.IsNaN(v) {
			return nil
		}
		out = append(out, v)
	}
	return out
}

// samples are bootstrap samples by the number of things, drawn once.
type samples struct {
	mu    sync.Mutex
	drawn map[int]*metrics.Bootstrap
}

func (s *samples) of(things int) *metrics.Bootstrap {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drawn == nil {
		s.drawn = map[int]*metrics.Bootstrap{}
	}
	if s.drawn[things] == nil {
		s.drawn[things] = metrics.NewBootstrap(things, bootstrapSeed)
	}
	return s.drawn[things]
}

// inParallel calls f for 0..n-1 on all cores.
func inParallel(n int, f func(i int)) {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		group.Go(func() error { f(i); return nil })
	}
	group.Wait()
}
