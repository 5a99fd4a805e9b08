package report

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/record"
)

// Curves of scores stand in one chart a metric and curve, one line a method, the
// optimum too: means over images, of an image's seeds before.
func TestScoreCurvesFigure(t *testing.T) {
	f := newFakeRun(t)
	f.file("plan.yaml", "version: 1\nstudy: score\nnets: [{net: tiny}]\ndata: [{path: p}]\ngrids:\n- {method: [gradient, cam]}\nreport:\n  figures:\n"+
		"  - {kind: score-curves, curve: lerf, title: Kept}\n  - {kind: score-curves, where: {metric: randomisation}, title: Layers}\n"+
		"  - {kind: score-curves, lines: metric, panels: method, where: {method: cam}, title: By method}\n")
	n := 0
	add := func(method, reduce, metric, image string, seed uint64, curves ...record.ScoreCurve) {
		v := .5
		params := map[string]any{"metric": metric, "method": method, "target": "label"}
		if reduce != "" {
			params["reduce"] = reduce
		}
		if method == "trace optimum" {
			delete(params, "method")
			params["baseline"] = "trace"
		}
		f.add(record.Record{ID: fmt.Sprint(n), Study: "score", Net: "tiny", Image: image, Seed: seed, Method: method, Params: params, Score: &record.Score{Value: &v, Curves: curves}})
		n++
	}
	curve := func(name string, y ...float64) record.ScoreCurve { return record.ScoreCurve{Name: name, Y: y} }
	mo := curve("mo", 1, 0, 0)
	add("gradient", "sum", "le-mo", "a", 0, curve("le", 1, .2, 0), mo)
	add("gradient", "sum", "le-mo", "a", 1, curve("le", 1, .4, 0), mo)
	add("gradient", "sum", "le-mo", "b", 0, curve("le", 1, .7, .2), mo)
	add("gradient", "abs-sum", "le-mo", "a", 0, curve("le", 1, .1, 0), mo)
	add("cam", "", "le-mo", "a", 0, curve("le", 1, .6, 0), mo)
	add("trace optimum", "", "le-mo", "a", 0, curve("le", 1, .9, 0), mo)
	add("cam", "", "randomisation", "a", 0, record.ScoreCurve{Name: "ssim", X: []float64{0, 1}, Labels: []string{"fc", "conv"}, Y: []float64{.9, -.5}})
	page := parse(t, f.write(Options{}))

	charts := page.one(t, "#figure-1").all("figure.chart")
	require.Len(t, charts, 1, "one metric has this curve")
	require.Contains(t, charts[0].text, "le-mo · LeRF")
	require.Contains(t, charts[0].text, "fraction deleted")
	var names []string
	for _, s := range charts[0].all("span") {
		names = append(names, s.text)
	}
	require.Equal(t, []string{"gradient abs-sum", "gradient sum", "cam", "trace optimum"}, names)
	lines := charts[0].lines(t, "line")
	for i, want := range [][]float64{{1, .1, 0}, {1, ((.2+.4)/2 + .7) / 2, .1}, {1, .6, 0}, {1, .9, 0}} {
		require.Len(t, lines[i], 3)
		for k, y := range want {
			require.InDelta(t, float64(k)/2, lines[i][k][0], .01)
			require.InDelta(t, y, lines[i][k][1], .01, names[i])
		}
	}

	layers := page.one(t, "#figure-2").all("figure.chart")
	require.Len(t, layers, 1)
	require.Contains(t, layers[0].text, "layers, from the output down")
	line := layers[0].lines(t, "line")[0]
	for k, want := range [][2]float64{{1, .9}, {2, -.5}} {
		require.InDelta(t, want[0], line[k][0], .02)
		require.InDelta(t, want[1], line[k][1], .02, "below 0, the axis goes there")
	}

	require.Len(t, page.one(t, "#figure-3").all("figure.chart"), 3, "LeRF, MoRF and the similarity")
}
