package report

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"

	"github.com/goccy/go-yaml"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
)

// planInfo is the part of plan.yaml that the page uses. It is read leniently:
// the report of an old run must not fail because the plan's format went on.
type planInfo struct {
	Study  string `yaml:"study"`
	Title  string `yaml:"title"`
	Shard  string `yaml:"shard"`
	Source string `yaml:"source"`
	Nets   []struct {
		Net    string `yaml:"net"`
		Name   string `yaml:"name"`
		Preset any    `yaml:"preset"`
		Absent string `yaml:"absent"`
	} `yaml:"nets"`
	Data []struct {
		Path   string `yaml:"path"`
		Name   string `yaml:"name"`
		Split  string `yaml:"split"`
		Items  int    `yaml:"items"`
		Absent string `yaml:"absent"`
	} `yaml:"data"`
	// Generator is the trained part of imputers that are nets.
	Generator struct {
		Weights string `yaml:"weights"`
		Hash    string `yaml:"hash"`
		About   string `yaml:"about"`
	} `yaml:"generator"`
	// Files are the paths of the files that the grid names, by NAME#HASH.
	Files     map[string]string `yaml:"files"`
	Grid      map[string]any    `yaml:"grid"`
	Grids     []map[string]any  `yaml:"grids"`
	Device    string            `yaml:"device"`
	Precision string            `yaml:"precision"`
	Report    struct {
		Images  *int         `yaml:"images"`
		Alpha   float64      `yaml:"alpha"`
		Figures []figureSpec `yaml:"figures"`
		Metrics []string     `yaml:"metrics"`
	} `yaml:"report"`
}

// run is what a folder holds, with the heavy parts of records left on disk.
type run struct {
	out      string
	opt      Options
	plan     planInfo
	planText string
	env      map[string]any
	classes  []string   // names from classes.json
	summary  [][]string // with its header, nil where there is none
	views    map[string]string

	entries  []*entry // without failed ones, in the order of the page
	groups   []*group
	varying  []string          // facts in which groups differ
	common   map[string]string // facts that all groups share
	byImage  map[imageKey][]*entry
	failures []failure
	warnings []warning
	notes    []string // what could not be read
	films    int      // made so far, for ids
	blocks   []figureBlock
}

// load reads the folder. Later records of a unit replace earlier ones.
func load(ctx context.Context, out string, opt Options) (*run, error) {
	if !isDir(out) {
		return nil, usage.Errorf("report: %s: want the folder of a run, there is no such folder", out)
	}
	r := &run{out: out, opt: opt}
	if err := r.readPlan(); err != nil {
		return nil, err
	}
	if err := r.readRecords(ctx); err != nil {
		return nil, err
	}
	r.readEnv()
	r.readClasses()
	r.readSummary()
	r.readViews()
	if r.opt.Alpha == 0 {
		r.opt.Alpha = defaultAlpha
		if a := r.plan.Report.Alpha; a > 0 && !math.IsInf(a, 0) {
			r.opt.Alpha = a
		}
	}
	if r.opt.Images == 0 {
		r.opt.Images = defaultImages
		if n := r.plan.Report.Images; n != nil {
			r.opt.Images = *n
		}
	}
	r.makeGroups()
	return r, nil
}

// summaryPath is where a file of the summary is.
func (r *run) summaryPath(name string) string {
	return filepath.Join(cmp.Or(r.opt.Summary, r.out), name)
}

// unfinished says how far a run is that has not ended, "" where it has.
func (r *run) unfinished() string {
	if r.opt.Unfinished != "" {
		return r.opt.Unfinished
	}
	if r.plan.Study == "" { // of trainings, and of runs without a plan
		return ""
	}
	for _, name := range []string{"summary.json", "summary.csv"} {
		if _, err := os.Stat(filepath.Join(r.out, name)); err == nil {
			return ""
		}
	}
	return fmt.Sprintf("unfinished: %s, and the run has no summary", plural(len(r.entries)+len(r.failures), "unit has a record", "units have a record"))
}

func (r *run) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

func (r *run) readPlan() error {
	text, err := os.ReadFile(filepath.Join(r.out, "plan.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(r.out, record.FileName)); err != nil {
			return usage.Errorf("report: %s: want the folder of a run, it has neither plan.yaml nor %s", r.out, record.FileName)
		}
		if settings, err := os.ReadFile(filepath.Join(r.out, "train.yaml")); err == nil {
			r.planText = string(settings) // a training's
			return nil
		}
		r.note("The run left no plan.yaml.")
		return nil
	}
	if err != nil {
		return fmt.Errorf("report: reading the plan: %w", err)
	}
	r.planText = string(text)
	if err := yaml.Unmarshal(text, &r.plan); err != nil {
		r.plan = planInfo{}
		r.note("plan.yaml cannot be read: %v", err)
	}
	return nil
}

func (r *run) readRecords(ctx context.Context) error {
	byID := map[string]*entry{}
	failed := map[string]failure{}
	var order []string
	warned := map[string]*warning{}
	err := record.Scan(filepath.Join(r.out, record.FileName), func(rec record.Record) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, ok := byID[rec.ID]; !ok {
			if _, ok := failed[rec.ID]; !ok {
				order = append(order, rec.ID)
			}
		}
		delete(byID, rec.ID)
		delete(failed, rec.ID)
		for _, text := range rec.Warnings {
			w := warned[text]
			if w == nil {
				w = &warning{Text: text}
				warned[text] = w
			}
			w.Count++
			if len(w.Images) < 3 {
				w.Images = append(w.Images, rec.Image)
			}
		}
		switch why := problem(rec); why {
		case "":
			byID[rec.ID] = newEntry(rec)
		default:
			failed[rec.ID] = failure{rec.Net, rec.Image, why}
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	for _, id := range order {
		if e := byID[id]; e != nil {
			r.entries = append(r.entries, e)
		} else if f, ok := failed[id]; ok {
			r.failures = append(r.failures, f)
		}
	}
	for _, w := range warned {
		r.warnings = append(r.warnings, *w)
	}
	sort.Slice(r.warnings, func(i, j int) bool { return r.warnings[i].Text < r.warnings[j].Text })
	sort.SliceStable(r.failures, func(i, j int) bool {
		a, b := r.failures[i], r.failures[j]
		return a.Net < b.Net || a.Net == b.Net && a.Image < b.Image
	})
	return nil
}

func (r *run) readEnv() {
	text, err := os.ReadFile(filepath.Join(r.out, "env.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		err = json.Unmarshal(text, &r.env)
	}
	if err != nil {
		r.env = nil
		r.note("env.json cannot be read: %v", err)
	}
}

func (r *run) readClasses() {
	text, err := os.ReadFile(filepath.Join(r.out, "classes.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		err = json.Unmarshal(text, &r.classes)
	}
	if err != nil {
		r.classes = nil
		r.note("classes.json cannot be read: %v", err)
	}
}

// className is "" where the class has no name.
func (r *run) className(net string, class int) string {
	if r.opt.ClassName != nil {
		if name := r.opt.ClassName(net, class); name != "" {
			return name
		}
	}
	if class >= 0 && class < len(r.classes) {
		return r.classes[class]
	}
	return ""
}

func (r *run) readSummary() {
	f, err := os.Open(r.summaryPath("summary.csv"))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		defer f.Close()
		lines := csv.NewReader(f)
		r.summary, err = lines.ReadAll()
	}
	if err != nil {
		r.summary = nil
		r.note("summary.csv cannot be read: %v", err)
	}
}

// readViews reads images/index.json: the preprocessed image of some ids as PNG.
func (r *run) readViews() {
	text, err := os.ReadFile(filepath.Join(r.out, "images", "index.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var names map[string]string
	if err == nil {
		names, err = parseIndex(text)
	}
	if err != nil {
		r.note("images/index.json cannot be read: %v", err)
		return
	}
	r.views = map[string]string{}
	for id, name := range names {
		if filepath.IsLocal(name) {
			r.views[id] = name
		}
	}
}

// parseIndex reads {"images": {id: file}} or {id: file}.
func parseIndex(text []byte) (map[string]string, error) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(text, &top); err != nil {
		return nil, err
	}
	names := map[string]string{}
	if inner, ok := top["images"]; ok && len(top) == 1 && json.Unmarshal(inner, &names) == nil {
		return names, nil
	}
	clear(names)
	return names, json.Unmarshal(text, &names)
}

// view is the file of an image's view, "" where there is none. Views are of the
// plan's first data only.
func (r *run) view(k imageKey) string {
	for _, d := range r.plan.Data {
		if d.Absent != "" {
			continue
		}
		if k.data != "" && k.data != d.Name {
			return ""
		}
		break
	}
	return r.views[k.id]
}

// shown lists the images that are shown one by one: those with a view first,
// in the order of the views' names (the runner's), then the others by id.
func (r *run) shown() []imageKey {
	var keys []imageKey
	seen := map[imageKey]bool{}
	for _, e := range r.entries {
		if k := e.key(); !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b imageKey) int {
		va, vb := r.view(a), r.view(b)
		if (va == "") != (vb == "") {
			if va != "" {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(va, vb), cmp.Compare(a.data, b.data), naturalCompare(a.id, b.id))
	})
	return keys[:min(max(r.opt.Images, 0), len(keys))]
}

// records reads the whole records of some images, by their ids.
func (r *run) records(ctx context.Context, images []imageKey) (map[string]*record.Record, error) {
	want := map[string]bool{}
	for _, k := range images {
		for _, e := range r.byImage[k] {
			want[e.id] = true
		}
	}
	out := map[string]*record.Record{}
	if len(want) == 0 {
		return out, nil
	}
	err := record.Scan(filepath.Join(r.out, record.FileName), func(rec record.Record) error {
		if want[rec.ID] && problem(rec) == "" {
			out[rec.ID] = &rec
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return out, nil
}
