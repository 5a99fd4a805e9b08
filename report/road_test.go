package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/record"
)

// roadRun is a run of two methods and chance with two imputers on two images.
func roadRun(t *testing.T) *fakeRun {
	f := newFakeRun(t)
	f.file("plan.yaml", "version: 1\nstudy: road\nnets: [{net: tiny, name: tiny}]\ndata: [{path: p, name: p}]\n")
	fractions := []float64{.1, .5, .9}
	n := 0
	var rows []map[string]any
	type setting struct{ method, order, imputer string }
	var settings []setting
	for _, imputer := range []string{"zero", "noisy-linear"} {
		for _, method := range []string{"gradient", "<random>"} {
			settings = append(settings, setting{method, "morf", imputer}, setting{method, "lerf", imputer})
		}
		settings = append(settings, setting{"", "random", imputer})
	}
	for k, s := range settings {
		params := map[string]any{"target": "label", "order": s.order, "imputer": s.imputer, "fractions": "0.1,0.5,0.9"}
		if s.method != "" {
			params["method"], params["ties"], params["reduce"] = s.method, "random", "sum"
		}
		for i := range 2 {
			f.add(record.Record{ID: fmt.Sprint(n), Study: "road", Net: "tiny", Image: fmt.Sprint("x", i), Target: 1, Method: s.method, Params: params,
				Road: &record.Road{Order: s.order, Imputer: s.imputer, Fractions: fractions},
				Cost: record.Cost{Seconds: 3, MapSeconds: 1, ImputeSeconds: .5, ForwardSeconds: 1.25}})
			n++
		}
		for j, fraction := range fractions {
			own := map[string]any{"fraction": fraction}
			for key, v := range params {
				own[key] = v
			}
			mean := .9 - .2*float64(j) - .02*float64(k)
			row := map[string]any{"net": "tiny", "params": own, "metric": "accuracy", "mean": mean, "lo": mean - .05, "hi": mean + .05, "n": 2}
			if s == (setting{"gradient", "morf", "zero"}) {
				row["reference"] = mean + .1
			}
			rows = append(rows, row)
			rows = append(rows, map[string]any{"net": "tiny", "params": own, "metric": "probability", "mean": mean, "lo": mean, "hi": mean, "n": 2},
				map[string]any{"net": "tiny", "params": own, "metric": "mask-variation", "mean": .1 * float64(j+1), "lo": 0, "hi": 1, "n": 2})
		}
		if s.order == "morf" {
			rows = append(rows, map[string]any{"net": "tiny", "params": params, "metric": "map-variation", "mean": .125, "lo": 0, "hi": 1, "n": 2})
		}
	}
	rows = append(rows, map[string]any{"net": "other", "params": map[string]any{"imputer": "zero"}, "metric": "accuracy", "mean": nil, "n": 0, "reading": "not measured"})
	write := func(name string, v any) {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		f.file(name, string(text))
	}
	write("summary.json", rows)
	var contests []map[string]any
	for _, imputer := range []string{"zero", "noisy-linear"} {
		competitors := []competitor{{Name: "gradient", Mean: .25, Lo: .2, Hi: .3, N: 2, Rank: 1, RankLo: 1, RankHi: 2, Best: .75}, {Name: "<random>", Mean: .5, Lo: .4, Hi: .6, N: 2, Rank: 2, RankLo: 1, RankHi: 2, Best: .25}}
		for _, order := range []string{"morf", "lerf"} {
			contests = append(contests, map[string]any{"net": "tiny", "target": "label", "metric": "mean-accuracy", "higherIsBetter": order == "lerf",
				"setting": map[string]any{"imputer": imputer, "order": order, "ties": "random"}, "competitors": competitors})
		}
		contests = append(contests, map[string]any{"net": "tiny", "target": "label", "metric": "road-combined", "higherIsBetter": true,
			"setting": map[string]any{"imputer": imputer, "ties": "random"}, "competitors": competitors})
	}
	write("contests.json", contests)
	agreement := func(differs, pairing string, a, b roadSetting, mean float64) map[string]any {
		spread := map[string]any{"mean": mean, "deviation": .3, "error": .1}
		return map[string]any{"target": "label", "ties": "random", "metric": "accuracy", "differs": differs, "pairing": pairing, "a": a, "b": b, "spearman": spread, "kendall": spread, "methods": 2, "repeats": 3}
	}
	morf, lerf := roadSetting{"tiny", "zero", "morf"}, roadSetting{"tiny", "zero", "lerf"}
	write("consistency.json", map[string]any{"agreements": []any{agreement("order", "removed", morf, lerf, -.5), agreement("order", "index", morf, lerf, .25)},
		"verdicts": []string{"The order of the 2 methods depends on <everything>."}})
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 24, 8))))
	f.file("strips/0.png", b.String())
	f.file("strips/bad.png", "no picture")
	strip := map[string]any{"id": "0", "file": "0.png", "image": "x0", "method": "gradient", "order": "morf", "imputer": "zero", "target": 1, "width": 8, "height": 8,
		"fractions": fractions, "probabilities": []float64{.9, .5, .1}, "predicted": []int{1, 1, 2}}
	bad, out := map[string]any{}, map[string]any{}
	for k, v := range strip {
		bad[k], out[k] = v, v
	}
	bad["file"], out["file"] = "bad.png", "../0.png"
	write("strips/index.json", []any{strip, bad, out})
	f.file("classes.json", `["cat", "dog", "<bird>"]`)
	return f
}

func TestRoadPage(t *testing.T) {
	f := roadRun(t)
	text := f.write(Options{Plots: true})
	require.NotContains(t, text, "NaN")
	require.NotContains(t, text, "<random>")
	page := parse(t, text)
	require.Contains(t, page.one(t, "#stable").text, "depends on <everything>")

	tables := page.all("table.scores")
	require.Len(t, tables, 2, "an imputer each")
	var cells []string
	for _, td := range tables[0].all("td") {
		cells = append(cells, td.text)
	}
	// gradient: morf, its masks, lerf, its masks, combined, maps
	require.Equal(t, "gradient", cells[0])
	require.Contains(t, cells[1], "0.2500")
	require.Contains(t, cells[1], "rank 1 (1–2)")
	require.Equal(t, "0.200", cells[2], "the mean of .1, .2 and .3")
	require.Contains(t, cells[5], "0.2500")
	require.Equal(t, "0.125", cells[6])
	require.Len(t, tables[0].all("td.best"), 3)

	charts := page.all("figure.chart")
	require.Len(t, charts, 8, "accuracy and probability by order and imputer")
	require.Contains(t, charts[0].text, "chance")
	require.Len(t, charts[0].all("polyline.faint"), 1, "what was published")
	require.Empty(t, charts[1].all("polyline.faint"))
	require.Len(t, page.all("svg.intervals"), 6)

	lines := page.all("table.roadlines")[0]
	require.Len(t, lines.all("tr"), 1+5)
	require.Contains(t, lines.text, "chance")
	require.Contains(t, lines.all("td")[2].text, "0.9001.000", "measured and published")

	heat := page.one(t, "#consistency")
	require.Len(t, heat.all("td"), 4)
	require.Equal(t, []string{"", "−0.50 ± 0.10", "−0.50 ± 0.10", ""}, []string{heat.all("td")[0].text, heat.all("td")[1].text, heat.all("td")[2].text, heat.all("td")[3].text})
	require.Contains(t, heat.all("td")[1].attr["title"], "paired as p and 1-p, Spearman 0.250")

	strips := page.one(t, "#strips")
	require.Len(t, strips.all("figure"), 1)
	frames := strips.one(t, "div.frames").all("span")
	require.Len(t, frames, 3)
	require.Contains(t, frames[2].text, "<bird>")
	require.Equal(t, "wrong", frames[2].attr["class"])
	require.Contains(t, text, "strips/bad.png: ")
	require.Contains(t, text, "strips/../0.png: want a local file")

	// Two images of 3 - 1 seconds each for a method and an order.
	runtime := page.one(t, "#runtime").all("td")
	require.Equal(t, []string{"tiny", "noisy-linear", "2", "3", seconds(1), seconds(2.5), seconds(4), seconds(2), seconds(2)},
		[]string{runtime[0].text, runtime[1].text, runtime[2].text, runtime[3].text, runtime[4].text, runtime[5].text, runtime[6].text, runtime[7].text, runtime[8].text})
	require.FileExists(t, f.out+"/plots/imputer-1-1-1.csv")
}

// A run that is under way has records and nothing else yet.
func TestRoadPageUnderWay(t *testing.T) {
	f := newFakeRun(t)
	f.file("plan.yaml", "version: 1\nstudy: road\n")
	f.add(record.Record{ID: "0", Study: "road", Net: "tiny", Image: "x", Params: map[string]any{"imputer": "zero"}, Road: &record.Road{Order: "morf"}})
	f.file("consistency.json", "[")
	text := f.write(Options{})
	require.Contains(t, text, "There is no summary yet")
	require.Contains(t, text, "consistency.json cannot be read")
}

// A run of one method in one order ranks nothing; where its plan asks for strips they come first.
func TestRoadPageOfOneMethod(t *testing.T) {
	f := newFakeRun(t)
	f.file("plan.yaml", "version: 1\nstudy: road\nnets: [{net: tiny, name: tiny}]\ndata: [{path: p, name: p}]\nreport: {figures: [{kind: strips}]}\n"+
		"generator: {weights: /some/best.safetensors, hash: 0123456789abcdef, about: 'epoch 3, data <x>'}\n")
	summary, contests := []map[string]any{}, []map[string]any{}
	for i, imputer := range []string{"zero", "gain"} {
		params := map[string]any{"target": "label", "order": "morf", "imputer": imputer, "fractions": "0.5", "method": "gradient", "ties": "random", "reduce": "sum"}
		f.add(record.Record{ID: fmt.Sprint(i), Study: "road", Net: "tiny", Image: "x", Params: params, Road: &record.Road{Order: "morf", Imputer: imputer}})
		own := map[string]any{"fraction": .5}
		for k, v := range params {
			own[k] = v
		}
		summary = append(summary, map[string]any{"net": "tiny", "params": own, "metric": "accuracy", "mean": .25, "lo": .2, "hi": .3, "n": 2})
		for metric, order := range map[string]string{"mean-accuracy": "morf", "road-combined": ""} {
			setting := map[string]any{"imputer": imputer, "ties": "random"}
			if order != "" {
				setting["order"] = order
			}
			contests = append(contests, map[string]any{"net": "tiny", "target": "label", "metric": metric, "setting": setting,
				"competitors": []competitor{{Name: "gradient", Mean: .25, Lo: .2, Hi: .3, N: 2, Rank: 1, RankLo: 1, RankHi: 1, Best: 1}}})
		}
	}
	strip := map[string]any{"id": "0", "file": "0.png", "image": "x", "method": "gradient", "order": "morf", "imputer": "zero", "target": 1, "width": 8, "height": 8,
		"fractions": []float64{.5}, "probabilities": []float64{.9}, "predicted": []int{1}}
	for name, v := range map[string]any{"summary.json": summary, "contests.json": contests, "strips/index.json": []any{strip},
		"consistency.json": map[string]any{"agreements": []any{}, "verdicts": []string{"There is one method, gradient: nothing to rank."}}} {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		f.file(name, string(text))
	}
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8))))
	f.file("strips/0.png", b.String())
	text := f.write(Options{})
	page := parse(t, text)
	for _, absent := range []string{"#stable", "svg.intervals", "#consistency", "td.best"} {
		require.Empty(t, page.all(absent), absent)
	}
	require.NotContains(t, text, "rank 1")
	require.NotContains(t, text, "ROADCombined")
	require.Len(t, page.all("#strips"), 1)
	require.Less(t, strings.Index(text, `id="strips"`), strings.Index(text, `id="imputer-1-1"`))
	require.NotContains(t, text, "figure strips")
	require.NotContains(t, page.one(t, "#imputer-1-1").text, "generator")
	require.Contains(t, page.one(t, "#imputer-1-2").text, "generator best.safetensors, 0123456789ab: epoch 3, data <x>")
	require.Contains(t, page.one(t, "#imputer-1-1").text, "0.2500")
}
