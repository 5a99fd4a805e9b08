package dataset

import (
	"os"
	"slices"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/internal/yamlfile"
)

// Values of Preset.Resize and Preset.Interpolation.
const (
	ResizeNone    = "none"
	ResizeShorter = "shorter"
	ResizeSquash  = "squash"

	Bilinear = "bilinear"
	Bicubic  = "bicubic"
)

// Mean and std of ImageNet's training images, RGB in [0,1], as torchvision's
// published weights want them.
var (
	imagenetMean = []float64{.485, .456, .406}
	imagenetStd  = []float64{.229, .224, .225}
)

// tfLiteInterpolation is the filter of the EfficientNet-Lite preprocessing.
const tfLiteInterpolation = Bilinear

// tablePreset is the preset of rows of tables.
const tablePreset = "table"

// Presets lists the known presets, in the order in which they are shown. The
// slices are the caller's.
func Presets() []Preset {
	cropped := func(id string, resize, crop int, interpolation string, mean, std []float64, summary string) Preset {
		return Preset{ID: id, Resize: ResizeShorter, Height: resize, Width: resize, Interpolation: interpolation,
			CropHeight: crop, CropWidth: crop, Channels: 3, Scale: 255, Mean: slices.Clone(mean), Std: slices.Clone(std), Summary: summary}
	}
	sized := func(id string, size, channels int, mean, std []float64, summary string) Preset {
		return Preset{ID: id, Resize: ResizeSquash, Height: size, Width: size, Interpolation: Bilinear,
			Channels: channels, Scale: 255, Mean: slices.Clone(mean), Std: slices.Clone(std), Summary: summary}
	}
	gray := func(v float64) []float64 { return []float64{v} }
	rgb := func(v float64) []float64 { return []float64{v, v, v} }
	tf := cropped("tf-lite", 256, 224, tfLiteInterpolation, rgb(127./255), rgb(128./255),
		"shorter side 256, crop 224, (x-127)/128: what EfficientNet-Lite's weights want")
	digits := sized("digits", 8, 1, gray(0), gray(1), "8x8 grey, values 0..16 divided by 16")
	digits.Scale = 16
	return []Preset{
		cropped("imagenet", 256, 224, Bilinear, imagenetMean, imagenetStd,
			"shorter side 256, crop 224, ImageNet mean and std (torchvision, weights V1)"),
		cropped("imagenet-v2", 232, 224, Bilinear, imagenetMean, imagenetStd,
			"shorter side 232, crop 224, ImageNet mean and std (torchvision, weights V2)"),
		cropped("imagenet-bicubic", 256, 224, Bicubic, imagenetMean, imagenetStd,
			"imagenet with bicubic resizing (torchvision's EfficientNet-B0)"),
		cropped("imagenet-236", 236, 224, Bilinear, imagenetMean, imagenetStd,
			"shorter side 236, crop 224, ImageNet mean and std (torchvision's ConvNeXt-Tiny)"),
		cropped("imagenet-299", 342, 299, Bilinear, imagenetMean, imagenetStd,
			"shorter side 342, crop 299, ImageNet mean and std (torchvision's Inception-v3)"),
		cropped("imagenet-swag", 224, 224, Bicubic, imagenetMean, imagenetStd,
			"shorter side 224, bicubic, crop 224, ImageNet mean and std (torchvision's SWAG weights)"),
		sized("imagenet-squash", 224, 3, imagenetMean, imagenetStd,
			"224x224 whatever the proportions, ImageNet mean and std (TRACE)"),
		tf,
		sized("cifar10", 32, 3, imagenetMean, imagenetStd,
			"32x32, ImageNet mean and std: what akamaster's CIFAR ResNets want"),
		sized("cifar10-std", 32, 3, []float64{.4914, .4822, .4465}, []float64{.2023, .1994, .2010},
			"32x32, CIFAR-10's own mean and std"),
		sized("cifar10-half", 32, 3, rgb(.5), rgb(.5), "32x32, values to [-1,1] (ROAD)"),
		sized("mnist", 28, 1, gray(.1307), gray(.3081), "28x28 grey, MNIST's mean and std"),
		sized("fashion-mnist", 28, 1, gray(.2860), gray(.3530), "28x28 grey, Fashion-MNIST's mean and std"),
		digits,
		{ID: tablePreset, Resize: ResizeNone, Scale: 1, Summary: "columns standardised by their mean and std in the training rows"},
	}
}

// PresetByID finds a known preset; the error offers the nearest name.
func PresetByID(id string) (Preset, error) {
	var ids []string
	for _, p := range Presets() {
		if p.ID == id {
			return p, nil
		}
		ids = append(ids, p.ID)
	}
	hint := ""
	if near := nearest(id, ids); near != "" {
		hint = "did you mean " + near + "? "
	}
	return Preset{}, usage.Errorf("dataset: preset %q: %swant one of %s, or a YAML file", id, hint, strings.Join(ids, ", "))
}

// LoadPreset is PresetByID for a name, and reads the YAML file of a custom
// preset for a path that ends in .yaml or .yml.
func LoadPreset(nameOrFile string) (Preset, error) {
	if !strings.HasSuffix(nameOrFile, ".yaml") && !strings.HasSuffix(nameOrFile, ".yml") {
		return PresetByID(nameOrFile)
	}
	text, err := os.ReadFile(nameOrFile)
	if err != nil {
		return Preset{}, usage.Errorf("dataset: preset: %w", err)
	}
	return ParsePreset(nameOrFile, text)
}

// ParsePreset reads a preset in YAML; unknown keys are errors with line and
// column. What it leaves out is: ID "custom", resize "none", 3 channels,
// bilinear, scale 255, mean 0 and std 1. One with the id of the tables' preset has no
// images' defaults: plans that were resolved have it with the columns' own means, or
// none. from names the text in errors.
func ParsePreset(from string, text []byte) (Preset, error) {
	var p Preset
	if err := yamlfile.Decode(from, text, &p); err != nil {
		return Preset{}, usage.Errorf("dataset: preset %w", err)
	}
	if p.ID == "" {
		p.ID = "custom"
	}
	if p.Resize == "" {
		p.Resize = ResizeNone
	}
	if p.ID == tablePreset {
		if p.Scale == 0 {
			p.Scale = 1
		}
	} else {
		p.imageDefaults()
	}
	if err := p.Validate(); err != nil {
		return Preset{}, usage.Errorf("%s: %w", from, err)
	}
	return p, nil
}

// imageDefaults fills what presets of images leave out.
func (p *Preset) imageDefaults() {
	if p.Interpolation == "" {
		p.Interpolation = Bilinear
	}
	if p.Channels == 0 {
		p.Channels = 3
	}
	if p.Scale == 0 {
		p.Scale = 255
	}
	if p.Resize == ResizeShorter && p.Width == 0 {
		p.Width = p.Height
	}
	if p.Mean == nil {
		p.Mean = make([]float64, p.Channels)
	}
	if p.Std == nil {
		p.Std = slices.Repeat([]float64{1}, p.Channels)
	}
}

// nearest is the name with the smallest edit distance to s, if it is small.
func nearest(s string, names []string) string {
	best, found := len(s)/2+1, ""
	for _, name := range names {
		if d := editDistance(s, name); d < best {
			best, found = d, name
		}
	}
	return found
}

// editDistance is Levenshtein's.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
