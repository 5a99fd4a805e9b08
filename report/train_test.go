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
	require.Len(t, page.one(t, "#epochs").one(t, "thead").all("th"), 7)
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
	require.NotContains(t, page.text, "train.yaml cannot be read")
}

const gainTrained = `version: 1
imputer: {id: gain, shape: [3, 32, 16], alpha: 100.0, hintRate: 0.01, maximumRate: 0.3, width: 16}
preset: {id: own, resize: squash, scale: 255.0}
data: {path: /data/photos, split: train, items: 1500}
validation: {%s}
training: {epochs: 20, batchSize: 64, optimizer: adam, rate: 0.0005, betas: [0.5, 0.999], schedule: %s, augment: flip, seed: 7}
`

// How an imputer was trained, and what its figures are to be compared with.
func TestTrainReportOfImputersSettings(t *testing.T) {
	f := newFakeRun(t)
	f.file("train.yaml", fmt.Sprintf(gainTrained, "fraction: 0.1, items: 150", "plateau"))
	v, a, mean := .0137, .85, .0210
	f.add(record.Record{ID: "1", Study: "train", Net: "gain", TrainingEpoch: &record.TrainingEpoch{Epoch: 1, Imputer: "gain", Rate: .0005, Loss: 5, Accuracy: .8, ValidationLoss: &v, ValidationAccuracy: &a, MeanImageError: &mean}})
	f.add(record.Record{ID: "2", Study: "train", Net: "gain", TrainingEpoch: &record.TrainingEpoch{Epoch: 2, Imputer: "gain", Rate: .0005, Loss: 5, Accuracy: .9}})
	page := parse(t, f.write(Options{}))
	settings := page.one(t, "#run").one(t, "div.two").children[0].text
	require.NotContains(t, settings, "net")
	for _, want := range []string{"imputergain", "images3 × 32 × 16", "alpha100", "hint rate0.01", "maximum rate0.3", "width16", "epochs20", "batch size64", "rate0.0005, schedule plateau",
		"optimiseradam", "augmentationflip", "data/data/photos, split train: 1500 examples", "of the data: 150 examples", "presetown: values divided by 255", "seed7"} {
		require.Contains(t, settings, want)
	}
	facts := page.one(t, "dl.facts").text
	require.Contains(t, facts, "0.02100")
	require.Contains(t, facts, "error of the mean image alone")
	require.Regexp(t, `85\.0.% are known on average`, facts)
	require.Regexp(t, `On average 85\.0.% of the pixels are known`, page.text)
	require.Contains(t, page.text, "the mean of the training images would have in place of what is missing")

	// Without validation nothing of it is explained or shown.
	f = newFakeRun(t)
	f.file("train.yaml", fmt.Sprintf(gainTrained, "", "constant"))
	f.add(record.Record{ID: "1", Study: "train", Net: "gain", TrainingEpoch: &record.TrainingEpoch{Epoch: 1, Imputer: "gain", Rate: .0005, Loss: 5, Accuracy: .8}})
	page = parse(t, f.write(Options{}))
	require.Len(t, page.all("figure.epochs"), 2)
	require.Len(t, page.one(t, "#epochs").one(t, "thead").all("th"), 5)
	require.Contains(t, page.text, "There was no validation part")
	require.Contains(t, page.text, "validationnone")
	for _, absent := range []string{"The error is", "validation error", "mean image alone", "validation part is run"} {
		require.NotContains(t, page.text, absent)
	}

	// A training under way is not one without validation.
	f = newFakeRun(t)
	f.file("train.yaml", fmt.Sprintf(gainTrained, "split: val, items: 9", "plateau"))
	f.add(record.Record{ID: "1", Study: "train", Net: "gain", TrainingEpoch: &record.TrainingEpoch{Epoch: 1, Imputer: "gain", Rate: .0005, Loss: 5, Accuracy: .8}})
	page = parse(t, f.write(Options{}))
	require.NotContains(t, page.text, "There was no validation part")
	require.Contains(t, page.text, "split val: 9 examples")
}

// An epoch alone makes a page too.
func TestTrainReportOfOneEpoch(t *testing.T) {
	f := newFakeRun(t)
	f.add(record.Record{ID: "1", Study: "train", Net: "mlp", TrainingEpoch: &record.TrainingEpoch{Epoch: 1, Rate: .1, Loss: 2, Accuracy: .5}})
	page := parse(t, f.write(Options{}))
	require.Len(t, page.all("figure.epochs"), 2)
	require.NotContains(t, page.one(t, "#epochs").one(t, "div.legend").text, "validation")
	require.Len(t, page.one(t, "#epochs").one(t, "thead").all("th"), 5)
	require.NotContains(t, page.text, "train.yaml")
}
