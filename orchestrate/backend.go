package orchestrate

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/scores"
	"github.com/assay-xai/assay/trace"
	"github.com/assay-xai/assay/weights"
)

// ErrOutOfMemory is what errors.Is finds in a backend's error where a smaller
// batch may do.
var ErrOutOfMemory = errors.New("out of memory")

// Backend is what studies need of the device side. internal/device satisfies
// it with torchx; tests use fakes. Calls are safe from any goroutine.
type Backend interface {
	// Device is "cpu" or "cuda:N"; Kind is "cpu" or "cuda" (part of unit ids).
	Device() string
	Kind() string
	// Describe answers for a net of the catalogue without weights; classes and
	// features are 0 for the net's own.
	Describe(ctx context.Context, net string, classes, features int) (NetInfo, error)
	// DescribeFile answers for a net that comes as a file.
	DescribeFile(ctx context.Context, file NetFile) (NetInfo, error)
	// OpenNet builds a net, loads state and makes it ready. state names must
	// match (weights.Match has been applied); nil for a file that holds them.
	OpenNet(ctx context.Context, spec NetSpec, state map[string]weights.Tensor) (Net, error)
	// Images decodes encoded images; failed[i] says why image i could not be
	// (its row is zero). pixels asks for Pixels too.
	Images(ctx context.Context, files [][]byte, preset dataset.Preset, pixels bool) (images Images, failed []error, err error)
	// Arrays takes n arrays of shape (C,H,W or F), already scaled and normalised.
	Arrays(ctx context.Context, values []float32, shape []int) (Images, error)
	// Runtime describes library and hardware for env.json and doctor.
	Runtime(ctx context.Context) (map[string]any, error)
	// Catalogue lists nets, methods and imputers.
	Catalogue(ctx context.Context) (Catalogue, error)
	Close() error
}

// NetSpec names a net to open.
type NetSpec struct {
	Net       string
	Classes   int
	Features  int
	File      *NetFile // in place of the three before; nil: none
	Precision string   // "f32", "tf32", "bf16", "f64"
}

// NetInfo describes a net.
type NetInfo struct {
	Net            string              `json:"net"`
	Preset         string              `json:"preset"`
	Input          []int               `json:"input"` // [C,H,W] or [F]
	Classes        int                 `json:"classes"`
	ParameterCount int64               `json:"parameterCount"`
	Parameters     []weights.Parameter `json:"parameters"`
	Layers         []Layer             `json:"layers"`
	DefaultLayer   string              `json:"defaultLayer"`
	// BlackBox says that only forwards and input gradients are known, Reason why.
	BlackBox bool   `json:"blackBox"`
	Reason   string `json:"reason"`
}

// Layer is a named place in a net.
type Layer struct {
	Name    string `json:"name"`
	Op      string `json:"op"`
	Outputs []int  `json:"outputs"`
}

// Images is a batch of preprocessed inputs that the backend keeps.
type Images interface {
	Len() int
	// Shape is [C,H,W] or [F].
	Shape() []int
	// Values returns a copy of row i, normalised.
	Values(i int) ([]float32, error)
	// Pixels returns a copy of row i before normalisation, [H,W,C] in 8 bits;
	// nil unless asked for.
	Pixels(i int) ([]byte, error)
	Close() error
}

// Net is a net ready for inference.
type Net interface {
	Info() NetInfo
	// Predict returns the k best classes of every image, most probable first
	// (ties: smaller class first), running batch rows at a time. A row with
	// NaN has NaN probabilities and classes 0..k-1.
	Predict(ctx context.Context, images Images, k, batch int) ([]Prediction, error)
	// Attribute explains images by a method of the catalogue.
	Attribute(ctx context.Context, images Images, spec AttributionSpec) (Attribution, error)
	// Remove deletes features of images by rank, imputes them and runs what is left.
	Remove(ctx context.Context, images Images, spec RemovalSpec) (Removal, error)
	// Scene makes room for images whose features are deleted.
	Scene(ctx context.Context, spec SceneSpec) (Scene, error)
	// Stage puts images on the device for scores of maps. images must stay open
	// until the stage is closed.
	Stage(ctx context.Context, images Images, spec StageSpec) (scores.Stage, error)
	Close() error
}

// MethodSpec names a method of the catalogue, its parameters and, for methods
// that are made of another, that one.
type MethodSpec struct {
	ID     string
	Params map[string]any
	Base   *MethodSpec
}

// MarshalJSON writes the form that the catalogue's side reads: one object with
// id, parameters and base.
func (m MethodSpec) MarshalJSON() ([]byte, error) {
	out := map[string]any{"id": m.ID}
	for k, v := range m.Params {
		out[k] = v
	}
	if m.Base != nil {
		out["base"] = m.Base
	}
	return json.Marshal(out)
}

// AttributionSpec asks for maps.
type AttributionSpec struct {
	Method MethodSpec
	// Targets and Keys are a class and a random key (internal/rng) an image.
	Targets []int
	Keys    []uint64
	// Preset gives the mean and std of references that are defined in pixel space.
	Preset dataset.Preset
	// Features and FeatureMap (an entry per pixel or column) are what methods
	// that delete features delete; 0, nil: the method's own grid.
	Features   int
	FeatureMap []int32
	// Batch is the number of rows that run at a time (the last ones padded).
	Batch int
}

// Attribution is maps, one an image, and what came with them.
type Attribution struct {
	// Shape is that of every map: [C,H,W], [1,H,W] or [F]; values are signed.
	Shape []int
	Maps  [][]float32
	// Forwards and Backwards count rows that ran, padding not.
	Forwards, Backwards int64
	// Deltas are completeness gaps, one an image; nil where the method has none.
	Deltas   []float64
	Warnings []string
}

// RemovalSpec says which features of images go, what becomes of them and what is
// asked of the net.
type RemovalSpec struct {
	// Rows are what is run, in any order.
	Rows []RemovalRow
	// Maps rank the features, a map an image with a value a pixel (H*W, row-major) or
	// column: the largest is the most relevant. nil: ranks are ties, all of them.
	Maps [][]float32
	// Ties says which of equal values comes first: TiesRandom, TiesIndex or TiesNoise.
	Ties string
	// Imputer says what removed features become; Generator is for imputers that want one.
	Imputer   Reference
	Generator *Generator
	Preset    dataset.Preset
	// DatasetMean is the mean of every channel or column over the data, normalised: of
	// the imputer dataset-mean, and of those that need a neighbour that is left where
	// everything is removed. nil: not known, and asking for it is an error.
	DatasetMean []float64
	// Targets lists classes of every image, as many for each: Probabilities are theirs.
	Targets [][]int
	// TieKeys and NoiseKeys are random keys (internal/rng) of every image.
	TieKeys, NoiseKeys []uint64
	// Batch is the number of rows that run at a time (the last ones padded).
	Batch int
	// Inputs asks for what the net saw.
	Inputs bool
}

// Ways to rank pixels of equal value: by a permutation that an image's key draws; by
// their index, which removes raster blocks of maps that are mostly zero; by noise of
// standard deviation 1e-4 on the map scaled to 0..1, which may swap what is almost equal
// too (ROAD's public code).
const (
	TiesRandom = "random"
	TiesIndex  = "index"
	TiesNoise  = "noise"
)

// RemovalRow is an image without Removed of its features: those that rank first, the
// most relevant, or with Least those that rank last.
type RemovalRow struct {
	Image, Removed int
	Least          bool
}

// Removal is what a net says of images without features; fields with a value a row have
// them in the order of the rows.
type Removal struct {
	// Classes are the most probable ones (ties: the smaller).
	Classes []int
	// Probabilities[row][k] is that of Targets[image][k]. Rows whose output is NaN have NaN.
	Probabilities [][]float64
	// Variations are the total variation of the mask of removed pixels: the mean absolute
	// difference of neighbours, vertical and horizontal added (tables: 0).
	Variations []float64
	// Iterations are those of the imputer's solver, 0 where it has none.
	Iterations []int
	// Inputs are what the net saw, normalised, in the images' shape; nil unless asked for.
	Inputs [][]float32
	// Forwards counts rows that ran, padding not.
	Forwards int64
	// ImputeSeconds and ForwardSeconds are where the time went.
	ImputeSeconds, ForwardSeconds float64
}

// StageSpec says which images a stage has and how they are explained.
type StageSpec struct {
	// Rows are rows of the images, in the stage's order; nil: all.
	Rows []int
	// Method is what explains them, for scores that ask for more maps; nil: none.
	// Keys has the random key of each row's explanation (AttributionSpec.Keys).
	Method *MethodSpec
	Keys   []uint64
	// Features and FeatureMap are the method's, as in AttributionSpec.
	Features   int
	FeatureMap []int32
	// Preset and Other are for references, as in SceneSpec.
	Preset dataset.Preset
	Other  Images
	// Batch is the number of rows that run at a time (the last ones padded).
	Batch int
}

// Prediction is the k best classes with their probabilities.
type Prediction struct {
	Classes       []int
	Probabilities []float64
}

// SceneSpec describes a scene.
type SceneSpec struct {
	Slots int
	// Shape is [C,H,W] or [F]; FeatureMap has an entry per pixel (H*W) or column.
	Shape      []int
	Features   int
	FeatureMap []int32
	// Reference is what deleted features become; Preset gives the mean and std
	// of references that are defined in pixel space.
	Reference Reference
	Preset    dataset.Preset
	// Other is the image (row 0) that the reference "image" takes; else nil.
	Other Images
	// Generator is for imputers that want one; else nil.
	Generator *Generator
	// DatasetMean is as in RemovalSpec.
	DatasetMean []float64
	// Batch is the number of rows of every forward (the last is padded).
	Batch int
}

// Reference names an imputer of the catalogue and its parameters.
type Reference struct {
	ID     string         `json:"id"`
	Params map[string]any `json:"params,omitempty"`
}

// Generator is the trained part of an imputer that is a net (Entry.Generator): what a
// training of it kept (TrainerSpec.Imputer).
type Generator struct {
	// Hash is the SHA-256 of the file's content: backends prepare a generator once.
	Hash  string
	State map[string]weights.Tensor
}

// Scene scores states of the images in its slots.
type Scene interface {
	trace.RowScorer
	// Put places image i of images into a slot; key feeds references that draw
	// random numbers (internal/rng.Key).
	Put(ctx context.Context, slot int, images Images, i int, key uint64) error
	Close() error
}

// Catalogue is what the device side offers.
type Catalogue struct {
	Nets     []Entry `json:"nets"`
	Methods  []Entry `json:"methods"`
	Imputers []Entry `json:"imputers"`
}

// Entry.Needs of imputers that depend on what else is removed, and of those that want the
// mean of the data.
const (
	NeedsMask = "mask"
	NeedsData = "data"
)

// Entry is one line of the catalogue.
type Entry struct {
	ID         string           `json:"id"`
	Summary    string           `json:"summary"`
	Parameters []EntryParameter `json:"parameters,omitempty"`
	// Family, Base and OneChannel are of methods: Base is the method that it is
	// made of where none is given ("": of none), OneChannel says that maps of images
	// have one channel whatever the input has.
	Family     string `json:"family,omitempty"`
	Base       string `json:"base,omitempty"`
	OneChannel bool   `json:"oneChannel,omitempty"`
	Needs      string `json:"needs,omitempty"`
	// Generator is of imputers: it wants a trained one.
	Generator bool   `json:"generator,omitempty"`
	Paper     string `json:"paper,omitempty"`
	Preset    string `json:"preset,omitempty"`
	Input     []int  `json:"input,omitempty"`
	Classes   int    `json:"classes,omitempty"`
	Licence   string `json:"licence,omitempty"`
}

// EntryParameter is one parameter of an entry.
type EntryParameter struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"` // "int", "float", "string", "bool"
	Default any      `json:"default"`
	Minimum *float64 `json:"minimum,omitempty"`
	Maximum *float64 `json:"maximum,omitempty"`
	Choices []string `json:"choices,omitempty"`
	Summary string   `json:"summary"`
}
