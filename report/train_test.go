package report

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/record"
)

func TestTrainReport(t *testing.T) {
	f := newFakeRun(t)
	f.file("train.yaml", "version: 1\nnet: cnn3\n")
	var loss, held []float64
	for i := range 5 {
		l, a, v := 2/float64(i+1), float64(i)/5, .9-float64(i)/10
		e := &record.TrainingEpoch{Epoch: i + 1, Rate: .1, Loss: l, Accuracy: a}
		loss = append(loss, l)
		if i != 2 {
			e.ValidationLoss, e.ValidationAccuracy = &l, &v
			held = append(held, v)
		}
		f.add(record.Record{ID: fmt.Sprint(i * 7 % 5), Study: "train", Net: "cnn3", TrainingEpoch: e, Cost: record.Cost{Seconds: 2}})
	}
	page := parse(t, f.write(Options{}))
	figures := page.all("figure.epochs")
	require.Len(t, figures, 2)
	xs, ys := figures[0].one(t, "svg.plot").curve(t, "le")
	require.InDeltaSlice(t, loss, ys, 2*plotPrecision)
	require.InDeltaSlice(t, []float64{0, .25, .5, .75, 1}, xs, plotPrecision)
	xs, ys = figures[1].one(t, "svg.plot").curve(t, "mo")
	require.InDeltaSlice(t, held, ys, plotPrecision)
	require.InDeltaSlice(t, []float64{0, .25, .75, 1}, xs, plotPrecision)
	require.Len(t, page.one(t, "#epochs").all("tr"), 6)
	require.Contains(t, page.one(t, "dl.facts").text, "90.0")
	require.Contains(t, page.one(t, "h1").text, "Training cnn3")
	require.Contains(t, page.text, "net: cnn3", "the settings")
	require.NotContains(t, page.text, "left no plan.yaml")
}

// An epoch alone makes a page too.
func TestTrainReportOfOneEpoch(t *testing.T) {
	f := newFakeRun(t)
	f.add(record.Record{ID: "1", Study: "train", Net: "mlp", TrainingEpoch: &record.TrainingEpoch{Epoch: 1, Rate: .1, Loss: 2, Accuracy: .5}})
	page := parse(t, f.write(Options{}))
	require.Len(t, page.all("figure.epochs"), 2)
	require.NotContains(t, page.one(t, "#epochs").one(t, "div.legend").text, "validation")
}
