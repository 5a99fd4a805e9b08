package weights

import (
	"errors"
	"fmt"
	"io"
	"math/big"

	"github.com/nlpodyssey/gopickle/types"

	"github.com/assay-xai/assay/internal/pickle"
)

// The legacy layout (before PyTorch 1.6) is five pickles (magic number,
// protocol, system, the object, the list of storage keys), then for each key
// the number of elements (int64) and the elements, little-endian on every
// machine.

// legacyMagic is the first pickle of a legacy file.
const legacyMagic = "1950a86a20f9469cfc6c"

const legacyProtocol = 1001

type legacySource struct {
	r      io.ReaderAt
	starts map[string]int64 // of a storage's first element, in bytes
	sizes  map[string]int64 // in bytes
}

// pickleReader reads the pickles that follow each other in a file.
type pickleReader struct {
	r        io.ReaderAt
	at, size int64
	memory   int64 // of the pickles so far, pickle.Scanned.Memory
}

// next scans and interprets the pickle at the position and steps behind it.
func (p *pickleReader) next(persistent func(any) (any, error)) (any, error) {
	left := p.size - p.at
	for want := int64(1 << 16); ; want *= 4 {
		b := make([]byte, min(want, left, maxPickleBytes+64))
		if err := readFull(p.r, b, p.at); err != nil {
			return nil, err
		}
		scan, err := scanPickle(b)
		if errors.Is(err, pickle.ErrShort) && int64(len(b)) < left {
			continue
		}
		if errors.Is(err, pickle.ErrShort) {
			return nil, fmt.Errorf("truncated at byte %d: %w (get the file again)", p.size, err)
		}
		if err != nil {
			return nil, err
		}
		p.memory += scan.Memory
		if err := checkPickleMemory(p.memory, p.size); err != nil {
			return nil, err
		}
		p.at += int64(scan.End)
		return unpickle(b, scan, persistent)
	}
}

func readLegacy(r io.ReaderAt, size int64) (*StateDict, error) {
	p := &pickleReader{r: r, size: size}
	magic, err := p.next(nil)
	if err != nil {
		return nil, err
	}
	if n, ok := magic.(*big.Int); !ok || n.Text(16) != legacyMagic {
		return nil, fmt.Errorf("a Python pickle that torch.save did not write: want a state dict saved by torch.save, or safetensors")
	}
	protocol, err := p.next(nil)
	if err != nil {
		return nil, err
	}
	if protocol != legacyProtocol {
		return nil, fmt.Errorf("legacy protocol %v: want %d", describe(protocol), legacyProtocol)
	}
	if _, err := p.next(nil); err != nil { // the system: element sizes of C types
		return nil, err
	}
	storages := map[string]*storage{}
	root, err := p.next(func(id any) (any, error) {
		s, err := loadStorage(id)
		if err != nil {
			return nil, err
		}
		if known, ok := storages[s.key]; ok && (known.dtype != s.dtype || known.elements != s.elements) {
			return nil, fmt.Errorf("storage %s is both %d of %s and %d of %s", s.key, known.elements, known.dtype, s.elements, s.dtype)
		}
		storages[s.key] = s
		return s, nil
	})
	if err != nil {
		return nil, err
	}
	keys, err := p.next(nil)
	if err != nil {
		return nil, err
	}
	src, err := legacyStorages(p, keys, storages)
	if err != nil {
		return nil, err
	}
	return unwrap(root, "pth-legacy", newLoader(src, size))
}

// legacyStorages finds where each storage lies.
func legacyStorages(p *pickleReader, keys any, storages map[string]*storage) (*legacySource, error) {
	list, ok := keys.(*types.List)
	if !ok {
		return nil, fmt.Errorf("storage keys are %v: want a list", describe(keys))
	}
	src := &legacySource{r: p.r, starts: map[string]int64{}, sizes: map[string]int64{}}
	for _, k := range *list {
		key, _ := k.(string)
		s, ok := storages[key]
		if !ok {
			return nil, fmt.Errorf("storage key %v: no tensor uses it", describe(k))
		}
		var head [8]byte
		if err := readFull(p.r, head[:], p.at); err != nil {
			return nil, err
		}
		n := int64(0)
		for i := 7; i >= 0; i-- {
			n = n<<8 | int64(head[i])
		}
		if n != s.elements {
			return nil, fmt.Errorf("storage %s has %d elements, its tensors say %d", key, n, s.elements)
		}
		size := int64(1)
		if s.dtype != "" {
			var err error
			if size, err = elementSize(s.dtype); err != nil {
				return nil, fmt.Errorf("storage %s: %w", key, err)
			}
		}
		left := p.size - p.at - 8
		if n > left/size {
			return nil, fmt.Errorf("truncated: storage %s wants %d bytes, %d are left of the file (get the file again)", key, uint64(n)*uint64(size), left)
		}
		src.starts[key], src.sizes[key] = p.at+8, n*size
		p.at += 8 + n*size
	}
	return src, nil
}

func (l *legacySource) read(s *storage, p []byte, offset int64) error {
	n, ok := l.sizes[s.key]
	if !ok {
		return fmt.Errorf("no storage %s in the file", s.key)
	}
	if offset > n || int64(len(p)) > n-offset {
		return fmt.Errorf("storage %s has %d bytes: want at least %d", s.key, n, offset+int64(len(p)))
	}
	return readFull(l.r, p, l.starts[s.key]+offset)
}

func (l *legacySource) swapped() bool { return false }

// isPickle says whether b begins with a pickle: protocol 2 and later name
// themselves, older ones are told by being one from end to end with a name in it.
func isPickle(b []byte) bool {
	if len(b) > 1 && b[0] == 0x80 && b[1] <= 5 {
		return true
	}
	scan, err := scanPickle(b)
	return err == nil && len(scan.Globals) > 0
}
