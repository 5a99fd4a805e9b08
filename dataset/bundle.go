package dataset

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// bundle is a folder, an archive or a single file, seen as plain files beside
// each other: what the layouts of rows (rowlayout.go) are looked for in.
type bundle interface {
	// names lists the files.
	names() []string
	// open opens some of them, in that order. Those of an archive are in
	// memory; there a name that is not among names is an error.
	open(ctx context.Context, names []string) ([]*blob, error)
	// at says where a file lies, for messages.
	at(name string) string
}

// blob is the content of a file, on disk or in memory.
type blob struct {
	io.ReaderAt
	name   string // for messages, with its folder or archive
	size   int64
	closer io.Closer // nil for memory
}

func (b *blob) Close() error {
	if b.closer == nil {
		return nil
	}
	return b.closer.Close()
}

// stream reads the blob from its beginning.
func (b *blob) stream() io.Reader { return io.NewSectionReader(b, 0, b.size) }

// all reads a small file whole.
func (b *blob) all(limit int64) ([]byte, error) {
	if b.size > limit {
		return nil, usage.Errorf("dataset: %s has %d bytes: want at most %d", b.name, b.size, limit)
	}
	return readAtMost(b.stream(), b.size, limit)
}

func closeAll(blobs []*blob) error {
	var first error
	for _, b := range blobs {
		if err := b.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// folderBundle is the files of a folder, without those of its folders.
type folderBundle struct {
	root string
	list []string
}

func openFolderBundle(root string) (*folderBundle, error) {
	list, err := os.ReadDir(root)
	if err != nil {
		return nil, usage.Errorf("dataset: reading a folder: %w", err)
	}
	b := &folderBundle{root: root}
	for _, item := range list {
		isDir := item.IsDir()
		if item.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(b.at(item.Name()))
			isDir = err != nil || info.IsDir() // a link to nowhere is no file either
		}
		if !isDir && !isJunk(item.Name()) {
			b.list = append(b.list, item.Name())
		}
	}
	return b, nil
}

func (b *folderBundle) names() []string       { return b.list }
func (b *folderBundle) at(name string) string { return filepath.Join(b.root, name) }

func (b *folderBundle) open(ctx context.Context, names []string) (blobs []*blob, err error) {
	defer func() {
		if err != nil {
			closeAll(blobs)
		}
	}()
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return blobs, err
		}
		f, err := os.Open(b.at(name))
		if err != nil {
			return blobs, usage.Errorf("dataset: %w", err)
		}
		blobs = append(blobs, &blob{ReaderAt: f, name: b.at(name), closer: f})
		info, err := f.Stat()
		if err != nil {
			return blobs, usage.Errorf("dataset: %w", err)
		}
		if !info.Mode().IsRegular() {
			return blobs, usage.Errorf("dataset: %s is not a regular file", b.at(name))
		}
		blobs[len(blobs)-1].size = info.Size()
	}
	return blobs, nil
}

// archiveBundle is the files of one folder of an archive.
type archiveBundle struct {
	path string
	opt  Options
	walk archiveWalk
	dir  string // "." for the top
	list []string
}

// visitFile is called for each regular file of an archive; it may leave the
// content unread, and ends the walk with done.
type visitFile func(name string, size int64, content io.Reader) (done bool, err error)

// archiveWalk walks the regular files of an archive in its order.
type archiveWalk func(ctx context.Context, name string, size int64, opt Options, visit visitFile) error

// peekFiles is how many files of an archive are looked at before it is taken
// for one of images; those of rows hold a dozen.
const peekFiles = 16

// findBundle looks for rows in an archive: a file, among its first, that some
// layout knows. nil where it holds something else, or is damaged, which the
// readers of images then say.
func findBundle(ctx context.Context, path string, size int64, walk archiveWalk, opt Options) *archiveBundle {
	b := &archiveBundle{path: path, opt: opt, walk: walk}
	seen := 0
	err := walk(ctx, path, size, opt, func(name string, _ int64, _ io.Reader) (bool, error) {
		if knownRows(baseOf(name)) {
			b.dir = dirOf(name)
			return true, nil
		}
		seen++
		return seen == peekFiles || isImage(name), nil
	})
	if err != nil || b.dir == "" {
		return nil
	}
	return b
}

func baseOf(name string) string { return path.Base(name) }
func dirOf(name string) string  { return path.Dir(name) }

// index lists the files of the bundle's folder, reading the archive to its end.
func (b *archiveBundle) index(ctx context.Context, size int64) error {
	return b.walk(ctx, b.path, size, b.opt, func(name string, _ int64, _ io.Reader) (bool, error) {
		if dirOf(name) == b.dir && !isJunk(name) {
			b.list = append(b.list, baseOf(name))
		}
		return false, nil
	})
}

func (b *archiveBundle) names() []string       { return b.list }
func (b *archiveBundle) at(name string) string { return b.path + ": " + path.Join(b.dir, name) }

func (b *archiveBundle) open(ctx context.Context, names []string) ([]*blob, error) {
	info, err := os.Stat(b.path)
	if err != nil {
		return nil, usage.Errorf("dataset: %w", err)
	}
	blobs := make([]*blob, len(names))
	missing := len(names)
	err = b.walk(ctx, b.path, info.Size(), b.opt, func(name string, size int64, content io.Reader) (bool, error) {
		if dirOf(name) != b.dir {
			return false, nil
		}
		at := slices.Index(names, baseOf(name))
		if at < 0 || blobs[at] != nil {
			return false, nil
		}
		if size > maxArrayBytes {
			return false, usage.Errorf("dataset: %s unpacks to %d bytes: want at most %d", b.at(names[at]), size, int64(maxArrayBytes))
		}
		buf, err := readAtMost(content, size, size)
		if err != nil {
			return false, usage.Errorf("dataset: %s is damaged or cut off: %w", b.at(names[at]), err)
		}
		blobs[at] = &blob{ReaderAt: bytes.NewReader(buf), name: b.at(names[at]), size: int64(len(buf))}
		missing--
		return missing == 0, nil
	})
	if err != nil {
		return nil, err
	}
	for i, blob := range blobs {
		if blob == nil {
			return nil, usage.Errorf("dataset: %s is not there any more", b.at(names[i]))
		}
	}
	return blobs, nil
}

// walkTar is the archiveWalk of an uncompressed tar.
func walkTar(ctx context.Context, name string, size int64, opt Options, visit visitFile) error {
	f, err := os.Open(name)
	if err != nil {
		return usage.Errorf("dataset: %w", err)
	}
	defer f.Close()
	return walkTarFiles(ctx, newIndex(name, size, opt), io.NewSectionReader(f, 0, size), visit)
}

// walkTgz is the archiveWalk of a gzipped tar.
func walkTgz(ctx context.Context, name string, size int64, opt Options, visit visitFile) error {
	f, zipped, err := openGzip(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return walkTarFiles(ctx, newIndex(name, size, opt), zipped, visit)
}

func walkTarFiles(ctx context.Context, x *archiveIndex, r io.Reader, visit visitFile) error {
	archive := tar.NewReader(r)
	last := fromStart
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		header, err := archive.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return x.damaged(ctx, err, last)
		}
		kind := tarKind(header)
		clean, _, err := x.add(header.Name, kind, header.Size)
		if err != nil {
			return err
		}
		last = clean
		if kind != regularEntry {
			continue
		}
		if done, err := visit(clean, header.Size, archive); done || err != nil {
			return err
		}
	}
}

// walkZip is the archiveWalk of a zip.
func walkZip(ctx context.Context, name string, size int64, opt Options, visit visitFile) error {
	f, err := os.Open(name)
	if err != nil {
		return usage.Errorf("dataset: %w", err)
	}
	defer f.Close()
	archive, err := zip.NewReader(f, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return usage.Errorf("dataset: %s is no zip archive, or one cut off: %w", name, err)
	}
	x := newIndex(name, size, opt)
	for _, member := range archive.File {
		if err := ctx.Err(); err != nil {
			return err
		}
		kind := regularEntry
		switch mode := member.Mode(); {
		case mode.IsDir() || strings.HasSuffix(member.Name, "/"):
			kind = folderEntry
		case !mode.IsRegular():
			kind = linkEntry
		}
		clean, _, err := x.add(member.Name, kind, int64(min(member.UncompressedSize64, 1<<62)))
		if err != nil {
			return err
		}
		if kind != regularEntry {
			continue
		}
		done, err := visitZipped(member, clean, visit)
		if done || err != nil {
			return err
		}
	}
	return nil
}

// visitZipped opens a member only when its content is asked for.
func visitZipped(member *zip.File, clean string, visit visitFile) (done bool, err error) {
	content := &lazyMember{member: member}
	defer content.close()
	return visit(clean, int64(min(member.UncompressedSize64, 1<<62)), content)
}

type lazyMember struct {
	member *zip.File
	r      io.ReadCloser
}

func (l *lazyMember) Read(p []byte) (int, error) {
	if l.r == nil {
		r, err := l.member.Open()
		if err != nil {
			return 0, err
		}
		l.r = r
	}
	return l.r.Read(p)
}

func (l *lazyMember) close() {
	if l.r != nil {
		l.r.Close()
	}
}
