package orchestrate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/internal/yamlfile"
)

// trainCode changes when the same settings give other weights.
const trainCode = "train/1"

// TrainPlan is a training with everything found that it names: OUT/train.yaml.
type TrainPlan struct {
	Version int `yaml:"version"`
	// Net or Imputer is what is trained; classes and features are of nets.
	Net     string           `yaml:"net,omitempty"`
	Imputer *ImputerTraining `yaml:"imputer,omitempty"`
	Classes int              `yaml:"classes,omitempty"`
	// Features is the number of columns, for nets on tables.
	Features int `yaml:"features,omitempty"`
	// Weights are what it starts from; "" draws parameters from the seed.
	Weights     string         `yaml:"weights,omitempty"`
	WeightsHash string         `yaml:"weightsHash,omitempty"`
	Preset      dataset.Preset `yaml:"preset"`
	Data        DataPlan       `yaml:"data"`
	Validation  ValidationPlan `yaml:"validation"`
	Training    TrainSettings  `yaml:"training"`
	Device      string         `yaml:"device"`
	Precision   string         `yaml:"precision"`
	Threads     int            `yaml:"threads"`
	Code        string         `yaml:"code"`
}

// ValidationPlan is the validation part: a split of its own, or a fraction of
// the data; with neither there is none.
type ValidationPlan struct {
	Split    string  `yaml:"split,omitempty"`
	Fraction float64 `yaml:"fraction,omitempty"`
	Hash     string  `yaml:"hash,omitempty"`
	Items    int     `yaml:"items,omitempty"`
}

// trained is the name of what is trained.
func (p *TrainPlan) trained() string {
	if p.Imputer != nil {
		return p.Imputer.ID
	}
	return p.Net
}

// metadata says in the files of weights what they are.
func (p *TrainPlan) metadata() (map[string]string, error) {
	out := map[string]string{"net": p.Net, "classes": strconv.Itoa(p.Classes)}
	if p.Imputer != nil {
		var err error
		if out, err = p.Imputer.metadata(); err != nil {
			return nil, err
		}
	}
	if p.Features > 0 {
		out["features"] = strconv.Itoa(p.Features)
	}
	out["format"], out["preset"], out["seed"], out["data"] = "pt", string(canonical(p.Preset)), strconv.FormatUint(p.Training.Seed, 10), p.Data.Hash
	return out, nil
}

func (p *TrainPlan) marshal() ([]byte, error) {
	text, err := yaml.MarshalWithOptions(p, yaml.Indent(2), yaml.IndentSequence(false))
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", TrainFile, err)
	}
	return text, nil
}

// readPriorTraining reads the settings of a folder, nil where there are none.
func readPriorTraining(out string) (*TrainPlan, error) {
	if info, err := os.Stat(out); err == nil && !info.IsDir() {
		return nil, usage.Errorf("out: %s is a file: want a folder", out)
	}
	if _, err := os.Stat(filepath.Join(out, PlanFile)); err == nil {
		return nil, usage.Errorf("out: %s holds a run of another study (%s): choose another folder", out, PlanFile)
	}
	path := filepath.Join(out, TrainFile)
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if info, err := os.Stat(filepath.Join(out, record.FileName)); err == nil && info.Size() > 0 {
			return nil, usage.Errorf("out: %s has %s but no %s: choose another folder", out, record.FileName, TrainFile)
		}
		return nil, nil
	case err != nil:
		return nil, usage.Errorf("out: %w", err)
	}
	var p TrainPlan
	if err := yamlfile.Decode(path, text, &p); err != nil {
		return nil, err
	}
	return &p, nil
}

// facts are the parts that the result depends on, as readable names and
// values: paths and the device's number are not among them.
func (p *TrainPlan) facts() ([][2]string, error) {
	q := *p
	q.Weights, q.Data.Path, q.Data.Labels, q.Data.Name = "", "", "", ""
	q.Device, _, _ = strings.Cut(p.Device, ":")
	text, err := q.marshal()
	if err != nil {
		return nil, err
	}
	var tree yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(text, &tree, yaml.UseOrderedMap()); err != nil {
		return nil, fmt.Errorf("comparing settings: %w", err)
	}
	var out [][2]string
	flatten(&out, "", tree)
	return out, nil
}

func flatten(out *[][2]string, at string, v any) {
	tree, ok := v.(yaml.MapSlice)
	if !ok {
		*out = append(*out, [2]string{at, plain(v)})
		return
	}
	for _, item := range tree {
		name := fmt.Sprint(item.Key)
		if at != "" {
			name = at + "." + name
		}
		flatten(out, name, item.Value)
	}
}

// differs names the first fact in which two trainings differ, "" where they
// are one.
func (p *TrainPlan) differs(there *TrainPlan) (string, error) {
	here, err := p.facts()
	if err != nil {
		return "", err
	}
	was, err := there.facts()
	if err != nil {
		return "", err
	}
	find := func(list [][2]string, key string) (string, bool) {
		i := slices.IndexFunc(list, func(f [2]string) bool { return f[0] == key })
		if i < 0 {
			return "", false
		}
		return list[i][1], true
	}
	for _, f := range here {
		if old, ok := find(was, f[0]); !ok {
			return fmt.Sprintf("%s is %s here and not set there", f[0], short(f[1])), nil
		} else if old != f[1] {
			return fmt.Sprintf("%s is %s there and %s here", f[0], short(old), short(f[1])), nil
		}
	}
	for _, f := range was {
		if _, ok := find(here, f[0]); !ok {
			return fmt.Sprintf("%s is %s there and not set here", f[0], short(f[1])), nil
		}
	}
	return "", nil
}

// id stands for everything that determines the result.
func (p *TrainPlan) id() (string, error) {
	facts, err := p.facts()
	if err != nil {
		return "", err
	}
	return unitID(canonical(facts)), nil
}
