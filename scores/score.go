package scores

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// Direction says which values of a score are good.
type Direction string

// The directions.
const (
	HigherIsBetter Direction = "higher is better"
	LowerIsBetter  Direction = "lower is better"
)

// Input is a thing that a score cannot do without.
type Input string

// The inputs.
const (
	// InputMap is a map of each image.
	InputMap Input = "map"
	// InputMaps is the method that made the map: the score asks it for more.
	InputMaps Input = "maps"
	// InputNet is a net that answers.
	InputNet Input = "net"
	// InputGraph is a net whose layers are known: no black box.
	InputGraph Input = "graph"
	// InputRegion is a box or mask of each image, of what is to be found.
	InputRegion Input = "region"
)

// Outputs of a net that a score looks at.
const (
	Probability = "probability" // softmax of the target class
	Logit       = "logit"       // its output before softmax
)

// Score is one way to judge maps.
type Score struct {
	ID, Summary string
	Direction   Direction
	Inputs      []Input
	// Output is what of the net is looked at by default; "" where no net is.
	Output string
	// Space is where images are changed: "normalised" (zero is the data set's
	// mean colour), or "" where none is.
	Space string
	Paper string
	// Parameters are in the order of the catalogue.
	Parameters []Parameter
	// Also describes the numbers in Result.Also.
	Also []Quantity
	// Version changes when the same inputs may give another value.
	Version int

	cost    func(s Subject, p values) Cost
	compute func(ctx context.Context, g *group, p values) ([]Result, error)
}

// Quantity is a number that a score gives beside its value.
type Quantity struct{ Name, Summary string }

// Parameter is a parameter of a score, in the form of the catalogue's entries.
type Parameter struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"` // "int", "float", "string", "bool"
	Default any      `json:"default"`
	Minimum *float64 `json:"minimum,omitempty"`
	Maximum *float64 `json:"maximum,omitempty"`
	Choices []string `json:"choices,omitempty"`
	Summary string   `json:"summary"`
}

// Registry returns every score, in the order of the catalogue.
func Registry() []Score {
	return []Score{
		le(), mo(), leMo(),
		deletion(), insertion(), pixelFlipping(),
		averageDrop(), increaseInConfidence(),
		faithfulnessCorrelation(), infidelity(),
		maxSensitivity(), sparseness(), complexity(),
		pointingGame(),
		randomisation(), randomLogit(),
	}
}

// ByID returns a score, or an error of usage that lists all.
func ByID(id string) (Score, error) {
	var ids []string
	for _, s := range Registry() {
		if s.ID == id {
			return s, nil
		}
		ids = append(ids, s.ID)
	}
	return Score{}, usage.Errorf("score %q: want one of %s", id, strings.Join(ids, ", "))
}

// Needs says whether the score cannot do without an input.
func (s Score) Needs(i Input) bool { return slices.Contains(s.Inputs, i) }

// Subject is what the cost of a score depends on beside its parameters.
type Subject struct {
	Shape  []int   // of the input: [C,H,W] or [F]
	Layers []Layer // of the net that have parameters; nil: not known
}

// Cost is about what one image and method cost.
type Cost struct {
	Forwards float64 // states that the net is asked for
	Maps     float64 // maps that the method is asked for, beside the first
}

// Estimate says what one image costs, before anything runs; parameters as in
// Compute, whose errors it has too.
func (s Score) Estimate(subject Subject, parameters map[string]any) (Cost, error) {
	p, err := s.resolve(parameters)
	if err != nil || s.cost == nil {
		return Cost{}, err
	}
	return s.cost(subject, p), nil
}

// Compute scores the maps of a group: one result an image, in their order.
// parameters overrides defaults (int, float64, bool, string). Errors are of usage
// where the group or a parameter does not fit; what is not defined for one image
// is in its result, and the others are not the worse for it.
func (s Score) Compute(ctx context.Context, g Group, parameters map[string]any) ([]Result, error) {
	p, err := s.resolve(parameters)
	if err != nil {
		return nil, err
	}
	run, err := s.admit(g)
	if err != nil {
		return nil, fmt.Errorf("score %s: %w", s.ID, err)
	}
	out := make([]Result, len(g.Images))
	if len(run.images) > 0 {
		done, err := s.compute(ctx, run, p)
		if err != nil {
			return nil, fmt.Errorf("score %s: %w", s.ID, err)
		}
		for i, r := range done {
			out[run.images[i].row] = settle(r)
		}
	}
	for row, why := range run.refused {
		out[row] = undefined(why)
	}
	return out, nil
}

// settle keeps numbers that are not finite out of results.
func settle(r Result) Result {
	if r.Undefined == "" && !isFinite(r.Value) {
		return undefined(NotFiniteValue)
	}
	for name, v := range r.Also {
		if !isFinite(v) {
			delete(r.Also, name)
		}
	}
	return r
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// values are a score's parameters, complete and of the declared types.
type values map[string]any

func (v values) int(name string) int       { return v[name].(int) }
func (v values) float(name string) float64 { return v[name].(float64) }
func (v values) text(name string) string   { return v[name].(string) }

// resolve fills in defaults and checks types, ranges and names.
func (s Score) resolve(given map[string]any) (values, error) {
	out := values{}
	for _, p := range s.Parameters {
		value, ok := given[p.Name]
		if !ok {
			value = p.Default
		}
		v, err := p.check(value)
		if err != nil {
			return nil, fmt.Errorf("score %s: %w", s.ID, err)
		}
		out[p.Name] = v
	}
	for name := range given {
		if _, ok := out[name]; !ok {
			var names []string
			for _, p := range s.Parameters {
				names = append(names, p.Name)
			}
			return nil, usage.Errorf("score %s: parameter %q: want one of %v", s.ID, name, names)
		}
	}
	return out, nil
}

func (p Parameter) check(value any) (any, error) {
	number, isNumber := 0.0, true
	switch n := value.(type) {
	case int:
		number = float64(n)
	case float64:
		number = n
	default:
		isNumber = false
	}
	switch p.Type {
	case "int":
		if !isNumber || number != math.Trunc(number) || math.Abs(number) > 1<<53 {
			return nil, usage.Errorf("%s %v: want a whole number", p.Name, value)
		}
		value = int(number)
	case "float":
		if !isNumber || !isFinite(number) {
			return nil, usage.Errorf("%s %v: want a number", p.Name, value)
		}
		value = number
	case "bool":
		if _, ok := value.(bool); !ok {
			return nil, usage.Errorf("%s %v: want true or false", p.Name, value)
		}
	default:
		text, ok := value.(string)
		if !ok {
			return nil, usage.Errorf("%s %v: want text", p.Name, value)
		}
		if len(p.Choices) > 0 && !slices.Contains(p.Choices, text) {
			return nil, usage.Errorf("%s %q: want one of %s", p.Name, text, strings.Join(p.Choices, ", "))
		}
	}
	if isNumber && p.Minimum != nil && number < *p.Minimum {
		return nil, usage.Errorf("%s %v: want at least %v", p.Name, value, *p.Minimum)
	}
	if isNumber && p.Maximum != nil && number > *p.Maximum {
		return nil, usage.Errorf("%s %v: want at most %v", p.Name, value, *p.Maximum)
	}
	return value, nil
}

// Parameters that several scores have.

func outputParameter(otherwise string) Parameter {
	return Parameter{Name: "output", Type: "string", Default: otherwise, Choices: []string{Probability, Logit},
		Summary: "what is read of the target class"}
}

func referenceParameter(otherwise, summary string) Parameter {
	return Parameter{Name: "reference", Type: "string", Default: otherwise, Summary: summary + " (an imputer of the catalogue)"}
}

// reduceParameter is for scores of pixels; keep: of all elements of a map, too.
func reduceParameter(otherwise string, keep bool) Parameter {
	choices := Reductions()
	if !keep {
		choices = choices[1:]
	}
	return Parameter{Name: "reduce", Type: "string", Default: otherwise, Choices: choices,
		Summary: "what the channels of a map become before it is scored"}
}

func number(v float64) *float64 { return &v }
