package weights

import (
	"fmt"

	"github.com/nlpodyssey/gopickle/types"

	"github.com/assay-xai/assay/internal/pickle"
)

// storage is a block of elements that the file holds under a key.
type storage struct {
	key string
	// dtype is "" for an untyped storage: its elements are bytes.
	dtype string
	// elements of the whole storage; first is where a view of it begins and
	// count how far it reaches (legacy files; elsewhere 0 and elements).
	elements, first, count int64
}

// tensorView is a tensor as the pickle describes it: elements of a storage.
type tensorView struct {
	storage *storage
	dtype   string
	offset  int64
	shape   []int64
	stride  []int64
}

// orderedDict is collections.OrderedDict with its order.
type orderedDict struct{ entries []types.DictEntry }

// Set appends an entry; later ones win, as in entriesOf.
func (d *orderedDict) Set(key, value any) {
	d.entries = append(d.entries, types.DictEntry{Key: key, Value: value})
}

// PyDictSet takes attributes (_metadata), which nothing here needs.
func (d *orderedDict) PyDictSet(any, any) error { return nil }

// opaque stands for a harmless value that is not read: a set, a counter, bytes.
type opaque struct{}

func (*opaque) Set(any, any)             {}
func (*opaque) Append(any)               {}
func (*opaque) Add(any)                  {}
func (*opaque) PyDictSet(any, any) error { return nil }
func (*opaque) PySetState(any) error     { return nil }

// function is an admitted name that the pickle may call.
type function = pickle.Function

// storageClass, dtypeName and className are admitted names that are only mentioned.
type (
	storageClass struct{ dtype string }
	dtypeName    struct{ dtype string }
	className    struct{ name string }
)

var storageTypes = map[string]string{
	"FloatStorage": "f32", "DoubleStorage": "f64", "HalfStorage": "f16", "BFloat16Storage": "bf16",
	"ByteStorage": "u8", "CharStorage": "i8", "ShortStorage": "i16", "IntStorage": "i32",
	"LongStorage": "i64", "BoolStorage": "bool", "UntypedStorage": "",
	"ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
	"QInt8Storage": "qint8", "QUInt8Storage": "quint8", "QInt32Storage": "qint32",
	"QUInt4x2Storage": "quint4x2", "QUInt2x4Storage": "quint2x4",
}

var torchTypes = map[string]string{
	"float32": "f32", "float": "f32", "float64": "f64", "double": "f64", "float16": "f16", "half": "f16",
	"bfloat16": "bf16", "uint8": "u8", "int8": "i8", "int16": "i16", "short": "i16", "int32": "i32",
	"int": "i32", "int64": "i64", "long": "i64", "bool": "bool",
	"complex32": "complex32", "complex64": "complex64", "complex128": "complex128",
	"qint8": "qint8", "quint8": "quint8", "qint32": "qint32",
	"float8_e4m3fn": "float8_e4m3fn", "float8_e5m2": "float8_e5m2",
	"float8_e4m3fnuz": "float8_e4m3fnuz", "float8_e5m2fnuz": "float8_e5m2fnuz",
	"uint16": "uint16", "uint32": "uint32", "uint64": "uint64",
}

// admitted returns what stands for a global of a pickle: the names that a state
// dict needs and nothing else. Callables here only build values of this file.
func admitted(module, name string) (any, bool) {
	switch module {
	case "torch", "torch.storage", "torch.cuda":
		if dtype, ok := storageTypes[name]; ok {
			return storageClass{dtype}, true
		}
		if name == "_UntypedStorage" {
			return storageClass{""}, true
		}
	}
	if dtype, ok := torchTypes[name]; ok && module == "torch" {
		return dtypeName{dtype}, true
	}
	if f, ok := map[string]function{
		"collections.OrderedDict":                    newOrderedDict,
		"torch._utils._rebuild_tensor":               rebuildTensor,
		"torch._utils._rebuild_tensor_v2":            rebuildTensor,
		"torch._utils._rebuild_tensor_v3":            rebuildTensorV3,
		"torch._utils._rebuild_parameter":            firstArgument,
		"torch._utils._rebuild_parameter_with_state": firstArgument,
		"torch._tensor._rebuild_from_type_v2":        rebuildFromType,
		"torch.Size":                                 firstArgument,
		"torch.device":                               ignoreArguments,
		"_codecs.encode":                             ignoreArguments,
		"collections.Counter":                        ignoreArguments,
		"collections.defaultdict":                    newOrderedDict,
		"builtins.set":                               ignoreArguments,
		"__builtin__.set":                            ignoreArguments,
		"builtins.bytearray":                         ignoreArguments,
		"__builtin__.bytearray":                      ignoreArguments,
	}[module+"."+name]; ok {
		return f, true
	}
	switch full := module + "." + name; full {
	case "torch.Tensor", "torch.nn.parameter.Parameter", "builtins.dict", "__builtin__.dict", "builtins.list", "__builtin__.list":
		return className{full}, true
	}
	return nil, false
}

// stateDictPickle bounds the description of a state dict: about 100 bytes and 8
// objects a tensor, 100 kB for ResNet-152.
func stateDictPickle() pickle.Limits {
	return pickle.Limits{Bytes: maxPickleBytes, Objects: maxPickleObjects, Depth: maxPickleDepth, Want: "want a dict of tensors and little else"}
}

const (
	maxPickleBytes   = 16 << 20
	maxPickleObjects = 1 << 20
	maxPickleDepth   = 1000
)

func scanPickle(b []byte) (pickle.Scanned, error) { return pickle.Scan(b, stateDictPickle()) }

// checkPickleMemory bounds what the pickles of a file may make the machine
// allocate: some 2 kB a tensor are normal, which the tensors' own bytes dwarf.
func checkPickleMemory(used, fileSize int64) error {
	if limit := 3<<20 + 4*fileSize; used > limit {
		return fmt.Errorf("its pickle wants some %d bytes of memory for a file of %d: want a dict of tensors and little else", used, fileSize)
	}
	return nil
}

// onlyTensors is the advice that goes with a refused name.
const onlyTensors = "only tensors are read (where you trust the file: load it in PyTorch and save model.state_dict() alone)"

// unpickle interprets a scanned pickle, which it may change. persistent turns
// the persistent ids (torch's storages) into values; nil: there may be none.
func unpickle(b []byte, scan pickle.Scanned, persistent func(id any) (any, error)) (any, error) {
	return pickle.Load(b, scan, pickle.Machine{Admit: admitted, Persistent: persistent, Advice: onlyTensors})
}

// loadStorage reads torch's persistent id: ("storage", class, key, location,
// elements[, view]), where view is None or (key, first, count).
func loadStorage(id any) (*storage, error) {
	t, ok := id.(*types.Tuple)
	if !ok || t.Len() < 5 {
		return nil, fmt.Errorf("persistent id %v: want torch's (\"storage\", class, key, location, size)", describe(id))
	}
	if t.Get(0) != "storage" {
		return nil, fmt.Errorf("%v inside the pickle: want storages only (save model.state_dict(), not the model)", describe(t.Get(0)))
	}
	class, ok := t.Get(1).(storageClass)
	if !ok {
		return nil, fmt.Errorf("storage of class %v: want one of torch's storages", describe(t.Get(1)))
	}
	key, ok := t.Get(2).(string)
	if !ok {
		return nil, fmt.Errorf("storage key %v: want a string", describe(t.Get(2)))
	}
	n, ok := t.Get(4).(int)
	if !ok || n < 0 {
		return nil, fmt.Errorf("storage %s of size %v: want a number of elements", key, describe(t.Get(4)))
	}
	s := &storage{key: key, dtype: class.dtype, elements: int64(n), count: int64(n)}
	if t.Len() < 6 || t.Get(5) == nil {
		return s, nil
	}
	view, ok := t.Get(5).(*types.Tuple)
	if !ok || view.Len() != 3 {
		return nil, fmt.Errorf("storage %s: view %v: want (key, first, size)", key, describe(t.Get(5)))
	}
	first, ok1 := view.Get(1).(int)
	count, ok2 := view.Get(2).(int)
	if !ok1 || !ok2 || first < 0 || count < 0 || first > n || count > n-first {
		return nil, fmt.Errorf("storage %s: view of %v elements from %v on: the storage has %d", key, describe(view.Get(2)), describe(view.Get(1)), n)
	}
	s.first, s.count = int64(first), int64(count)
	return s, nil
}

// rebuildTensor is torch._utils._rebuild_tensor[_v2](storage, offset, size,
// stride, ...): the rest (gradients, hooks) does not matter here.
func rebuildTensor(args []any) (any, error) {
	if len(args) < 4 {
		return nil, fmt.Errorf("a tensor of %d arguments: want storage, offset, size, stride", len(args))
	}
	s, ok := args[0].(*storage)
	if !ok {
		return nil, fmt.Errorf("a tensor without a storage")
	}
	offset, ok := args[1].(int)
	if !ok || offset < 0 {
		return nil, fmt.Errorf("a tensor at offset %v: want a number of elements", describe(args[1]))
	}
	shape, err := integers(args[2])
	if err != nil {
		return nil, fmt.Errorf("a tensor's size: %w", err)
	}
	stride, err := integers(args[3])
	if err != nil {
		return nil, fmt.Errorf("a tensor's stride: %w", err)
	}
	if len(shape) != len(stride) {
		return nil, fmt.Errorf("a tensor of size %v with stride %v: want equal lengths", shape, stride)
	}
	return &tensorView{storage: s, dtype: s.dtype, offset: int64(offset), shape: shape, stride: stride}, nil
}

// rebuildTensorV3 is _rebuild_tensor_v3(storage, offset, size, stride,
// requires_grad, hooks, dtype): an untyped storage, the type at the tensor.
func rebuildTensorV3(args []any) (any, error) {
	v, err := rebuildTensor(args)
	if err != nil {
		return nil, err
	}
	if len(args) < 7 {
		return nil, fmt.Errorf("a tensor of %d arguments: want a dtype as the seventh", len(args))
	}
	d, ok := args[6].(dtypeName)
	if !ok {
		return nil, fmt.Errorf("a tensor of dtype %v: want one of torch's", describe(args[6]))
	}
	t := v.(*tensorView)
	t.dtype = d.dtype
	return t, nil
}

// rebuildFromType is torch._tensor._rebuild_from_type_v2(function, type, args,
// state): a tensor with Python attributes, which are left out.
func rebuildFromType(args []any) (any, error) {
	if len(args) >= 3 {
		f, isFunction := args[0].(function)
		inner, isTuple := args[2].(*types.Tuple)
		if isFunction && isTuple {
			return f(*inner)
		}
	}
	return nil, fmt.Errorf("a tensor subclass: want plain tensors")
}

func newOrderedDict(args []any) (any, error) {
	d := &orderedDict{}
	if len(args) == 0 {
		return d, nil
	}
	if _, isClass := args[0].(className); isClass { // defaultdict(dict)
		return d, nil
	}
	pairs, ok := args[0].(*types.List)
	if !ok {
		return nil, fmt.Errorf("an OrderedDict of %v: want a list of pairs", describe(args[0]))
	}
	for _, p := range *pairs {
		var kv []any
		switch p := p.(type) {
		case *types.List:
			kv = *p
		case *types.Tuple:
			kv = *p
		}
		if len(kv) != 2 {
			return nil, fmt.Errorf("an OrderedDict of %v: want a list of pairs", describe(p))
		}
		d.Set(kv[0], kv[1])
	}
	return d, nil
}

func firstArgument(args []any) (any, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("a value without arguments: want at least one")
	}
	return args[0], nil
}

func ignoreArguments([]any) (any, error) { return &opaque{}, nil }

// integers reads a tuple or list of integers that are not negative.
func integers(v any) ([]int64, error) {
	var items []any
	switch v := v.(type) {
	case *types.Tuple:
		items = *v
	case *types.List:
		items = *v
	default:
		return nil, fmt.Errorf("%v: want a tuple of integers", describe(v))
	}
	out := make([]int64, len(items))
	for i, item := range items {
		n, ok := item.(int)
		if !ok || n < 0 {
			return nil, fmt.Errorf("%v: want integers, none negative", describe(item))
		}
		out[i] = int64(n)
	}
	return out, nil
}

// describe prints a value of a pickle in a message, briefly.
func describe(v any) string {
	switch v.(type) {
	case *orderedDict:
		return "a dict"
	case *tensorView:
		return "a tensor"
	case *storage, storageClass:
		return "a storage"
	case className, dtypeName:
		return "a class or function"
	}
	return pickle.Describe(v)
}

// entriesOf returns the entries of a dict, each key once, in order.
func entriesOf(v any) ([]types.DictEntry, bool) {
	if d, ok := v.(*orderedDict); ok {
		return pickle.Unique(d.entries), true
	}
	return pickle.Entries(v)
}
