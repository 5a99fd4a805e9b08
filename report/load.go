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

// maxCurvePoints bounds what is kept of a curve for mean curves: finer steps
// cannot be seen.
const maxCurvePoints = 257

// planInfo is the part of plan.yaml that the page uses. It is read leniently:
// the report of an old run must not fail because the plan's format went on.
type planInfo struct {
	Study  string `yaml:"study"`
	Title  string `yaml:"title"`
	Source string `yaml:"source"`
	Nets   []struct {
		Net    string `yaml:"net"`
		Name   string `yaml:"name"`
		Preset any    `yaml:"preset"`
	} `yaml:"nets"`
	Data []struct {
		Path  string `yaml:"path"`
		Name  string `yaml:"name"`
		Split string `yaml:"split"`
		Items int    `yaml:"items"`
	} `yaml:"data"`
	Device    string `yaml:"device"`
	Precision string `yaml:"precision"`
	Report    struct {
		Images *int    `yaml:"images"`
		Alpha  float64 `yaml:"alpha"`
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
}

// imageKey names an image of a run: ids are unique within a data entry only.
type imageKey struct{ data, id string }

// entry is a record without what only single images need.
type entry struct {
	id         string
	group      *group
	study, net string
	image      string
	seed       uint64
	class      *int
	target     int
	prediction *record.Prediction
	trace      bool
	value      float64
	sums       record.Sums
	features   int
	edge       int
	points     []int // deleted features at each point of curve
	curve      record.Curve
	cost       record.Cost
}

func (e *entry) key() imageKey { return imageKey{e.group.params["data"], e.image} }

type failure struct{ Net, Image, Error string }

type warning struct {
	Text   string
	Count  int
	Images []string // the first few
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

func (r *run) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

func (r *run) readPlan() error {
	text, err := os.ReadFile(filepath.Join(r.out, "plan.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(r.out, record.FileName)); err != nil {
			return usage.Errorf("report: %s: want the folder of a run, it has neither plan.yaml nor %s", r.out, record.FileName)
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

// problem says why a record cannot be shown as a result, "" where it can.
func problem(rec record.Record) string {
	if rec.Error != "" {
		return rec.Error
	}
	if !rec.Finite() {
		return "the record has numbers that are not finite"
	}
	if t := rec.Trace; t != nil {
		return traceProblem(t)
	}
	if p := rec.Prediction; p != nil && (len(p.Classes) == 0 || len(p.Classes) != len(p.Probabilities)) {
		return fmt.Sprintf("the record's prediction has %d classes and %d probabilities", len(p.Classes), len(p.Probabilities))
	}
	return ""
}

func traceProblem(t *record.Trace) string {
	n := t.Features
	if n < 1 || len(t.Trajectory) != n {
		return fmt.Sprintf("the record's trajectory has %d features, want %d", len(t.Trajectory), n)
	}
	if e := t.EdgePatches; e != 0 && e*e != n {
		return fmt.Sprintf("the record has %d features, want %d for %d x %d patches", n, e*e, e, e)
	}
	seen := make([]bool, n)
	for _, f := range t.Trajectory {
		if f < 0 || f >= n || seen[f] {
			return fmt.Sprintf("the record's trajectory has feature %d twice or outside 0..%d", f, n-1)
		}
		seen[f] = true
	}
	c := t.Curves
	for _, curve := range [][]float64{c.Prob.Le, c.Prob.Mo, c.Logit.Le, c.Logit.Mo} {
		if len(curve) != n+1 {
			return fmt.Sprintf("a curve of the record has %d points, want %d", len(curve), n+1)
		}
	}
	return ""
}

func newEntry(rec record.Record) *entry {
	e := &entry{id: rec.ID, study: rec.Study, net: rec.Net, image: rec.Image, seed: rec.Seed, class: rec.Class,
		target: rec.Target, prediction: rec.Prediction, cost: rec.Cost}
	g := &group{study: rec.Study, net: rec.Net, method: rec.Method, params: params(rec.Params)}
	if t := rec.Trace; t != nil {
		e.trace, e.value, e.sums, e.features, e.edge = true, t.Value, t.Sums, t.Features, t.EdgePatches
		e.points = thin(t.Features)
		e.curve = record.Curve{Le: pick(t.Curves.Prob.Le, e.points), Mo: pick(t.Curves.Prob.Mo, e.points)}
		g.objective, g.scoreOn, g.solver, g.features, g.edge = t.Objective, t.ScoreOn, t.Solver, t.Features, t.EdgePatches
	}
	e.group = g
	return e
}

// thin lists the points 0..t of a curve that are kept, ends included.
func thin(t int) []int {
	n := min(t+1, maxCurvePoints)
	out := make([]int, n)
	for j := range out {
		if n > 1 {
			out[j] = j * t / (n - 1)
		}
	}
	return out
}

func pick(values []float64, at []int) []float64 {
	out := make([]float64, len(at))
	for i, k := range at {
		out[i] = values[k]
	}
	return out
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
	f, err := os.Open(filepath.Join(r.out, "summary.csv"))
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
	if k.data != "" && len(r.plan.Data) > 0 && k.data != r.plan.Data[0].Name {
		return ""
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
