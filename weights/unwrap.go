package weights

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nlpodyssey/gopickle/types"
)

// wrapperKeys are the names under which training scripts put the state dict of
// a checkpoint, in the order in which they are looked for.
var wrapperKeys = []string{"state_dict", "model_state_dict", "model", "net"}

// partKeys are the names under which training scripts of adversarial nets put the state
// dict of each, in one file: their tensors are called "generator.net.0.weight".
var partKeys = []string{"generator", "discriminator"}

// parallelPrefix is what torch.nn.DataParallel puts before every name.
const parallelPrefix = "module."

// unwrap turns the object of a torch file into a state dict: it opens the
// wrappers, takes the prefix off and loads the tensors.
func unwrap(root any, format string, load *loader) (*StateDict, error) {
	entries, ok := entriesOf(root)
	if !ok {
		what := describe(root)
		if _, isTensor := root.(*tensorView); isTensor {
			what = "a single tensor"
		}
		return nil, fmt.Errorf("it holds %s: want a state dict (names with tensors)", what)
	}
	sd := &StateDict{Tensors: map[string]Tensor{}, Format: format}
	for range 4 { // wrappers within wrappers, but not without end
		inner, key := wrapped(entries)
		if inner == nil {
			break
		}
		for _, e := range entries {
			if e.Key != key {
				sd.Ignored = append(sd.Ignored, keyText(e.Key))
			}
		}
		entries = inner
	}

	for _, e := range flattened(entries) {
		name, isName := e.Key.(string)
		view, isTensor := e.Value.(*tensorView)
		if !isName || !isTensor {
			sd.Ignored = append(sd.Ignored, keyText(e.Key))
			continue
		}
		if _, twice := sd.Tensors[name]; twice {
			return nil, fmt.Errorf("tensor %q is there twice", name)
		}
		t, err := load.load(view)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		sd.Names = append(sd.Names, name)
		sd.Tensors[name] = t
	}
	if len(sd.Names) == 0 {
		return nil, fmt.Errorf("no tensors in it (its entries: %s): want a state dict, or a dict with one under %s",
			first(sd.Ignored, 5), strings.Join(wrapperKeys, ", "))
	}
	sd.dropPrefix()
	return sd, nil
}

// wrapped returns the entries of the state dict that a dict wraps, and its key.
func wrapped(entries []types.DictEntry) ([]types.DictEntry, string) {
	for _, key := range wrapperKeys {
		for _, e := range entries {
			if e.Key != key {
				continue
			}
			if inner, ok := entriesOf(e.Value); ok && holdsTensors(inner, 4) {
				return inner, key
			}
		}
	}
	return nil, ""
}

// flattened puts the entries of parts in the place of these.
func flattened(entries []types.DictEntry) []types.DictEntry {
	var out []types.DictEntry
	for _, e := range entries {
		key, _ := e.Key.(string)
		inner, isDict := entriesOf(e.Value)
		if !isDict || !slices.Contains(partKeys, key) || !holdsTensors(inner, 0) {
			out = append(out, e)
			continue
		}
		for _, i := range inner {
			if name, ok := i.Key.(string); ok {
				i.Key = key + "." + name
			}
			out = append(out, i)
		}
	}
	return out
}

// holdsTensors looks into dicts of dicts as deep as unwrap does.
func holdsTensors(entries []types.DictEntry, depth int) bool {
	for _, e := range entries {
		if _, ok := e.Value.(*tensorView); ok {
			return true
		}
	}
	if depth == 0 {
		return false
	}
	for _, key := range wrapperKeys {
		for _, e := range entries {
			if inner, ok := entriesOf(e.Value); ok && e.Key == key && holdsTensors(inner, depth-1) {
				return true
			}
		}
	}
	return false
}

// dropPrefix takes DataParallel's prefix off where every name has it.
func (s *StateDict) dropPrefix() {
	for {
		for _, name := range s.Names {
			if !strings.HasPrefix(name, parallelPrefix) || name == parallelPrefix {
				return
			}
		}
		tensors := make(map[string]Tensor, len(s.Names))
		for i, name := range s.Names {
			s.Names[i] = strings.TrimPrefix(name, parallelPrefix)
			tensors[s.Names[i]] = s.Tensors[name]
		}
		s.Tensors = tensors
		if len(s.Names) == 0 {
			return
		}
	}
}

func keyText(key any) string {
	if s, ok := key.(string); ok && len(s) <= 60 {
		return s
	}
	return describe(key)
}

// first lists the first n names.
func first(names []string, n int) string {
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > n:
		return strings.Join(names[:n], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}
