package report

import (
	"fmt"
	"math"
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

// An imputer's figures are not a net's.
func TestTrainReportOfImputer(t *testing.T) {
	f := newFakeRun(t)
	f.file("train.yaml", "version: 1\nimputer: {id: gain}\n")
	var loss, held, right []float64
	for i := range 4 {
		l, a, v := 5+float64(i), .8-float64(i)/20, math.Abs(float64(i)-2)/100+.012
		e := &record.TrainingEpoch{Epoch: i + 1, Imputer: "gain", Rate: .0005, Loss: l, Accuracy: a, ValidationLoss: &v, ValidationAccuracy: &a}
		loss, held, right = append(loss, l), append(held, v), append(right, a)
		f.add(record.Record{ID: fmt.Sprint(i), Study: "train", Net: "gain", TrainingEpoch: e})
	}
	page := parse(t, f.write(Options{}))
	figures := page.all("figure.epochs")
	require.Len(t, figures, 3)
	_, ys := figures[0].one(t, "svg.plot").curve(t, "mo")
	require.InDeltaSlice(t, held, ys, .03*plotPrecision)
	require.Empty(t, figures[0].all("polyline.le"), "the generator's loss is another quantity")
	require.Contains(t, figures[0].text, "MSE")
	_, ys = figures[1].one(t, "svg.plot").curve(t, "le")
	require.InDeltaSlice(t, loss, ys, 10*plotPrecision)
	require.Contains(t, figures[1].text, "Generator's loss")
	_, ys = figures[2].one(t, "svg.plot").curve(t, "mo")
	require.InDeltaSlice(t, right, ys, plotPrecision)
	head := page.one(t, "#epochs").one(t, "thead").text
	for _, name := range []string{"generator's loss", "validation error (MSE)", "discriminator right about pixels"} {
		require.Contains(t, head, name)
	}
	require.NotContains(t, head, "accuracy")
	facts := page.one(t, "dl.facts").text
	require.Contains(t, facts, "0.01200")
	require.Contains(t, facts, "the lowest, in epoch 3")
	require.Contains(t, page.text, "discriminator to tell which were filled in")
	require.Contains(t, page.one(t, "h1").text, "Training gain")
}

// An epoch alone makes a page too.
func TestTrainReportOfOneEpoch(t *testing.T) {
	f := newFakeRun(t)
	f.add(record.Record{ID: "1", Study: "train", Net: "mlp", TrainingEpoch: &record.TrainingEpoch{Epoch: 1, Rate: .1, Loss: 2, Accuracy: .5}})
	page := parse(t, f.write(Options{}))
	require.Len(t, page.all("figure.epochs"), 2)
	require.NotContains(t, page.one(t, "#epochs").one(t, "div.legend").text, "validation")
}
