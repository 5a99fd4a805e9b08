package pickle

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"

	"github.com/nlpodyssey/gopickle/pickle"
	"github.com/nlpodyssey/gopickle/types"
)

// Machine says what exists in the world of a pickle.
type Machine struct {
	// Admit returns what stands for a global; ok is false for names that are
	// refused.
	Admit func(module, name string) (value any, ok bool)
	// Persistent turns persistent ids into values; nil: there may be none.
	Persistent func(id any) (any, error)
	// Advice follows a refused name: what is read, and what to do.
	Advice string
}

// Function is an admitted name that the pickle may call.
type Function func(args []any) (any, error)

// Call implements types.Callable.
func (f Function) Call(args ...any) (any, error) {
	v, err := f(args)
	return v, Own(err)
}

// RefusedError names what a pickle wanted.
type RefusedError struct{ Name, Advice string }

func (e RefusedError) Error() string {
	name := e.Name
	if len(name) > 60 {
		name = name[:60] + "..."
	}
	return fmt.Sprintf("a pickle that asks to run %s: refused; %s", name, e.Advice)
}

// patched are modules that gopickle resolves itself before it asks FindClass:
// "collections" to a class that takes no arguments, while Python 2 wrote
// OrderedDict's entries as an argument; the others to classes that build
// objects of any kind. Their first byte is changed in GLOBAL opcodes.
var patched = []string{"collections\n", "__builtin__\n", "copy_reg\n"}

const patchMark = '\x01'

// Load interprets a scanned pickle, which it may change.
func Load(b []byte, scan Scanned, m Machine) (value any, err error) {
	defer func() {
		// gopickle indexes and hashes what it is given; a damaged pickle can
		// make it panic.
		if recover() != nil {
			value, err = nil, errUnfit
		}
	}()
	b = b[:scan.End]
	for _, at := range scan.Globals {
		for _, module := range patched {
			if bytes.HasPrefix(b[at+1:], []byte(module)) {
				b[at+1] = patchMark
			}
		}
	}
	u := pickle.NewUnpickler(bytes.NewReader(b))
	u.FindClass = func(module, name string) (any, error) {
		module = unpatched(module)
		if v, ok := m.Admit(module, name); ok {
			return v, nil
		}
		return nil, RefusedError{module + "." + name, m.Advice}
	}
	if m.Persistent != nil {
		u.PersistentLoad = func(id any) (any, error) {
			v, err := m.Persistent(id)
			return v, Own(err)
		}
	}
	value, err = u.Load()
	if err == nil {
		return value, nil
	}
	// What gopickle says is about its own types; what the caller says is not.
	var refused RefusedError
	var said ownError
	switch {
	case errors.As(err, &refused):
		return nil, refused
	case errors.As(err, &said):
		return nil, fmt.Errorf("the pickle is damaged: %w", said.error)
	}
	return nil, errUnfit
}

func unpatched(module string) string {
	if module == "" || module[0] != patchMark {
		return module
	}
	for _, p := range patched {
		if module[1:]+"\n" == p[1:] {
			return p[:len(p)-1]
		}
	}
	return module
}

// errUnfit says that the pickle machine stopped or panicked.
var errUnfit = errors.New("the pickle is damaged: its opcodes do not fit together (get the file again)")

// ownError marks the errors of admitted functions on their way through gopickle.
type ownError struct{ error }

// Own marks an error of a method that the machine calls (PySetState) as one
// whose words Load shall keep. Function's are marked anyway.
func Own(err error) error {
	if err == nil {
		return nil
	}
	return ownError{err}
}

// Describe prints a value of a pickle in a message, briefly: it may be huge or
// contain itself.
func Describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case string:
		if len(v) > 60 {
			v = v[:60] + "..."
		}
		return fmt.Sprintf("%q", v)
	case int, float64, bool:
		return fmt.Sprint(v)
	case *types.Tuple:
		return "a tuple"
	case *types.List:
		return "a list"
	case *types.Dict, *types.OrderedDict:
		return "a dict"
	case *types.Set, *types.FrozenSet:
		return "a set"
	case *big.Int:
		return "an integer beyond 64 bits"
	case []byte, *types.ByteArray:
		return "bytes"
	case Function, *types.GenericClass, *types.OrderedDictClass, *types.ObjectClass, *types.Reconstructor:
		return "a class or function"
	}
	return "an object"
}

// Entries returns the entries of a dict, each key once, in order.
func Entries(v any) ([]types.DictEntry, bool) {
	switch v := v.(type) {
	case *types.Dict:
		return Unique(*v), true
	case *types.OrderedDict:
		var raw []types.DictEntry
		for e := v.List.Front(); e != nil; e = e.Next() {
			entry := e.Value.(*types.OrderedDictEntry)
			raw = append(raw, types.DictEntry{Key: entry.Key, Value: entry.Value})
		}
		return Unique(raw), true
	}
	return nil, false
}

// Unique leaves one entry a key that is a string: the first one's place, the
// last one's value.
func Unique(raw []types.DictEntry) []types.DictEntry {
	seen := make(map[string]int, len(raw))
	out := make([]types.DictEntry, 0, len(raw))
	for _, e := range raw {
		if key, ok := e.Key.(string); ok {
			if at, again := seen[key]; again {
				out[at].Value = e.Value
				continue
			}
			seen[key] = len(out)
		}
		out = append(out, e)
	}
	return out
}
