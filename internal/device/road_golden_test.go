package device_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/device"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/weights"
)

// goldenRoad is testdata/golden_road.json: what scripts/golden_road.py, which is
// PyTorch and SciPy, answers on 500 test images of CIFAR-10.
type goldenRoad struct {
	Net, Weights, Preset string
	Seed                 uint64
	Images               []string
	Labels               string // a digit an image
	Fractions            []float64
	Points               []struct {
		Method, Order, Imputer string
		Noise                  float64
		// Predictions are a string a fraction, a digit an image.
		Predictions []string
		// Probability and Variation are means over images, one a fraction.
		Probability, Variation []float64
	}
}

// roadCase is what the golden's images, nets and maps are in this program.
type roadCase struct {
	golden    goldenRoad
	chosen    []int // of the golden's images
	images    orchestrate.Images
	labels    []int
	ids       []string
	preset    dataset.Preset
	catalogue orchestrate.Catalogue
	explain   orchestrate.Net // in f64, as the oracle makes its maps
	judge     orchestrate.Net
}

func readRoadGolden(t *testing.T) (g goldenRoad) {
	t.Helper()
	text, err := os.ReadFile("../../testdata/golden_road.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &g))
	return g
}

// openRoad takes every step-th image.
func openRoad(t *testing.T, step int) *roadCase {
	t.Helper()
	c := &roadCase{golden: readRoadGolden(t)}
	path, data := sharedFile(t, c.golden.Weights), sharedFile(t, "cifar10.tgz")
	ctx, b := t.Context(), backend(t)
	c.preset = preset(t, c.golden.Preset)

	set, err := dataset.Open(ctx, data, dataset.Options{Split: "test", Limit: len(c.golden.Images)})
	require.NoError(t, err)
	defer set.Close()
	var files [][]byte
	for i, item := range set.Items() {
		require.Equal(t, c.golden.Images[i], item.ID)
		require.Equal(t, int(c.golden.Labels[i]-'0'), item.Class)
		if i%step != 0 {
			continue
		}
		file, err := set.Read(ctx, i)
		require.NoError(t, err)
		files = append(files, file)
		c.chosen, c.labels, c.ids = append(c.chosen, i), append(c.labels, item.Class), append(c.ids, item.ID)
	}
	images, failed, err := b.Images(ctx, files, c.preset, false)
	require.NoError(t, err)
	require.NoError(t, errors.Join(failed...))
	t.Cleanup(func() { require.NoError(t, images.Close()) })
	c.images = images

	c.catalogue, err = b.Catalogue(ctx)
	require.NoError(t, err)
	info, err := b.Describe(ctx, c.golden.Net, 0, 0)
	require.NoError(t, err)
	dict, err := weights.Open(path)
	require.NoError(t, err)
	state, _, err := weights.Match(dict, info.Parameters)
	require.NoError(t, err)
	for precision, n := range map[string]*orchestrate.Net{"f64": &c.explain, "f32": &c.judge} {
		*n, err = b.OpenNet(ctx, orchestrate.NetSpec{Net: c.golden.Net, Precision: precision}, state)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, (*n).Close()) })
	}
	return c
}

// keys are of the golden's seed, one an image.
func (c *roadCase) keys(purpose string) []uint64 {
	var out []uint64
	for _, id := range c.ids {
		out = append(out, rng.Key(c.golden.Seed, purpose, id))
	}
	return out
}

// maps are a method's, summed over channels.
func (c *roadCase) maps(t *testing.T, method string) [][]float32 {
	t.Helper()
	spec, name, err := c.catalogue.Method(method)
	require.NoError(t, err)
	require.Equal(t, method, name)
	got, err := c.explain.Attribute(t.Context(), c.images, orchestrate.AttributionSpec{
		Method: spec, Targets: c.labels, Keys: c.keys("attribution"), Preset: c.preset, Batch: 100})
	require.NoError(t, err)
	sum, err := dataset.MapReductionByID("sum")
	require.NoError(t, err)
	for i, m := range got.Maps {
		got.Maps[i], _ = sum.Reduce(m, got.Shape)
	}
	return got.Maps
}

// ROAD of published weights: an independent program decides the same of every image
// but one at the most, at every fraction, with noise and without.
func TestRoadAgainstSciPy(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 10
	}
	c := openRoad(t, step)
	const pixels = 32 * 32
	targets := make([][]int, len(c.labels))
	for i, label := range c.labels {
		targets[i] = []int{label}
	}
	kept := map[string][][]float32{"": nil}
	differences := 0
	for _, point := range c.golden.Points {
		ranked, made := kept[point.Method]
		if !made {
			ranked = c.maps(t, point.Method)
			kept[point.Method] = ranked
		}
		params := map[string]any{}
		if point.Imputer == "noisy-linear" {
			params["noise"] = point.Noise
		}
		spec := orchestrate.RemovalSpec{Maps: ranked, Ties: orchestrate.TiesRandom, Imputer: orchestrate.Reference{ID: point.Imputer, Params: params},
			Preset: c.preset, Targets: targets, TieKeys: c.keys("ties"), NoiseKeys: c.keys("impute"), Batch: 100}
		for _, p := range c.golden.Fractions {
			for i := range c.ids {
				spec.Rows = append(spec.Rows, orchestrate.RemovalRow{Image: i, Removed: int(math.Floor(p*pixels + .5)), Least: point.Order == "lerf"})
			}
		}
		got, err := c.judge.Remove(t.Context(), c.images, spec)
		require.NoError(t, err)
		require.Len(t, got.Classes, len(spec.Rows))
		for f, p := range c.golden.Fractions {
			others, mean, variation := 0, 0., 0.
			for i, at := range c.chosen {
				row := f*len(c.chosen) + i
				if got.Classes[row] != int(point.Predictions[f][at]-'0') {
					others++
				}
				mean += got.Probabilities[row][0] / float64(len(c.chosen))
				variation += got.Variations[row] / float64(len(c.chosen))
			}
			differences += others
			require.LessOrEqual(t, others, 1, "%s %s %s, noise %v, %v removed", point.Method, point.Order, point.Imputer, point.Noise, p)
			if step == 1 {
				require.InDelta(t, point.Probability[f], mean, 1e-4, "%s %s %s, noise %v, %v removed", point.Method, point.Order, point.Imputer, point.Noise, p)
				require.InDelta(t, point.Variation[f], variation, 1e-4, "variation: %s %s, %v removed", point.Method, point.Order, p)
			}
		}
	}
	t.Logf("%d of %d decisions differ", differences, len(c.golden.Points)*len(c.golden.Fractions)*len(c.chosen))
}

// The study says the same of every image as the program that the golden is from: seeds,
// keys, orders, channels and counts are those that the documentation promises.
func TestRoadStudyAgainstSciPy(t *testing.T) {
	const limit = 50
	golden := readRoadGolden(t)
	path, data := sharedFile(t, golden.Weights), sharedFile(t, "cifar10.tgz")
	place := map[string]int{}
	for i, id := range golden.Images {
		place[id] = i
	}
	imputers := map[string]float64{"noisy-linear": .01, "noisy-linear(noise=0)": 0, "channel-mean": 0}
	var asked []any
	for _, imputer := range slices.Sorted(maps.Keys(imputers)) {
		asked = append(asked, imputer)
	}
	points := map[string][]string{} // predictions by method, order, imputer and noise
	key := func(method, order, imputer string, noise float64) string {
		return fmt.Sprint(method, " ", order, " ", imputer, " ", noise)
	}
	for _, p := range golden.Points {
		points[key(p.Method, p.Order, p.Imputer, p.Noise)] = p.Predictions
	}
	plan := &orchestrate.Plan{Version: orchestrate.PlanVersion, Study: "road", Device: "cpu", Batch: 50, Seeds: []uint64{golden.Seed},
		Nets: []orchestrate.NetPlan{{Net: golden.Net, Weights: path}}, Data: []orchestrate.DataPlan{{Path: data, Split: "test", Limit: limit}},
		Grid: map[string]any{"imputer": asked},
		Grids: []map[string]any{
			{"method": []any{"gradient", "integrated-gradients(steps=10)", "random"}, "order": []any{"morf", "lerf"}},
			{"order": "random"}}}
	out := t.TempDir()
	outcome, err := orchestrate.Run(t.Context(), orchestrate.Job{Plan: plan, Out: out, Open: device.Open})
	require.NoError(t, err)
	require.Equal(t, limit*7*len(imputers), outcome.Units)
	others := map[string]int{}
	require.NoError(t, record.Scan(filepath.Join(out, record.FileName), func(r record.Record) error {
		require.Empty(t, r.Error)
		spec, err := orchestrate.ParseSpec(r.Road.Imputer)
		require.NoError(t, err)
		want := points[key(r.Method, r.Road.Order, spec.Name, imputers[r.Road.Imputer])]
		require.Equal(t, golden.Fractions, r.Road.Fractions, "%s %s %s", r.Method, r.Road.Order, r.Road.Imputer)
		for f, p := range golden.Fractions {
			if r.Road.Predicted[f] != int(want[f][place[r.Image]]-'0') {
				others[fmt.Sprint(r.Method, r.Road.Order, r.Road.Imputer, p)]++
			}
		}
		return nil
	}))
	for point, n := range others {
		require.LessOrEqual(t, n, 1, point)
	}
}
