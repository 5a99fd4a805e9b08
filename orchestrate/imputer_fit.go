package orchestrate

import (
	"github.com/assay-xai/assay/internal/usage"
)

// imputerFits says, by imputer, what parameters an input of a shape ([C,H,W] or [F])
// does not allow, so that it shows before anything runs. The device side checks again.
var imputerFits = map[string]func(s spec, shape []int) error{
	"blur": blurFits,
}

// blurFits checks the kernel, which is reflected at the border.
func blurFits(s spec, shape []int) error {
	if len(shape) == 1 {
		return neighboursOnly(s.entry.ID)
	}
	kernel, ok := s.params["kernel"].(int)
	if !ok {
		return nil
	}
	if kernel%2 == 0 {
		return usage.Errorf("kernel %d: want an odd number", kernel)
	}
	height, width := shape[len(shape)-2], shape[len(shape)-1]
	if most := 2*min(height, width) - 1; kernel > most {
		return usage.Errorf("kernel %d on inputs of %dx%d: want at most %d, for example %s(kernel=%[4]d)", kernel, height, width, most, s.entry.ID)
	}
	return nil
}

// checkImputer says that an imputer can do nothing with inputs of a shape; what is the
// parameter that names it.
func (r *Resolved) checkImputer(what string, s spec, shape []int) error {
	if s.entry.Needs == NeedsMask && len(shape) == 1 {
		return neighboursOnly(s.entry.ID)
	}
	var err error
	if check := imputerFits[s.entry.ID]; check != nil {
		err = check(s, shape)
	}
	if s.entry.Generator {
		err = r.generator.fits(shape)
	}
	if err != nil {
		// Of a plan with several nets or imputers the others go on.
		return &inapplicable{usage.Errorf("%s %s: %w", what, s.short, err)}
	}
	return nil
}

// checkRemover is checkImputer for what removes a net's inputs in data.
func (r *Resolved) checkRemover(what string, s spec, n *ResolvedNet, d *ResolvedData, shape []int) error {
	if err := r.checkImputer(what, s, shape); err != nil {
		return err
	}
	if s.entry.Generator {
		if err := r.generator.fitsScale(n, d); err != nil {
			return &inapplicable{usage.Errorf("%s %s: %w", what, s.short, err)}
		}
	}
	return nil
}

// baselineParameter is that of methods which names an imputer, with its defaults.
const baselineParameter = "baseline"

// checkMethodImputer is checkImputer for what a method deletes with.
func (r *Resolved) checkMethodImputer(name string, m *MethodSpec, shape []int) error {
	id, _ := m.Params[baselineParameter].(string)
	if id == "" {
		return nil
	}
	s, err := r.Catalogue.spec(imputers, id)
	if err != nil {
		return nil // no imputer: the method says what it is
	}
	return r.checkImputer("method "+name+": "+baselineParameter, s, shape)
}
