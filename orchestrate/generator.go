package orchestrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/weights"
)

// GeneratorPlan names the trained part of imputers that are nets (Entry.Generator), one
// for all of a plan: it is opened once and is part of the ids of the units that use it.
type GeneratorPlan struct {
	// Weights is a file of assay train --imputer, or train:NAME of the plan's trainings.
	Weights string `yaml:"weights,omitempty"`

	Hash string `yaml:"hash,omitempty"`
	// About says in resolved plans what the file says of its training.
	About string `yaml:"about,omitempty"`
}

// IsZero lets omitempty leave out what was not given.
func (g GeneratorPlan) IsZero() bool { return g == GeneratorPlan{} }

// Names in a generator's file: how those of its parameters begin, and its first. Beside them
// is the mean image [C,H,W] of what it was trained on, which says what images it is for.
const (
	generatorPrefix = "generator.net."
	generatorFirst  = generatorPrefix + "0.weight_orig"
)

// openedGenerator is a plan's generator.
type openedGenerator struct {
	Generator
	path string
	// shape of the images that it imputes, [C,H,W].
	shape []int
	// about is what the file says of its training, in words; "" for nothing.
	about string
	// scale is what raw values were divided by when it was trained; 0: the file does not say.
	scale float64
}

// generatorChecker is a backend that can tell before a run whether a generator is one that it
// can run.
type generatorChecker interface {
	CheckGenerator(ctx context.Context, g *Generator) error
}

// wantsGenerator says that an imputer is made of a trained net.
func (c Catalogue) wantsGenerator(imputer string) bool {
	s, err := c.spec(imputers, imputer)
	return err == nil && s.entry.Generator
}

// generatorOf is what a backend is given for an imputer; nil for those that take none.
func (r *Resolved) generatorOf(imputer string) *Generator {
	if r.generator == nil || !r.Catalogue.wantsGenerator(imputer) {
		return nil
	}
	return &r.generator.Generator
}

// checkGenerator finds what is wrong with the plan's generator before anything is opened.
func (p *Plan) checkGenerator() error {
	if g := p.Generator; g.Weights == "" && g.Hash != "" {
		return p.errorf("$.generator", "a generator without its file (weights: ...)")
	}
	return nil
}

// openGenerator opens the plan's generator where an imputer of the grid wants one. One
// that nobody wants is named in the resolved plan, and no result depends on it.
func (r *resolver) openGenerator(ctx context.Context) error {
	g := &r.Plan.Generator
	parameter, imputer := r.generated()
	switch {
	case imputer == "" && g.IsZero():
		return nil
	case imputer == "" && slices.ContainsFunc(r.Plan.LeftOut, func(l LeftOut) bool { return r.Catalogue.wantsGenerator(l.imputer()) }):
		g.Weights, g.Hash, g.About = absolute(g.Weights), "", "" // said when the plan was resolved
		return nil
	case imputer == "":
		why := "no imputer of the plan wants one"
		if err := findGenerator(g.Weights); err != nil {
			why = "there is no such file, and " + why
		}
		r.warnOnce(fmt.Sprintf("generator %s: %s: not used", g.Weights, why))
		g.Weights, g.Hash, g.About = absolute(g.Weights), "", "" // a hash would be a fact of the run
		return nil
	case g.Weights == "":
		s, err := ParseSpec(imputer)
		if err != nil {
			return err
		}
		if file := r.Plan.generatorFrom(s.Name); file != "" {
			return r.Plan.errorf("$.grid."+parameter, "%w", usage.Errorf("%s %s: which generator? the plan trains one: want generator: {weights: %s}", parameter, imputer, file))
		}
		return r.Plan.errorf("$.grid."+parameter, "%w", usage.Errorf("%s %s: it is a net that is trained first: assay train --imputer %s --data DATA --out %[3]s, then --generator %[3]s/%[4]s "+
			"(in a plan: generator: {weights: %[3]s/%[4]s})", parameter, imputer, s.Name, BestFile))
	}
	opened, err := openGenerator(g.Weights)
	if err != nil {
		return r.Plan.errorf("$.generator.weights", "%w", err)
	}
	if g.Hash != "" && g.Hash != opened.Hash {
		return r.Plan.errorf("$.generator.hash", "generator %s has the hash %.12s..., the plan was made with %.12s...", g.Weights, opened.Hash, g.Hash)
	}
	if b, ok := r.Backend.(generatorChecker); ok {
		if err := b.CheckGenerator(ctx, &opened.Generator); err != nil {
			return r.Plan.errorf("$.generator.weights", "%s: %w", g.Weights, err)
		}
	}
	r.generator = opened
	g.Weights, g.Hash, g.About = absolute(g.Weights), opened.Hash, opened.about
	return nil
}

// releaseGenerator lets go of a generator whose imputers have been left out of the grid:
// it is no fact of the run, which goes on from its own plan without them.
func (r *resolver) releaseGenerator() {
	if _, imputer := r.generated(); imputer == "" && r.generator != nil {
		r.generator, r.Plan.Generator.Hash, r.Plan.Generator.About = nil, "", ""
	}
}

// generated finds a parameter of the plan's points with an imputer that wants a generator;
// "" for none.
func (r *Resolved) generated() (parameter, imputer string) {
	for _, d := range r.Study.Parameters {
		if d.Catalogue != imputers && d.Catalogue != removers {
			continue
		}
		for _, point := range r.Points {
			if text := point.Text(d.Name); text != "" && r.Catalogue.wantsGenerator(text) {
				return d.Name, text
			}
		}
	}
	return "", ""
}

// openGenerator reads a generator's file: its parameters and the mean image, and nothing
// that only its training wanted.
func openGenerator(path string) (*openedGenerator, error) {
	if err := findGenerator(path); err != nil {
		return nil, err
	}
	sd, err := weights.Open(path)
	if err != nil {
		return nil, usage.Errorf("generator %s: %w", path, err)
	}
	mean, hasMean := sd.Tensors[meanImage]
	if _, ok := sd.Tensors[generatorFirst]; !ok || !hasMean {
		return nil, usage.Errorf("%s is no generator: want %s and %s, as assay train --imputer writes them; it has %s%s", path, generatorFirst, meanImage, insteadOf(sd), besideIt(path))
	}
	if len(mean.Shape) != 3 {
		return nil, usage.Errorf("%s: the mean image %s is of shape %v: want [channels, height, width]", path, meanImage, mean.Shape)
	}
	out := &openedGenerator{Generator: Generator{Hash: sd.Hash, State: map[string]weights.Tensor{meanImage: mean}}, path: path}
	for _, n := range mean.Shape {
		out.shape = append(out.shape, int(n))
	}
	out.about = aboutGenerator(path, sd.Metadata)
	if preset, ok := metadataPreset(sd); ok {
		out.scale = preset.Scale
	}
	for name, t := range sd.Tensors {
		if strings.HasPrefix(name, generatorPrefix) {
			out.State[name] = t
		}
	}
	return out, nil
}

// aboutGenerator is what is known of a generator's training: from its file, and the data's
// name from the settings beside it where they are those of this file.
func aboutGenerator(path string, metadata map[string]string) string {
	var parts []string
	if epoch := metadata["epoch"]; epoch != "" {
		parts = append(parts, "epoch "+epoch)
	}
	if v, err := strconv.ParseFloat(metadata["validationError"], 64); err == nil {
		parts = append(parts, fmt.Sprintf("validation error (MSE) %.4g", v))
	}
	if hash := metadata["data"]; hash != "" {
		data := fmt.Sprintf("data %.12s", hash)
		if p, err := readPriorTraining(filepath.Dir(path)); err == nil && p != nil && p.Data.Hash == hash {
			data = "trained on " + p.Data.EntryName()
		}
		parts = append(parts, data)
	}
	return strings.Join(parts, ", ")
}

// findGenerator says what is wrong with a path that names no file.
func findGenerator(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.IsDir():
		return nil
	case err == nil:
		if best := filepath.Join(path, BestFile); isFile(best) {
			return usage.Errorf("generator %s is a folder: did you mean %s?", path, best)
		}
		return usage.Errorf("generator %s is a folder, without a %s: want a file of assay train --imputer", path, BestFile)
	case errors.Is(err, fs.ErrNotExist) && strings.Contains(path, ","):
		return usage.Errorf("generator %s: there is no such file; a plan has one generator, for all of its nets: want one file", path)
	case errors.Is(err, fs.ErrNotExist):
		return usage.Errorf("generator %s: there is no such file: want one of assay train --imputer", path)
	}
	return usage.Errorf("generator %s: %w", path, err)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// besideIt names the weights that a training has left beside a file of another kind, such
// as its checkpoint.
func besideIt(path string) string {
	best := filepath.Join(filepath.Dir(path), BestFile)
	if filepath.Base(path) == BestFile || !isFile(best) || !isFile(filepath.Join(filepath.Dir(path), TrainFile)) {
		return ""
	}
	return "; did you mean " + best + "?"
}

// insteadOf says in a few words what a file is that is no generator.
func insteadOf(sd *weights.StateDict) string {
	what := ""
	for _, key := range []string{"net", "imputer"} {
		if v := sd.Metadata[key]; v != "" {
			what = fmt.Sprintf(" (%s %s)", key, v)
		}
	}
	const few = 2
	names := sd.Names[:min(few, len(sd.Names))]
	more := ""
	if n := len(sd.Names) - len(names); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ") + more + what
}

// fits says what inputs a generator does not impute.
func (g *openedGenerator) fits(shape []int) error {
	if g == nil || slices.Equal(g.shape, shape) {
		return nil
	}
	return usage.Errorf("generator %s imputes images of %s, and the net takes %s: want one that was trained on such images", g.path, sizes(g.shape), sizes(shape))
}

// fitsScale says that a generator was trained on values that were divided by another
// number than the net's are: it would see images that are all but black, or far too bright.
func (g *openedGenerator) fitsScale(n *ResolvedNet, d *ResolvedData) error {
	if g == nil || g.scale == 0 {
		return nil
	}
	scale := n.Preset.Scale
	if g.scale == scale {
		return nil
	}
	if d.Set.Kind == dataset.Images { // always of 8 bits, whatever the preset says
		if scale = math.MaxUint8; g.scale == scale {
			return nil
		}
	}
	return usage.Errorf("generator %s was trained on values divided by %s, and those of net %s are divided by %s: want one that was trained with the net's preset",
		g.path, formatScalar(g.scale), n.Name, formatScalar(scale))
}

// sizes writes a shape as 3x32x32.
func sizes(shape []int) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(shape), "[]"), " ", "x")
}
