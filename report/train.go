package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/assay-xai/assay/internal/record"
)

// trainPage shows a training: what came of its epochs.
type trainPage struct {
	Figures []*epochFigure
	Columns []epochColumn // of the table, between rate and seconds
	Rows    []epochRow
	// Validated says that some epoch has figures on the validation part.
	Validated bool

	lede            []string
	facts, settings []fact
}

// epochFigure is a curve of the training part and one of the validation part.
type epochFigure struct {
	plane
	Title, Describe   string
	XTicks, YTicks    []tick
	Train, Validation string // polylines, "" for none
}

// epochColumn is a figure of all epochs.
type epochColumn struct {
	// Name heads the column.
	Name string
	// of an epoch; nil where it was not measured.
	of   func(*record.TrainingEpoch) *float64
	text func(float64) string
}

type epochRow struct {
	Epoch   int
	Rate    string
	Values  []labelled
	Seconds string
}

// labelled is a cell that says which column it is in.
type labelled struct{ Label, Text string }

// epochTerms are what the figures of an epoch are called, and how they are shown.
type epochTerms struct {
	loss, accuracy, validationLoss, validationAccuracy epochColumn
	// figures have curves of the training part, of the validation part, or of both.
	figures []epochCurves
	// best is what makes an epoch the best, and what that is called.
	better func(a, b float64) bool
	best   epochColumn
}

type epochCurves struct {
	title             string
	train, validation func(*record.TrainingEpoch) *float64
	// whole says that the axis ends at 1.
	whole bool
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

// termsOf are those of nets, or of imputers.
func termsOf(e *record.TrainingEpoch) epochTerms {
	four := func(v float64) string { return decimal(v, 4) }
	share := func(v float64) string { return percent(v, 2) }
	t := epochTerms{
		loss:               epochColumn{"loss", func(e *record.TrainingEpoch) *float64 { return &e.Loss }, four},
		accuracy:           epochColumn{"accuracy", func(e *record.TrainingEpoch) *float64 { return &e.Accuracy }, share},
		validationLoss:     epochColumn{"validation loss", func(e *record.TrainingEpoch) *float64 { return e.ValidationLoss }, four},
		validationAccuracy: epochColumn{"validation accuracy", func(e *record.TrainingEpoch) *float64 { return e.ValidationAccuracy }, share},
	}
	if e.Imputer == "" {
		t.figures = []epochCurves{{"Loss", t.loss.of, t.validationLoss.of, false}, {"Accuracy", t.accuracy.of, t.validationAccuracy.of, true}}
		t.best, t.better = t.validationAccuracy, func(a, b float64) bool { return a > b }
		return t
	}
	t.loss.Name, t.accuracy.Name = "generator's loss", "discriminator right about pixels"
	t.validationLoss.Name, t.validationAccuracy.Name = "validation error (MSE)", "discriminator right, validation"
	t.validationLoss.text = func(v float64) string { return decimal(v, 5) }
	t.figures = []epochCurves{{"Error (MSE) of imputed images", nil, t.validationLoss.of, false}, {"Generator's loss", t.loss.of, nil, false},
		{"Discriminator right about pixels", t.accuracy.of, t.validationAccuracy.of, true}}
	t.best, t.better = t.validationLoss, func(a, b float64) bool { return a < b }
	return t
}

func (r *run) trainPage() *trainPage {
	epochs, info := r.epochsOf(), r.trainInfo()
	last := epochs[len(epochs)-1].epoch
	t := termsOf(last)
	p := &trainPage{Columns: []epochColumn{t.loss, t.accuracy, t.validationLoss, t.validationAccuracy},
		Validated: info.Validation.Items > 0 || slices.ContainsFunc(epochs, func(e *entry) bool { return t.best.of(e.epoch) != nil })}
	if !p.Validated {
		p.Columns = p.Columns[:2]
	}
	p.lede, p.settings = info.lede(last.Imputer, p.Validated), info.settings(last.Imputer, r.settings())
	best, bestValue, seconds := 0, 0., 0.
	for _, e := range epochs {
		seconds += e.cost.Seconds
		row := epochRow{Epoch: e.epoch.Epoch, Rate: strconv.FormatFloat(e.epoch.Rate, 'g', 4, 64), Seconds: decimal(e.cost.Seconds, 1)}
		for _, c := range p.Columns {
			text := missing
			if v := c.of(e.epoch); v != nil {
				text = c.text(*v)
			}
			row.Values = append(row.Values, labelled{c.Name, text})
		}
		p.Rows = append(p.Rows, row)
		v := t.best.of(e.epoch)
		if v != nil && (best == 0 || t.better(*v, bestValue)) {
			best, bestValue = e.epoch.Epoch, *v
		}
	}
	for _, f := range t.figures {
		if figure := newEpochFigure(epochs, f); figure != nil {
			p.Figures = append(p.Figures, figure)
		}
	}
	p.facts = []fact{{"epochs", grouped(int64(len(epochs))), decimal(seconds, 1) + " seconds"}}
	switch last.Imputer {
	case "":
		p.facts = append(p.facts, fact{"training accuracy", percent(last.Accuracy, 1), "in the last epoch"})
		if best > 0 {
			p.facts = append(p.facts, fact{t.best.Name, percent(bestValue, 1), fmt.Sprintf("the highest, in epoch %d", best)})
		}
	default:
		if best > 0 {
			p.facts = append(p.facts, fact{t.best.Name, t.best.text(bestValue), fmt.Sprintf("the lowest, in epoch %d", best)})
		}
		if v := lastMeanImageError(epochs); v != nil {
			p.facts = append(p.facts, fact{"error of the mean image alone", t.best.text(*v), "about, on the validation part"})
		}
		note := "of the training part, in the last epoch"
		if known := info.knownShare(); known > 0 {
			note += fmt.Sprintf("; %s are known on average", percent(known, 1))
		}
		p.facts = append(p.facts, fact{t.accuracy.Name, percent(last.Accuracy, 1), note})
	}
	return p
}

// newEpochFigure is nil where nothing that it would show was measured.
func newEpochFigure(epochs []*entry, curves epochCurves) *epochFigure {
	highest := 0.
	collect := func(of func(*record.TrainingEpoch) *float64) (xs, ys []float64) {
		if of == nil {
			return nil, nil
		}
		for _, e := range epochs {
			if v := of(e.epoch); v != nil {
				xs, ys, highest = append(xs, float64(e.epoch.Epoch)), append(ys, *v), max(highest, *v)
			}
		}
		return xs, ys
	}
	xs, train := collect(curves.train)
	vxs, validation := collect(curves.validation)
	told, part := train, "training"
	if curves.train == nil {
		told, part = validation, "validation"
	}
	if len(told) == 0 {
		return nil
	}
	if curves.whole || highest == 0 {
		highest = 1
	}
	first, last := float64(epochs[0].epoch.Epoch), float64(epochs[len(epochs)-1].epoch.Epoch)
	f := &epochFigure{Title: curves.title,
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
	f.Describe = fmt.Sprintf("%s on the %s part: %s in the first epoch, %s in the last.", curves.title, part, decimal(told[0], 3), decimal(told[len(told)-1], 3))
	return f
}

// lastMeanImageError is what the mean image alone would have as validation error, nil where
// nothing was validated.
func lastMeanImageError(epochs []*entry) *float64 {
	for _, e := range slices.Backward(epochs) {
		if v := e.epoch.MeanImageError; v != nil {
			return v
		}
	}
	return nil
}
