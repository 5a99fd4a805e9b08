package orchestrate_test

import (
	"context"
	"encoding/json"
	"errors"
	"image/png"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/fake"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/weights"
)

const explainGrid = `{method: [weights, random, "scaled(random,factor=3)", "mean(weights,samples=40)"], reduce: [none, abs-mean]}`

// tree is every file below a folder of the world by name, but for hidden ones.
func (w *world) tree(folder string) map[string]string {
	out := map[string]string{}
	require.NoError(w.t, filepath.WalkDir(w.path(folder), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(w.path(folder), path)
		out[name] = string(text)
		return err
	}))
	return out
}

func TestExplain(t *testing.T) {
	w := newWorld(t, 5)
	p := w.plan("explain", explainGrid)
	p.Maps.Formats = []string{"npy", "safetensors"}
	outcome, err := w.run(p, "out")
	require.NoError(t, err)
	w.closed()
	require.Equal(t, 4*2*5, outcome.Units)

	state, err := weights.Open(w.path("tiny.safetensors"))
	require.NoError(t, err)
	weight := func(i int) float32 {
		b := state.Tensors["fc.weight"].Data[4*i:]
		return math.Float32frombits(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)
	}
	maps, err := dataset.OpenMaps(t.Context(), w.path("out/maps/weights-none"))
	require.NoError(t, err)
	defer maps.Close()
	require.Len(t, maps.IDs(), 5)
	reduced, err := dataset.OpenMaps(t.Context(), w.path("out/maps/weights-abs-mean"))
	require.NoError(t, err)
	defer reduced.Close()
	for _, r := range w.records("out") {
		require.NotNil(t, r.Map)
		require.Equal(t, r.Prediction.Classes[0], r.Target)
		if r.Method != "weights" || r.Params["reduce"] != "none" {
			continue
		}
		values, shape, err := maps.Raw(r.Image)
		require.NoError(t, err)
		require.Equal(t, []int{3, 8, 8}, shape)
		require.Equal(t, shape, r.Map.Shape)
		sum, square, least, most := 0., 0., math.Inf(1), math.Inf(-1)
		for i, v := range values {
			require.Equal(t, weight(r.Target*16+i%16), v)
			sum, square = sum+float64(v), square+float64(v)*float64(v)
			least, most = min(least, float64(v)), max(most, float64(v))
		}
		require.InDelta(t, sum, r.Map.Sum, 1e-9)
		require.InDelta(t, math.Sqrt(square), r.Map.Norm, 1e-9)
		require.Equal(t, [2]float64{least, most}, [2]float64{r.Map.Min, r.Map.Max})
		require.InDelta(t, sum-1, *r.Map.Delta, 1e-9)
		plane, shape, err := reduced.Raw(r.Image)
		require.NoError(t, err)
		require.Equal(t, []int{1, 8, 8}, shape)
		for i, v := range plane {
			mean := (math.Abs(float64(values[i])) + math.Abs(float64(values[64+i])) + math.Abs(float64(values[128+i]))) / 3
			require.InDelta(t, mean, v, 1e-7)
		}
	}

	index, err := dataset.ReadMapIndex(w.path("out/maps/scaled-random-factor-3-abs-mean"))
	require.NoError(t, err)
	require.Equal(t, "scaled(random,factor=3)", index.Method)
	require.Equal(t, dataset.MapIndex{Method: "scaled(random,factor=3)", Net: "tiny", Weights: state.Hash, Data: "data", Target: "predicted",
		Reduce: "abs-mean", Shape: []int{1, 8, 8}, DType: "float32", Count: 5, Images: 5, Chunk: 1000, Formats: []string{"npz", "npy", "safetensors"}}, index)
	require.Equal(t, int64(1+1+1+2), w.backend.Calls(), "once for all reductions; of images with 40 samples each a batch of 4 a call")
	folders, err := dataset.FindMaps(w.path("out"))
	require.NoError(t, err)
	require.Len(t, folders, 8)
	require.NoDirExists(t, w.path("out/maps/.parts"))
	_, err = dataset.OpenMaps(t.Context(), w.path("out/maps"))
	require.ErrorContains(t, err, "8 folders below it have")

	// The other formats hold the same.
	tensors, err := weights.Open(w.path("out/maps/random-none/0000.safetensors"))
	require.NoError(t, err)
	random, err := dataset.BrowseMaps(w.path("out/maps/random-none/0000.npz"))
	require.NoError(t, err)
	defer random.Close()
	var ids []string
	require.NoError(t, json.Unmarshal([]byte(w.read("out/maps/random-none/0000.ids.json")), &ids))
	rows, err := dataset.Open(t.Context(), w.path("out/maps/random-none/0000.npy"), dataset.Options{})
	require.NoError(t, err)
	defer rows.Close()
	require.Equal(t, []string{"a/0000.jpg", "a/0003.jpg", "b/0001.jpg", "b/0004.jpg", "c/0002.jpg"}, slices.Sorted(slices.Values(ids)))
	for i, id := range ids {
		values, shape, err := random.Raw(id)
		require.NoError(t, err)
		require.Equal(t, string(dataset.FloatBytes(values)), string(tensors.Tensors[id].Data))
		row, have, err := rows.Values(i)
		require.NoError(t, err)
		require.Equal(t, shape, have)
		require.Equal(t, values, row)
	}

	// Few images have overlays.
	f, err := os.Open(w.path("out/overlays/random-none/a/0000.jpg.png"))
	require.NoError(t, err)
	defer f.Close()
	picture, err := png.Decode(f)
	require.NoError(t, err)
	require.Equal(t, 224, picture.Bounds().Dx())
	require.Contains(t, w.read("out/summary.csv"), "tiny,predicted,weights,none,map-sum,")
}

// Grouping and batches change nothing, nor do other methods and images.
func TestExplainDoesNotDependOnGroups(t *testing.T) {
	w := newWorld(t, 130)
	p := w.plan("explain", explainGrid)
	_, err := w.run(p, "out")
	require.NoError(t, err)
	want := w.records("out")
	require.LessOrEqual(t, w.backend.MostImages.Load(), int64(4*64+64), "decoded at once: two groups ahead, and a copy of some")
	few := w.plan("explain", `{method: ["mean(weights,samples=40)", random], reduce: abs-mean}`)
	few.Data[0].Limit = 7
	_, err = w.run(few, "few")
	require.NoError(t, err)
	got := w.records("few")
	require.Len(t, got, 14)
	all, err := dataset.OpenMaps(t.Context(), w.path("out/maps/random-abs-mean"))
	require.NoError(t, err)
	defer all.Close()
	some, err := dataset.OpenMaps(t.Context(), w.path("few/maps/random"))
	require.NoError(t, err)
	defer some.Close()
	for id, r := range got {
		require.Equal(t, want[id], r)
		a, _, err := all.Raw(r.Image)
		require.NoError(t, err)
		b, _, err := some.Raw(r.Image)
		require.NoError(t, err)
		require.Equal(t, a, b)
	}
	require.NoDirExists(t, w.path("out/overlays"), "many images have none")
}

// A run that is stopped after any number of records, with what a kill leaves, ends
// in the same files byte by byte.
func TestExplainInterrupted(t *testing.T) {
	w := newWorld(t, 6)
	w.image("b/bad.jpg", "BAD")
	p := w.plan("explain", `{method: [random, "mean(random,samples=40)", picky]}`)
	p.Maps.Formats = []string{"npy", "safetensors"}
	_, err := w.run(p, "whole")
	var incomplete *orchestrate.Incomplete
	require.ErrorAs(t, err, &incomplete)
	want, files, overlays := w.records("whole"), w.tree("whole/maps"), w.tree("whole/overlays")
	require.Contains(t, files, "mean-random-samples-40/0000.npz")
	for stop := 0; stop < len(want); stop += 3 {
		ctx, cancel := context.WithCancelCause(t.Context())
		_, err := orchestrate.Run(ctx, orchestrate.Job{Plan: p, Out: w.path("cut"), Open: w.backend.Opener(), Progress: func(e orchestrate.Event) {
			if e.Stage == orchestrate.StageRun && e.Done >= stop {
				cancel(errors.New("stopped by the test"))
			}
		}})
		cancel(nil)
		require.ErrorIs(t, err, context.Canceled)
		w.closed()
		// A record whose map is there is lost with its line: the map comes again.
		text := w.read("cut/results.jsonl")
		if i := strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n"); i > 0 && stop%2 == 1 {
			require.NoError(t, os.WriteFile(w.path("cut/results.jsonl"), []byte(text[:i+20]), 0o666))
		}
		_, err = w.run(p, "cut")
		require.ErrorAs(t, err, &incomplete)
		require.Equal(t, want, w.records("cut"))
		require.Equal(t, files, w.tree("cut/maps"))
		require.Equal(t, overlays, w.tree("cut/overlays"))
		require.Equal(t, w.read("whole/summary.csv"), w.read("cut/summary.csv"))
		require.NoError(t, os.RemoveAll(w.path("cut")))
	}
}

// explainChildVariable makes the test binary explain in the folder it names.
const explainChildVariable = "ASSAY_TEST_EXPLAIN_CHILD"

func explainChild(dir string) {
	plan, err := orchestrate.ParsePlan("plan.yaml", []byte(planText(dir, "explain", explainGrid)))
	if err == nil {
		_, err = orchestrate.Run(background, orchestrate.Job{Plan: plan, Out: dir + "/killed", Open: (&fake.Backend{}).Opener()})
	}
	if err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
}

func TestKilledExplainGoesOn(t *testing.T) {
	w := newWorld(t, 70)
	_, err := w.run(w.plan("explain", explainGrid), "whole")
	require.NoError(t, err)
	killChildren(t, explainChildVariable, w.dir, 3, moreLines(w.path("killed/results.jsonl")))
	_, err = w.run(w.plan("explain", explainGrid), "killed")
	require.NoError(t, err)
	require.Equal(t, w.records("whole"), w.records("killed"))
	require.Equal(t, w.tree("whole/maps"), w.tree("killed/maps"))
}

// Another format can be asked for later; a map that went missing is not passed over.
func TestExplainAgain(t *testing.T) {
	w := newWorld(t, 3)
	p := w.plan("explain", `{method: weights}`)
	_, err := w.run(p, "out")
	require.NoError(t, err)
	calls := w.backend.Calls()
	p.Maps.Formats = []string{"safetensors"}
	_, err = w.run(p, "out")
	require.NoError(t, err)
	require.FileExists(t, w.path("out/maps/weights/0000.safetensors"))
	require.Equal(t, calls, w.backend.Calls())
	require.NoError(t, os.Remove(w.path("out/maps/weights/0000.npz")))
	require.NoError(t, os.WriteFile(w.path("out/maps/weights/.0001.npz123"), nil, 0o666))
	_, err = w.run(p, "out")
	require.NoFileExists(t, w.path("out/maps/weights/.0001.npz123"), "what a kill has left")
	require.ErrorIs(t, err, usage.Err)
	require.ErrorContains(t, err, "has a record of the map of a/0000.jpg by weights, and no such map")
}

func TestExplainFailures(t *testing.T) {
	w := newWorld(t, 12)
	w.image("b/bad.jpg", "BAD")
	p := w.plan("explain", `{method: [holes, plain, picky]}`)
	_, err := w.run(p, "out")
	var incomplete *orchestrate.Incomplete
	require.ErrorAs(t, err, &incomplete)
	picky := 0
	for _, r := range w.records("out") {
		switch {
		case r.Image == "b/bad.jpg":
			require.Contains(t, r.Error, "not a JPEG")
		case r.Method == "holes":
			require.InDelta(t, 1./192, r.Map.NonFinite, 1e-12)
			require.False(t, math.IsNaN(r.Map.Sum))
			require.Contains(t, r.Warnings[0], "no numbers")
		case r.Method == "plain":
			require.Equal(t, []int{1, 8, 8}, r.Map.Shape)
			require.Contains(t, r.Warnings[0], "all values of the map are the same")
		case r.Error != "":
			picky++
			require.Contains(t, r.Error, "picky: the first number is")
			require.Nil(t, r.Map)
		default:
			require.Equal(t, "picky", r.Method)
		}
	}
	require.Positive(t, picky)
	require.Equal(t, picky+3, incomplete.Failed)
	index, err := dataset.ReadMapIndex(w.path("out/maps/picky"))
	require.NoError(t, err)
	require.Equal(t, [2]int{12 - picky, 13}, [2]int{index.Count, index.Images})

	w.backend.Fail = func(int64) error { return errors.New("the device is gone") }
	_, err = w.run(p, "gone")
	require.ErrorContains(t, err, "by holes: the device is gone")
	require.NotErrorIs(t, err, usage.Err)
}

func TestExplainOutOfMemory(t *testing.T) {
	w := newWorld(t, 9)
	p := w.plan("explain", `{method: [weights, random]}`)
	_, err := w.run(p, "whole")
	require.NoError(t, err)
	w.backend.Memory = 3
	_, err = w.run(p, "small")
	require.NoError(t, err)
	want := w.records("whole")
	for id, r := range w.records("small") {
		require.Contains(t, r.Warnings, "out of memory at batch 4: run at batch 2")
		r.Warnings = nil
		require.Equal(t, want[id], r)
	}
	require.Equal(t, w.tree("whole/maps"), w.tree("small/maps"))
}

// Several nets and seeds have folders of their own; devices share the images.
func TestExplainSeveralNetsSeedsAndDevices(t *testing.T) {
	w := newWorld(t, 11)
	p := w.plan("explain", `{method: random}`)
	other := p.Nets[0]
	other.Name = "tiny?"
	p.Nets = append(p.Nets, other)
	p.Seeds = []uint64{0, 7}
	p.Report.Images = new(int)
	_, err := w.run(p, "one")
	require.NoError(t, err)
	gpus := map[string]*fake.Backend{"cuda:0": {}, "cuda:1": {}}
	for out, devices := range map[string]string{"alone": "cuda:0", "two": "cuda:0,cuda:1"} {
		p.Device = devices
		_, err = orchestrate.Run(t.Context(), orchestrate.Job{Plan: p, Out: w.path(out), Open: machine(gpus)})
		require.NoError(t, err)
	}
	files := w.tree("one/maps")
	require.ElementsMatch(t, []string{"tiny/random-seed-0/0000.npz", "tiny/random-seed-0/index.json", "tiny/random-seed-7/0000.npz", "tiny/random-seed-7/index.json",
		"tiny-/random-seed-0/0000.npz", "tiny-/random-seed-0/index.json", "tiny-/random-seed-7/0000.npz", "tiny-/random-seed-7/index.json"},
		sortedNames(files))
	require.NotEqual(t, files["tiny/random-seed-0/0000.npz"], files["tiny/random-seed-7/0000.npz"])
	require.Equal(t, w.tree("alone/maps"), w.tree("two/maps"))
	require.Equal(t, w.records("alone"), w.records("two"))
	require.NotZero(t, gpus["cuda:1"].Calls())
}

func sortedNames(m map[string]string) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// More images than a file holds.
func TestExplainChunks(t *testing.T) {
	w := newWorld(t, 1)
	text := strings.Repeat("1,2,3,4,5,6,7,8,9,0\n5,-5,5,0,2,-2,2,1,-4,1\n", 600)
	require.NoError(t, fake.Weights(w.path("logistic.safetensors"), 2))
	require.NoError(t, os.WriteFile(w.path("t.csv"), []byte("a,b,c,d,e,f,g,h,i,class\n"+text), 0o666))
	p, err := orchestrate.ParsePlan("plan.yaml", []byte(subst("version: 1\nstudy: explain\n"+
		"nets: [{net: logistic, weights: DIR/logistic.safetensors, preset: table}]\n"+
		"data: [{path: DIR/t.csv}]\ngrid: {method: random}\nbatch: 64\nthreads: 1\n", w.dir)))
	require.NoError(t, err)
	_, err = w.run(p, "out")
	require.NoError(t, err)
	require.Equal(t, []string{"random/0000.npz", "random/0001.npz", "random/index.json"}, sortedNames(w.tree("out/maps")))
	last, err := dataset.OpenMaps(t.Context(), w.path("out/maps/random/0001.npz"))
	require.NoError(t, err)
	defer last.Close()
	require.Len(t, last.IDs(), 200)
	_, shape, err := last.Raw("001000")
	require.NoError(t, err)
	require.Equal(t, []int{9}, shape)
}

func TestMethodsThatAreNot(t *testing.T) {
	w := newWorld(t, 1)
	for method, want := range map[string]string{
		"wieghts":                    "did you mean weights?",
		"scaled(factr=2)":            `parameter "factr": did you mean factor?`,
		"scaled(factor=-1)":          "factor -1: want at least 0",
		"scaled(factor=x)":           "factor x: want a number",
		"scaled(weights,random)":     "2 methods to be made of: want one, for example scaled(weights)",
		"scaled(radnom)":             "its base: method \"radnom\": did you mean random?",
		"scaled(mean(samples=0))":    "samples 0: want at least 1",
		"mean(samples)":              "parameter samples: want samples=VALUE",
		"weights(random)":            "method weights takes no other method, random was given as its base (scaled, mean do)",
		"layered(layer)":             "parameter layer: want layer=VALUE",
		"layered(layer=fd)":          `net tiny has no layer "fd": did you mean fc?`,
		"scaled(layered(layer=fcc))": `has no layer "fcc"`,
		"weights(":                   "want a name",
	} {
		p := w.plan("explain", "{}")
		p.Grid = map[string]any{"method": method}
		_, err := w.run(p, "out")
		require.ErrorIs(t, err, usage.Err, method)
		require.ErrorContains(t, err, want, method)
	}
	p := w.plan("explain", "{reduce: abs-men}")
	_, err := w.run(p, "out")
	require.ErrorContains(t, err, "did you mean abs-mean or")
	p = w.plan("explain", "{}")
	p.Maps.Formats = []string{"npz", "csv"}
	_, err = w.run(p, "out")
	require.ErrorContains(t, err, `format "csv": want one of npz, npy, safetensors`)
	p = w.plan("eval", "{}")
	p.Maps.Formats = []string{"npz"}
	_, err = w.run(p, "out")
	require.ErrorContains(t, err, "study eval makes no maps")
}

// Defaults written out and left out, and blanks, are the same method.
func TestMethodNames(t *testing.T) {
	catalogue, err := (&fake.Backend{}).Catalogue(t.Context())
	require.NoError(t, err)
	for text, want := range map[string]string{
		"weights":                            "weights",
		"scaled":                             "scaled",
		"scaled( weights , factor = 2.0 )":   "scaled",
		"scaled(random,factor=2)":            "scaled(random)",
		"scaled(factor=.5)":                  "scaled(factor=0.5)",
		"scaled(scaled(weights),factor=3)":   "scaled(scaled,factor=3)",
		"mean(scaled(random,factor=1e1))":    "mean(scaled(random,factor=10))",
		"mean(weights,samples=5)":            "mean",
		"layered(layer=7)":                   "layered(layer=7)",
		"mean( mean(samples=2), samples=3 )": "mean(mean(samples=2),samples=3)",
	} {
		m, name, err := catalogue.Method(text)
		require.NoError(t, err, text)
		require.Equal(t, want, name)
		again, same, err := catalogue.Method(name)
		require.NoError(t, err)
		require.Equal(t, want, same)
		require.Equal(t, m, again)
	}
	m, _, err := catalogue.Method("mean(scaled)")
	require.NoError(t, err)
	text, err := json.Marshal(m)
	require.NoError(t, err)
	require.JSONEq(t, `{"id":"mean","samples":5,"base":{"id":"scaled","factor":2,"base":{"id":"weights"}}}`, string(text))
}

// A batch that the plan leaves open is no larger than the rows there are.
func TestExplainBatch(t *testing.T) {
	w := newWorld(t, 3)
	for grid, want := range map[string]int{
		"{method: weights}":                               3,
		"{method: [weights, scaled]}":                     3,
		`{method: [weights, "mean(weights,samples=2)"]}`:  6,
		`{method: [weights, "mean(weights,samples=50)"]}`: 8,
	} {
		p := w.plan("explain", grid)
		p.Batch = 0
		p.Scale = nil
		b, err := w.backend.Opener()("cpu", 1)
		require.NoError(t, err)
		r, err := orchestrate.Resolve(t.Context(), p, b)
		require.NoError(t, err)
		if want < 8 {
			require.Equal(t, want, r.Batch(), grid)
		} else {
			require.GreaterOrEqual(t, r.Batch(), want, grid)
		}
		require.NoError(t, r.Close())
		require.NoError(t, b.Close())
	}
	w.closed()
}

// A disk that is full at any moment loses no map that has a record.
func TestExplainOnAFullDisk(t *testing.T) {
	w := newWorld(t, 30)
	disk := mkdir(t, w.path("disk"))
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=40k"); err != nil {
		t.Skip("SKIP: a small file system needs the right to mount:", err)
	}
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	p := w.plan("explain", `{method: [random, "scaled(random)"]}`)
	p.Report.Images = new(int)
	p.Maps.Formats = []string{"safetensors", "npy"}
	_, err := w.run(p, "whole")
	require.NoError(t, err)
	full := 0
	for _, size := range []string{"40k", "60k", "80k", "100k", "120k", "140k", "200k"} {
		require.NoError(t, unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, "size="+size))
		_, err := w.run(p, "disk/out")
		w.closed()
		if err == nil {
			break
		}
		require.ErrorIs(t, err, unix.ENOSPC, size)
		full++
	}
	require.Positive(t, full)
	require.NoError(t, unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, "size=16m"))
	_, err = w.run(p, "disk/out")
	require.NoError(t, err)
	require.Equal(t, w.records("whole"), w.records("disk/out"))
	require.Equal(t, w.tree("whole/maps"), w.tree("disk/out/maps"))
}
