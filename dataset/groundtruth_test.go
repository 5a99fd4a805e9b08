package dataset

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The classes of ImageNet's first three validation images are 65, 970 and 230;
// their numbers in the development kit are 490, 361 and 171. meta.mat is
// SciPy's, and torchvision read the same from it (scripts/golden_dataset.py).
func TestGroundTruth(t *testing.T) {
	meta, err := os.ReadFile("testdata/devkit/meta.mat")
	require.NoError(t, err)
	plain, err := os.ReadFile("testdata/devkit/plain.mat")
	require.NoError(t, err)
	val := images("ILSVRC2012_val_00000001.JPEG", "ILSVRC2012_val_00000002.JPEG", "ILSVRC2012_val_00000003.JPEG")
	truth := member{name: groundTruthName, content: "490\n361\n171\n490\n"}
	for name, members := range map[string][]member{
		"beside":  append([]member{truth, {name: metaName, content: string(meta)}}, val...),
		"plain":   append([]member{truth, {name: metaName, content: string(plain)}}, val...),
		"windows": append([]member{{name: groundTruthName, content: "\r\n490\r\n361\r\n171\r\n"}, {name: metaName, content: string(plain)}}, val...),
	} {
		for kind, path := range layouts(t, members) {
			t.Run(name+"/"+kind, func(t *testing.T) {
				set := open(t, path, Options{Classes: 1000})
				require.Equal(t, []int{65, 970, 230}, classes(set))
				require.Equal(t, "sea snake", set.ClassName(65))
				set = open(t, path, Options{Limit: 1})
				require.Equal(t, []int{65}, classes(set))
				_, err := Open(context.Background(), path, Options{Classes: 100})
				requireUsage(t, err, groundTruthName+":2", "class 970", "0..99")
			})
		}
	}
	// A split's own, and the kit's folder elsewhere.
	kit := t.TempDir()
	labels := writeFile(t, filepath.Join(kit, groundTruthName), []byte("490\n361\n171\n"))
	for _, path := range layouts(t, append(images("train/n01440764/1.JPEG"), member{name: "val/" + val[2].name, content: "x"})) {
		_, err := Open(context.Background(), path, Options{Labels: labels})
		requireUsage(t, err, groundTruthName, "meta.mat beside it")
		writeFile(t, filepath.Join(kit, metaName), meta)
		require.Equal(t, []int{230}, classes(open(t, path, Options{Labels: labels})))
		require.NoError(t, os.Remove(filepath.Join(kit, metaName)))
	}
	// labels.txt comes first, as for all images.
	for _, path := range layouts(t, append([]member{truth, {name: labelsName, content: "ILSVRC2012_val_00000001.JPEG 7\n"}}, val[:1]...)) {
		require.Equal(t, []int{7}, classes(open(t, path, Options{})))
	}
}

func TestBadGroundTruth(t *testing.T) {
	meta, err := os.ReadFile("testdata/devkit/plain.mat")
	require.NoError(t, err)
	damage := func(old, new string) string {
		require.Contains(t, string(meta), old)
		return strings.Replace(string(meta), old, new, 1)
	}
	image := images("ILSVRC2012_val_00000002.JPEG")
	for _, c := range []struct {
		name, truth, meta string
		images            []member
		want              []string
	}{
		{"no meta", "490\n361\n", "", image, []string{"development kit", "want the kit's meta.mat beside it"}},
		{"short", "490\n", string(meta), image, []string{groundTruthName, "no label for ILSVRC2012_val_00000002.JPEG: it has 1 lines"}},
		{"names", "490\n", string(meta), images("cat.jpg"), []string{"no label for cat.jpg", "ILSVRC2012_val_0000000n.JPEG"}},
		{"zero", "490\n0\n", string(meta), image, []string{groundTruthName + `:2: "0": want a number of the development kit, 1..1000`}},
		{"word", "490\ncat\n", string(meta), image, []string{`"cat"`}},
		{"unknown", "490\n362\n", string(meta), image, []string{groundTruthName + ":2: 362", "no such ILSVRC2012_ID"}},
		{"text", "490\n361\n", "hello", image, []string{"meta.mat is no MATLAB file of version 5"}},
		{"cut", "490\n361\n", string(meta[:len(meta)/2]), image, []string{"meta.mat", "cut off"}},
		{"wnid", "490\n361\n", damage("n09193705", "n00000000"), image, []string{`synset 361 is "n00000000"`}},
		{"field", "490\n361\n", damage("ILSVRC2012_ID", "ILSVRC2012_XX"), image, []string{"synset 0 without ILSVRC2012_ID"}},
		{"synsets", "490\n361\n", damage("synsets", "sinsets"), image, []string{"no synsets"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			members := append([]member{{name: groundTruthName, content: c.truth}}, c.images...)
			if c.meta != "" {
				members = append(members, member{name: metaName, content: c.meta})
			}
			for _, path := range layouts(t, members) {
				_, err := Open(context.Background(), path, Options{})
				requireUsage(t, err, c.want...)
			}
		})
	}
}

// retained is the memory that is still in use after two collections.
func retained() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// As many images as ImageNet validates on: what is kept is the list, whatever
// was read. The images have no more than a few bytes, but far more in all than
// the list may take.
func TestFiftyThousandImages(t *testing.T) {
	const count, size = 50_000, 700
	var archive bytes.Buffer
	body := strings.Repeat("x", size-8)
	var members []member
	for i := range count {
		name := fmt.Sprintf("val/%s/ILSVRC2012_val_%08d.JPEG", wnids()[i%1000], i+1)
		members = append(members, member{name: name, content: fmt.Sprintf("%08d", i) + body})
	}
	archive.Write(tarBytes(t, members))
	members = nil
	dir := t.TempDir()
	tarred := writeFile(t, filepath.Join(dir, "val.tar"), archive.Bytes())
	zipped := writeFile(t, filepath.Join(dir, "val.tgz"), gzipBytes(t, archive.Bytes()))
	archive = bytes.Buffer{}
	for _, c := range []struct {
		path string
		opt  Options
		// kept bounds the open set: about 400 bytes an image.
		kept int64
	}{
		{tarred, Options{}, 20 << 20},
		{zipped, Options{MaxBytes: 1 << 20}, 22 << 20},
	} {
		before := retained()
		set, err := Open(context.Background(), c.path, c.opt)
		require.NoError(t, err)
		require.Equal(t, count, set.Len())
		opened := retained()
		require.Less(t, opened-before, c.kept, "the list of %s", c.path)
		seen := make([]bool, count)
		for i, item := range set.Items() {
			b, err := set.Read(context.Background(), i)
			if err != nil || len(b) != size {
				t.Fatalf("%s: %d bytes, %v", item.ID, len(b), err)
			}
			n, err := strconv.Atoi(string(b[:8]))
			if want := fmt.Sprintf("%s/ILSVRC2012_val_%08d.JPEG", wnids()[n%1000], n+1); err != nil || item.ID != want || item.Class != n%1000 || seen[n] {
				t.Fatalf("%s, class %d, holds %d (%v), seen before: %v", item.ID, item.Class, n, err, seen[n])
			}
			seen[n] = true
		}
		require.Less(t, retained()-opened, int64(2<<20), "reading %s", c.path)
		require.NoError(t, set.Close())
		runtime.KeepAlive(set)
	}
}
