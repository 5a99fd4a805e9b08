package dataset

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/assay-xai/assay/internal/usage"
)

// errClosed is what reads of a closed set get.
var errClosed = errors.New("the set is closed")

// entry is a file of a source. loc is where the source finds it again.
type entry struct {
	path string
	size int64
	loc  int64
}

// source is a tree of files: a directory or an archive.
type source interface {
	// files lists images, label files included are not among them.
	files() []entry
	// folders lists the folders, those without images too: an empty class
	// folder still takes a number.
	folders() []string
	// text returns a small file that the source kept (isText), or
	// fs.ErrNotExist.
	text(name string) ([]byte, error)
	// choose says which files will be read; keepOrder is true where reading in
	// another order than files() is slow.
	choose(chosen []entry) (keepOrder bool)
	read(ctx context.Context, e entry) ([]byte, error)
	io.Closer
}

// labelsName is the file that labels a flat folder.
const labelsName = "labels.txt"

// isText is true of the files that a source keeps for text.
func isText(base string) bool {
	return base == labelsName || base == groundTruthName || base == metaName
}

// textLimit is the most that such a file may have.
func textLimit(base string) int64 {
	if base == metaName {
		return maxMetaBytes
	}
	return maxTextBytes
}

// isImage goes by the name's ending; the decoder looks at the content.
func isImage(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".jpg", ".jpeg", ".png":
		return true
	}
	return false
}

// isJunk is true of what file managers leave in folders and archives.
func isJunk(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") && part != "." && part != ".." || part == "__MACOSX" {
			return true
		}
	}
	return false
}

// dirSource is a directory. Links are followed: what lies behind them is the
// user's own.
type dirSource struct {
	root string
	list []entry
	dirs []string
	opt  Options
}

// maxDepth ends a walk through links that lead back up.
const maxDepth = 32

func openDir(ctx context.Context, root string, opt Options) (*dirSource, error) {
	d := &dirSource{root: root, opt: opt}
	if err := d.walk(ctx, "", 0); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *dirSource) walk(ctx context.Context, rel string, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if depth > maxDepth {
		return usage.Errorf("dataset: %s: folders nested deeper than %d: does a link lead back up?", filepath.Join(d.root, rel), maxDepth)
	}
	list, err := os.ReadDir(filepath.Join(d.root, filepath.FromSlash(rel)))
	if err != nil {
		return usage.Errorf("dataset: reading a folder: %w", err)
	}
	for _, item := range list {
		name := path.Join(rel, item.Name())
		if isJunk(item.Name()) {
			continue
		}
		isDir := item.IsDir()
		if !isDir && item.Type()&fs.ModeSymlink == 0 && !isImage(name) {
			continue
		}
		info, err := os.Stat(filepath.Join(d.root, filepath.FromSlash(name)))
		if err != nil {
			if isImage(name) || isDir {
				return usage.Errorf("dataset: %w", err)
			}
			continue
		}
		if !utf8.ValidString(name) {
			return usage.Errorf("dataset: %s: the name %q is not UTF-8: rename it", d.root, name)
		}
		switch {
		case info.IsDir():
			d.dirs = append(d.dirs, name)
			if err := d.walk(ctx, name, depth+1); err != nil {
				return err
			}
		case isImage(name):
			if !info.Mode().IsRegular() {
				return usage.Errorf("dataset: %s: %s is not a regular file", d.root, name)
			}
			if err := d.opt.checkSize(d.root, name, info.Size()); err != nil {
				return err
			}
			d.list = append(d.list, entry{path: name, size: info.Size()})
		}
	}
	return nil
}

func (o Options) checkSize(root, name string, size int64) error {
	if size < 0 || size > o.MaxItemBytes {
		return usage.Errorf("dataset: %s: %s has %d bytes: want at most %d", root, name, size, o.MaxItemBytes)
	}
	return nil
}

func (d *dirSource) files() []entry          { return d.list }
func (d *dirSource) folders() []string       { return d.dirs }
func (d *dirSource) choose([]entry) bool     { return false }
func (d *dirSource) Close() error            { return nil }
func (d *dirSource) file(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }
func (d *dirSource) text(name string) ([]byte, error) {
	return readSmall(d.file(name), textLimit(path.Base(name)))
}

func (d *dirSource) read(ctx context.Context, e entry) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := os.Open(d.file(e.path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAtMost(f, e.size, d.opt.MaxItemBytes)
}

// readAtMost reads a file that should have size bytes and may have limit.
func readAtMost(r io.Reader, size, limit int64) ([]byte, error) {
	// One byte more than expected, so that the end is seen without growing;
	// but no file gets much memory for its word alone: what has come doubles it.
	size = max(0, min(size, limit))
	b := make([]byte, 0, min(size, 1<<20)+1)
	for {
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if int64(len(b)) > limit {
			return nil, usage.Errorf("more than %d bytes", limit)
		}
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
		if len(b) == cap(b) {
			more := int64(len(b))
			if left := size + 1 - more; left > 0 {
				more = min(more, left)
			}
			b = append(make([]byte, 0, int64(len(b))+more), b...)
		}
	}
}
