package orchestrate

import (
	"slices"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// Method reads a method of the catalogue as users write it, checks its parameters
// and fills in those that are left out, the base's too. name leaves out what is the
// default: equal methods have equal names. Errors are of usage and say what there
// is: unknown names with the nearest, ranges, a base where none is taken.
func (c Catalogue) Method(text string) (m MethodSpec, name string, err error) {
	s, err := c.spec(methods, text)
	if err != nil {
		return MethodSpec{}, "", err
	}
	return *s.method, s.short, nil
}

// methodSpec finds and completes a method and what it is made of.
func (c Catalogue) methodSpec(parsed Spec) (spec, error) {
	e, err := findEntry(string(methods), parsed.Name, c.Methods)
	if err != nil {
		return spec{}, err
	}
	if err := e.checkBase(parsed, c.Methods); err != nil {
		return spec{}, err
	}
	own := parsed
	own.Args = nil
	full, err := e.complete(string(methods), own)
	if err != nil {
		return spec{}, err
	}
	short := e.shorten(full)
	out := spec{entry: e, params: full.Params, method: &MethodSpec{ID: e.ID, Params: full.Params}}
	if e.Base != "" {
		usual, err := c.spec(methods, e.Base)
		if err != nil {
			return spec{}, err
		}
		base := usual
		if len(parsed.Args) == 1 {
			if base, err = c.methodSpec(parsed.Args[0]); err != nil {
				return spec{}, usage.Errorf("method %s: its base: %w", e.ID, err)
			}
		}
		if base.full != usual.full {
			short.Args = []Spec{base.shortSpec}
		}
		full.Args = []Spec{base.fullSpec}
		out.method.Base = base.method
	}
	out.shortSpec, out.fullSpec = short, full
	out.short, out.full = short.String(), full.String()
	return out, nil
}

// checkBase looks at the arguments without a name: the method that e is made of.
func (e Entry) checkBase(s Spec, all []Entry) error {
	for _, a := range s.Args {
		if slices.ContainsFunc(e.Parameters, func(p EntryParameter) bool { return p.Name == a.Name }) {
			return usage.Errorf("method %s: parameter %s: want %s=VALUE", e.ID, a.Name, a.Name)
		}
	}
	switch {
	case len(s.Args) == 0 || e.Base != "" && len(s.Args) == 1:
		return nil
	case e.Base != "":
		return usage.Errorf("method %s: %d methods to be made of: want one, for example %s(%s)", e.ID, len(s.Args), e.ID, e.Base)
	}
	first := s.Args[0]
	var takes []string
	for _, other := range all {
		if other.Base != "" {
			takes = append(takes, other.ID)
		}
	}
	hint := ""
	if len(takes) > 0 {
		hint = " (" + strings.Join(takes, ", ") + " do)"
	}
	return usage.Errorf("method %s takes no other method, %s was given as its base%s", e.ID, first, hint)
}
