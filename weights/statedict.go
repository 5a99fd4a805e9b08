package weights

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"sort"
)

// Tensor is one entry of a state dict: contiguous, row-major, little-endian.
type Tensor struct {
	// DType is "f32", "f64", "f16", "bf16", "u8", "i8", "i16", "i32", "i64" or "bool".
	DType string
	Shape []int64
	Data  []byte
}

// StateDict is the content of a weights file.
type StateDict struct {
	// Names in the file's order, prefixes and wrappers taken off; of files with a dict for
	// each of two adversaries theirs come first: "generator.net.0.weight".
	Names   []string
	Tensors map[string]Tensor
	// Format is "pth-legacy", "pth-zip" or "safetensors".
	Format string
	// Hash is the SHA-256 of the file's bytes in hex.
	Hash string
	// Ignored names the entries that are not tensors (epoch, optimizer, ...)
	// and were left out, in the file's order.
	Ignored []string
	// Metadata is the free text of a safetensors file; nil for others.
	Metadata map[string]string
}

// Parameter is what a net asks for (tx_net_describe).
type Parameter struct {
	Name     string  `json:"name"`
	Shape    []int64 `json:"shape"`
	Buffer   bool    `json:"buffer"`
	Optional bool    `json:"optional"`
}

// ContentHash is the SHA-256 (hex) of the tensors alone: names in sorted order,
// each with its type, shape and data. Two files with the same tensors have the
// same content hash whatever their format, order or wrapping, so it identifies
// weights where the file's own hash would be too strict.
func (s *StateDict) ContentHash() string {
	names := append([]string(nil), s.Names...)
	sort.Strings(names)
	h := sha256.New()
	number := func(n int) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		h.Write(b[:])
	}
	// Every variable-length part is preceded by its length: no two different
	// dicts feed the same bytes to the hash.
	text := func(s string) {
		number(len(s))
		h.Write([]byte(s))
	}
	for _, name := range names {
		t := s.Tensors[name]
		text(name)
		text(t.DType)
		number(len(t.Shape))
		for _, n := range t.Shape {
			number(int(n))
		}
		number(len(t.Data))
		h.Write(t.Data)
	}
	return hex.EncodeToString(h.Sum(nil))
}
