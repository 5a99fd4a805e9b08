package dataset

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHostileArchives(t *testing.T) {
	dir := t.TempDir()
	good := images("a/1.jpg", "b/1.jpg")
	with := func(m ...member) []member { return append(images("a/1.jpg", "b/1.jpg"), m...) }
	for _, c := range []struct {
		name    string
		members []member
		opt     Options
		want    []string
	}{
		{"path above the archive", with(member{name: "../../etc/x.jpg"}), Options{}, []string{"../../etc/x.jpg", "out of the archive"}},
		{"path above it, inside", with(member{name: "a/../../x.jpg"}), Options{}, []string{"a/../../x.jpg", "out of the archive"}},
		{"path above it, not an image", with(member{name: "../x.sh"}), Options{}, []string{"../x.sh", "out of the archive"}},
		{"absolute path", with(member{name: "/etc/x.jpg"}), Options{}, []string{"/etc/x.jpg", "out of the archive"}},
		{"path of Windows", with(member{name: `..\..\x.jpg`}), Options{}, []string{"out of the archive"}},
		{"drive of Windows", with(member{name: `C:\x.jpg`}), Options{}, []string{"out of the archive"}},
		{"name that is not UTF-8", with(member{name: "a/\xff.jpg"}), Options{}, []string{`\xff.jpg`, "UTF-8"}},
		{"link", with(member{name: "a/2.jpg", link: "/etc/passwd"}), Options{}, []string{"a/2.jpg", "is a link"}},
		{"the same file twice", with(member{name: "b/1.jpg"}), Options{}, []string{"b/1.jpg", "twice"}},
		{"the same file twice, spelled otherwise", with(member{name: "./b//1.jpg"}), Options{}, []string{"b/1.jpg", "twice"}},
		{"image too large", with(member{name: "a/2.jpg", content: strings.Repeat("x", 101)}), Options{MaxItemBytes: 100}, []string{"a/2.jpg", "101 bytes", "at most 100"}},
		{"too many entries", good, Options{MaxEntries: 1}, []string{"more than 1 entries"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			plain := tarBytes(t, c.members)
			for _, path := range []string{
				writeFile(t, filepath.Join(dir, "a.tar"), plain),
				writeFile(t, filepath.Join(dir, "a.tgz"), gzipBytes(t, plain)),
				writeFile(t, filepath.Join(dir, "a.zip"), zipBytes(t, c.members)),
			} {
				_, err := Open(context.Background(), path, c.opt)
				requireUsage(t, err, append(c.want, path)...)
			}
		})
	}
}

// Headers may say what they like: nothing is believed before it is read.
func TestArchivesThatLie(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()

	var b bytes.Buffer
	w := tar.NewWriter(&b)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "a.jpg", Size: 1 << 50, Typeflag: tar.TypeReg}))
	for _, name := range []string{"huge.tar", "huge.tgz"} {
		content := b.Bytes()
		if name == "huge.tgz" {
			content = gzipBytes(t, content)
		}
		_, err := Open(ctx, writeFile(t, filepath.Join(dir, name), content), Options{})
		requireUsage(t, err, "1125899906842624")
	}

	b.Reset()
	w = tar.NewWriter(&b)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "a.jpg", Size: 1 << 20, Typeflag: tar.TypeReg}))
	for _, name := range []string{"short.tar", "short.tgz"} {
		content := b.Bytes()
		if name == "short.tgz" {
			content = gzipBytes(t, content)
		}
		_, err := Open(ctx, writeFile(t, filepath.Join(dir, name), content), Options{})
		requireUsage(t, err, "cut off")
	}

	// A bomb: many large files, all zeros, each within the limit for one.
	var z bytes.Buffer
	zw := zip.NewWriter(&z)
	zeros := make([]byte, 1<<20)
	for i := range 3 {
		f, err := zw.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("%d.jpg", i), Method: zip.Deflate})
		require.NoError(t, err)
		for range 8 {
			_, err = f.Write(zeros)
			require.NoError(t, err)
		}
	}
	require.NoError(t, zw.Close())
	index := newIndex("bomb.zip", int64(z.Len()), Options{}.withDefaults())
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		_, _, err = index.add(fmt.Sprintf("%d.jpg", i), regularEntry, 8<<20)
	}
	requireUsage(t, err, "bomb.zip", "100 times")
	require.Less(t, index.entries, 200, "8 MiB each: over the bound after 1 GiB")

	// A zip entry that unpacks to more than it says.
	path := writeFile(t, filepath.Join(dir, "more.zip"), patchZipSizes(t, zipBytes(t, images("a.jpg", "b.jpg")), 3))
	set, err := Open(ctx, path, Options{})
	require.NoError(t, err)
	defer set.Close()
	_, err = set.Read(ctx, 0)
	requireUsage(t, err, "a.jpg")
}

// patchZipSizes overwrites every uncompressed size in the central directory.
func patchZipSizes(t *testing.T, archive []byte, size byte) []byte {
	patched := 0
	for at := 0; ; patched++ {
		next := bytes.Index(archive[at:], []byte("PK\x01\x02"))
		if next < 0 {
			break
		}
		at += next
		copy(archive[at+24:at+28], []byte{size, 0, 0, 0}) // APPNOTE 4.3.12
		at += 4
	}
	require.Positive(t, patched)
	return archive
}

func TestDamagedArchives(t *testing.T) {
	dir := t.TempDir()
	var members []member
	for i := range 20 {
		members = append(members, member{name: fmt.Sprintf("%02d.jpg", i), content: strings.Repeat(fmt.Sprint(i*i), 300)})
	}
	plain := tarBytes(t, members)
	whole := map[string][]byte{"a.tar": plain[:len(plain)-1024], "a.tgz": gzipBytes(t, plain), "a.zip": zipBytes(t, members)}
	for name, content := range whole {
		t.Run(name, func(t *testing.T) {
			require.Len(t, ids(open(t, writeFile(t, filepath.Join(dir, name), content), Options{})), 20)
			for _, length := range []int{0, 1, 5, 20, len(content) / 3, len(content) / 2, len(content) - 9, len(content) - 1} {
				if name == "a.tar" && length > 20 {
					length = length / 512 * 512
					length -= 100 // within a block: at a block's end a tar may end
				}
				path := writeFile(t, filepath.Join(dir, "cut-"+name), content[:length])
				_, err := Open(context.Background(), path, Options{})
				requireUsage(t, err, path)
			}
			path := writeFile(t, filepath.Join(dir, "no-"+name), bytes.Repeat([]byte("this is no archive "), 100))
			_, err := Open(context.Background(), path, Options{})
			requireUsage(t, err, path)
		})
	}
	t.Run("a bit flipped in a .tgz", func(t *testing.T) {
		content := bytes.Clone(whole["a.tgz"])
		content[len(content)-6] ^= 1 // the sum at the end
		_, err := Open(context.Background(), writeFile(t, filepath.Join(dir, "flip.tgz"), content), Options{})
		requireUsage(t, err, "flip.tgz", "damaged")
	})
	t.Run("a bit flipped in a .zip", func(t *testing.T) {
		content := bytes.Clone(whole["a.zip"])
		content[38] ^= 0x10 // behind the header (30) and the name (6)
		set, err := Open(context.Background(), writeFile(t, filepath.Join(dir, "flip.zip"), content), Options{})
		require.NoError(t, err)
		defer set.Close()
		_, err = set.Read(context.Background(), 0)
		requireUsage(t, err, "00.jpg")
		_, err = set.Read(context.Background(), 1)
		require.NoError(t, err, "the others can still be read")
	})
}

// bigTgz has n images of size bytes, listed backwards, and some others.
func bigTgz(t *testing.T, n, size int) (string, map[string]string) {
	var members []member
	want := map[string]string{}
	for i := n - 1; i >= 0; i-- {
		name := fmt.Sprintf("%04d.jpg", i)
		want[name] = strings.Repeat(fmt.Sprintf("%04d", i), size/4)
		members = append(members, member{name: "notes.txt", content: "x"}, member{name: "data/" + name, content: want[name]})
	}
	members = append(members[1:], member{name: "data/.x.jpg"})
	for i := range members {
		if members[i].name == "notes.txt" {
			members[i].name = "data/notes.txt"
		}
	}
	return writeFile(t, filepath.Join(t.TempDir(), "big.tgz"), gzipBytes(t, tarBytes(t, members))), want
}

func readAll(t *testing.T, set *Set, order []int, want map[string]string) {
	t.Helper()
	for _, i := range order {
		b, err := set.Read(context.Background(), i)
		require.NoError(t, err)
		require.Equal(t, want[set.Items()[i].ID], string(b), set.Items()[i].ID)
	}
}

func source0(s *Set) *tgzSource { return s.store.(*fileStore).src.(*tgzSource) }

// A gzipped tar is walked once if it fits, twice if only the chosen part does
// or if it is read in the order of Items, and is right in any order.
func TestTgzPasses(t *testing.T) {
	path, want := bigTgz(t, 50, 1000)
	forward, backward := make([]int, 50), make([]int, 50)
	for i := range forward {
		forward[i], backward[i] = i, 49-i
	}

	set := open(t, path, Options{})
	readAll(t, set, backward, want)
	require.Equal(t, 1, source0(set).passes)
	require.Equal(t, "0000.jpg", set.Items()[0].ID)

	set = open(t, path, Options{MaxBytes: 10_000, Limit: 10})
	readAll(t, set, forward[:10], want)
	readAll(t, set, backward[40:], want)
	require.Equal(t, 2, source0(set).passes)
	require.Equal(t, "0000.jpg", set.Items()[0].ID)

	set = open(t, path, Options{MaxBytes: 10_000})
	require.Equal(t, "0049.jpg", set.Items()[0].ID, "too large to hold: the archive's order")
	readAll(t, set, forward, want)
	require.Equal(t, 2, source0(set).passes)
	readAll(t, set, backward, want)
	var held int64
	for _, b := range source0(set).cache {
		held += int64(len(b))
	}
	require.LessOrEqual(t, held, int64(10_000))

	// A few readers at once, none far behind: still one more pass.
	set = open(t, path, Options{MaxBytes: 10_000})
	for first := 0; first < 50; first += 5 {
		var wait sync.WaitGroup
		for i := first; i < first+5; i++ {
			wait.Go(func() {
				b, err := set.Read(context.Background(), i)
				if err != nil || string(b) != want[set.Items()[i].ID] {
					t.Errorf("item %d: %v", i, err)
				}
			})
		}
		wait.Wait()
	}
	require.Equal(t, 2, source0(set).passes)
}

func TestTgzOfChangedFile(t *testing.T) {
	path, _ := bigTgz(t, 50, 1000)
	set := open(t, path, Options{MaxBytes: 2000})
	writeFile(t, path, gzipBytes(t, tarBytes(t, images("x.jpg"))))
	_, err := set.Read(context.Background(), 30)
	requireUsage(t, err, "changed")
	require.NoError(t, os.Remove(path))
	_, err = set.Read(context.Background(), 0)
	require.Error(t, err)
}

func TestConcurrentReadsAndCancel(t *testing.T) {
	var members []member
	for i := range 64 {
		members = append(members, member{name: fmt.Sprintf("%02d.png", i), content: strings.Repeat(fmt.Sprint(i), 200)})
	}
	for kind, path := range layouts(t, members) {
		set := open(t, path, Options{MaxBytes: 1000})
		var wait sync.WaitGroup
		for i, item := range set.Items() {
			wait.Go(func() {
				var n int
				if _, err := fmt.Sscanf(item.ID, "%02d.png", &n); err != nil {
					t.Error(err)
				}
				b, err := set.Read(context.Background(), i)
				if err != nil || string(b) != strings.Repeat(fmt.Sprint(n), 200) {
					t.Errorf("%s: item %d: %v", kind, i, err)
				}
				if _, err := set.ItemHash(context.Background(), i); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		done, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := set.Read(done, 0)
		require.ErrorIs(t, err, context.Canceled)
		_, err = Open(done, path, Options{})
		require.ErrorIs(t, err, context.Canceled)
	}
}
