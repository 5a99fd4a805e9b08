package weights

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/assay-xai/assay/internal/pickle"
	"github.com/assay-xai/assay/internal/usage"
)

// expected.json and the files are from scripts/golden_weights.py: what torch
// and safetensors load from the same files.
type goldenTensor struct {
	Name  string  `json:"name"`
	DType string  `json:"dtype"`
	Shape []int64 `json:"shape"`
	Data  string  `json:"data"`
}

func goldens(t testing.TB) map[string][]goldenTensor {
	b, err := os.ReadFile("testdata/expected.json")
	require.NoError(t, err)
	var raw map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(b, &raw))
	delete(raw, "made with")
	out := map[string][]goldenTensor{}
	for name, r := range raw {
		var list []goldenTensor
		require.NoError(t, json.Unmarshal(r, &list))
		out[name] = list
	}
	require.NotEmpty(t, out)
	return out
}

func (g goldenTensor) tensor(t testing.TB) Tensor {
	data, err := base64.StdEncoding.DecodeString(g.Data)
	require.NoError(t, err)
	return Tensor{DType: g.DType, Shape: g.Shape, Data: data}
}

func TestOpenGoldens(t *testing.T) {
	formats := map[string]string{
		"legacy.pth": "pth-legacy", "legacy-protocol4.pth": "pth-legacy", "small-legacy.pth": "pth-legacy",
		"checkpoint-legacy.pth": "pth-legacy", "python2.pth": "pth-legacy",
		"all.safetensors": "safetensors", "plain.safetensors": "safetensors",
	}
	for file, want := range goldens(t) {
		t.Run(file, func(t *testing.T) {
			sd, err := Open(filepath.Join("testdata", file))
			require.NoError(t, err)
			var names []string
			for _, g := range want {
				names = append(names, g.Name)
				require.Equal(t, g.tensor(t), sd.Tensors[g.Name], g.Name)
			}
			if strings.HasSuffix(file, ".safetensors") {
				require.ElementsMatch(t, names, sd.Names) // expected.json has them sorted
			} else {
				require.Equal(t, names, sd.Names)
			}
			require.Len(t, sd.Tensors, len(names))
			format := formats[file]
			if format == "" {
				format = "pth-zip"
			}
			require.Equal(t, format, sd.Format)
		})
	}
}

func TestOpenTakesNothingButTheStateDictOutOfACheckpoint(t *testing.T) {
	for _, file := range []string{"checkpoint.pth", "checkpoint-legacy.pth"} {
		sd, err := Open("testdata/" + file)
		require.NoError(t, err)
		require.Equal(t, []string{"epoch", "arch", "best_prec1", "optimizer", "scheduler", "device", "size", "rng", "seen"}, sd.Ignored)
	}
	sd, err := Open("testdata/nested.pth")
	require.NoError(t, err)
	require.Equal(t, []string{"epoch", "ema"}, sd.Ignored)
}

func TestOpenMetadata(t *testing.T) {
	sd, err := Open("testdata/all.safetensors")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"format": "pt"}, sd.Metadata)
}

// The hash is that of `sha256sum`; for the published files it is in their names.
func TestOpenRealFiles(t *testing.T) {
	for _, c := range []struct {
		file    string
		tensors int
		hash    string
	}{
		// 19 or 55 convolutions and one linear layer; a batch norm
		// has four entries (the files are older than num_batches_tracked).
		{"resnet20-12fca82f.th", 19 + 19*4 + 2, "12fca82f0bebc4135bf1f32f6e3710e61d5108578464b84fd6d7f5c1b04036c8"},
		{"resnet56-4bfd9763.th", 55 + 55*4 + 2, "4bfd97631478d6b638d2764fd2baff3edb1d7d82252d54439343b6596b9b5367"},
	} {
		path := filepath.Join("..", "..", "shared", "data", "weights", c.file)
		if _, err := os.Stat(path); err != nil {
			t.Skipf("SKIP: %s is not there", path)
		}
		sd, err := Open(path)
		require.NoError(t, err)
		require.Equal(t, c.hash, sd.Hash)
		require.Equal(t, "pth-legacy", sd.Format)
		require.Len(t, sd.Names, c.tensors)
		require.Equal(t, "conv1.weight", sd.Names[0])
		require.Equal(t, []int64{10, 64}, sd.Tensors["linear.weight"].Shape)
		n, ok := Classes(sd)
		require.True(t, ok)
		require.Equal(t, 10, n)
	}
}

func TestContentHashDoesNotDependOnTheFile(t *testing.T) {
	hash := func(file string) string {
		sd, err := Open("testdata/" + file)
		require.NoError(t, err, file)
		return sd.ContentHash()
	}
	small := hash("small.pth")
	for _, file := range []string{"small-legacy.pth", "bigendian.pth", "nocrc.pth", "python2.pth"} {
		require.Equal(t, small, hash(file), file)
	}
	require.Equal(t, hash("zip.pth"), hash("all.safetensors"))
	require.Equal(t, hash("checkpoint.pth"), hash("nested.pth"))
	require.NotEqual(t, small, hash("zip.pth"))

	// Every part of a tensor counts.
	sd := &StateDict{Names: []string{"a"}, Tensors: map[string]Tensor{"a": {DType: "u8", Shape: []int64{2, 3}, Data: []byte("abcdef")}}}
	seen := map[string]bool{sd.ContentHash(): true}
	for _, c := range []Tensor{
		{DType: "i8", Shape: []int64{2, 3}, Data: []byte("abcdef")},
		{DType: "u8", Shape: []int64{3, 2}, Data: []byte("abcdef")},
		{DType: "u8", Shape: []int64{6}, Data: []byte("abcdef")},
		{DType: "u8", Shape: []int64{2, 3}, Data: []byte("abcdeg")},
	} {
		sd.Tensors["a"] = c
		require.False(t, seen[sd.ContentHash()])
		seen[sd.ContentHash()] = true
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
		return path
	}
	load := func(name string) string {
		b, err := os.ReadFile("testdata/" + name)
		require.NoError(t, err)
		return string(b)
	}
	zipped, legacy, safe := load("zip.pth"), load("legacy.pth"), load("all.safetensors")
	flipped := []byte(zipped)
	at := bytes.Index(flipped, goldens(t)["zip.pth"][0].tensor(t).Data)
	require.Positive(t, at)
	flipped[at+1] ^= 1
	for _, c := range []struct{ name, path, want string }{
		{"missing", filepath.Join(dir, "none.pth"), "no such file"},
		{"directory", dir, "a directory: want a PyTorch state dict"},
		{"empty", write("empty.pth", ""), "an empty file"},
		{"text", write("text.pth", "hello, weights\n"), "a text file: want"},
		{"html", write("page.pth", "<!DOCTYPE html><html>404"), "an HTML page"},
		{"lfs", write("lfs.pth", "version https://git-lfs.github.com/spec/v1\n"), "git lfs pull"},
		{"noise", write("noise.pth", "\x00\xff\x00\xff\x01\x02"), "begins with 00 ff"},
		{"zip cut", write("cut.pth", zipped[:len(zipped)/2]), "truncated or damaged: a zip file"},
		{"zip bit", write("bit.pth", string(flipped)), "is damaged: the checksum differs"},
		{"legacy cut in the pickle", write("cut1.pth", legacy[:300]), "truncated at byte 300"},
		{"legacy cut in the data", write("cut2.pth", legacy[:len(legacy)-30]), "truncated: "},
		{"safetensors cut in the header", write("cut1.safetensors", safe[:100]), "truncated: a safetensors header"},
		{"safetensors cut in the data", write("cut2.safetensors", safe[:len(safe)-1]), "truncated: its tensors want"},
		{"safetensors with more", write("more.safetensors", safe+"x"), "behind its last tensor"},
		{"code", "testdata/malicious.pth", "asks to run posix.system: refused; only tensors are read"},
		{"code, legacy", "testdata/malicious-legacy.pth", "asks to run posix.system: refused"},
		{"code, protocol 0", "testdata/malicious-0.pkl", "asks to run posix.system: refused"},
		{"code, protocol 2", "testdata/malicious-2.pkl", "asks to run posix.system: refused"},
		{"code, protocol 4", "testdata/malicious-4.pkl", "asks to run posix.system: refused"},
		{"module", "testdata/module.pth", "asks to run torch.nn.modules.linear.Linear: refused"},
		{"script", "testdata/script.pt", "a TorchScript program"},
		{"plain pickle", "testdata/plain.pkl", "torch.save did not write"},
		{"no tensors", "testdata/no-tensors.pth", "no tensors in it (its entries: epoch)"},
		{"one tensor", "testdata/one-tensor.pth", "a single tensor: want a state dict"},
		{"complex", "testdata/complex.pth", `tensor "w": element type "complex64"`},
		{"uint16", "testdata/uint16.pth", `tensor "w": element type "uint16"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			sd, err := Open(c.path)
			require.Nil(t, sd)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "weights: ")
			require.ErrorContains(t, err, c.path)
			require.ErrorIs(t, err, usage.Err)
			require.NotContains(t, err.Error(), "\n")
		})
	}
	require.NoFileExists(t, "weights-test-was-here")
}

// globalPickle is a legacy file's object that mentions one name.
func TestOnlyListedNamesAreAdmitted(t *testing.T) {
	for _, name := range []string{
		"os.system", "builtins.eval", "builtins.getattr", "builtins.__import__", "__builtin__.eval", "subprocess.Popen",
		"torch.load", "torch.hub.load", "torch._utils._rebuild_qtensor", "torch.storage.FloatStorage.__init__",
		"numpy.core.multiarray.scalar", "collections.OrderedDict.fromkeys", "copy_reg._reconstructor2", "pickle.loads",
	} {
		dot := strings.LastIndex(name, ".")
		for _, p := range []string{
			"c" + name[:dot] + "\n" + name[dot+1:] + "\n.",
			"\x80\x04\x8c" + string(rune(dot)) + name[:dot] + "\x8c" + string(rune(len(name)-dot-1)) + name[dot+1:] + "\x93.",
			"(i" + name[:dot] + "\n" + name[dot+1:] + "\n.",
		} {
			scan, err := scanPickle([]byte(p))
			require.NoError(t, err, name)
			_, err = unpickle([]byte(p), scan, nil)
			require.ErrorIs(t, err, pickle.RefusedError{Name: name, Advice: onlyTensors})
		}
	}
}

// A pickle whose lengths are lies must not reach an allocation of that size.
func TestScanPickleBoundsLengths(t *testing.T) {
	for _, p := range []string{
		"\x80\x02X\xff\xff\xff\xff.",
		"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.",
		"\x80\x04\x8e\x00\x00\x00\x00\x00\x01\x00\x00.",
		"\x80\x04\x95\xff\xff\xff\xff\xff\xff\x00\x00.",
		"\x80\x05\x96\xff\xff\xff\xff\xff\xff\xff\xff.",
		"\x80\x02\x8b\xff\xff\xff\x7f.",
		"\x80\x02\x8b\x00\x10\x00\x00" + strings.Repeat("1", 1<<12) + ".",
		"T\xff\xff\xff\xff.", "B\xff\xff\xff\xff.",
		"L" + strings.Repeat("9", 1<<12) + "\n.",
		strings.Repeat("(", maxPickleDepth+1) + ".",
		strings.Repeat("]", maxPickleObjects+1) + ".",
		"\xff.", "",
	} {
		_, err := scanPickle([]byte(p))
		require.Error(t, err, "%.20q", p)
	}
	_, err := scanPickle([]byte("\x80\x02]q\x00."))
	require.NoError(t, err)
}

// Views that repeat elements may not ask for more than a file of that size can
// hold: a few bytes of file, 4 TB of tensor.
func TestViewsWithinBudget(t *testing.T) {
	src := memorySource{"0": make([]byte, 16)}
	s := &storage{key: "0", dtype: "f32", elements: 4, count: 4}
	for _, v := range []*tensorView{
		{storage: s, dtype: "f32", shape: []int64{1 << 40}, stride: []int64{0}},
		{storage: s, dtype: "f32", shape: []int64{1 << 40, 1 << 40}, stride: []int64{0, 0}},
		{storage: s, dtype: "f32", shape: []int64{2}, stride: []int64{1 << 62}},
		{storage: s, dtype: "f32", shape: []int64{5}, stride: []int64{1}},
		{storage: s, dtype: "f32", offset: 4, shape: []int64{1}, stride: []int64{1}},
		{storage: s, dtype: "f32", offset: 1 << 62, shape: []int64{1}, stride: []int64{1}},
		{storage: s, dtype: "f64", shape: []int64{1}, stride: []int64{1}},
	} {
		_, err := newLoader(src, 100).load(v)
		require.Error(t, err, "%v", v)
	}
	// Many modest ones together.
	l := newLoader(src, 100)
	v := &tensorView{storage: s, dtype: "f32", shape: []int64{4, 4096}, stride: []int64{1, 0}}
	for i := 0; ; i++ {
		if _, err := l.load(v); err != nil {
			break
		}
		require.Less(t, i, 17) // 64 kB each, the budget is about 1 MB
	}
}

type memorySource map[string][]byte

func (m memorySource) read(s *storage, p []byte, offset int64) error {
	copy(p, m[s.key][offset:])
	return nil
}
func (memorySource) swapped() bool { return false }

// gather against an index computed element by element.
func TestStridedViews(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.Int64Range(1, 4), 0, 4).Draw(t, "shape")
		stride := rapid.SliceOfN(rapid.Int64Range(0, 5), len(shape), len(shape)).Draw(t, "stride")
		offset := rapid.Int64Range(0, 3).Draw(t, "offset")
		bytesOf := make([]byte, 300)
		for i := range bytesOf {
			bytesOf[i] = byte(i*7 + i/256)
		}
		s := &storage{key: "k", dtype: "i16", elements: 150, count: 150}
		got, err := newLoader(memorySource{"k": bytesOf}, 1<<20).load(&tensorView{storage: s, dtype: "i16", offset: offset, shape: shape, stride: stride})
		require.NoError(t, err)

		var want []byte
		index := make([]int64, len(shape))
		for {
			at := offset
			for i := range index {
				at += index[i] * stride[i]
			}
			want = append(want, bytesOf[2*at], bytesOf[2*at+1])
			i := len(index) - 1
			for ; i >= 0; i-- {
				if index[i]++; index[i] < shape[i] {
					break
				}
				index[i] = 0
			}
			if i < 0 {
				break
			}
		}
		require.Equal(t, want, got.Data)
	})
}

// Damaged files give errors or, where the damage does not show, tensors of the
// right size; never a panic and never more memory than the file warrants.
func checkRead(t testing.TB, b []byte) {
	sd, err := read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		require.Nil(t, sd)
		return
	}
	total := int64(0)
	require.Len(t, sd.Tensors, len(sd.Names))
	for _, name := range sd.Names {
		n, err := byteCount(sd.Tensors[name].DType, sd.Tensors[name].Shape)
		require.NoError(t, err)
		require.Len(t, sd.Tensors[name].Data, int(n))
		total += n
	}
	require.LessOrEqual(t, total, int64(3*len(b)+1<<20))
}

var damageable = []string{
	"zip.pth", "legacy.pth", "legacy-protocol4.pth", "checkpoint-legacy.pth", "python2.pth", "all.safetensors", "plain.safetensors",
	"malicious.pth", "malicious-legacy.pth",
}

func TestTruncatedFiles(t *testing.T) {
	for _, name := range damageable {
		b, err := os.ReadFile("testdata/" + name)
		require.NoError(t, err)
		for n := range b {
			_, err := read(bytes.NewReader(b[:n]), int64(n))
			require.Error(t, err, "%s cut at %d of %d", name, n, len(b))
		}
	}
}

func TestMutatedFiles(t *testing.T) {
	files := map[string][]byte{}
	for _, name := range damageable {
		b, err := os.ReadFile("testdata/" + name)
		require.NoError(t, err)
		files[name] = b
	}
	rapid.Check(t, func(t *rapid.T) {
		b := bytes.Clone(files[rapid.SampledFrom(damageable).Draw(t, "file")])
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "to")
		}
		if n := rapid.IntRange(0, 3*len(b)).Draw(t, "length"); n < len(b) {
			b = b[:n]
		}
		sd, err := read(bytes.NewReader(b), int64(len(b)))
		if err == nil && len(sd.Tensors) != len(sd.Names) {
			t.Fatalf("%d names, %d tensors", len(sd.Names), len(sd.Tensors))
		}
	})
}

func FuzzOpen(f *testing.F) {
	for _, name := range append(damageable, "small.pth", "bigendian.pth", "malicious-0.pkl") {
		b, err := os.ReadFile("testdata/" + name)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"))
	f.Fuzz(func(t *testing.T, b []byte) { checkRead(t, b) })
}
