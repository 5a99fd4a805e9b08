package orchestrate

import (
	"fmt"
	"os"
	"strconv"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/internal/yamlfile"
)

// PlanVersion is the version of the plan's format.
const PlanVersion = 1

// Plan says what a run measures. The fields that OUT/plan.yaml has more than a
// plan that somebody wrote (hash, classes, items) are filled when the plan is
// resolved; where a plan has them already, they are checked.
type Plan struct {
	Version int    `yaml:"version"`
	Study   string `yaml:"study"`
	Title   string `yaml:"title,omitempty"`
	// Source is the paper, table or figure that the plan reproduces.
	Source string `yaml:"source,omitempty"`
	// Optional lets the plan run without nets and data that are not on this
	// machine: what they would have shown is listed as not measured.
	Optional bool `yaml:"optional,omitempty"`

	// Train lists nets that are trained first, into OUT/train/NAME; the plan's
	// nets take them by weights: train:NAME.
	Train []TrainEntry `yaml:"train,omitempty"`
	// Generator is what imputers that are nets were trained to.
	Generator GeneratorPlan `yaml:"generator,omitempty"`

	Nets []NetPlan  `yaml:"nets"`
	Data []DataPlan `yaml:"data"`
	// Grid holds the study's parameters, each a value or a list of values; the
	// units are their product.
	Grid map[string]any `yaml:"grid,omitempty"`
	// Grids, where there are any, are parts whose units are put together: each
	// is a product of its own, with Grid's values for what it does not name.
	Grids []map[string]any `yaml:"grids,omitempty"`
	Seeds []uint64         `yaml:"seeds,omitempty"`

	// Device is "cpu", "cuda:N", "cuda:0,cuda:1" for several that share the
	// units, or "" for the first GPU if there is one.
	Device string `yaml:"device,omitempty"`
	// Batch is the number of rows of every forward; 0 ("auto") measures.
	Batch     Batch  `yaml:"batch,omitempty"`
	Precision string `yaml:"precision,omitempty"`
	// Threads of the CPU; 0: one a core.
	Threads int `yaml:"threads,omitempty"`
	// Code is the version of the study's code, in resolved plans.
	Code string `yaml:"code,omitempty"`
	// Shard is the part of the units that is run; none: all.
	Shard Shard `yaml:"shard,omitempty"`

	// Scale holds named changes of the plan, such as "small".
	Scale map[string]Override `yaml:"scale,omitempty"`
	// Reference holds published rows: keys that match grid values, and value,
	// spread, note, tolerance, metric.
	Reference []map[string]any `yaml:"reference,omitempty"`
	// Claims are what the source says in words or shows in a plot.
	Claims []Claim    `yaml:"claims,omitempty"`
	Report ReportPlan `yaml:"report,omitempty"`
	// Maps says how a study that makes maps of attribution keeps them.
	Maps MapsPlan `yaml:"maps,omitempty"`

	// Files are the paths of the files that the grid names, in resolved plans,
	// where the grid has their last part with a hash of their content.
	Files map[string]string `yaml:"files,omitempty"`

	// LeftOut is what of the grid has nothing to measure, in resolved plans, whose grid has
	// no points any more that fit nowhere.
	LeftOut []LeftOut `yaml:"leftOut,omitempty"`

	// AppliedScale is the scale that was applied, "" for none.
	AppliedScale string `yaml:"appliedScale,omitempty"`

	// scales are the names of Scale, before it was resolved.
	scales []string
	// where finds the place of a value in the text that the plan came from.
	where *source
}

// NetPlan names a net with its weights.
type NetPlan struct {
	Net string `yaml:"net"`
	// Name stands for the net in records and tables; "": the net's id.
	Name string `yaml:"name,omitempty"`
	// Weights is a file or a published version; "": the net's default.
	Weights string `yaml:"weights,omitempty"`
	// Preset is a name or a mapping; none: the weights' own.
	Preset PresetChoice `yaml:"preset,omitempty"`

	Hash    string `yaml:"hash,omitempty"`
	Classes int    `yaml:"classes,omitempty"`
	// Absent says why the net is left out of an optional plan, in resolved plans.
	Absent string `yaml:"absent,omitempty"`
}

// DataPlan names a part of a data set.
type DataPlan struct {
	// Path is one that dataset.Open takes, or data:NAME, see Places.
	Path string `yaml:"path"`
	// Name stands for the data where a plan has several; "": the path's last part.
	Name   string `yaml:"name,omitempty"`
	Split  string `yaml:"split,omitempty"`
	Labels string `yaml:"labels,omitempty"`
	Limit  int    `yaml:"limit,omitempty"`

	Hash  string `yaml:"hash,omitempty"`
	Items int    `yaml:"items,omitempty"`
	// Absent says why the data is left out of an optional plan, in resolved plans.
	Absent string `yaml:"absent,omitempty"`
}

// Override is what a scale changes: lists replace the plan's, grid values
// replace those of their name, limit applies to all data.
type Override struct {
	Train  []TrainEntry     `yaml:"train,omitempty"`
	Nets   []NetPlan        `yaml:"nets,omitempty"`
	Data   []DataPlan       `yaml:"data,omitempty"`
	Limit  int              `yaml:"limit,omitempty"`
	Grid   map[string]any   `yaml:"grid,omitempty"`
	Grids  []map[string]any `yaml:"grids,omitempty"`
	Seeds  []uint64         `yaml:"seeds,omitempty"`
	Report *ReportPlan      `yaml:"report,omitempty"`
}

// ReportPlan is what the report shows.
type ReportPlan struct {
	// Images is how many images are shown one by one; nil: 24.
	Images *int `yaml:"images,omitempty"`
	// Alpha is the exponent of heat maps (rank/t)^alpha; 0: 2.
	Alpha float64 `yaml:"alpha,omitempty"`
	// Figures are shown above the images, in that order; package report knows
	// the kinds.
	Figures []map[string]any `yaml:"figures,omitempty"`
	// Metrics are those that tables show; none: all. summary.csv has all.
	Metrics []string `yaml:"metrics,omitempty"`
}

// defaultReportImages is how many images a report shows one by one.
const defaultReportImages = 24

func (r ReportPlan) images() int {
	if r.Images == nil {
		return defaultReportImages
	}
	return *r.Images
}

// Batch is a number of rows, 0 for "auto".
type Batch int

// UnmarshalYAML reads "auto" or a number.
func (b *Batch) UnmarshalYAML(node ast.Node) error {
	n, err := ParseBatch(node.String())
	if err != nil {
		return &yaml.SyntaxError{Message: err.Error(), Token: node.GetToken()}
	}
	*b = n
	return nil
}

// MarshalYAML writes "auto" for 0.
func (b Batch) MarshalYAML() (any, error) {
	if b == 0 {
		return "auto", nil
	}
	return int(b), nil
}

// maxBatch bounds the number of rows: more is a mistake.
const maxBatch = 1 << 16

// ParseBatch reads "auto" or a number of rows.
func ParseBatch(text string) (Batch, error) {
	if text == "auto" || text == `"auto"` {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxBatch {
		return 0, usage.Errorf("batch %s: want auto, or a number of rows from 1 to %d", text, maxBatch)
	}
	return Batch(n), nil
}

// PresetChoice is a preset by name, or a preset itself.
type PresetChoice struct {
	Name   string
	Preset *dataset.Preset
}

// UnmarshalYAML reads a name or a mapping.
func (p *PresetChoice) UnmarshalYAML(node ast.Node) error {
	if _, isMap := node.(ast.MapNode); !isMap {
		return yaml.NodeToValue(node, &p.Name)
	}
	var strict dataset.Preset // for errors with line and column
	if err := yaml.NodeToValue(node, &strict, yaml.Strict()); err != nil {
		return err
	}
	preset, err := dataset.ParsePreset("preset", []byte(node.String()))
	if err != nil {
		return &yaml.SyntaxError{Message: err.Error(), Token: node.GetToken()}
	}
	p.Preset = &preset
	return nil
}

// MarshalYAML writes what UnmarshalYAML reads.
func (p PresetChoice) MarshalYAML() (any, error) {
	if p.Preset != nil {
		return *p.Preset, nil
	}
	return p.Name, nil
}

// IsZero lets omitempty leave out a preset that was not chosen.
func (p PresetChoice) IsZero() bool { return p.Name == "" && p.Preset == nil }

// choose returns the preset, by default the one named fallback.
func (p PresetChoice) choose(fallback string) (dataset.Preset, error) {
	if p.Preset != nil {
		return *p.Preset, p.Preset.Validate()
	}
	if p.Name != "" {
		fallback = p.Name
	}
	return dataset.LoadPreset(fallback)
}

// LoadPlan reads a plan file.
func LoadPlan(path string) (*Plan, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, usage.Errorf("plan: %w", err)
	}
	return ParsePlan(path, text)
}

// ParsePlan reads a plan. name stands for the text in errors, which give line
// and column; unknown keys are errors. What the plan says is checked when it is
// resolved.
func ParsePlan(name string, text []byte) (*Plan, error) {
	file, err := yamlfile.Parse(name, text)
	if err != nil {
		return nil, err
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil, usage.Errorf("%s: want one plan, the file is empty", name)
	}
	if len(file.Docs) != 1 {
		return nil, usage.Errorf("%s: want one plan, there are %d", name, len(file.Docs))
	}
	var p Plan
	if err := yamlfile.Decode(name, text, &p); err != nil {
		return nil, err
	}
	p.where = &source{name: name, file: file}
	if p.Version != PlanVersion {
		return nil, p.errorf("$.version", "version %d: want %d", p.Version, PlanVersion)
	}
	return &p, nil
}

// source is the text that a plan came from.
type source struct {
	name string
	file *ast.File
}

// errorf is usage.Errorf with the place of a value of the plan before it, if
// the plan came from a file. path is goccy's: $.nets[0].net.
func (p *Plan) errorf(path, format string, args ...any) error {
	return usage.Errorf("%s%w", p.place(path), usage.Line(fmt.Errorf(format, args...), ""))
}

func (p *Plan) place(path string) string {
	if p.where == nil {
		return ""
	}
	if at, err := yaml.PathString(path); err == nil {
		if node, err := at.FilterFile(p.where.file); err == nil {
			pos := node.GetToken().Position
			return fmt.Sprintf("%s:%d:%d: ", p.where.name, pos.Line, pos.Column)
		}
	}
	return p.where.name + ": "
}

// Scaled returns the plan with a named scale applied; "" changes nothing.
func (p *Plan) Scaled(name string) (*Plan, error) {
	if name == "" {
		return p, nil
	}
	o, ok := p.Scale[name]
	if !ok {
		names := sortedKeys(p.Scale)
		return nil, p.errorf("$.scale", "scale %q: %s", name, DidYouMean(name, names))
	}
	out := *p
	out.Scale, out.AppliedScale, out.scales = nil, name, sortedKeys(p.Scale)
	if o.Train != nil {
		out.Train = o.Train
	}
	if o.Grids != nil {
		out.Grids = o.Grids
	}
	if o.Nets != nil {
		out.Nets = o.Nets
	}
	if o.Data != nil {
		out.Data = o.Data
	}
	if o.Limit != 0 {
		out.Data = append([]DataPlan{}, out.Data...)
		for i := range out.Data {
			out.Data[i].Limit = o.Limit
		}
	}
	if o.Grid != nil {
		out.Grid = map[string]any{}
		for k, v := range p.Grid {
			out.Grid[k] = v
		}
		for k, v := range o.Grid {
			out.Grid[k] = v
		}
	}
	if o.Seeds != nil {
		out.Seeds = o.Seeds
	}
	if o.Report != nil {
		out.Report = *o.Report
	}
	return &out, nil
}

// Marshal writes the plan as YAML.
func (p *Plan) Marshal() ([]byte, error) {
	text, err := yaml.MarshalWithOptions(p, yaml.Indent(2), yaml.IndentSequence(false))
	if err != nil {
		return nil, fmt.Errorf("writing the plan: %w", err)
	}
	return text, nil
}
