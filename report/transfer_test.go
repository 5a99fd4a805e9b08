package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page's matrices are means over images of records' values, and shares of
// the diagonal.
func TestTransfer(t *testing.T) {
	f := newFakeRun(t)
	f.file("plan.yaml", "version: 1\nstudy: transfer\nnets: [{net: resnet18}, {net: alexnet}]\n")
	values := map[[2]string][]float64{ // source, target: of two images
		{"resnet18", "resnet18"}: {10, 20}, {"resnet18", "alexnet"}: {4, 8},
		{"alexnet", "resnet18"}: {3, 6}, {"alexnet", "alexnet"}: {8, 16},
	}
	n := 0
	for pair, list := range values {
		for i, v := range list {
			for _, on := range []string{"prob", "logit"} {
				rec := fakeRecord(fmt.Sprint(n), fmt.Sprint("x", i), 1, 1, fakeTrace("x", 4, .5, .5, .2, .5, 1))
				rec.Study, rec.Net, rec.Params["source"] = "transfer", pair[1], pair[0]
				if rec.ScoreOn, rec.Trace.Value = on, v; on == "logit" {
					rec.Trace.Value *= 2
				}
				f.add(rec)
				n++
			}
		}
	}
	page := parse(t, f.write(Options{}))
	require.Len(t, page.all("div.transfer"), 2)
	tables := page.all("table.matrix")
	require.Len(t, tables, 4)
	want := [][]string{{"30.00", "12.00", "9.00", "24.00"}, {"1.000", "0.500", "0.300", "1.000"}, {"15.00", "6.00", "4.50", "12.00"}, {"1.000", "0.500", "0.300", "1.000"}}
	for i, table := range tables {
		var cells []string
		for _, td := range table.all("td") {
			cells = append(cells, td.text)
			require.Contains(t, td.attr["style"], "background:#")
		}
		require.Equal(t, want[i], cells)
		require.Len(t, table.all("td.own"), 2)
	}
	distances := page.all("table.distances")
	require.Len(t, distances, 2)
	var cells []string
	for _, td := range distances[0].all("td") {
		cells = append(cells, td.text)
	}
	require.Equal(t, []string{"resnet18", "0.500", "0.500 … 0.500", "0.700", "0.700 … 0.700", "alexnet", "0.700", "0.700 … 0.700", "0.500", "0.500 … 0.500"}, cells)
	require.Equal(t, "alexnet", page.one(t, "table.remote").all("td")[0].text)
}

// A run that is under way has holes.
func TestTransferUnderWay(t *testing.T) {
	f := newFakeRun(t)
	rec := fakeRecord("1", "x", 1, 1, fakeTrace("x", 4, .5, .5, .2, .5, 1))
	rec.Study, rec.Net, rec.Params["source"] = "transfer", "a", "a"
	other := fakeRecord("2", "x", 1, 1, fakeTrace("x", 4, .5, .5, .2, .5, 1))
	other.Study, other.Net, other.Params["source"] = "transfer", "b", "b"
	f.add(rec, other)
	text := f.write(Options{})
	require.NotContains(t, text, "NaN")
	page := parse(t, text)
	var cells []string
	for _, td := range page.all("table.matrix")[1].all("td") {
		cells = append(cells, td.text)
	}
	require.Equal(t, "1.000 – – 1.000", strings.Join(cells, " "))
}
