package weights

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/google/renameio/v2"

	"github.com/assay-xai/assay/internal/usage"
)

// safetensors: eight bytes with the header's length (little-endian), the header
// (JSON: name -> dtype, shape, data_offsets; "__metadata__" -> strings), the
// data without gaps. https://huggingface.co/docs/safetensors

const (
	maxSafetensorsHeader = 100_000_000 // the format's own limit
	metadataKey          = "__metadata__"
)

// safetensorsEntry is one tensor of the header.
type safetensorsEntry struct {
	DType   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

func isSafetensors(head []byte) bool {
	if len(head) < 9 || head[8] != '{' {
		return false
	}
	n := binary.LittleEndian.Uint64(head)
	return n >= 2 && n <= maxSafetensorsHeader
}

func readSafetensors(r io.ReaderAt, size int64) (*StateDict, error) {
	var length [8]byte
	if err := readFull(r, length[:], 0); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint64(length[:]))
	if n > size-8 {
		return nil, fmt.Errorf("truncated: a safetensors header of %d bytes in a file of %d (get the file again)", n, size)
	}
	header := make([]byte, n)
	if err := readFull(r, header, 8); err != nil {
		return nil, err
	}
	sd := &StateDict{Tensors: map[string]Tensor{}, Format: "safetensors"}
	entries, err := parseSafetensorsHeader(header, sd)
	if err != nil {
		return nil, fmt.Errorf("its safetensors header: %w", err)
	}
	if err := checkSafetensorsLayout(sd.Names, entries, size-8-n); err != nil {
		return nil, err
	}
	for _, name := range sd.Names {
		t := sd.Tensors[name]
		e := entries[name]
		t.Data = make([]byte, e.Offsets[1]-e.Offsets[0])
		if err := readFull(r, t.Data, 8+n+e.Offsets[0]); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		sd.Tensors[name] = t
	}
	if len(sd.Names) == 0 {
		return nil, fmt.Errorf("no tensors in it: want a state dict")
	}
	sd.dropPrefix()
	return sd, nil
}

// parseSafetensorsHeader fills names, types and shapes in the header's order.
func parseSafetensorsHeader(header []byte, sd *StateDict) (map[string]safetensorsEntry, error) {
	types := map[string]string{}
	for id, d := range dtypes {
		types[d.safetensors] = id
	}
	entries := map[string]safetensorsEntry{}
	dec := json.NewDecoder(bytes.NewReader(header))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("want a JSON object, read %v (%w)", t, orBad(err))
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("read a name: %w", err)
		}
		name := key.(string) // a key: the decoder admits nothing else
		if name == metadataKey {
			if err := dec.Decode(&sd.Metadata); err != nil {
				return nil, fmt.Errorf("%s: %w", name, jsonError(err, "strings, by name"))
			}
			continue
		}
		var e safetensorsEntry
		if err := dec.Decode(&e); err != nil {
			return nil, fmt.Errorf("tensor %s: %w", usage.Quote(name), jsonError(err, "an object with dtype, shape and data_offsets, both in whole numbers"))
		}
		dtype, ok := types[e.DType]
		if !ok {
			return nil, fmt.Errorf("tensor %s: type %s: want one of %s", usage.Quote(name), usage.Quote(e.DType), strings.Join(slices.Sorted(maps.Keys(types)), ", "))
		}
		if _, again := entries[name]; again {
			return nil, fmt.Errorf("tensor %q stands there twice", name)
		}
		entries[name] = e
		sd.Names = append(sd.Names, name)
		sd.Tensors[name] = Tensor{DType: dtype, Shape: append([]int64{}, e.Shape...)}
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("read its end: %w", err)
	}
	if len(bytes.TrimSpace(header[dec.InputOffset():])) != 0 {
		return nil, fmt.Errorf("more text behind its end")
	}
	return entries, nil
}

// jsonError says in JSON's words what encoding/json says in Go's.
func jsonError(err error, want string) error {
	var bad *json.UnmarshalTypeError
	if !errors.As(err, &bad) {
		return err
	}
	if bad.Field != "" {
		return fmt.Errorf("%s: %s: want %s", bad.Field, bad.Value, want)
	}
	return fmt.Errorf("%s: want %s", bad.Value, want)
}

func orBad(err error) error {
	if err == nil {
		return fmt.Errorf("another kind of value")
	}
	return err
}

// checkSafetensorsLayout demands what the format does: the tensors' bytes
// follow each other without gap or overlap and fill the file.
func checkSafetensorsLayout(names []string, entries map[string]safetensorsEntry, dataBytes int64) error {
	order := append([]string(nil), names...)
	sort.SliceStable(order, func(i, j int) bool {
		a, b := entries[order[i]].Offsets, entries[order[j]].Offsets
		return a[0] < b[0] || a[0] == b[0] && a[1] < b[1]
	})
	at := int64(0)
	for _, name := range order {
		e := entries[name]
		if e.Offsets[0] != at || e.Offsets[1] < at {
			return fmt.Errorf("tensor %q lies at bytes %d to %d of the data: want it to begin at %d", name, e.Offsets[0], e.Offsets[1], at)
		}
		at = e.Offsets[1]
		want := int64(-1)
		for id, d := range dtypes {
			if d.safetensors == e.DType {
				n, err := byteCount(id, e.Shape)
				if err != nil {
					return fmt.Errorf("tensor %q: %w", name, err)
				}
				want = n
			}
		}
		if got := e.Offsets[1] - e.Offsets[0]; got != want {
			return fmt.Errorf("tensor %q has %d bytes: %s of shape %v wants %d", name, got, e.DType, e.Shape, want)
		}
	}
	if at > dataBytes {
		return fmt.Errorf("truncated: its tensors want %d bytes of data, %d are there (get the file again)", at, dataBytes)
	}
	if at < dataBytes {
		return fmt.Errorf("%d bytes of data behind its last tensor: want none", dataBytes-at)
	}
	return nil
}

// WriteSafetensors writes tensors to path in the safetensors format. The file
// is written under another name, synced and renamed: a reader sees the old file
// or the new one. The same tensors and metadata always give the same bytes
// (wider element types first, so that data stay aligned, then by name).
func WriteSafetensors(path string, tensors map[string]Tensor, metadata map[string]string) error {
	return StreamSafetensors(path, tensors, metadata, func(name string) ([]byte, error) { return tensors[name].Data, nil })
}

// StreamSafetensors is WriteSafetensors for tensors that need not be in memory at
// once: read gives the bytes of one after the other, and their Data is not looked at.
func StreamSafetensors(path string, tensors map[string]Tensor, metadata map[string]string, read func(name string) ([]byte, error)) error {
	header, order, err := safetensorsHeader(tensors, metadata)
	if err != nil {
		return usage.Errorf("weights: write %s: %w", path, err)
	}
	f, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o644), renameio.WithExistingPermissions())
	if err != nil {
		return fmt.Errorf("weights: write %s: %w", path, err)
	}
	defer func() { _ = f.Cleanup() }()
	if _, err := f.Write(header); err != nil {
		return fmt.Errorf("weights: write %s: %w", path, err)
	}
	for _, name := range order {
		data, err := read(name)
		if err != nil {
			return fmt.Errorf("weights: write %s: tensor %q: %w", path, name, err)
		}
		t := tensors[name]
		if n, err := byteCount(t.DType, t.Shape); err != nil || n != int64(len(data)) {
			return usage.Errorf("weights: write %s: tensor %q has %d bytes: %s of shape %v wants %d", path, name, len(data), t.DType, t.Shape, n)
		}
		if _, err := f.Write(data); err != nil {
			return fmt.Errorf("weights: write %s: %w", path, err)
		}
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("weights: write %s: %w", path, err)
	}
	return nil
}

// safetensorsHeader returns the length and header, padded to eight bytes, and
// the order of the data.
func safetensorsHeader(tensors map[string]Tensor, metadata map[string]string) ([]byte, []string, error) {
	order := slices.Sorted(maps.Keys(tensors))
	for _, name := range order {
		t := tensors[name]
		_, err := byteCount(t.DType, t.Shape)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("tensor %q: %w", name, err)
		case name == metadataKey || !utf8.ValidString(name):
			return nil, nil, fmt.Errorf("tensor name %q: want UTF-8 and not %s", name, metadataKey)
		}
	}
	sort.SliceStable(order, func(i, j int) bool {
		return dtypes[tensors[order[i]].DType].size > dtypes[tensors[order[j]].DType].size
	})
	var b bytes.Buffer
	b.Write(make([]byte, 8))
	b.WriteByte('{')
	text := func(v any) error {
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return err
		}
		b.Truncate(b.Len() - 1) // Encode ends a line
		return nil
	}
	field := func(name string, v any) error {
		if b.Len() > 9 {
			b.WriteByte(',')
		}
		if err := text(name); err != nil {
			return err
		}
		b.WriteByte(':')
		return text(v)
	}
	if len(metadata) > 0 {
		if err := field(metadataKey, metadata); err != nil { // maps are encoded in key order
			return nil, nil, err
		}
	}
	at := int64(0)
	for _, name := range order {
		t := tensors[name]
		size, err := byteCount(t.DType, t.Shape)
		if err != nil {
			return nil, nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		e := safetensorsEntry{
			DType: dtypes[t.DType].safetensors, Shape: append([]int64{}, t.Shape...),
			Offsets: [2]int64{at, at + size},
		}
		at = e.Offsets[1]
		if err := field(name, e); err != nil {
			return nil, nil, err
		}
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	if n := b.Len() - 8; n > maxSafetensorsHeader {
		return nil, nil, fmt.Errorf("a header of %d bytes: the format allows %d", n, maxSafetensorsHeader)
	}
	binary.LittleEndian.PutUint64(b.Bytes(), uint64(b.Len()-8))
	return b.Bytes(), order, nil
}
