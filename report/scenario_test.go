package report

import (
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
)

const evil = `<script>alert("1")</script>&'<img src=x onerror=alert(2)>.png`

func TestEverythingFromOutsideIsEscaped(t *testing.T) {
	f := newFakeRun(t)
	f.file("plan.yaml", strings.Replace(fmt.Sprintf(fakePlan, "x"), `title: "x"`, `title: '`+strings.ReplaceAll(evil, "'", "''")+`'`, 1)+"# "+evil+"\n")
	env, err := json.Marshal(map[string]string{evil: evil})
	require.NoError(t, err)
	f.file("env.json", string(env))
	rec := fakeRecord("a", evil, 1, 2, fakeTrace("a", 7, .5, .5, .2, .9, 0))
	rec.Net, rec.Warnings = evil, []string{evil}
	rec.Params["reference"], rec.Params[evil] = evil, evil
	f.picture(evil, photograph(t, "coffee.png", 224))
	other := fakeRecord("b", "b", 1, 2, fakeTrace("b", 7, .5, .5, .2, .9, 0))
	f.add(rec, other, record.Failure(fakeRecord("c", evil, 0, 0, nil), evil))
	f.file("summary.csv", "net,metric,mean\n\""+strings.ReplaceAll(evil, `"`, `""`)+"\",value,1\nb,value,2\n")
	text := f.write(Options{ClassName: func(string, int) string { return evil }})
	require.Equal(t, 1, strings.Count(text, "<script>"))
	require.NotContains(t, text, "alert(1)")
	require.NotContains(t, text, "<img src=x")
	page := parse(t, text)
	require.Contains(t, page.one(t, "h1").text, evil)
	require.Contains(t, page.one(t, "#image-1").text, evil)
}

func TestManySettings(t *testing.T) {
	f := newFakeRun(t)
	f.file("plan.yaml", strings.Replace(fmt.Sprintf(fakePlan, "Two searches on two networks"), "data:", "- net: resnet18\n  name: resnet18\n  preset: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}\ndata:", 1))
	f.file("env.json", fakeEnv)
	for i, name := range []string{"chelsea.png", "coffee.png", "rocket.jpg"} {
		f.picture(name, photograph(t, name, 224))
		for j, net := range []string{"resnet18", "efficientnet-lite0"} {
			for k, ref := range []string{"zero", "blur(kernel=31,sigma=56)"} {
				for seed := range uint64(2) {
					rec := fakeRecord(fmt.Sprint(i, j, k, seed), name, 282, 282, fakeTrace(name, 7, .5, .45, .2, .5+.2*float64(j), seed))
					rec.Net, rec.Seed = net, seed
					rec.Params["reference"] = ref
					f.add(rec)
				}
			}
		}
	}
	f.file("summary.csv", "net,reference,metric,mean,lo,hi,n,reference,referenceSpread,reading\nresnet18,zero,value,24.25,20,29,3,31.69,1.1,differs\nefficientnet-lite0,zero,value,24.25,20,29,3,24.2,,agrees\n")
	page := parse(t, f.write(Options{ClassName: imagenetName(t)}))
	require.Len(t, page.all("figure.mean"), 4)
	rows := page.one(t, "table.groups").all("tr")[1:]
	require.Len(t, rows, 4)
	// Nets in the plan's order, references in name order.
	for i, want := range [][2]string{{"efficientnet-lite0", "blur(kernel=31,sigma=56)"}, {"efficientnet-lite0", "zero"}, {"resnet18", "blur(kernel=31,sigma=56)"}, {"resnet18", "zero"}} {
		require.Equal(t, want[0], rows[i].children[0].text)
		require.Equal(t, want[1], rows[i].children[1].text)
		require.Equal(t, "3", rows[i].children[2].text, "two seeds of an image count once")
	}
	require.Len(t, page.all("article.card"), 3)
	require.Len(t, page.all("section.result"), 24)
	require.Len(t, page.one(t, "table.images").all("tr"), 25)
	require.Contains(t, page.one(t, "#summary").text, "agrees")
}

// Values of the mean curve are means over images of means over seeds.
func TestMeanCurve(t *testing.T) {
	f := newFakeRun(t)
	simple := func(id, img string, seed uint64, le, mo []float64) {
		tr := &record.Trace{Objective: "le", ScoreOn: "prob", Solver: "greedy", Features: 4, EdgePatches: 2, Trajectory: []int{2, 0, 3, 1}}
		tr.Curves = record.Curves{Prob: record.Curve{Le: le, Mo: mo}, Logit: record.Curve{Le: le, Mo: mo}}
		rec := fakeRecord(id, img, 0, 0, tr)
		rec.Seed = seed
		f.add(rec)
	}
	zero := []float64{1, 0, 0, 0, 0}
	simple("1", "a", 0, []float64{1, .8, .6, .4, 0}, zero)
	simple("2", "a", 1, []float64{1, .6, .6, .4, 0}, zero)
	simple("3", "b", 0, []float64{0, .1, .2, .4, 0}, zero)
	page := parse(t, f.write(Options{}))
	xs, ys := page.one(t, "figure.mean").curve1(t, "le")
	require.InDeltaSlice(t, []float64{0, .25, .5, .75, 1}, xs, plotPrecision)
	require.InDeltaSlice(t, []float64{.5, .4, .4, .4, 0}, ys, plotPrecision)
}

// A bound has curves and numbers and no order: no heat map, no strips, and
// nothing of it is called damaged. One with a trajectory is.
func TestBounds(t *testing.T) {
	f := newFakeRun(t)
	f.file("plan.yaml", fmt.Sprintf(fakePlan, "A search and its bound"))
	f.picture("chelsea.png", photograph(t, "chelsea.png", 224))
	f.add(fakeRecord("1", "chelsea.png", 282, 282, fakeTrace("chelsea.png", 4, .5, .45, .2, .5, 0)))
	for i, edge := range []int{4, 0} {
		bound := fakeTrace("chelsea.png", 4, .5, .45, .2, .6, 0)
		bound.Solver, bound.Bound, bound.Trajectory, bound.History, bound.Last, bound.EdgePatches = "complete-search", true, nil, nil, nil, edge
		f.add(fakeRecord(fmt.Sprint("bound", i), "chelsea.png", 282, 282, bound))
	}
	wrong := fakeTrace("chelsea.png", 4, .5, .45, .2, .6, 0)
	wrong.Bound = true
	f.add(fakeRecord("wrong", "chelsea.png", 282, 282, wrong))
	text := f.write(Options{})
	page := parse(t, text)
	results := page.all("section.result")
	require.Len(t, results, 3)
	require.Len(t, page.all("figure.heat"), 1)
	require.Len(t, page.all("div.strip"), 2)
	bounds := 0
	for _, r := range results {
		r.one(t, "div.scrub")
		if len(r.all("figure.heat")) == 1 {
			require.Contains(t, r.text, "move to delete patches")
			continue
		}
		bounds++
		require.Contains(t, r.text, "There is no order to draw")
		require.Contains(t, r.text, "move along the curves")
	}
	require.Equal(t, 2, bounds)
	require.Contains(t, text, "trajectory has 16 features, want 0")
}

func (n *node) curve1(t *testing.T, class string) (xs, ys []float64) {
	return n.one(t, "svg.plot").curve(t, class)
}

func TestFailuresAndRepeatedRecords(t *testing.T) {
	f := newFakeRun(t)
	good := fakeTrace("a", 7, .5, .5, .2, .9, 0)
	first := fakeRecord("a", "a.png", 1, 1, good)
	f.add(record.Failure(first, "out of memory"), first) // run again: right now
	f.add(record.Failure(fakeRecord("b", "b.png", 1, 1, nil), "the net returned NaN"))
	short := *good
	short.Curves.Prob.Le = short.Curves.Prob.Le[:10]
	f.add(fakeRecord("c", "c.png", 1, 1, &short))
	twice := *good
	twice.Trajectory = append([]int{good.Trajectory[1]}, good.Trajectory[1:]...)
	f.add(fakeRecord("d", "d.png", 1, 1, &twice))
	odd := *good
	odd.EdgePatches = 6
	f.add(fakeRecord("e", "e.png", 1, 1, &odd))
	text := f.write(Options{})
	require.NoError(t, appendTo(filepath.Join(f.out, record.FileName), `{"id":"torn","ima`))
	_, err := Write(t.Context(), f.out, Options{})
	require.NoError(t, err)
	again, err := os.ReadFile(filepath.Join(f.out, FileName))
	require.NoError(t, err)
	require.Equal(t, text, string(again), "a torn line is no record")

	page := parse(t, text)
	require.Len(t, page.all("section.result"), 1)
	failures := page.all("tr.failure")
	require.Len(t, failures, 4)
	require.Contains(t, failures[0].text, "the net returned NaN")
	require.Contains(t, failures[1].text, "10 points, want 50")
	require.Contains(t, failures[2].text, "twice")
	require.Contains(t, failures[3].text, "want 36 for 6 x 6")
	require.NotContains(t, page.text, "out of memory")
	require.Contains(t, page.text, "4 units failed")
	require.Contains(t, page.one(t, "#image-1").text, "kept no picture")
}

func appendTo(path, text string) error {
	w, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer w.Close()
	_, err = w.WriteString(text)
	return err
}

func TestEmptyRuns(t *testing.T) {
	f := newFakeRun(t)
	f.file("plan.yaml", fmt.Sprintf(fakePlan, "A run"))
	page := parse(t, f.write(Options{}))
	require.Contains(t, page.text, "no results yet")
	require.Empty(t, page.all("article.card"))

	dir := t.TempDir()
	_, err := Write(t.Context(), dir, Options{})
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "neither plan.yaml nor results.jsonl")
	_, err = Write(t.Context(), filepath.Join(dir, "none"), Options{})
	require.ErrorIs(t, err, usage.Err)
	_, err = Write(t.Context(), dir, Options{Alpha: math.NaN()})
	require.ErrorIs(t, err, usage.Err)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestAllFailed(t *testing.T) {
	f := newFakeRun(t)
	f.add(record.Failure(fakeRecord("b", "b.png", 1, 1, nil), "the net returned NaN"))
	page := parse(t, f.write(Options{}))
	require.Contains(t, page.text, "all failed")
	require.Len(t, page.all("tr.failure"), 1)
}

func TestUnreadablePartsAreNamed(t *testing.T) {
	f := demo(t)
	f.file("env.json", "{")
	f.file("plan.yaml", "study: [\n")
	f.file("summary.csv", "a,b\n1\n")
	f.file("images/0000.png", "no picture")
	page := parse(t, f.write(Options{}))
	notes := ""
	for _, n := range page.all("li.note") {
		notes += n.text + "\n"
	}
	for _, want := range []string{"env.json", "plan.yaml", "summary.csv", "images/0000.png"} {
		require.Contains(t, notes, want)
	}
	require.Len(t, page.all("section.result"), 3)
}

func TestDamagedRecordsAreAnError(t *testing.T) {
	f := demo(t)
	require.NoError(t, f.w.Close())
	require.NoError(t, appendTo(filepath.Join(f.out, record.FileName), "broken\n{}\n"))
	_, err := Write(t.Context(), f.out, Options{})
	require.ErrorContains(t, err, record.FileName+":4")
	_, err = os.Stat(filepath.Join(f.out, FileName))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestCancelled(t *testing.T) {
	f := demo(t)
	require.NoError(t, f.w.Close())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Write(ctx, f.out, Options{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestImagesFromElsewhereAreNotRead(t *testing.T) {
	f := demo(t)
	f.file("secret.png", "x")
	f.file("images/index.json", `{"images":{"chelsea.png":"../secret.png","coffee.png":"/etc/hostname"}}`)
	page := parse(t, f.write(Options{}))
	require.Empty(t, page.all("figure.photo"))
	require.Empty(t, page.all("li.note"))
}

func TestIndexWithoutWrapper(t *testing.T) {
	f := demo(t)
	f.file("images/index.json", `{"coffee.png":"0001.png","images":"0002.png"}`)
	page := parse(t, f.write(Options{}))
	require.Len(t, page.all("figure.photo"), 1)
}

func TestTwentyFourImagesAreSmall(t *testing.T) {
	f := newFakeRun(t)
	noise := rng.New(0, "noise", "")
	for i := range 30 {
		img := photograph(t, []string{"chelsea.png", "coffee.png", "rocket.jpg"}[i%3], 224).(*image.NRGBA)
		for k := range img.Pix { // as rough as photographs get
			if k%4 != 3 {
				img.Pix[k] = uint8(min(max(float64(img.Pix[k])+40*(noise.Float64(uint64(i), uint64(k))-.5), 0), 255))
			}
		}
		id := fmt.Sprintf("n%d/%d.png", i%7, i)
		f.picture(id, img)
		f.add(fakeRecord(fmt.Sprint(i), id, 1, 1, fakeTrace(id, 14, .3+.01*float64(i), .5, .2, .9, 0)))
	}
	text := f.write(Options{})
	require.Len(t, parse(t, text).all("article.card"), 24)
	require.Less(t, len(text), 4<<20)
}

func TestTables(t *testing.T) {
	f := newFakeRun(t)
	f.file("plan.yaml", "version: 1\nstudy: trace\ntitle: Breast cancer\n")
	for i := range 4 {
		tr := fakeTrace(fmt.Sprint(i), 4, .5, .5, .3, .97, 0)
		tr.EdgePatches = 0
		rec := fakeRecord(fmt.Sprint(i), fmt.Sprintf("%06d", i), 1, 1, tr)
		rec.Net = "mlp"
		delete(rec.Params, "edge")
		rec.Prediction = &record.Prediction{Classes: []int{1, 0}, Probabilities: []float64{.97, .03}}
		f.add(rec)
	}
	text := f.write(Options{Images: 3, FeatureName: func(_ string, i int) string { return fmt.Sprintf("mean radius %d", i) },
		ClassName: func(_ string, c int) string { return []string{"malignant", "benign"}[c] }})
	page := parse(t, text)
	bars := page.all("figure.order")
	require.Len(t, bars, 3)
	items := bars[0].all("li")
	require.Len(t, items, 16)
	require.Contains(t, items[0].text, "rank 16")
	require.Contains(t, items[0].one(t, "span.track").children[0].attr["style"], "width:100%")
	require.Contains(t, items[7].one(t, "span.track").children[0].attr["style"], "width:31.64%") // (9/16)^2
	require.Empty(t, page.all("figure.heat"))
	require.Contains(t, text, "16 columns")
}

func TestEval(t *testing.T) {
	f := newFakeRun(t)
	f.file("plan.yaml", "version: 1\nstudy: eval\nnets: [{net: cifar-resnet20, name: cifar-resnet20}]\n")
	names := []string{"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}
	noise := rng.New(3, "eval", "")
	right := 0
	for i := range 400 {
		id := fmt.Sprintf("%s/%04d.png", names[i%10], i)
		class := i % 10
		p := .3 + .7*math.Sqrt(noise.Float64(uint64(i), 0))
		said := class
		if noise.Float64(uint64(i), 1) > p*(.8+.02*float64(class)) {
			said = []int{8, 9, 4, 5, 7, 3, 3, 4, 0, 1}[class]
		} else {
			right++
		}
		classes := []int{said}
		for c := range 10 {
			if c != said && len(classes) < 5 {
				classes = append(classes, c)
			}
		}
		rest := (1 - p) / 10
		f.add(record.Record{ID: fmt.Sprint(i), Study: "eval", Net: "cifar-resnet20", Image: id, Class: &class, Target: said,
			Params: map[string]any{"target": "predicted"}, Prediction: &record.Prediction{Classes: classes, Probabilities: []float64{p, rest, rest, rest, rest}}})
		if i < 24 || said != class && p > .9 {
			img := image.NewNRGBA(image.Rect(0, 0, 32, 32))
			for k := range 32 * 32 {
				img.SetNRGBA(k%32, k/32, color.NRGBA{uint8(20 * class), uint8(8 * (k % 32)), uint8(8 * (k / 32)), 255})
			}
			f.picture(id, img)
		}
	}
	f.add(record.Record{ID: "bad", Study: "eval", Net: "cifar-resnet20", Image: "frog/bad.jpg", Error: "truncated JPEG"})
	page := parse(t, f.write(Options{ClassName: func(_ string, c int) string { return names[c] }}))
	row := page.one(t, "table.accuracy").all("tr")[1]
	require.Equal(t, "400", row.children[1].text)
	require.Equal(t, percent(float64(right)/400, 2), row.children[2].text)
	require.Equal(t, "1", row.children[len(row.children)-1].text)
	require.Len(t, page.all("tr.failure"), 1)
	require.Len(t, page.all("article.mistake"), 24)
	require.Len(t, page.one(t, "#classes").all("ol.bars")[0].all("li"), 10)
	sum := 0.0
	for _, g := range page.one(t, "svg.confidence").all("g") {
		sum += g.number(t, "data-right") + g.number(t, "data-wrong")
	}
	require.Equal(t, 400.0, sum)
	first, last := page.all("article.mistake")[0].text, page.all("article.mistake")[23].text
	require.Contains(t, first, "label")
	require.NotEqual(t, first, last)
}

func TestEvalWithoutLabels(t *testing.T) {
	f := newFakeRun(t)
	f.add(record.Record{ID: "1", Study: "eval", Net: "resnet18", Image: "a.jpg", Prediction: &record.Prediction{Classes: []int{3}, Probabilities: []float64{.5}}})
	page := parse(t, f.write(Options{}))
	require.Contains(t, page.text, "no labels")
	require.Empty(t, page.all("#classes"))
}

func TestUnknownStudy(t *testing.T) {
	f := newFakeRun(t)
	f.file("plan.yaml", "version: 1\nstudy: roar\n")
	f.file("summary.csv", "net,method,fraction,metric,mean,lo,hi,n,reference,referenceSpread,reading\nresnet18,gradient,0.1,accuracy,0.712345,0.7,0.72,5,,,\nresnet18,random,0.1,accuracy,0.5,0.4,0.6,5,,,\n")
	f.add(record.Record{ID: "1", Study: "roar", Net: "resnet18"})
	page := parse(t, f.write(Options{}))
	rows := page.one(t, "#summary").all("tr")
	require.Len(t, rows, 3)
	require.Contains(t, rows[1].text, "0.7123")
	require.NotContains(t, rows[0].text, "referenceSpread")
	require.Contains(t, page.one(t, "h1").text, "roar of resnet18")
}

func TestPlots(t *testing.T) {
	f := demo(t)
	f.write(Options{Plots: true})
	for _, name := range []string{"mean-curves.svg", "mean-curves.png", "mean-curves.csv"} {
		info, err := os.Stat(filepath.Join(f.out, PlotsDir, name))
		require.NoError(t, err)
		require.NotZero(t, info.Size())
	}
}

func TestClassNamesOfTheRun(t *testing.T) {
	f := newFakeRun(t)
	f.file("classes.json", `["zebra","quagga"]`)
	f.add(fakeRecord("a", "a.png", 7, 1, fakeTrace("a", 7, .5, .5, .2, .9, 0)))
	card := parse(t, f.write(Options{})).one(t, "#image-1")
	require.Contains(t, card.text, "tracked class quagga")
	require.Contains(t, card.text, "label class 7")
}

func TestEnvironment(t *testing.T) {
	f := newFakeRun(t)
	f.add(fakeRecord("a", "a.png", 7, 1, fakeTrace("a", 7, .5, .5, .2, .9, 0)))
	f.file("env.json", `{"assay":"0.1.0","modules":{"example.org/a":"v1"},"runtime":{"device":"cpu","threads":2,"memoryTotal":2147483648,"cuda":{"devices":[]}}}`)
	page := parse(t, f.write(Options{}))
	var names, values []string
	for _, list := range page.one(t, "#run").all("dl.pairs")[1:] {
		for _, n := range list.all("dt") {
			names = append(names, n.text)
		}
		for _, n := range list.all("dd") {
			values = append(values, n.text)
		}
	}
	require.Equal(t, []string{"device", "threads", "memoryTotal", "assay", "modules.example.org/a"}, names)
	require.Equal(t, []string{"cpu", "2", "2.0 GiB", "0.1.0", "v1"}, values)
}

// A pixel-level trajectory: the curve is drawn with fewer points, the page
// stays small.
func TestManyPatches(t *testing.T) {
	f := newFakeRun(t)
	f.picture("a.png", photograph(t, "coffee.png", 224))
	f.add(fakeRecord("a", "a.png", 7, 1, fakeTrace("a", 112, .5, .5, .2, .9, 0)))
	text := f.write(Options{})
	require.Less(t, len(text), 600_000)
	xs, _ := parse(t, text).one(t, "figure.curves").one(t, "svg.plot").curve(t, "le")
	require.Len(t, xs, maxCurvePoints)
	require.InDelta(t, 1, xs[len(xs)-1], plotPrecision)
}
