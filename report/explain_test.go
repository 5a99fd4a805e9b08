package report

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/record"
)

const explainPlan = `version: 1
study: explain
nets:
- net: tiny
  name: tiny
  preset: {id: a, resize: squash, height: 4, width: 4}
- net: wide
  name: wide
  preset: {id: b, resize: shorter, height: 8, cropHeight: 4, cropWidth: 4}
data:
- path: pictures
  name: pictures
grid:
  method: [gradient, cam(layer=x), cam]
  reduce: none
`

// maps adds a folder of maps by image.
func (f *fakeRun) maps(folder string, index string, ids []string, values [][]float32, shape []int) {
	f.t.Helper()
	var b bytes.Buffer
	w := dataset.NewMapWriter(&b)
	for i, id := range ids {
		require.NoError(f.t, w.Add(id, values[i], shape))
	}
	require.NoError(f.t, w.Close())
	f.file(filepath.Join("maps", folder, "0000.npz"), b.String())
	f.file(filepath.Join("maps", folder, "index.json"), index)
}

func explainRecord(id, net, image, method string, target int, m record.Map) record.Record {
	return record.Record{ID: id, Study: "explain", Net: net, Image: image, Target: target, Method: method,
		Params:     map[string]any{"method": method, "reduce": "none", "target": "predicted"},
		Prediction: &record.Prediction{Classes: []int{target, 9}, Probabilities: []float64{.75, .1}}, Map: &m, Cost: record.Cost{Seconds: .5, Forwards: 10, Backwards: 4}}
}

// decoded is the image of a data URI.
func decoded(t *testing.T, url string) image.Image {
	t.Helper()
	_, content, ok := strings.Cut(url, ";base64,")
	require.True(t, ok, url)
	raw, err := base64.StdEncoding.DecodeString(content)
	require.NoError(t, err)
	img, err := png.Decode(bytes.NewReader(raw))
	require.NoError(t, err)
	return img
}

func TestContactSheet(t *testing.T) {
	f := newFakeRun(t)
	f.file("plan.yaml", explainPlan)
	f.file("classes.json", `["zebra", "espresso", "rocket"]`)
	small := image.NewGray(image.Rect(0, 0, 4, 4))
	small.SetGray(1, 1, color.Gray{Y: 200})
	ids := []string{"a/1.png", "b/2.png"}
	for _, id := range ids {
		f.picture(id, small)
	}
	signed, plain := make([]float32, 48), make([]float32, 16)
	for i := range signed {
		signed[i] = 1
	}
	for c := range 3 {
		signed[16*c] = -2 // the first pixel, in sum -6
	}
	plain[5] = 3
	holes := append([]float32{}, plain...)
	holes[0] = float32(math.NaN())
	index := `{"method": %q, "net": %q, "data": "pictures", "target": "predicted", "reduce": "none", "seed": 0}`
	f.maps("tiny/gradient", fmt.Sprintf(index, "gradient", "tiny"), ids, [][]float32{signed, signed}, []int{3, 4, 4})
	f.maps("tiny/cam", fmt.Sprintf(index, "cam(layer=x)", "tiny"), ids, [][]float32{plain, holes}, []int{1, 4, 4})
	f.maps("wide/gradient", fmt.Sprintf(index, "gradient", "wide"), ids[:1], [][]float32{plain}, []int{1, 4, 4})
	delta := -.25
	for i, id := range ids {
		f.add(explainRecord(fmt.Sprint("g", i), "tiny", id, "gradient", i, record.Map{Min: -2, Max: 1, Delta: &delta}),
			explainRecord(fmt.Sprint("c", i), "tiny", id, "cam(layer=x)", i, record.Map{Max: 3, NonFinite: float64(i) / 16}))
	}
	f.add(explainRecord("w", "wide", ids[0], "gradient", 2, record.Map{Max: 3}), record.Failure(explainRecord("w2", "wide", ids[1], "gradient", 2, record.Map{}), "it is gone"))
	page := parse(t, f.write(Options{}))
	require.Contains(t, page.one(t, "h1").text, "Explaining tiny and wide")
	sheets := page.all("table.sheet-table")
	require.Len(t, sheets, 2)
	head := sheets[0].all("th")
	require.Equal(t, []string{"image", "gradient", "cam(layer=x)"}, []string{head[0].text, head[1].text, head[2].text})
	rows := sheets[0].all("tr")[1:]
	require.Len(t, rows, 2)
	require.Contains(t, rows[1].text, "espresso")
	require.Contains(t, rows[1].text, "75.0")
	require.Contains(t, rows[1].text, "b/2.png")
	require.Contains(t, rows[1].text, "6.2\u202f% not finite", "1 of 16")

	// The gradient, summed over channels: blue at the first pixel, red elsewhere.
	cells := rows[0].all("td")
	require.Len(t, cells, 2)
	heat := decoded(t, cells[0].all("image")[0].attr["href"])
	require.Equal(t, image.Rect(0, 0, 4, 4), heat.Bounds())
	r, _, b, _ := heat.At(0, 0).RGBA()
	require.Greater(t, b, r)
	r, _, b, _ = heat.At(3, 2).RGBA()
	require.Greater(t, r, b)
	require.Equal(t, "#v0-0", cells[0].all("use")[0].attr["href"], "over the image")
	// The other net sees another part of the image: its maps stand alone.
	other := sheets[1].all("tr")[1:]
	require.Len(t, other, 1)
	require.Len(t, other[0].all("td")[0].all("image"), 1)
	require.Empty(t, other[0].all("td")[0].all("use"))
	require.Contains(t, page.one(t, "#failures").text, "it is gone")

	lines := page.one(t, "table.methods").all("tr")[1:]
	require.Len(t, lines, 3)
	require.Contains(t, lines[0].text, "gradient")
	require.Contains(t, lines[0].text, "0.25")
	legend := page.one(t, "div.sheet-legend").text
	for _, want := range []string{"red is positive, blue negative", "99th percentile", "sum over them"} {
		require.Contains(t, legend, want)
	}
}

// Maps that are gone or no maps leave a page that says so.
func TestContactSheetWithoutMaps(t *testing.T) {
	f := newFakeRun(t)
	f.file("plan.yaml", explainPlan)
	f.add(explainRecord("a", "tiny", "a.png", "gradient", 0, record.Map{}), explainRecord("b", "tiny", "a.png", "cam", 0, record.Map{}))
	f.file("maps/cam/index.json", `{"method": "cam", "net": "tiny", "target": "predicted", "reduce": "none"}`)
	f.file("maps/cam/0000.npz", "no archive")
	page := parse(t, f.write(Options{}))
	row := page.one(t, "table.sheet-table").all("tr")[1]
	require.Contains(t, row.text, "no file")
	require.Contains(t, row.text, "unreadable")
	_, err := os.Stat(filepath.Join(f.out, FileName))
	require.NoError(t, err)
}

// A row of a table is a strip.
func TestContactSheetOfTables(t *testing.T) {
	f := newFakeRun(t)
	f.file("plan.yaml", explainPlan)
	f.maps("gradient", `{"method": "gradient", "net": "tiny", "target": "predicted", "reduce": "none"}`, []string{"000000"}, [][]float32{{1, -3, 2}}, []int{3})
	f.add(explainRecord("a", "tiny", "000000", "gradient", 0, record.Map{Min: -3, Max: 2}))
	page := parse(t, f.write(Options{}))
	strip := page.one(t, "svg.wide")
	require.Equal(t, image.Rect(0, 0, 3, 1), decoded(t, strip.all("image")[0].attr["href"]).Bounds())
}

// One method has one scale of colours on a page, and its name breaks after punctuation.
func TestContactSheetScaleOfMethod(t *testing.T) {
	f := newFakeRun(t)
	f.file("plan.yaml", strings.Replace(explainPlan, "gradient, cam(layer=x), cam", "'ig(steps=20,x=1)', cam", 1))
	ids := []string{"a.png", "b.png"}
	positive, negative := []float32{1, 2, 3, 4}, []float32{1, -2, 3, 4}
	index := `{"method": %q, "net": "tiny", "target": "predicted", "reduce": "none"}`
	f.maps("ig", fmt.Sprintf(index, "ig(steps=20,x=1)"), ids, [][]float32{positive, negative}, []int{1, 2, 2})
	f.maps("cam", fmt.Sprintf(index, "cam"), ids, [][]float32{positive, positive}, []int{1, 2, 2})
	for i, id := range ids {
		f.add(explainRecord(fmt.Sprint("i", i), "tiny", id, "ig(steps=20,x=1)", 0, record.Map{Min: 1 - 3*float64(i), Max: 4}),
			explainRecord(fmt.Sprint("c", i), "tiny", id, "cam", 0, record.Map{Min: 1, Max: 4}))
	}
	text := f.write(Options{})
	require.Contains(t, text, `<th scope="col">ig(<wbr>steps=<wbr>20,<wbr>x=<wbr>1)</th>`)
	rows := parse(t, text).one(t, "table.sheet-table").all("tr")[1:]
	pixel := func(row, column int) color.Color {
		return decoded(t, rows[row].all("td")[column].all("image")[0].attr["href"]).At(1, 1)
	}
	require.Equal(t, pixel(1, 0), pixel(0, 0), "the largest value of the method has one colour")
	require.NotEqual(t, pixel(1, 0), pixel(1, 1), "a method without negative values has the other scale")
	require.Equal(t, pixel(0, 1), pixel(1, 1))
}
