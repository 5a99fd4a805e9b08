package dataset

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/usage"
)

// member is a file of a test's archive or folder. A name that ends in "/" is a
// folder; link makes a symbolic link.
type member struct {
	name, content, link string
}

// images makes members whose content tells their name.
func images(names ...string) []member {
	var list []member
	for _, n := range names {
		list = append(list, member{name: n, content: "content of " + n})
	}
	return list
}

func tarBytes(t testing.TB, members []member) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Mode: 0o644, Size: int64(len(m.content)), Typeflag: tar.TypeReg}
		switch {
		case m.link != "":
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, m.link, 0
		case strings.HasSuffix(m.name, "/"):
			h.Typeflag, h.Mode = tar.TypeDir, 0o755
		}
		require.NoError(t, w.WriteHeader(h))
		if h.Typeflag == tar.TypeReg {
			_, err := w.Write([]byte(m.content))
			require.NoError(t, err)
		}
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func gzipBytes(t testing.TB, content []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func zipBytes(t testing.TB, members []member) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate}
		content := m.content
		if m.link != "" {
			h.SetMode(fs.ModeSymlink | 0o777)
			content = m.link
		}
		f, err := w.CreateHeader(h)
		require.NoError(t, err)
		if !strings.HasSuffix(m.name, "/") {
			_, err = f.Write([]byte(content))
			require.NoError(t, err)
		}
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func writeFile(t testing.TB, name string, content []byte) string {
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, content, 0o644))
	return name
}

// layouts writes the members as a folder and as every kind of archive.
func layouts(t testing.TB, members []member) map[string]string {
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder")
	require.NoError(t, os.Mkdir(folder, 0o755))
	for _, m := range members {
		name := filepath.Join(folder, filepath.FromSlash(m.name))
		if strings.HasSuffix(m.name, "/") {
			require.NoError(t, os.MkdirAll(name, 0o755))
		} else {
			writeFile(t, name, []byte(m.content))
		}
	}
	plain := tarBytes(t, members)
	return map[string]string{
		"folder": folder,
		"tar":    writeFile(t, filepath.Join(dir, "a.tar"), plain),
		"tgz":    writeFile(t, filepath.Join(dir, "a.tgz"), gzipBytes(t, plain)),
		"tar.gz": writeFile(t, filepath.Join(dir, "b.tar.gz"), gzipBytes(t, plain)),
		"zip":    writeFile(t, filepath.Join(dir, "a.zip"), zipBytes(t, members)),
	}
}

// open opens a set that is closed when the test ends.
func open(t testing.TB, path string, opt Options) *Set {
	set, err := Open(context.Background(), path, opt)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, set.Close()) })
	return set
}

func ids(s *Set) []string {
	var list []string
	for _, item := range s.Items() {
		list = append(list, item.ID)
	}
	return list
}

func classes(s *Set) []int {
	var list []int
	for _, item := range s.Items() {
		list = append(list, item.Class)
	}
	return list
}

// requireUsage wants an error that the user can mend, with all parts in it.
func requireUsage(t testing.TB, err error, parts ...string) {
	t.Helper()
	require.Error(t, err)
	require.True(t, errors.Is(err, usage.Err), "not marked as bad input: %v", err)
	for _, part := range parts {
		require.Contains(t, err.Error(), part)
	}
}

// sharedData is a path below shared/data beside the repository; without it the
// test is skipped.
func sharedData(t testing.TB, name string) string {
	path := filepath.Join("..", "..", "shared", "data", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("SKIP: %s is not there", path)
	}
	return path
}
