package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/scores"
)

// wantedQuantus is the ratio that is wanted against Quantus.
const wantedQuantus = 3

// judged is a score as it is measured.
type judged struct {
	scores.Score
	parameters map[string]any
	others     []other
}

func (j judged) name() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(j.parameters)) {
		parts = append(parts, fmt.Sprintf("%s=%v", k, j.parameters[k]))
	}
	if parts == nil {
		return j.ID
	}
	return j.ID + "(" + strings.Join(parts, ",") + ")"
}

// judgements lists all scores with their defaults, and those that Quantus has with
// parameters that make both sides evaluate about as often.
func (s subject) judgements() []judged {
	quantus := func(id string, options map[string]any, note string) []other {
		return []other{{library: "Quantus", method: id, options: options, want: wantedQuantus, note: note}}
	}
	// Quantus changes channels of pixels, ours pixels: a third as many.
	step, patch := 1024, 56
	if s.small {
		step, patch = 32, 8
	}
	pixels := s.side() * s.side()
	evaluations := (3*pixels + step - 1) / step
	flips := map[string]any{"step": step}
	var out []judged
	for _, score := range scores.Registry() {
		switch score.ID {
		case "pixel-flipping":
			out = append(out,
				judged{score, map[string]any{"step": (pixels + evaluations - 1) / evaluations},
					quantus(score.ID, flips, fmt.Sprintf("%d channels of pixels a step: as many evaluations", step))},
				judged{score, flips, quantus(score.ID, flips, fmt.Sprintf("%d channels of pixels a step: three times the evaluations", step))})
		case "infidelity":
			options := map[string]any{"patch": patch}
			out = append(out, judged{score, options, quantus(score.ID, options, "one sample of its ten, which are the same")})
		case "faithfulness-correlation":
			options := map[string]any{"runs": 100, "features": 224}
			out = append(out, judged{score, options, quantus(score.ID, options, "")})
		default:
			out = append(out, judged{Score: score})
		}
	}
	return out
}

// score measures every score, of maps by the gradient.
func (b *bench) score(ctx context.Context) error {
	return b.onSubjects(ctx, "score", func(l *lab) ([]line, error) {
		if l.brief {
			return nil, nil
		}
		layers, err := l.layers(ctx)
		if err != nil {
			return nil, err
		}
		var lines []line
		for _, j := range l.judgements() {
			if !b.matches(l.id, j.name()) {
				continue
			}
			cost, err := j.Estimate(scores.Subject{Shape: l.net.Info().Input, Layers: layers}, j.parameters)
			if err != nil {
				return nil, err
			}
			one := line{name: j.name(), known: true, needs: needs{forwards: cost.Forwards, gradients: cost.Maps}}
			if err := l.judge(ctx, j, &one); err != nil {
				return nil, fmt.Errorf("%s: %w", j.name(), err)
			}
			b.logLine(l, one)
			lines = append(lines, one)
		}
		return lines, nil
	})
}

// gradient is the method whose maps are judged.
func gradient() orchestrate.MethodSpec { return orchestrate.MethodSpec{ID: "gradient"} }

// layers are those whose parameters can be drawn anew.
func (l *lab) layers(ctx context.Context) ([]scores.Layer, error) {
	images, err := l.images(ctx, 1)
	if err != nil {
		return nil, err
	}
	defer images.Close()
	stage, err := l.net.Stage(ctx, images, orchestrate.StageSpec{Batch: l.batch})
	if err != nil {
		return nil, err
	}
	defer stage.Close()
	return stage.Layers(), nil
}

// judge measures a score on a group of images, like a run of the study.
func (l *lab) judge(ctx context.Context, j judged, out *line) error {
	n := orchestrate.ImagesOfACall(l.batch, out.needs.rows())
	images, err := l.images(ctx, n)
	if err != nil {
		return err
	}
	defer images.Close()
	method := gradient()
	spec, err := l.asked(ctx, images, method)
	if err != nil {
		return err
	}
	made, err := l.net.Attribute(ctx, images, spec)
	if err != nil {
		return err
	}
	stage, err := l.net.Stage(ctx, images, orchestrate.StageSpec{Method: &method, Keys: spec.Keys, Preset: l.preset, Batch: l.batch})
	if err != nil {
		return err
	}
	defer stage.Close()
	group := scores.Group{Stage: stage}
	for i := range n {
		group.Images = append(group.Images, scores.Image{ID: fmt.Sprint(i), Target: spec.Targets[i],
			Map:    scores.Map{Shape: made.Shape, Values: made.Maps[i]},
			Region: &scores.Region{Boxes: []scores.Box{{X0: 0, Y0: 0, X1: l.side() / 2, Y1: l.side() / 2}}}})
	}
	ours := func() (float64, error) {
		return paced(ctx, turnPart*l.b.o.Seconds, n, func() error {
			_, err := j.Compute(ctx, group, j.parameters)
			return err
		})
	}
	return l.compare(ctx, out, ours, j.others)
}
