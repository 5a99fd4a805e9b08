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
	if len(shape) == 1 && s.entry.Generator {
		return notOfTables(s.entry.ID, "it is a net for images, and a table has none")
	}
	if len(shape) == 1 && s.entry.Needs == NeedsMask {
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

// sameOnTables are imputers that leave the columns of a table as they are, and why.
func sameOnTables() map[string]string {
	return map[string]string{
		"channel-mean": "a column is a channel of its own, and the mean of one value is that value, so that nothing would be removed",
		"patch-mean":   "columns are removed one by one, and the mean of one value is that value, so that nothing would be removed",
	}
}

// notOfTables is the error of an imputer that does nothing for tables.
func notOfTables(imputer, why string) error {
	return &inapplicable{usage.Errorf("imputer %s: %s: want another imputer, for example dataset-mean", imputer, why)}
}

// neighboursOnly is that of an imputer that goes by what is beside a pixel.
func neighboursOnly(imputer string) error {
	return notOfTables(imputer, "columns of a table have no neighbours")
}

// checkRemover is checkImputer for what removes a net's inputs in data.
func (r *Resolved) checkRemover(what string, s spec, n *ResolvedNet, d *ResolvedData, shape []int) error {
	if why, same := sameOnTables()[s.entry.ID]; same && len(shape) == 1 {
		return notOfTables(s.short, why)
	}
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
