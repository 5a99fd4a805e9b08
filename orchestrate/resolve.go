package orchestrate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/weights"
)

// Resolved is a plan with everything found that it names: nothing of it is
// left to chance or to the machine.
type Resolved struct {
	// Plan is the plan as it is written to OUT/plan.yaml.
	Plan      *Plan
	Study     Study
	Backend   Backend
	Catalogue Catalogue
	Nets      []*ResolvedNet
	// Data holds a set for each pair of a data entry and a number of classes;
	// see dataFor.
	Data   []*ResolvedData
	Points []Params
	// labels name the files of the grid by their content, by the text that named
	// them; files has them opened, by label; checked are those that fit the data.
	labels  map[string]string
	files   map[string]givenFile
	checked map[string]bool
	// faults are those of files that do not fit; targets tells of maps of other classes.
	faults  map[string]error
	targets []*otherTarget
	means   *dataMeans
	// generator is that of imputers that want one; nil: none does.
	generator *openedGenerator
	// Warnings are what the user should know but need not mend.
	Warnings []string
}

// ResolvedNet is a net with its weights' facts.
type ResolvedNet struct {
	Index  int
	Name   string
	Info   NetInfo
	Preset dataset.Preset
	// Path is the weights file, Hash the SHA-256 of its content.
	Path, Hash string
	// Features is the number of columns for nets on tables, else 0.
	Features int
	// File is the net itself where it comes from a file; else nil.
	File *NetFile
	// ClassNames are those of a net file; nil where it has none.
	ClassNames []string
}

// ResolvedData is an opened part of a data set.
type ResolvedData struct {
	Index   int
	Name    string
	Classes int
	Set     *dataset.Set
}

// Precisions lists the number formats that nets can run in.
func Precisions() []string { return []string{"f32", "tf32", "bf16", "f64"} }

// Close closes the data and the files that the grid names.
func (r *Resolved) Close() error {
	var first error
	for _, d := range r.Data {
		if err := d.Set.Close(); err != nil && first == nil {
			first = err
		}
	}
	for _, f := range r.files {
		if err := f.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// dataFor is the set of data entry i as net sees it.
func (r *Resolved) dataFor(net *ResolvedNet, i int) *ResolvedData {
	for _, d := range r.Data {
		if d.Index == i && d.Classes == net.Info.Classes {
			return d
		}
	}
	return nil
}

// applyPrior takes from the plan that OUT has what this one leaves open, so
// that a run goes on as it began whatever machine it goes on with.
func applyPrior(p, prior *Plan) *Plan {
	out := *p
	if prior == nil {
		return &out
	}
	if out.Device == "" {
		out.Device = prior.Device
	}
	if out.Batch == 0 {
		out.Batch = prior.Batch
	}
	if out.Threads == 0 {
		out.Threads = prior.Threads
	}
	return &out
}

// resolver fills a Resolved step by step.
type resolver struct {
	*Resolved
	tuning   Tuning
	progress func(Event)
}

// resolve finds everything that the plan names. b is open on the plan's
// device. The plan that comes out is complete.
func resolve(ctx context.Context, p *Plan, study Study, b Backend, tuning Tuning, progress func(Event)) (*Resolved, error) {
	plan := *p
	if plan.Scale != nil {
		plan.scales = sortedKeys(plan.Scale)
	}
	plan.Version, plan.Scale, plan.Code = PlanVersion, nil, study.Code
	plan.Nets, plan.Data, plan.LeftOut = slices.Clone(p.Nets), slices.Clone(p.Data), slices.Clone(p.LeftOut)
	plan.Device = b.Device()
	if plan.Precision == "" {
		plan.Precision = "f32"
	}
	if plan.Threads == 0 {
		plan.Threads = runtime.NumCPU()
	}
	if plan.Seeds == nil && study.Seeded {
		plan.Seeds = []uint64{0}
	}
	if !study.Seeded {
		plan.Seeds = nil
	}
	r := resolver{&Resolved{Plan: &plan, Study: study, Backend: b, means: &dataMeans{of: map[string][]float64{}}}, tuning, progress}
	if err := r.all(ctx); err != nil {
		r.Close()
		return nil, err
	}
	return r.Resolved, nil
}

func (r *resolver) all(ctx context.Context) error {
	var err error
	if r.Catalogue, err = r.Backend.Catalogue(ctx); err != nil {
		return err
	}
	if err := r.openFiles(ctx); err != nil {
		return err
	}
	if r.Points, err = r.Study.points(r.Resolved); err != nil {
		return err
	}
	if err := r.openGenerator(ctx); err != nil {
		return err
	}
	if err := r.names(); err != nil {
		return err
	}
	if err := r.place(); err != nil {
		return err
	}
	row, err := r.row(ctx)
	if err != nil {
		return err
	}
	if err := r.nets(ctx, row); err != nil {
		return err
	}
	for i := range r.Plan.Data {
		if r.Plan.Data[i].Absent != "" {
			continue
		}
		if err := r.data(ctx, i); err != nil {
			return err
		}
	}
	if err := r.checkItems(); err != nil {
		return err
	}
	r.releaseGenerator()
	if r.Plan.Batch == 0 {
		n, err := r.batch(ctx)
		if err != nil {
			return err
		}
		r.Plan.Batch = Batch(n)
	}
	r.grid()
	return nil
}

// names gives every net and data entry a name that stands for it alone.
func (r *resolver) names() error {
	seen := map[string]bool{}
	for i, n := range r.Plan.Nets {
		name := n.name()
		if seen[name] {
			return r.Plan.errorf(fmt.Sprintf("$.nets[%d]", i), "two nets are called %s: give one of them a name (name: ...)", name)
		}
		seen[name] = true
	}
	clear(seen)
	for i, d := range r.Plan.Data {
		name := d.EntryName()
		if seen[name] {
			return r.Plan.errorf(fmt.Sprintf("$.data[%d]", i), "two data entries are called %s: give one of them a name (name: ...)", name)
		}
		seen[name] = true
	}
	return nil
}

func orElse(s, otherwise string) string {
	if s != "" {
		return s
	}
	return otherwise
}

// EntryName is what the data is called in tables: its name, or the path's last
// part with the split.
func (d DataPlan) EntryName() string {
	d.Path = strings.TrimPrefix(d.Path, placePrefix)
	return orElse(d.Name, dataName(d))
}

func dataName(d DataPlan) string {
	name := filepath.Base(d.Path)
	if d.Split != "" {
		name += ":" + d.Split
	}
	return name
}

// row is the shape of a row of the first data, for nets on tables, with variants,
// and in files; nil if no net of the plan is one, and for images.
func (r *resolver) row(ctx context.Context) ([]int, error) {
	tables := r.Plan.anyFile()
	for i, n := range r.Plan.Nets {
		if isNetFile(n.Net) {
			continue
		}
		e, err := findEntry("net", n.Net, r.Catalogue.Nets)
		if err != nil {
			return nil, r.Plan.errorf(netPath(i, "net"), "%w", err)
		}
		tables = tables || len(e.Input) == 1 || r.Catalogue.hasVariants(e)
	}
	if !tables {
		return nil, nil
	}
	first := slices.IndexFunc(r.Plan.Data, func(d DataPlan) bool { return d.Absent == "" })
	d, at := r.Plan.Data[first], fmt.Sprintf("$.data[%d]", first)
	set, err := dataset.Open(ctx, d.Path, dataset.Options{Split: d.Split, Labels: d.Labels, Limit: 1})
	if err != nil {
		return nil, r.Plan.errorf(at, "%w", err)
	}
	defer set.Close()
	if set.Kind == dataset.Images || set.Len() == 0 {
		return nil, nil
	}
	_, shape, err := set.Values(0)
	if err != nil {
		return nil, r.Plan.errorf(at, "%w", err)
	}
	return shape, nil
}

// nets resolves the nets; in an optional plan without those whose weights are
// not there.
func (r *resolver) nets(ctx context.Context, row []int) error {
	var missing []string
	for i := range r.Plan.Nets {
		n := &r.Plan.Nets[i]
		n.Absent = ""
		err := r.net(ctx, i, row)
		if r.Plan.Optional && errors.Is(err, errAbsent) {
			n.Name, n.Absent = n.name(), reason(err)
			missing = append(missing, n.Absent)
			continue
		}
		if err != nil {
			return err
		}
	}
	if len(r.Nets) == 0 {
		return r.Plan.nothing(missing)
	}
	return nil
}

// reason is the message of what is absent, without its place in the plan.
func reason(err error) string {
	var a absent
	if errors.As(err, &a) {
		return a.Error()
	}
	return err.Error()
}

// netPath is the place of a key of net i in the plan.
func netPath(i int, key string) string { return fmt.Sprintf("$.nets[%d].%s", i, key) }

// net resolves net i: weights found, read, and matched.
func (r *resolver) net(ctx context.Context, i int, row []int) error {
	n := &r.Plan.Nets[i]
	if isNetFile(n.Net) {
		return r.fileNet(ctx, i, row)
	}
	at := fmt.Sprintf("$.nets[%d]", i)
	e, err := findEntry("net", n.Net, r.Catalogue.Nets)
	if err != nil {
		return r.Plan.errorf(at+".net", "%w", err)
	}
	e = r.Catalogue.variant(e, row)
	n.Net = e.ID
	features := 0 // columns, for nets on tables
	if len(e.Input) == 1 && row != nil {
		features = 1
		for _, size := range row {
			features *= size
		}
	}
	path, err := resolveWeights(n.Net, n.Weights, features)
	if err != nil {
		return r.Plan.errorf(at, "%w", err)
	}
	if n.Weights == "" {
		r.warnOfCarried(path)
	}
	out := &ResolvedNet{Index: len(r.Nets), Name: n.name(), Features: features, Path: path}
	sd, err := weights.Open(path)
	if err != nil {
		return r.Plan.errorf(at+".weights", "%w", err)
	}
	_, warnings, err := r.match(ctx, out, n.Net, sd)
	if err != nil {
		return r.Plan.errorf(at+".weights", "%w", err)
	}
	for _, w := range warnings {
		r.Warnings = append(r.Warnings, path+": "+w)
	}
	out.Hash = sd.Hash
	if n.Hash != "" && n.Hash != sd.Hash {
		return r.Plan.errorf(at+".hash", "weights %s have the hash %.12s..., the plan was made with %.12s...", path, sd.Hash, n.Hash)
	}
	if own, ok := metadataPreset(sd); ok && n.Preset.IsZero() {
		n.Preset.Preset = &own
	}
	if out.Preset, err = n.Preset.choose(orElse(publishedPreset(path, n.Net), orElse(out.Info.Preset, "imagenet"))); err != nil {
		return r.Plan.errorf(at+".preset", "%w", err)
	}
	r.Nets = append(r.Nets, out)
	n.Name, n.Weights, n.Hash, n.Classes = out.Name, absolute(path), out.Hash, out.Info.Classes
	n.Preset = PresetChoice{Preset: &out.Preset}
	return nil
}

// warnOfCarried says so where weights that the program carries stand in for
// none on data that they were not trained on.
func (r *resolver) warnOfCarried(path string) {
	for _, e := range weights.Embedded() {
		if e.Path != path {
			continue
		}
		for _, d := range r.Plan.Data {
			if d.Path != e.Data {
				r.Warnings = append(r.Warnings, fmt.Sprintf("no weights given: taking %s, trained on %s, for %s", path, e.Data, d.Path))
			}
		}
	}
}

// match finds out how many classes the weights know and picks the tensors that
// the net then wants.
func (r *Resolved) match(ctx context.Context, n *ResolvedNet, id string, sd *weights.StateDict) (map[string]weights.Tensor, []string, error) {
	own, err := r.Backend.Describe(ctx, id, 0, n.Features)
	if err != nil {
		return nil, nil, err
	}
	classes := own.Classes
	if found, ok := headClasses(own, sd); ok {
		classes = found
	}
	if n.Info = own; classes != own.Classes {
		if n.Info, err = r.Backend.Describe(ctx, id, classes, n.Features); err != nil {
			return nil, nil, err
		}
	}
	state, warnings, err := weights.Match(sd, n.Info.Parameters)
	if err != nil {
		return nil, nil, usage.Errorf("%s does not fit net %s: %w", n.Path, id, err)
	}
	return state, warnings, nil
}

// headClasses looks at the net's own head: its last parameter with a row a class.
func headClasses(own NetInfo, sd *weights.StateDict) (int, bool) {
	for _, p := range slices.Backward(own.Parameters) {
		if len(p.Shape) >= 2 && p.Shape[0] == int64(own.Classes) {
			return weights.HeadClasses(sd, []string{p.Name})
		}
	}
	return weights.Classes(sd)
}

// publishedPreset is the preset of a published file of the net.
func publishedPreset(path, net string) string {
	for _, p := range weights.Published() {
		if p.Net == net && p.File == filepath.Base(path) {
			return p.Preset
		}
	}
	return ""
}

func absolute(path string) string {
	if !dataset.IsFile(path) {
		return path
	}
	if a, err := filepath.Abs(path); err == nil {
		return a
	}
	return path
}

// data opens data entry i once for every number of classes.
func (r *resolver) data(ctx context.Context, i int) error {
	d := &r.Plan.Data[i]
	at := fmt.Sprintf("$.data[%d]", i)
	hash := sha256.New()
	for _, n := range r.Nets {
		if r.dataFor(n, i) != nil {
			continue
		}
		set, err := dataset.Open(ctx, d.Path, dataset.Options{Split: d.Split, Labels: d.Labels, Limit: d.Limit, Classes: n.Info.Classes})
		if err != nil {
			return r.Plan.errorf(at, "%w", err)
		}
		out := &ResolvedData{Index: i, Name: orElse(d.Name, dataName(*d)), Classes: n.Info.Classes, Set: set}
		r.Data = append(r.Data, out)
		r.Warnings = append(r.Warnings, set.Warnings...)
		if err := set.CheckClasses(n.Info.Classes); err != nil {
			return r.Plan.errorf(at, "%w", err)
		}
		if w := otherClasses(d.Path, set, n); w != "" && r.labelled() {
			r.warnOnce(w)
		}
		h, err := r.hash(ctx, out)
		if err != nil {
			return err
		}
		io.WriteString(hash, h)
		d.Items = set.Len()
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	if d.Hash != "" && d.Hash != sum {
		return r.Plan.errorf(at+".hash", "data %s is not what the plan was made with: its files, labels or limit differ", d.Path)
	}
	first := r.dataFor(r.Nets[0], i)
	d.Hash, d.Name, d.Path, d.Split = sum, first.Name, absolute(d.Path), first.Set.Split
	if d.Labels != "" {
		d.Labels = absolute(d.Labels)
	}
	return nil
}

// labelled says whether the labels of the data are part of the results.
func (r *resolver) labelled() bool {
	return r.Study.ID == "eval" || slices.ContainsFunc(r.Points, func(p Params) bool { return p.Text("target") == "label" })
}

// otherClasses says why the labels of data may not be the net's classes: folders
// are numbered in name order, the net's classes as it was trained. "" where
// nothing speaks against it.
func otherClasses(path string, set *dataset.Set, n *ResolvedNet) string {
	names, own := set.ClassNames, n.classNames()
	switch {
	case !set.HasLabels || len(names) == 0 || slices.Equal(names, own):
		return ""
	case len(names) != n.Info.Classes:
		return fmt.Sprintf("%s has %d classes (%s), net %s has %d: its classes are numbered 0..%d in that order, which is right only if the net's first ones are the same; "+
			"labels.txt beside the images (--labels FILE) gives other numbers", path, len(names), fewNames(names), n.Name, n.Info.Classes, len(names)-1)
	case sameNames(names, own):
		return fmt.Sprintf("%s has the classes of net %s in another order (%s; the net: %s): give their numbers in labels.txt beside the images (--labels FILE)", path, n.Name, fewNames(names), fewNames(own))
	}
	return ""
}

// sameNames says that two lists hold the same names, in whatever order.
func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// fewNames are the first names of a list.
func fewNames(names []string) string {
	const few = 3
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:few], ", ") + ", ..."
}

// hash reads the data through once: what the units' ids and the plan's rest on.
func (r *resolver) hash(ctx context.Context, d *ResolvedData) (string, error) {
	total := d.Set.Len()
	for i := range total {
		if i%64 == 0 {
			r.progress(Event{Kind: Step, Stage: "reading " + d.Name, Done: i, Total: total})
		}
		if _, err := d.Set.ItemHash(ctx, i); err != nil {
			return "", err
		}
	}
	return d.Set.ContentHash(ctx)
}

// checkItems checks that nets, data and points go together. Points that mean
// nothing for any of them are left out where others remain.
func (r *resolver) checkItems() error {
	var left omissions
	var bad []*badMaps
	fitting := make([]bool, len(r.Points))
	for _, n := range r.Nets {
		for i := range r.Plan.Data {
			d := r.dataFor(n, i)
			if d == nil {
				continue // absent
			}
			if err := fits(n, d); err != nil {
				return err
			}
			for k, point := range r.Points {
				if err := checkTarget(point.Text("target"), n, d); err != nil {
					return err
				}
				_, err := r.fit(n, d, point)
				var skip *inapplicable
				var maps *badMaps
				switch {
				case errors.As(err, &skip):
					left.add(n, d, point, err)
				case errors.As(err, &maps):
					bad = append(bad, maps)
				case err != nil:
					return r.Plan.errorf("$.grid", "%w", err)
				default:
					fitting[k] = true
				}
			}
		}
	}
	if bad != nil {
		return r.Plan.errorf("$.grid", "%w", joinBadMaps(bad))
	}
	r.warnTargets()
	if left.parts == nil {
		return nil
	}
	for _, l := range left.list(r.Points) {
		if !slices.ContainsFunc(r.Plan.LeftOut, l.same) {
			r.Plan.LeftOut = append(r.Plan.LeftOut, l)
		}
	}
	var points []Params
	for k, point := range r.Points {
		if fitting[k] {
			points = append(points, point)
		}
	}
	if len(points) == 0 {
		return r.Plan.errorf("$.grid", "%w", left.first)
	}
	r.Points = points
	r.Warnings = append(r.Warnings, left.String())
	return nil
}

// warnOnce adds a warning that is not there yet.
func (r *Resolved) warnOnce(message string) {
	if !slices.Contains(r.Warnings, message) {
		r.Warnings = append(r.Warnings, message)
	}
}

// fit is the study's Fit, if it has one.
func (r *Resolved) fit(n *ResolvedNet, d *ResolvedData, point Params) (Params, error) {
	if r.Study.Fit == nil {
		return point, nil
	}
	return r.Study.Fit(r, n, d, point)
}

// grid writes the points back into the plan, defaults included.
func (r *resolver) grid() {
	if len(r.Plan.Grids) > 0 {
		r.Plan.Grid, r.Plan.Grids = nil, nil
		for _, point := range r.Points {
			r.Plan.Grids = append(r.Plan.Grids, point)
		}
		return
	}
	grid := map[string]any{}
	for _, d := range r.Study.Parameters {
		var values []any
		for _, point := range r.Points {
			if v, ok := point[d.Name]; ok && !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
		switch len(values) {
		case 0:
		case 1:
			grid[d.Name] = values[0]
		default:
			grid[d.Name] = values
		}
	}
	r.Plan.Grid = grid
}

// imageNetClasses is how many classes nets know that were trained on ImageNet.
const imageNetClasses = 1000

// ClassNames names the classes of the first data as the first net counts them,
// nil where they are unknown.
func (r *Resolved) ClassNames() []string {
	names, own := r.Data[0].Set.ClassNames, r.Nets[0].classNames()
	if names != nil && (own == nil || len(names) == r.Nets[0].Info.Classes) {
		return names
	}
	return own
}

// classNames names the net's classes, nil where they are unknown.
func (n *ResolvedNet) classNames() []string {
	switch {
	case len(n.ClassNames) == n.Info.Classes:
		return n.ClassNames
	case n.Info.Classes == imageNetClasses:
		return dataset.ImageNetNames()
	}
	return nil
}

// Resolve finds everything that a plan names, on an open device, and runs
// nothing but what measures a batch size where the plan leaves it open. The
// caller closes what it returns.
func Resolve(ctx context.Context, p *Plan, b Backend) (*Resolved, error) {
	study, err := checkStatic(p)
	if err != nil {
		return nil, err
	}
	return resolve(ctx, p, study, b, nil, func(Event) {})
}
