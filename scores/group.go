package scores

import (
	"context"
	"fmt"
	"slices"

	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/trace"
)

// Map is an attribution: signed values, [C,H,W], [1,H,W], [H,W] or [F], row-major.
type Map struct {
	Shape  []int
	Values []float32
}

// Image is an image with what is to be judged of it.
type Image struct {
	// ID keys random numbers: draws, and the order of pixels of equal value.
	ID string
	// Target is the class that the map explains.
	Target int
	// Map is as the method returned it: scores reduce channels themselves.
	Map Map
	// Region is what is to be found, for the scores that need it; nil: not known.
	Region *Region
}

// Group is images that are scored together. Its size is a matter of speed and
// memory alone: the more, the fuller the batches.
type Group struct {
	// Stage has image i of the group in row i; nil for scores that ask no net.
	Stage Stage
	// Seed is the plan's: with an image's id it fixes everything random.
	Seed   uint64
	Images []Image
}

// Result is what a score says of one image.
type Result struct {
	// Value is 0 where Undefined is not "".
	Value float64
	// Undefined names why there is no value: one of the constants below.
	Undefined string
	// Also has the numbers that Score.Also describes, as far as they are defined.
	Also   map[string]float64
	Curves []Curve
	// Warnings are for readers: the value stands.
	Warnings []string
}

// Curve is a value's parts in order: of deletion the output by the fraction of
// features deleted.
type Curve struct {
	Name   string
	X      []float64 // as long as Y; nil: 0, 1, 2, ...
	Labels []string  // as long as Y; nil: none
	Y      []float64
}

// Named states of results that have no value.
const (
	ConstantMap     = "constant map"
	ZeroMap         = "zero map"
	NotFiniteMap    = "map not finite"
	NotFiniteOutput = "output not finite"
	NotFiniteValue  = "value not finite"
	ConstantOutput  = "constant output"
	ZeroOutput      = "zero output"
	NoRegion        = "no region"
	OneClass        = "one class"
)

func undefined(why string) Result { return Result{Undefined: why} }

// Layer is an op of a net that has parameters.
type Layer struct{ Name, Op string }

// Stage is a net with images on a device, one a row, and how to ask about them.
// internal/device has one on torchx. A row's answers depend neither on the other
// rows nor on their number. Calls are made from one goroutine at a time.
type Stage interface {
	// Shape is that of an image: [C,H,W] or [F].
	Shape() []int
	Classes() int
	// Batch is the number of rows that the device runs at a time.
	Batch() int
	// Layers lists what Randomise takes, in the graph's order; nil for black boxes.
	Layers() []Layer
	// Scene makes room for the images with features deleted: row i in slot i.
	Scene(ctx context.Context, spec SceneSpec) (Scene, error)
	// Scaled scores images that are multiplied, pixel by pixel and the same in
	// every channel, by masks.
	Scaled(ctx context.Context, rows []Scaled) ([]trace.Score, error)
	// Noisy is a stage of other rows: image draws[i].Row plus uniform noise in
	// [-radius,radius), independent for every element, keyed by the draw. With it
	// come the row's target and the key of its method's own random numbers.
	Noisy(ctx context.Context, draws []Draw, radius float64) (Stage, error)
	// Explain asks the method that is judged for maps of classes targets[i] of row i.
	Explain(ctx context.Context, targets []int) ([]Map, error)
	// Randomise is a stage of the same rows and of a copy of the net whose named
	// layers have new parameters, drawn by (seed, name of the parameter).
	Randomise(ctx context.Context, layers []string, seed uint64) (Stage, error)
	Close() error
}

// SceneSpec says what can be deleted and what it becomes.
type SceneSpec struct {
	// Features, FeatureMap: an entry (0..Features-1) a pixel (H*W) or column.
	Features   int
	FeatureMap []int32
	// Reference is an imputer with its parameters: "zero", "blur(kernel=11,sigma=5)".
	Reference string
	// Keys are for references that draw, one a row.
	Keys []uint64
}

// Scene scores states of the images: row.Slot is a row of the stage.
type Scene interface {
	trace.RowScorer
	// Difference returns x - reference of a row, row-major, in the stage's shape.
	Difference(ctx context.Context, row int) ([]float32, error)
	Close() error
}

// Scaled is a row of Stage.Scaled.
type Scaled struct {
	Row, Target int
	Mask        []float32 // an entry a pixel (H*W) or column
}

// Draw is noise on a row: a function of (key, sample) alone.
type Draw struct {
	Row    int
	Key    uint64
	Sample uint64
}

// group is a group as a score sees it: those images whose maps can be scored.
type group struct {
	Stage
	seed    uint64
	ids     []string // of all rows
	images  []member
	refused map[int]string // by row of the group
}

// member is an image of a group.
type member struct {
	Image
	row int // in the group, and so in the stage
}

// admit checks a group and leaves out images whose map is not finite.
func (s Score) admit(g Group) (*group, error) {
	if s.Needs(InputNet) && g.Stage == nil {
		return nil, usage.Errorf("it needs a net")
	}
	out := &group{Stage: g.Stage, seed: g.Seed, refused: map[int]string{}}
	for i, image := range g.Images {
		out.ids = append(out.ids, image.ID)
		if err := image.Map.check(); err != nil {
			return nil, fmt.Errorf("map of %s: %w", image.ID, err)
		}
		if g.Stage != nil {
			if have, want := image.Map.elements(), elements(g.Stage.Shape()); have != want {
				return nil, usage.Errorf("map of %s is %v: want %d values a channel, for inputs of %v", image.ID, image.Map.Shape, want, g.Stage.Shape())
			}
			if image.Target < 0 || image.Target >= g.Stage.Classes() {
				return nil, usage.Errorf("target of %s is %d: the net has classes 0..%d", image.ID, image.Target, g.Stage.Classes()-1)
			}
		}
		if !finiteMap(image.Map.Values) {
			out.refused[i] = NotFiniteMap
			continue
		}
		out.images = append(out.images, member{image, i})
	}
	return out, nil
}

// elements is the number of pixels or columns of an input or map.
func elements(shape []int) int {
	n := 1
	for _, d := range shape[max(0, len(shape)-2):] {
		n *= d
	}
	return n
}

func (g *group) elements() int { return elements(g.Shape()) }

// stream is the random numbers of a purpose for an image.
func (g *group) stream(purpose string, m member) rng.Stream {
	return rng.New(g.seed, "score/"+purpose, m.ID)
}

// scene opens a scene of all rows of the stage.
func (g *group) scene(ctx context.Context, features int, featureMap []int32, reference string) (Scene, error) {
	spec := SceneSpec{Features: features, FeatureMap: featureMap, Reference: reference}
	for _, id := range g.ids {
		spec.Keys = append(spec.Keys, rng.Key(g.seed, "reference", id))
	}
	return g.Scene(ctx, spec)
}

// chunkRows is about how many states are asked for in one call: enough to fill
// the device's batches, few enough that their sets stay small.
const chunkRows = 1024

// ask scores n states, made one by one, in calls of whole batches.
func (g *group) ask(ctx context.Context, scene trace.RowScorer, n int, state func(i int) trace.Row, answer func(i int, s trace.Score)) error {
	batch := max(1, g.Batch())
	size := (chunkRows + batch - 1) / batch * batch
	rows := make([]trace.Row, 0, min(n, size))
	for from := 0; from < n; from += size {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		rows = rows[:0]
		for i := from; i < min(n, from+size); i++ {
			rows = append(rows, state(i))
		}
		scores, err := scene.ScoreRows(ctx, rows)
		if err != nil {
			return err
		}
		if len(scores) != len(rows) {
			return fmt.Errorf("%d scores for %d states", len(scores), len(rows))
		}
		for i, s := range scores {
			answer(from+i, s)
		}
	}
	return nil
}

// read takes what a score looks at.
func read(s trace.Score, output string) float64 {
	if output == Logit {
		return s.Logit
	}
	return s.Prob
}

// eachFeature is the feature map in which every pixel or column is one.
func eachFeature(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i)
	}
	return out
}

func (m Map) elements() int { return elements(m.Shape) }

// check says what is wrong with a map's shape.
func (m Map) check() error {
	size := 1
	for _, d := range m.Shape {
		size *= d
	}
	if len(m.Shape) < 1 || len(m.Shape) > 3 || slices.Min(m.Shape) < 1 || size != len(m.Values) {
		return usage.Errorf("%d values of shape %v: want [C,H,W], [1,H,W], [H,W] or [F] and as many values", len(m.Values), m.Shape)
	}
	return nil
}
