package dataset

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// tarSource reads an uncompressed .tar at random, by the offsets that one pass
// over its headers found: several goroutines may read at once.
type tarSource struct {
	*archiveIndex
	file *os.File
}

func openTar(ctx context.Context, name string, size int64, opt Options) (*tarSource, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, usage.Errorf("dataset: %w", err)
	}
	t := &tarSource{newIndex(name, size, opt), f}
	section := io.NewSectionReader(f, 0, size)
	err = indexTar(ctx, t.archiveIndex, section, func(clean string, size int64, _ io.Reader) error {
		offset, err := section.Seek(0, io.SeekCurrent) // where the content begins
		t.keep(clean, size, offset)
		return err
	})
	if err != nil {
		f.Close()
		return nil, err
	}
	return t, nil
}

// indexTar walks the headers of a tar; image is called for each image while r
// stands at its content. It may leave content unread.
func indexTar(ctx context.Context, x *archiveIndex, r io.Reader, image func(clean string, size int64, content io.Reader) error) error {
	archive := tar.NewReader(r)
	last := fromStart
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return x.damaged(ctx, err, last)
		}
		clean, what, err := x.add(header.Name, tarKind(header), header.Size)
		if err != nil {
			return err
		}
		switch what {
		case wantImage:
			err = image(clean, header.Size, archive)
		case wantText:
			x.texts[clean], err = readAtMost(archive, header.Size, maxTextBytes)
		}
		if err != nil {
			return x.damaged(ctx, err, clean)
		}
		last = clean
	}
	if x.entries == 0 {
		return usage.Errorf("dataset: %s: no tar archive, or an empty one", x.name)
	}
	return nil
}

// fromStart stands for the name of the last entry where there is none yet.
const fromStart = "its beginning"

// damaged words the error of an archive that ends early or is no archive.
func (x *archiveIndex) damaged(ctx context.Context, err error, after string) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return usage.Errorf("dataset: %s is cut off at or after %s: get it again", x.name, after)
	}
	if lower := strings.ToLower(x.name); after == fromStart && strings.HasSuffix(lower, ".gz") && !strings.HasSuffix(lower, ".tar.gz") {
		return usage.Errorf("dataset: %s holds no tar archive: what else is gzipped is known by its ending, such as idx3-ubyte.gz, .npy.gz or .csv.gz", x.name)
	}
	return usage.Errorf("dataset: %s is damaged at or after %s, or no archive: %w", x.name, after, err)
}

// tarKind sorts a header. Sparse files count as special: their stored bytes
// are not their content.
func tarKind(h *tar.Header) entryKind {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return specialEntry
		}
	}
	switch h.Typeflag {
	case tar.TypeReg, '\x00':
		return regularEntry
	case tar.TypeDir:
		return folderEntry
	case tar.TypeSymlink, tar.TypeLink:
		return linkEntry
	}
	return specialEntry
}

func (t *tarSource) choose([]entry) bool { t.forget(); return false }
func (t *tarSource) Close() error        { return t.file.Close() }

func (t *tarSource) read(ctx context.Context, e entry) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b := make([]byte, e.size)
	if n, err := t.file.ReadAt(b, e.loc); n < len(b) {
		if err == io.EOF {
			return nil, usage.Errorf("%s is cut off", t.name)
		}
		return nil, err
	}
	return b, nil
}
