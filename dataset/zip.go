package dataset

import (
	"archive/zip"
	"context"
	"errors"
	"io/fs"

	"github.com/assay-xai/assay/internal/usage"
)

// zipSource reads a .zip at random: several goroutines may read at once.
type zipSource struct {
	*archiveIndex
	archive *zip.ReadCloser
}

func openZip(ctx context.Context, name string, size int64, opt Options) (*zipSource, error) {
	archive, err := zip.OpenReader(name)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, usage.Errorf("dataset: %s: no .zip archive, or one cut off: %w", name, err)
	}
	z := &zipSource{newIndex(name, size, opt), archive}
	if err := z.index(ctx); err != nil {
		archive.Close()
		return nil, err
	}
	return z, nil
}

func (z *zipSource) index(ctx context.Context) error {
	for i, f := range z.archive.File {
		if err := ctx.Err(); err != nil {
			return err
		}
		kind := regularEntry
		switch mode := f.Mode(); {
		case mode.IsDir():
			kind = folderEntry
		case mode&fs.ModeSymlink != 0:
			kind = linkEntry
		case !mode.IsRegular():
			kind = specialEntry
		}
		size := int64(min(f.UncompressedSize64, 1<<62))
		clean, what, err := z.add(f.Name, kind, size)
		if err != nil {
			return err
		}
		if what != ignored && f.Flags&1 != 0 {
			return usage.Errorf("dataset: %s: %s is encrypted", z.name, clean)
		}
		switch what {
		case wantImage:
			z.keep(clean, size, int64(i))
		case wantText:
			text, err := z.read(ctx, entry{path: clean, size: size, loc: int64(i)})
			if err != nil {
				return usage.Errorf("dataset: %s: %s: %w", z.name, clean, err)
			}
			z.texts[clean] = text
		}
	}
	return nil
}

func (z *zipSource) choose([]entry) bool { z.forget(); return false }
func (z *zipSource) Close() error        { return z.archive.Close() }

func (z *zipSource) read(ctx context.Context, e entry) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r, err := z.archive.File[e.loc].Open()
	if err != nil {
		return nil, usage.Mark(err)
	}
	defer r.Close()
	b, err := readAtMost(r, e.size, z.opt.MaxItemBytes)
	return b, usage.Mark(err)
}
