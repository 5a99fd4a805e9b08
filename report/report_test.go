package report

import (
	"image/color"
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
