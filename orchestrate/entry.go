package orchestrate

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// findEntry finds an entry of a catalogue; what names the catalogue in errors
// ("net", "reference").
func findEntry(what, id string, entries []Entry) (Entry, error) {
	names := make([]string, len(entries))
	for i, e := range entries {
		if e.ID == id {
			return e, nil
		}
		names[i] = e.ID
	}
	return Entry{}, usage.Errorf("%s %q: %s", what, id, DidYouMean(id, names))
}

// variant is the form of a net for rows of a shape: cnn3 on [1,28,28] is
// cnn3-fashion. A net that has none, or takes the rows, is its own; nets on
// columns take images row by row.
func (c Catalogue) variant(e Entry, row []int) Entry {
	if row == nil || len(e.Input) == 1 || slices.Equal(e.Input, row) {
		return e
	}
	for _, other := range c.Nets {
		if strings.HasPrefix(other.ID, e.ID+"-") && slices.Equal(other.Input, row) {
			return other
		}
	}
	return e
}

func (c Catalogue) hasVariants(e Entry) bool {
	return len(e.Input) != 1 && slices.ContainsFunc(c.Nets, func(other Entry) bool { return strings.HasPrefix(other.ID, e.ID+"-") })
}

// spec is a spec of the catalogue in two ways of writing.
type spec struct {
	// short leaves out what is the default, full writes everything.
	short, full string
	entry       Entry
	params      map[string]any
	// Of methods: the specs that short and full write, and what a backend is asked.
	shortSpec, fullSpec Spec
	method              *MethodSpec
}

// spec finds and completes what a user wrote.
func (c Catalogue) spec(of catalogueOf, text string) (spec, error) {
	parsed, err := ParseSpec(text)
	if err != nil {
		return spec{}, usage.Errorf("%s %w", of, err)
	}
	switch of {
	case methods:
		return c.methodSpec(parsed)
	case scoreMetrics:
		return c.metricSpec(parsed)
	}
	e, err := findEntry(string(of), parsed.Name, c.Imputers)
	if err != nil {
		return spec{}, err
	}
	full, err := e.complete(string(of), parsed)
	if err != nil {
		return spec{}, err
	}
	return spec{short: e.shorten(full).String(), full: full.String(), entry: e, params: full.Params}, nil
}

// shorten leaves out the parameters that are the default.
func (e Entry) shorten(full Spec) Spec {
	short := Spec{Name: full.Name, Params: map[string]any{}}
	for _, p := range e.Parameters {
		v, ok := full.Params[p.Name]
		if !ok {
			continue
		}
		if d, err := p.coerce(p.Default); err != nil || d != v {
			short.Params[p.Name] = v
		}
	}
	return short
}

// reference is what the backend is asked for.
func (c Catalogue) reference(text string) (Reference, error) {
	s, err := c.spec(imputers, text)
	return Reference{ID: s.entry.ID, Params: s.params}, err
}

// complete checks the spec's parameters against those that the entry declares
// and gives those that are left out their defaults, so that a default written
// out and one left out are the same spec.
func (e Entry) complete(what string, s Spec) (Spec, error) {
	if len(s.Args) > 0 {
		return Spec{}, usage.Errorf("%s %s: want name=value for %s", what, s.Name, s.Args[0])
	}
	names := make([]string, len(e.Parameters))
	out := Spec{Name: s.Name}
	for i, p := range e.Parameters {
		names[i] = p.Name
		value, given := s.Params[p.Name]
		if !given {
			value = p.Default
		}
		if value == nil {
			continue
		}
		v, err := p.coerce(value)
		if err != nil {
			return Spec{}, usage.Errorf("%s %s: %w", what, s.Name, err)
		}
		if out.Params == nil {
			out.Params = map[string]any{}
		}
		out.Params[p.Name] = v
	}
	for name := range s.Params {
		if _, ok := out.Params[name]; !ok && len(names) == 0 {
			return Spec{}, usage.Errorf("%s %s: parameter %q: %[2]s has no parameters", what, s.Name, name)
		} else if !ok {
			return Spec{}, usage.Errorf("%s %s: parameter %q: %s", what, s.Name, name, DidYouMean(name, names))
		}
	}
	return out, nil
}

// coerce gives a value the parameter's type and checks its range.
func (p EntryParameter) coerce(value any) (any, error) {
	number, isNumber := toFloat(value)
	switch p.Type {
	case "int":
		if !isNumber || number != math.Trunc(number) {
			return nil, usage.Errorf("%s %v: want a whole number", p.Name, value)
		}
		value = int(number)
	case "float":
		if !isNumber {
			return nil, usage.Errorf("%s %v: want a number", p.Name, value)
		}
		value = number
	case "bool":
		if _, ok := value.(bool); !ok {
			return nil, usage.Errorf("%s %v: want true or false", p.Name, value)
		}
	default:
		if _, ok := value.(string); !ok {
			value = formatScalar(value)
		}
		if len(p.Choices) > 0 {
			for _, c := range p.Choices {
				if c == value {
					return value, nil
				}
			}
			return nil, usage.Errorf("%s %q: %s", p.Name, value, DidYouMean(value.(string), p.Choices))
		}
		return value, nil
	}
	if isNumber && p.Minimum != nil && number < *p.Minimum {
		return nil, usage.Errorf("%s %v: want at least %v", p.Name, value, *p.Minimum)
	}
	if isNumber && p.Maximum != nil && number > *p.Maximum {
		return nil, usage.Errorf("%s %v: want at most %v", p.Name, value, *p.Maximum)
	}
	return value, nil
}

// toFloat reads any number that YAML, JSON or a flag gives.
func toFloat(v any) (float64, bool) {
	switch n := v.(type) {
	case int:
		return float64(n), true
	case int64:
		return float64(n), true
	case uint64:
		return float64(n), true
	case float64:
		return n, !math.IsNaN(n) && !math.IsInf(n, 0)
	case string: // YAML's 1e-3 is a string to the parser
		f, err := strconv.ParseFloat(n, 64)
		return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
	}
	return 0, false
}
