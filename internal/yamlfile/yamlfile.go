// Package yamlfile reads YAML that strangers wrote: plans, presets, schemas.
//
// The parser under it takes some 400 bytes for a byte of text, a string a level
// for every value of a deep nest, and a copy of all keys for every key; and a
// few aliases of aliases say more than any memory holds. So text is looked at
// first: its size, how deep it nests, how many keys a mapping has, and how much
// its aliases stand for. What is refused is far beyond what anybody writes.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"reflect"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/assay-xai/assay/internal/usage"
)

const (
	// MaxBytes bounds the text: a plan with a thousand published rows fits.
	MaxBytes = 128 << 10
	maxDepth = 40
	maxKeys  = 1000
	// maxValues bounds the values that the text stands for, aliases written out.
	maxValues = 1 << 16
)

// Parse returns the syntax tree of a text. name stands for the text in errors,
// which give line and column, are one line each, and satisfy
// errors.Is(err, usage.Err).
func Parse(name string, text []byte) (file *ast.File, err error) {
	defer rescue(name, &err)
	if err := check(text); err != nil {
		return nil, usage.Errorf("%s%w", name, err)
	}
	if file, err = parser.ParseBytes(text, 0); err != nil {
		return nil, Error(name, err)
	}
	w := walker{sizes: map[string]int{}}
	for _, doc := range file.Docs {
		if _, err := w.size(doc.Body); err != nil {
			return nil, Error(name, err)
		}
	}
	return file, nil
}

// Decode reads a text into a Go value. Unknown keys are errors; errors are as
// Parse's.
func Decode(name string, text []byte, into any) (err error) {
	defer rescue(name, &err)
	if _, err := Parse(name, text); err != nil {
		return err
	}
	return Error(name, yaml.UnmarshalWithOptions(text, into, yaml.Strict()))
}

// rescue turns a panic of the parser into an error.
func rescue(name string, err *error) {
	if recover() != nil {
		*err = usage.Errorf("%s: no YAML that can be read", name)
	}
}

// Error puts file, line and column before what the parser says, in the words of
// YAML. nil stays nil.
func Error(name string, err error) error {
	if err == nil {
		return nil
	}
	message := func() string {
		var wrong *yaml.TypeError
		var large *yaml.OverflowError
		var parsed yaml.Error
		switch {
		case errors.As(err, &wrong):
			return fmt.Sprintf("%s: want %s", kind(wrong.SrcType), kind(wrong.DstType))
		case errors.As(err, &large):
			return fmt.Sprintf("%s: want %s within its range", large.SrcNum, kind(large.DstType))
		case errors.As(err, &parsed):
			return parsed.GetMessage()
		case errors.Is(err, yaml.ErrExceededMaxDepth):
			return "nested too deeply"
		}
		return err.Error()
	}()
	var e yaml.Error
	if errors.As(err, &e) && e.GetToken() != nil && e.GetToken().Position != nil {
		at := e.GetToken().Position
		return usage.Errorf("%s:%d:%d: %w", name, at.Line, at.Column, usage.Line(errors.New(message), ""))
	}
	return usage.Errorf("%s: %w", name, usage.Line(errors.New(message), ""))
}

// kind is YAML's word for what a Go type holds.
func kind(t reflect.Type) string {
	if t == nil {
		return "nothing"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return kind(t.Elem())
	case reflect.Struct, reflect.Map:
		return "a mapping"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	}
	return "a value"
}

// check looks at the lines, without parsing them. Quotes and block texts are
// not told apart from the rest, which errs on the safe side: their lines count
// as keys, and brackets in them that are never closed as depth.
func check(text []byte) error {
	if len(text) > MaxBytes {
		return fmt.Errorf(": %d bytes: want at most %d", len(text), MaxBytes)
	}
	type level struct{ indent, keys int }
	var levels []level
	flow, number := 0, 0
	for line := range bytes.Lines(text) {
		number++
		content := bytes.TrimLeft(line, " \t")
		indent := len(line) - len(content)
		content = bytes.TrimSpace(content)
		if len(content) == 0 || content[0] == '#' {
			continue
		}
		for flow == 0 { // one round for each dash or question mark
			for len(levels) > 0 && levels[len(levels)-1].indent > indent {
				levels = levels[:len(levels)-1]
			}
			if len(levels) == 0 || levels[len(levels)-1].indent < indent {
				levels = append(levels, level{indent, 0})
			}
			opens := len(content) > 1 && (content[0] == '-' || content[0] == '?') && (content[1] == ' ' || content[1] == '\t')
			if !opens {
				levels[len(levels)-1].keys++
				break
			}
			rest := bytes.TrimLeft(content[1:], " \t")
			indent += len(content) - len(rest)
			content = rest
			if len(levels) > maxDepth {
				break
			}
		}
		for _, c := range content {
			switch c {
			case '[', '{':
				flow++
			case ']', '}':
				flow = max(0, flow-1)
			}
			if flow > maxDepth {
				break
			}
		}
		// Dashes behind a key are no YAML, but the parser goes down with them.
		if len(levels)+flow > maxDepth || bytes.Count(content, []byte(" - ")) > maxDepth {
			return fmt.Errorf(":%d: nested deeper than %d", number, maxDepth)
		}
		if len(levels) > 0 && levels[len(levels)-1].keys > maxKeys {
			return fmt.Errorf(":%d: more than %d keys in a mapping", number, maxKeys)
		}
	}
	return nil
}

// walker counts the values that a tree stands for.
type walker struct {
	// sizes of what anchors name; -1 while it is not complete.
	sizes map[string]int
}

func (w walker) size(node ast.Node) (int, error) {
	total := 1
	add := func(nodes ...ast.Node) error {
		for _, n := range nodes {
			size, err := w.size(n)
			if err != nil {
				return err
			}
			sum, carry := bits.Add(uint(total), uint(size), 0)
			if carry != 0 || sum > maxValues {
				return &yaml.SyntaxError{Message: fmt.Sprintf("with its aliases it stands for more than %d values", maxValues), Token: n.GetToken()}
			}
			total = int(sum)
		}
		return nil
	}
	var err error
	switch n := node.(type) {
	case nil:
		return 0, nil
	case *ast.MappingNode:
		for _, v := range n.Values {
			if err = add(v.Key, v.Value); err != nil {
				break
			}
		}
	case *ast.MappingValueNode:
		err = add(n.Key, n.Value)
	case *ast.MappingKeyNode:
		err = add(n.Value)
	case *ast.SequenceNode:
		err = add(n.Values...)
	case *ast.TagNode:
		err = add(n.Value)
	case *ast.AnchorNode:
		name := n.Name.String()
		w.sizes[name] = -1
		if err = add(n.Value); err == nil {
			w.sizes[name] = total
		}
	case *ast.AliasNode:
		size := w.sizes[n.Value.String()]
		if size < 0 {
			return 0, &yaml.SyntaxError{Message: fmt.Sprintf("alias %s stands within what it names", usage.Quote(n.Value.String())), Token: n.GetToken()}
		}
		total += size
	}
	return total, err
}
