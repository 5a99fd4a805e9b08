package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/assay-xai/assay/internal/record"
)

// trainPage shows a training: loss and accuracy over its epochs.
type trainPage struct {
	Figures []*epochFigure
	Rows    []epochRow
	// Validated says that some epoch has figures on the validation part.
	Validated bool

	facts []fact
}

// epochFigure is a curve of the training part and one of the validation part.
type epochFigure struct {
	plane
	Title, Describe   string
	XTicks, YTicks    []tick
	Train, Validation string
	Validated         bool
}

type epochRow struct {
	Epoch                              int
	Rate, Loss, Accuracy               string
	ValidationLoss, ValidationAccuracy string
	Seconds                            string
}

// epochsOf lists the epochs of a training in their order, nil for other studies.
func (r *run) epochsOf() []*entry {
	var out []*entry
	for _, e := range r.entries {
		if e.epoch != nil {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *entry) int { return cmp.Compare(a.epoch.Epoch, b.epoch.Epoch) })
	return out
}

func newTrainPage(epochs []*entry) *trainPage {
	p := &trainPage{}
	var best *record.TrainingEpoch
	seconds := 0.
	for _, e := range epochs {
		t := e.epoch
		seconds += e.cost.Seconds
		row := epochRow{Epoch: t.Epoch, Rate: strconv.FormatFloat(t.Rate, 'g', 4, 64), Loss: decimal(t.Loss, 4), Accuracy: percent(t.Accuracy, 2),
			ValidationLoss: missing, ValidationAccuracy: missing, Seconds: decimal(e.cost.Seconds, 1)}
		if t.ValidationLoss != nil && t.ValidationAccuracy != nil {
			p.Validated = true
			row.ValidationLoss, row.ValidationAccuracy = decimal(*t.ValidationLoss, 4), percent(*t.ValidationAccuracy, 2)
			if best == nil || *t.ValidationAccuracy > *best.ValidationAccuracy {
				best = t
			}
		}
		p.Rows = append(p.Rows, row)
	}
	last := epochs[len(epochs)-1].epoch
	p.Figures = []*epochFigure{
		newEpochFigure(epochs, "Loss", func(t *record.TrainingEpoch) (float64, *float64) { return t.Loss, t.ValidationLoss }),
		newEpochFigure(epochs, "Accuracy", func(t *record.TrainingEpoch) (float64, *float64) { return t.Accuracy, t.ValidationAccuracy }),
	}
	p.facts = []fact{{"epochs", grouped(int64(len(epochs))), decimal(seconds, 1) + " seconds"}, {"training accuracy", percent(last.Accuracy, 1), "in the last epoch"}}
	if best != nil {
		p.facts = append(p.facts, fact{"validation accuracy", percent(*best.ValidationAccuracy, 1), fmt.Sprintf("the highest, in epoch %d", best.Epoch)})
	}
	return p
}

func newEpochFigure(epochs []*entry, title string, values func(*record.TrainingEpoch) (float64, *float64)) *epochFigure {
	var xs, train, vxs, validation []float64
	highest := 0.
	for _, e := range epochs {
		x := float64(e.epoch.Epoch)
		v, held := values(e.epoch)
		xs, train, highest = append(xs, x), append(train, v), max(highest, v)
		if held != nil {
			vxs, validation, highest = append(vxs, x), append(validation, *held), max(highest, *held)
		}
	}
	if title == "Accuracy" || highest == 0 {
		highest = 1
	}
	first, last := xs[0], xs[len(xs)-1]
	f := &epochFigure{Title: title, Validated: len(vxs) > 0,
		plane: plane{Width: figureWidth, Height: figureHeight, Left: 40, Right: figureWidth - 10, Top: 10, Bottom: figureHeight - 38,
			XMin: first, XMax: max(last, first+1), YMax: highest}}
	for _, v := range niceTicks(0, highest, 5) {
		f.YTicks = append(f.YTicks, tick{f.y(v), formatTick(v)})
	}
	f.XTicks = []tick{{f.x(first), strconv.Itoa(int(first))}}
	if last > first {
		f.XTicks = append(f.XTicks, tick{f.x(last), strconv.Itoa(int(last))})
	}
	f.Train, f.Validation = f.points(xs, train), f.points(vxs, validation)
	f.Describe = fmt.Sprintf("%s on the training part: %s in epoch %d, %s in epoch %d.", title, decimal(train[0], 3), int(first), decimal(train[len(train)-1], 3), int(last))
	return f
}

func (r *run) trainLede() []string {
	text := "One pass over the training examples is an epoch. Loss and accuracy on the training part are of the examples as they were seen: augmented, by the parameters of their time."
	return []string{text + " The validation part is run after the epoch, unchanged; the weights of the best epoch are in best.safetensors, those of the last in last.safetensors."}
}
