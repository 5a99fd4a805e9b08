package orchestrate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/weights"
)

// DataVariable names the environment variable with the folders, separated as
// in PATH, in which plans find data:NAME and weights that are not in the cache
// (in its folder weights/). Without it that is the folder data/.
const DataVariable = "ASSAY_DATA"

const (
	placePrefix   = "data:"
	defaultFolder = "data"
	weightsFolder = "weights"
)

// Place is a data set that plans name whatever the machine: data:NAME.
type Place struct {
	Name, Summary string
	// Files are the names that it goes by in the folders of DataVariable, as
	// filepath.Match reads them, the first that is there is taken.
	Files []string
}

// Places lists the data sets that plans can name so.
func Places() []Place {
	return []Place{
		{"imagenet-val", "ImageNet's validation images (ILSVRC2012) with labels",
			[]string{"imagenet-val", "ILSVRC2012_img_val", "ILSVRC2012_img_val.tar", "imagenet-val-*"}},
		{"cifar10", "CIFAR-10, as images or as published",
			[]string{"cifar10", "cifar10.tgz", "cifar10.tar.gz", "cifar10.zip", "cifar-10-batches-bin", "cifar-10-binary.tar.gz", "cifar-10-batches-py", "cifar-10-python.tar.gz"}},
	}
}

// errAbsent is what errors.Is finds where an optional plan goes on without.
var errAbsent = errors.New("not on this machine")

type absent struct{ error }

func (a absent) Unwrap() []error { return []error{a.error, errAbsent} }

func dataFolders() []string {
	if text := os.Getenv(DataVariable); text != "" {
		return filepath.SplitList(text)
	}
	return []string{defaultFolder}
}

// locate turns a plan's path into one that dataset.Open takes. Data that is
// not there is an error that is errAbsent.
func locate(path string) (string, error) {
	name, named := strings.CutPrefix(path, placePrefix)
	if !named {
		if dataset.IsFile(path) {
			if _, err := os.Stat(path); os.IsNotExist(err) {
				return "", absent{usage.Errorf("no such data: %s", path)}
			}
		}
		return path, nil
	}
	var names []string
	for _, p := range Places() {
		if p.Name == name {
			return p.find()
		}
		names = append(names, placePrefix+p.Name)
	}
	return "", usage.Errorf("data %q: %s", path, DidYouMean(path, names))
}

func (p Place) find() (string, error) {
	folders := dataFolders()
	for _, pattern := range p.Files {
		for _, dir := range folders {
			if found, _ := filepath.Glob(filepath.Join(dir, pattern)); len(found) > 0 {
				return found[0], nil
			}
		}
	}
	return "", absent{usage.Errorf("%s is not in %s: put it there under the name %s, set %s, or say where it is with --data PATH",
		p.Summary, strings.Join(folders, " or "), p.Files[0], DataVariable)}
}

// resolveWeights is weights.ResolveFor, which looks in the cache, and then in
// the folders of DataVariable.
func resolveWeights(net, arg string, columns int) (string, error) {
	path, err := weights.ResolveFor(net, arg, columns)
	if !errors.Is(err, weights.ErrAbsent) {
		return path, err
	}
	for _, f := range weights.Published() {
		if f.Net != net || arg != "" && arg != f.File && !strings.EqualFold(arg, f.Version) {
			continue
		}
		for _, dir := range dataFolders() {
			path := filepath.Join(dir, weightsFolder, f.File)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				return path, nil
			}
		}
		break // the first is the default
	}
	return "", absent{err}
}

// place finds the plan's data, and says of that which is not there why.
func (r *resolver) place() error {
	var missing []string
	for i := range r.Plan.Data {
		d := &r.Plan.Data[i]
		d.Absent = ""
		if !r.Plan.Optional && !strings.HasPrefix(d.Path, placePrefix) {
			continue // opening it says what is wrong
		}
		path, err := locate(d.Path)
		if err != nil && (!r.Plan.Optional || !errors.Is(err, errAbsent)) {
			return r.Plan.errorf(fmt.Sprintf("$.data[%d]", i), "%w", err)
		}
		if err != nil {
			d.Absent = err.Error()
			missing = append(missing, d.Absent)
			continue
		}
		if name, ok := strings.CutPrefix(d.Path, placePrefix); ok && d.Name == "" {
			d.Name = dataName(DataPlan{Path: name, Split: d.Split})
		}
		d.Path = path
	}
	if len(missing) == len(r.Plan.Data) {
		return r.Plan.nothing(missing)
	}
	return nil
}

// missingData is the error of a plan of which nothing can be measured because none of its
// data is here; nil where some is. It is asked before anything is trained.
func (p *Plan) missingData() error {
	if !p.Optional {
		return nil
	}
	var missing []string
	for _, d := range p.Data {
		_, err := locate(d.Path)
		if !errors.Is(err, errAbsent) {
			return nil // resolving says what else is wrong
		}
		missing = append(missing, err.Error())
	}
	return p.nothing(missing)
}

// nothing is the error of a plan of which nothing can be measured.
func (p *Plan) nothing(missing []string) error {
	more := ""
	if len(missing) > 1 {
		more = fmt.Sprintf(" (and %d more)", len(missing)-1)
	}
	hint := ""
	scales := slices.Clone(p.scales)
	if p.Scale != nil {
		scales = sortedKeys(p.Scale)
	}
	others := slices.DeleteFunc(scales, func(s string) bool { return s == p.AppliedScale })
	if len(others) > 0 {
		hint = "; or take another scale: --scale " + strings.Join(others, " or --scale ")
	}
	return p.errorf("$", "nothing of this plan can be measured here: %s%s%s", missing[0], more, hint)
}
