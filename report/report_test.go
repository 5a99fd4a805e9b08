package report

import (
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/trace"
)

// The coordinates have two decimals of about 200 units.
const plotPrecision = 1e-4

func TestTraceReport(t *testing.T) {
	f := demo(t)
	text := f.write(Options{ClassName: imagenetName(t)})
	page := parse(t, text)
	require.Less(t, len(text), 400_000, "three images")

	results := page.all("section.result")
	require.Len(t, page.all("article.card"), 3)
	require.Len(t, results, 3)
	i := 0
	require.NoError(t, record.Scan(filepath.Join(f.out, record.FileName), func(rec record.Record) error {
		n := results[i]
		i++
		plot := n.one(t, "figure.curves").one(t, "svg.plot")
		for class, want := range map[string][]float64{"le": rec.Curves.Prob.Le, "mo": rec.Curves.Prob.Mo} {
			xs, ys := plot.curve(t, class)
			require.InDeltaSlice(t, want, ys, plotPrecision)
			for k, x := range xs {
				require.InDelta(t, float64(k)/49, x, plotPrecision)
			}
		}
		require.Equal(t, join(rec.Trajectory), n.attr["data-order"])

		// The heat map's pixels are the colours of (rank/49)^2.
		heat := decodePNG(t, n.one(t, "#"+n.attr["id"]+"heat").attr["href"])
		patches, err := trace.PatchMap(7, 224, 224)
		require.NoError(t, err)
		for rank, patch := range rec.Trajectory {
			psi := float64(rank+1) * float64(rank+1) / (49 * 49)
			for at, p := range patches {
				if int(p) == patch {
					want := heatColor(psi)
					got := color.NRGBAModel.Convert(heat.At(at%224, at/224)).(color.NRGBA)
					require.InDelta(t, want.R, got.R, 3)
					require.InDelta(t, want.G, got.G, 3)
					require.InDelta(t, want.B, got.B, 3)
					break
				}
			}
		}
		require.Len(t, n.all("div.strip"), 2)
		require.Contains(t, n.one(t, "div.numbers").text, value(rec.Value))
		require.Contains(t, n.one(t, "div.numbers").text, grouped(rec.Cost.Forwards)+" forwards")
		require.Len(t, n.one(t, "ol.guesses").all("li"), 5)
		return nil
	}))
	require.Len(t, page.one(t, "table.images").all("tr"), 4)
	require.Len(t, page.all("figure.mean"), 1)
	require.NotEmpty(t, page.all("polygon.leband"))
	require.Empty(t, page.all("#failures"))
	if imagenetName(t) != nil {
		require.Contains(t, page.one(t, "#image-1").text, "tiger cat")
	}
	require.Contains(t, text, "libtorch.version")
}

func TestReportIsOneFile(t *testing.T) {
	text := demo(t).write(Options{})
	for _, ref := range regexp.MustCompile(`(?:href|src|url)\s*[=(]\s*["']?([^"')>\s]*)`).FindAllStringSubmatch(text, -1) {
		require.True(t, strings.HasPrefix(ref[1], "#") || strings.HasPrefix(ref[1], "data:image/"), "outside link %q", ref[1])
	}
	require.NotContains(t, text, "ZgotmplZ")
	require.NotContains(t, text, "@import")
}

func TestReportIsDeterministic(t *testing.T) {
	f := demo(t)
	first := f.write(Options{})
	_, err := Write(t.Context(), f.out, Options{})
	require.NoError(t, err)
	second, err := os.ReadFile(filepath.Join(f.out, FileName))
	require.NoError(t, err)
	require.Equal(t, first, string(second))
}

// The curves of a search on the logit are those that its value is the sum of.
func TestCurvesOnLogit(t *testing.T) {
	f := newFakeRun(t)
	f.file("plan.yaml", fmt.Sprintf(fakePlan, ""))
	want := map[string]*record.Trace{}
	for i, on := range []string{"prob", "logit"} {
		for _, name := range []string{"a.png", "b.png"} {
			tr := fakeTrace(name, 4, .5, .5, .3, .9, 0)
			if tr.ScoreOn = on; on == "logit" {
				tr.Value = tr.Sums.Logit.Le - tr.Sums.Logit.Mo
			}
			rec := fakeRecord(fmt.Sprint(name, i), name, 1, 1, tr)
			rec.Params["scoreOn"] = on
			f.add(rec)
			want[name+on] = tr
		}
	}
	page := parse(t, f.write(Options{}))
	panels := page.all("figure.mean")
	require.Len(t, panels, 2)
	curves := map[string]func(*record.Trace) record.Curve{
		"prob":  func(tr *record.Trace) record.Curve { return tr.Curves.Prob },
		"logit": func(tr *record.Trace) record.Curve { return tr.Curves.Logit },
	}
	seen := map[string]bool{}
	for _, panel := range panels {
		on, word := "prob", "probability"
		if strings.Contains(panel.one(t, "h3").text, "logit") {
			on, word = "logit", "logit"
		}
		seen[on] = true
		a, b := curves[on](want["a.png"+on]), curves[on](want["b.png"+on])
		_, le := panel.curveOf(t, "le")
		_, mo := panel.curveOf(t, "mo")
		sum := 0.
		for k := range le {
			require.InDelta(t, (a.Le[k]+b.Le[k])/2, le[k], .01)
			require.InDelta(t, (a.Mo[k]+b.Mo[k])/2, mo[k], .01)
			sum += le[k] - mo[k]
		}
		require.InDelta(t, (want["a.png"+on].Value+want["b.png"+on].Value)/2, sum, .1, "the area is the value")
		require.Contains(t, panel.text, "LeRF sum minus MoRF sum by "+word+", which is drawn")
	}
	require.Len(t, seen, 2)
	for _, result := range page.all("section.result") {
		plot := result.one(t, "figure.curves").one(t, "svg.plot")
		on := "prob"
		if strings.Contains(result.one(t, "div.numbers").text, "MoRF sum by logit") {
			on = "logit"
			require.Contains(t, plot.attr["aria-label"], "Logit of the tracked class")
		}
		_, le := plot.curve(t, "le")
		a, b := curves[on](want["a.png"+on]).Le, curves[on](want["b.png"+on]).Le
		require.True(t, math.Abs(a[3]-le[3]) < .01 || math.Abs(b[3]-le[3]) < .01)
	}
}

func (n *node) curveOf(t *testing.T, class string) (xs, ys []float64) {
	return n.one(t, "svg.plot").curve(t, class)
}
