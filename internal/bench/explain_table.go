package bench

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// share of the limit that is reached; NaN where there is none.
func (l line) share() float64 { return l.ours / l.limit }

// wants lists what is wanted of a line against one other ("" library: against
// none), each with whether it is so.
func (l line) wants(a against) string {
	var out []string
	want := func(text string, met bool) {
		out = append(out, text+": "+map[bool]string{true: "yes", false: "**no**"}[met])
	}
	if a.want > 0 && a.rate == a.rate {
		want(fmt.Sprintf(">= %g x", a.want), l.ours/a.rate >= a.want)
	}
	if l.limit == l.limit {
		want(fmt.Sprintf(">= %.0f %%", 100*wantedShare), l.share() >= wantedShare)
	}
	if len(out) == 0 {
		return "-"
	}
	return strings.Join(out, "; ")
}

// cells are the lines of a table: one for each other library.
func (l line) cells() []string {
	needed, limit, share := l.needs.String(), "-", "-"
	if !l.known {
		needed = "not known"
	}
	switch {
	case l.tails > 0:
		needed = fmt.Sprintf("1 f + %d runs of what follows the layer, together %s", l.tails, needed)
	case l.ran.rows() == 0 || l.ran == l.needs:
	case l.needs.gradients == 0 && l.ran.gradients > 0: // counted as a gradient, wherever it is
		needed += " (and the gradient at the layer)"
	default:
		needed += fmt.Sprintf(" (ran %s)", l.ran)
	}
	if l.limit == l.limit {
		limit, share = fmt.Sprintf("%.4g", l.limit), fmt.Sprintf("%.0f %%", 100*l.share())
	}
	with := l.with
	if len(with) == 0 {
		with = []against{{rate: nan}}
	}
	var out []string
	for _, a := range with {
		name, rate, ratio := "-", "-", "-"
		if a.library != "" {
			name = a.library
			var notes []string
			for _, text := range []string{a.batch, a.note} {
				if text != "" {
					notes = append(notes, text)
				}
			}
			if len(notes) > 0 {
				name += " (" + strings.Join(notes, "; ") + ")"
			}
			rate, ratio = a.why, "-"
			if a.why == "" {
				rate, ratio = fmt.Sprintf("%.4g", a.rate), fmt.Sprintf("%.2f x", l.ours/a.rate)
			}
		}
		out = append(out, fmt.Sprintf("| %s | %.4g | %s | %s | %s | %s | %s | %s | %s |", l.name, l.ours, needed, limit, share, name, rate, ratio, l.wants(a)))
	}
	return out
}

func (b *bench) logLine(l *lab, one line) {
	for _, cells := range one.cells() {
		b.logf("%s %s", l.id, cells)
	}
}

// table is a note with the lines of a subject.
func (l *lab) table(what string, lines []line) string {
	out := []string{
		fmt.Sprintf("%s on %s, images a second, rows in batches of %d. \"Limit\" is what the net's raw rates at that batch allow for the rows that the "+
			"formula needs (f: forwards; g: forwards with the gradient at the input, which is what the row on forward and backward measures); the raw rates are "+
			"measured before and after each line, the others between two turns of ours.", strings.ToUpper(what[:1])+what[1:]+"s", l.title, l.batch),
		"",
		fmt.Sprintf("| %s | assay | needs | limit | reached | opponent | its rate | ratio | wanted |", what),
		"|---|---|---|---|---|---|---|---|---|"}
	for _, one := range lines {
		out = append(out, one.cells()...)
	}
	return strings.Join(out, "\n")
}

// stepsMemory is the peak of `assay explain` by integrated gradients with few and
// with many steps.
func (b *bench) stepsMemory(ctx context.Context) error {
	if !b.matches("resnet18", "memory") {
		return nil
	}
	n, info, err := b.net(ctx, "resnet18")
	if err != nil {
		return err
	}
	if err := n.Close(); err != nil {
		return err
	}
	file, err := b.weightsFile(info)
	if err != nil {
		return err
	}
	var first float64
	for _, steps := range []int{10, 200} {
		_, peak, err := b.child(ctx, "explain", "--net", "resnet18", "--weights", file, "--data", "embedded:photos", "--limit", "1", "--preset", "imagenet",
			"--methods", fmt.Sprintf("integrated-gradients(steps=%d)", steps), "--batch", "8", "--device", b.d.Name(),
			"--threads", strconv.Itoa(b.o.Threads), "--quiet", "--out", fmt.Sprintf("%s/steps%d", b.folder, steps))
		if err != nil {
			return err
		}
		row := Row{Name: fmt.Sprintf("peak memory of `assay explain`, ResNet-18, integrated gradients, %d steps, batch 8", steps), Ours: peak, Unit: "MiB", Theirs: nan, Ratio: nan}
		if steps == 10 {
			first = peak
		} else {
			row.Opponent, row.Theirs, row.Ratio, row.Target = "10 steps", first, peak/first, "1: the same"
		}
		b.add(row)
	}
	return nil
}
