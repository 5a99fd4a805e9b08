package weights

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/assay-xai/assay/internal/usage"
)

func touch(t *testing.T, path string) {
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, nil, 0o644))
}

// The bytes that Python's safetensors writes for the same tensors.
func TestWriteSafetensorsEqualsThePackage(t *testing.T) {
	tensors := map[string]Tensor{}
	for _, g := range goldens(t)["plain.safetensors"] {
		tensors[g.Name] = g.tensor(t)
	}
	path := filepath.Join(t.TempDir(), "w.safetensors")
	require.NoError(t, WriteSafetensors(path, tensors, map[string]string{"by": "assay <test>"}))
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	want, err := os.ReadFile("testdata/plain.safetensors")
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func TestWriteSafetensorsReplacesAtomically(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "w.safetensors")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	good := map[string]Tensor{"w": {DType: "u8", Shape: []int64{2}, Data: []byte{1, 2}}}
	for name, bad := range map[string]map[string]Tensor{
		"too short":     {"w": {DType: "f32", Shape: []int64{2}, Data: []byte{1, 2}}},
		"unknown type":  {"w": {DType: "f8", Shape: []int64{2}, Data: []byte{1, 2}}},
		"reserved name": {"__metadata__": good["w"]},
		"no UTF-8":      {"\xff": good["w"]},
		"negative":      {"w": {DType: "u8", Shape: []int64{-2}, Data: []byte{1, 2}}},
	} {
		require.ErrorIs(t, WriteSafetensors(path, bad, nil), usage.Err, name)
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "old", string(b))
	}
	require.NoError(t, WriteSafetensors(path, good, nil))
	sd, err := Open(path)
	require.NoError(t, err)
	require.Equal(t, good, sd.Tensors)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Error(t, WriteSafetensors(filepath.Join(dir, "none", "w"), good, nil))
}

// What is written is read back, and twice the same bytes.
func TestSafetensorsRoundTrip(t *testing.T) {
	dir := t.TempDir()
	ids := []string{"f32", "f64", "f16", "bf16", "u8", "i8", "i16", "i32", "i64", "bool"}
	rapid.Check(t, func(r *rapid.T) {
		tensors := map[string]Tensor{}
		for _, name := range rapid.SliceOfNDistinct(rapid.StringN(1, 8, -1), 1, 6, rapid.ID[string]).Draw(r, "names") {
			if name == metadataKey || strings.HasPrefix(name, parallelPrefix) || strings.ContainsRune(name, '\uFFFD') {
				continue
			}
			tensor := Tensor{DType: rapid.SampledFrom(ids).Draw(r, "type"), Shape: rapid.SliceOfN(rapid.Int64Range(0, 3), 0, 3).Draw(r, "shape")}
			n, err := byteCount(tensor.DType, tensor.Shape)
			require.NoError(r, err)
			tensor.Data = rapid.SliceOfN(rapid.Byte(), int(n), int(n)).Draw(r, "data")
			tensors[name] = tensor
		}
		if len(tensors) == 0 {
			return
		}
		path := filepath.Join(dir, "w")
		require.NoError(r, WriteSafetensors(path, tensors, nil))
		first, err := os.ReadFile(path)
		require.NoError(r, err)
		header := binary.LittleEndian.Uint64(first)
		require.Zero(r, header%8)
		sd, err := Open(path)
		require.NoError(r, err)
		require.Equal(r, tensors, sd.Tensors)
		require.NoError(r, WriteSafetensors(path, sd.Tensors, nil))
		second, err := os.ReadFile(path)
		require.NoError(r, err)
		require.Equal(r, first, second)
	})
}

func TestSafetensorsHeaders(t *testing.T) {
	file := func(header string, data int) string {
		b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
		return string(b) + header + strings.Repeat("\x00", data)
	}
	for _, c := range []struct{ name, content, want string }{
		{"gap", file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}}`, 4), "want it to begin at 2"},
		{"overlap", file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3), "want it to begin at 2"},
		{"backwards", file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,-2]}}`, 3), "lies at bytes 0 to -2"},
		{"too few bytes for the shape", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 4), "F32 of shape [2] wants 8"},
		{"huge shape", file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}}`, 4), "more elements than any file"},
		{"huge offsets", file(`{"a":{"dtype":"U8","shape":[1099511627776],"data_offsets":[0,1099511627776]}}`, 4), "truncated"},
		{"twice", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1), "stands there twice"},
		{"unknown type", file(`{"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}}`, 1), `type "F8_E4M3": want one of BF16, BOOL, F16`},
		{"no JSON", file(`{"a":nonsense}`, 1), "its safetensors header"},
		{"JSON cut", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}`, 1), "its safetensors header"},
		{"text behind", file(`{}x`, 0), "more text behind its end"},
		{"metadata that are no strings", file(`{"__metadata__":{"a":1}}`, 0), "want strings"},
		{"no tensors", file(`{"__metadata__":{"a":"1"}}`, 0), "no tensors in it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := read(strings.NewReader(c.content), int64(len(c.content)))
			require.ErrorContains(t, err, c.want)
		})
	}
}
