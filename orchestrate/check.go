package orchestrate

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/usage"
)

// checkStatic finds what is wrong with a plan before anything is opened.
func checkStatic(p *Plan) (Study, error) {
	study, err := FindStudy(p.Study)
	if err != nil {
		return study, p.errorf("$.study", "%w", err)
	}
	if err := study.checkNames(p); err != nil {
		return study, err
	}
	for _, g := range p.parts() {
		for _, d := range study.Parameters {
			if _, err := study.values(p, g, d); err != nil {
				return study, err
			}
		}
	}
	switch {
	case len(p.Nets) == 0:
		return study, p.errorf("$.nets", "the plan has no nets: want at least one (--net)")
	case len(p.Data) == 0:
		return study, p.errorf("$.data", "the plan has no data: want at least one entry (--data)")
	case p.Precision != "" && !slices.Contains(Precisions(), p.Precision):
		return study, p.errorf("$.precision", "precision %q: %s", p.Precision, DidYouMean(p.Precision, Precisions()))
	case p.Threads < 0:
		return study, p.errorf("$.threads", "threads %d: want at least 1, or 0 for one a core", p.Threads)
	case p.Report.Images != nil && *p.Report.Images < 0:
		return study, p.errorf("$.report.images", "images %d: want 0 or more", *p.Report.Images)
	case p.Report.Alpha < 0:
		return study, p.errorf("$.report.alpha", "alpha %v: want more than 0", p.Report.Alpha)
	}
	seen := make(map[uint64]bool, len(p.Seeds))
	for i, s := range p.Seeds {
		if seen[s] {
			return study, p.errorf(fmt.Sprintf("$.seeds[%d]", i), "seed %d is there twice", s)
		}
		seen[s] = true
	}
	for i, n := range p.Nets {
		if n.Net == "" {
			return study, p.errorf(fmt.Sprintf("$.nets[%d]", i), "a net without its id (net: ...)")
		}
		if _, err := n.Preset.choose("imagenet"); err != nil {
			return study, p.errorf(fmt.Sprintf("$.nets[%d].preset", i), "%w", err)
		}
	}
	for i, d := range p.Data {
		at := fmt.Sprintf("$.data[%d]", i)
		if d.Path == "" {
			return study, p.errorf(at, "data without path")
		}
		if d.Limit < 0 {
			return study, p.errorf(at+".limit", "limit %d: want a number of items, or 0 for all", d.Limit)
		}
	}
	if err := study.checkReference(p); err != nil {
		return study, err
	}
	if err := study.checkClaims(p); err != nil {
		return study, err
	}
	if err := p.checkMaps(study); err != nil {
		return study, err
	}
	if err := p.checkTrain(); err != nil {
		return study, err
	}
	return study, p.checkGenerator()
}

// fits says whether the net can take the data at all.
func fits(n *ResolvedNet, d *ResolvedData) error {
	if d.Set.Kind == dataset.Images && len(n.Info.Input) == 1 {
		return usage.Errorf("net %s takes %d columns, %s holds images", n.Name, n.Info.Input[0], d.Set.Path)
	}
	if d.Set.Kind == dataset.Table && len(n.Info.Input) != 1 {
		return usage.Errorf("net %s takes images of shape %v, %s holds a table", n.Name, n.Info.Input, d.Set.Path)
	}
	return nil
}

// checkTarget checks "label", "predicted" or a class.
func checkTarget(target string, n *ResolvedNet, d *ResolvedData) error {
	switch target {
	case "", targetPredicted:
		return nil
	case targetLabel:
		if !d.Set.HasLabels {
			return usage.Errorf("target label: %s has no labels: give them with --labels FILE (\"file class\" a line), or take --target predicted", d.Set.Path)
		}
		return nil
	}
	class, err := strconv.Atoi(target)
	if err != nil {
		return usage.Errorf("target %q: want label, predicted or a class from 0", target)
	}
	if class < 0 || class >= n.Info.Classes {
		return usage.Errorf("target %d: net %s knows classes 0..%d", class, n.Name, n.Info.Classes-1)
	}
	return nil
}

const (
	targetLabel     = "label"
	targetPredicted = "predicted"
)

func targetParameter(fallback string) Parameter {
	return Parameter{Name: "target", Type: "string", Default: fallback,
		Summary: "tracked class: label, predicted, or a class from 0"}
}

// target is the tracked class of an image.
func target(text string, class int, predicted []int) int {
	switch text {
	case "", targetPredicted:
		return predicted[0]
	case targetLabel:
		return class
	}
	n, _ := strconv.Atoi(text)
	return n
}
