package orchestrate

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// Spec is a name with arguments, as users write methods and references:
// "zero", "blur(kernel=31,sigma=56)", "smoothgrad(integrated-gradients,samples=15)".
type Spec struct {
	Name string
	// Args are the arguments without a name, specs themselves.
	Args []Spec
	// Params are the named arguments: int, float64, bool or string.
	Params map[string]any
}

// String writes the spec so that equal specs are equal strings: parameters in
// name order, no blanks.
func (s Spec) String() string {
	if len(s.Args)+len(s.Params) == 0 {
		return s.Name
	}
	var parts []string
	for _, a := range s.Args {
		parts = append(parts, a.String())
	}
	for _, k := range slices.Sorted(maps.Keys(s.Params)) {
		parts = append(parts, k+"="+formatScalar(s.Params[k]))
	}
	return s.Name + "(" + strings.Join(parts, ",") + ")"
}

func formatScalar(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

// ParseSpec reads one spec.
func ParseSpec(text string) (Spec, error) {
	list, err := ParseSpecs(text)
	if err != nil {
		return Spec{}, err
	}
	if len(list) != 1 {
		return Spec{}, usage.Errorf("%q: want one name, there are %d", text, len(list))
	}
	return list[0], nil
}

// ParseSpecs reads specs separated by commas; commas within parentheses belong
// to their spec.
func ParseSpecs(text string) ([]Spec, error) {
	p := specParser{text: text}
	var out []Spec
	for {
		s, err := p.spec()
		if err != nil {
			return nil, err
		}
		out = append(out, s)
		if p.end() {
			return out, nil
		}
		if !p.eat(',') {
			return nil, p.bad("want a comma or the end")
		}
	}
}

type specParser struct {
	text  string
	at    int
	depth int
}

// maxSpecDepth bounds nesting; methods nest twice at most.
const maxSpecDepth = 8

func (p *specParser) spec() (Spec, error) {
	name := p.word()
	if name == "" {
		return Spec{}, p.bad("want a name")
	}
	s := Spec{Name: name}
	if !p.eat('(') {
		return s, nil
	}
	if p.depth++; p.depth > maxSpecDepth {
		return Spec{}, p.bad("nested too deeply")
	}
	defer func() { p.depth-- }()
	if p.eat(')') {
		return s, nil
	}
	for {
		if err := p.argument(&s); err != nil {
			return Spec{}, err
		}
		switch {
		case p.eat(')'):
			return s, nil
		case p.eat(','):
		default:
			return Spec{}, p.bad("want a comma or a closing parenthesis")
		}
	}
}

// argument reads "name=value", or a spec.
func (p *specParser) argument(s *Spec) error {
	start := p.at
	name := p.word()
	if !p.eat('=') {
		p.at = start
		arg, err := p.spec()
		if err != nil {
			return err
		}
		s.Args = append(s.Args, arg)
		return nil
	}
	p.blanks()
	from := p.at
	value := p.word()
	nested := p.eat('(')
	if nested { // a spec as a value: reference=blur(kernel=11)
		p.at = from
		spec, err := p.spec()
		if err != nil {
			return err
		}
		value = spec.String()
	}
	if name == "" || value == "" {
		return p.bad("want name=value")
	}
	if _, twice := s.Params[name]; twice {
		return p.bad(name + " is given twice")
	}
	if s.Params == nil {
		s.Params = map[string]any{}
	}
	if s.Params[name] = scalar(value); nested {
		s.Params[name] = value
	}
	return nil
}

// scalar gives a word the type that it looks like.
func scalar(word string) any {
	if n, err := strconv.Atoi(word); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(word, 64); err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
		return f
	}
	if word == "true" || word == "false" {
		return word == "true"
	}
	return word
}

func (p *specParser) word() string {
	p.blanks()
	start := p.at
	for p.at < len(p.text) && !strings.ContainsRune("(),= \t", rune(p.text[p.at])) {
		p.at++
	}
	return p.text[start:p.at]
}

func (p *specParser) blanks() {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
}

func (p *specParser) eat(c byte) bool {
	p.blanks()
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *specParser) end() bool {
	p.blanks()
	return p.at == len(p.text)
}

func (p *specParser) bad(why string) error {
	return usage.Errorf("%q: at character %d: %s", p.text, p.at+1, why)
}
