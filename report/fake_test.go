package report

import (
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg" // photographs
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	xdraw "golang.org/x/image/draw"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/rng"
)

// keep makes tests leave their reports in a folder, to be looked at:
// go test ./report -report.keep DIR.
var keep = flag.String("report.keep", "", "folder for the reports that tests make")

// fakeRun is a run folder made by hand.
type fakeRun struct {
	t   *testing.T
	out string
	w   *record.Writer
	idx map[string]string
}

func newFakeRun(t *testing.T) *fakeRun {
	t.Helper()
	out := t.TempDir()
	if *keep != "" {
		out = filepath.Join(*keep, t.Name())
		require.NoError(t, os.RemoveAll(out))
		require.NoError(t, os.MkdirAll(out, 0o777))
	}
	w, err := record.Open(filepath.Join(out, record.FileName), nil)
	require.NoError(t, err)
	return &fakeRun{t, out, w, map[string]string{}}
}

func (f *fakeRun) file(name, content string) {
	f.t.Helper()
	path := filepath.Join(f.out, name)
	require.NoError(f.t, os.MkdirAll(filepath.Dir(path), 0o777))
	require.NoError(f.t, os.WriteFile(path, []byte(content), 0o666))
}

func (f *fakeRun) add(records ...record.Record) {
	f.t.Helper()
	require.NoError(f.t, f.w.Append(records...))
}

// picture adds a view of an image.
func (f *fakeRun) picture(id string, img image.Image) {
	f.t.Helper()
	name := fmt.Sprintf("%04d.png", len(f.idx))
	require.NoError(f.t, os.MkdirAll(filepath.Join(f.out, "images"), 0o777))
	w, err := os.Create(filepath.Join(f.out, "images", name))
	require.NoError(f.t, err)
	require.NoError(f.t, png.Encode(w, img))
	require.NoError(f.t, w.Close())
	f.idx[id] = name
	text, err := json.Marshal(map[string]any{"images": f.idx})
	require.NoError(f.t, err)
	f.file("images/index.json", string(text))
}

// write makes the report and returns its text.
func (f *fakeRun) write(opt Options) string {
	f.t.Helper()
	require.NoError(f.t, f.w.Close())
	path, err := Write(f.t.Context(), f.out, opt)
	require.NoError(f.t, err)
	require.Equal(f.t, filepath.Join(f.out, "report.html"), path)
	text, err := os.ReadFile(path)
	require.NoError(f.t, err)
	return string(text)
}

const fakePlan = `version: 1
study: trace
title: "%s"
nets:
- net: efficientnet-lite0
  name: efficientnet-lite0
  weights: /home/someone/.cache/assay/weights/efficientnet-lite0-57934424.pth
  preset:
    id: tf-lite
    resize: shorter
    height: 256
    cropHeight: 224
    mean: [0.4980392156862745, 0.4980392156862745, 0.4980392156862745]
    std: [0.5019607843137255, 0.5019607843137255, 0.5019607843137255]
data:
- path: embedded:photographs
  name: photographs
  items: 3
grid:
  edge: 7
  objective: le-mo
  reference: zero
  scoreOn: prob
  solver: sa
device: cpu
batch: 8
precision: f32
`

const fakeEnv = `{"device":"cpu","cpu":"Intel Xeon, 2 cores","threads":2,"libtorch":{"version":"2.15.0","abi":"2.15"},"assay":"0.1.0","os":"linux/amd64"}`

// photograph is an embedded one, squashed to side x side; a gradient where the
// file is not there.
func photograph(t *testing.T, name string, side int) image.Image {
	t.Helper()
	out := image.NewNRGBA(image.Rect(0, 0, side, side))
	f, err := os.Open(filepath.Join("..", "testdata", "embedded", name))
	if err != nil {
		for y := range side {
			for x := range side {
				out.SetNRGBA(x, y, color.NRGBA{uint8(255 * x / side), uint8(255 * y / side), 96, 255})
			}
		}
		return out
	}
	defer f.Close()
	img, _, err := image.Decode(f)
	require.NoError(t, err)
	b := img.Bounds()
	short := min(b.Dx(), b.Dy())
	crop := image.Rect(b.Min.X+(b.Dx()-short)/2, b.Min.Y+(b.Dy()-short)/2, b.Min.X+(b.Dx()+short)/2, b.Min.Y+(b.Dy()+short)/2)
	xdraw.CatmullRom.Scale(out, out.Bounds(), img, crop, xdraw.Src, nil)
	return out
}

// fakeTrace is a search's result such as nets give: patches near (cx,cy) in
// 0..1 matter, the class goes when too few of them are left.
func fakeTrace(image string, edge int, cx, cy, width, sure float64, seed uint64) *record.Trace {
	t := edge * edge
	noise := rng.New(seed, "fake", image)
	weight := make([]float64, t)
	total := 0.0
	for f := range weight {
		x, y := (float64(f%edge)+.5)/float64(edge)-cx, (float64(f/edge)+.5)/float64(edge)-cy
		weight[f] = math.Exp(-(x*x+y*y)/(2*width*width)) + .25*noise.Float64(uint64(f), 0) - .05
		total += weight[f]
	}
	tau := make([]int, t)
	for i := range tau {
		tau[i] = i
	}
	slices.SortStableFunc(tau, func(a, b int) int {
		if weight[a] < weight[b] {
			return -1
		}
		return 1
	})
	logit := func(gone []int, salt uint64) float64 {
		left := total
		for _, f := range gone {
			left -= weight[f]
		}
		base := math.Log(sure / (1 - sure))
		return base - 7*(1-left/total)*(1-left/total) + 1.1*(1-left/total) + .5*(noise.Float64(uint64(len(gone)), salt)-.5)
	}
	r := &record.Trace{Objective: "le-mo", ScoreOn: "prob", Solver: "sa", Features: t, EdgePatches: edge, Trajectory: tau}
	for k := range t + 1 {
		le, mo := logit(tau[:k], 1), logit(tau[t-k:], 2)
		if k > 0 && k < t {
			le += 1.2
		} else {
			mo = le
		}
		for _, c := range []struct {
			l           float64
			prob, logit *[]float64
		}{{le, &r.Curves.Prob.Le, &r.Curves.Logit.Le}, {mo, &r.Curves.Prob.Mo, &r.Curves.Logit.Mo}} {
			*c.prob = append(*c.prob, 1/(1+math.Exp(-c.l)))
			*c.logit = append(*c.logit, c.l)
		}
	}
	sum := func(v []float64) (s float64) {
		for _, x := range v {
			s += x
		}
		return s
	}
	r.Sums = record.Sums{Prob: record.LeMo{Le: sum(r.Curves.Prob.Le), Mo: sum(r.Curves.Prob.Mo)},
		Logit: record.LeMo{Le: sum(r.Curves.Logit.Le), Mo: sum(r.Curves.Logit.Mo)}}
	r.Value = r.Sums.Prob.Le - r.Sums.Prob.Mo
	best := r.Value * .35
	for i := 0; i <= 5000; i += 20 {
		f := 1 - math.Exp(-float64(i)/900)
		current := r.Value*(.35+.65*f) - 3*(1-f)*noise.Float64(uint64(i), 3) - .2
		best = max(best, current)
		if i == 5000 {
			best = r.Value
		}
		r.History = append(r.History, record.HistoryPoint{Iteration: i, Current: current, Best: best})
	}
	r.Accepted = 1340
	last := r.Value - .13
	r.Last = &last
	return r
}

func fakeRecord(id, image string, class, target int, t *record.Trace) record.Record {
	return record.Record{ID: id, Study: "trace", Net: "efficientnet-lite0", Image: image, Class: &class, Target: target, Trace: t,
		Params: map[string]any{"edge": 7, "objective": "le-mo", "reference": "zero", "scoreOn": "prob", "solver": "sa", "schedule": "paper",
			"start": "random", "neighbourhood": "complete", "target": "predicted", "iterations": 5000, "t0": .1, "eta": .999},
		Prediction: &record.Prediction{Classes: []int{target, target + 3, 285, 340, 728}, Probabilities: []float64{.384, .201, .095, .022, .0003}},
		Cost:       record.Cost{Seconds: 61.8, Evaluations: 166541, Forwards: 41210, StartForwards: 100}}
}

func imagenetName(t *testing.T) func(string, int) string {
	text, err := os.ReadFile(filepath.Join("..", "testdata", "embedded", "imagenet-classes.txt"))
	if err != nil {
		return nil
	}
	names := slices.Collect(func(yield func(string) bool) {
		for line := range bytesLines(text) {
			if !yield(line) {
				return
			}
		}
	})
	return func(_ string, class int) string {
		if class < 0 || class >= len(names) {
			return ""
		}
		return names[class]
	}
}

func bytesLines(text []byte) func(func(string) bool) {
	return func(yield func(string) bool) {
		start := 0
		for i, c := range text {
			if c == '\n' {
				if !yield(string(text[start:i])) {
					return
				}
				start = i + 1
			}
		}
	}
}

// demo is a run such as the demonstration leaves.
func demo(t *testing.T) *fakeRun {
	f := newFakeRun(t)
	f.file("plan.yaml", fmt.Sprintf(fakePlan, ""))
	f.file("env.json", fakeEnv)
	for i, p := range []struct {
		name          string
		class, target int
		cx, cy, w, p  float64
	}{{"chelsea.png", 282, 282, .5, .42, .22, .38}, {"coffee.png", 967, 967, .55, .5, .2, .96}, {"rocket.jpg", 744, 657, .5, .45, .16, .61}} {
		f.picture(p.name, photograph(t, p.name, 224))
		r := fakeRecord(fmt.Sprint("id", i), p.name, p.class, p.target, fakeTrace(p.name, 7, p.cx, p.cy, p.w, p.p, 0))
		r.Prediction.Probabilities[0] = p.p
		r.Cost.Seconds += 7 * float64(i)
		r.Cost.Forwards += int64(811 * i)
		f.add(r)
	}
	return f
}
