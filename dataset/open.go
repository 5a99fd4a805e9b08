package dataset

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// format is a kind of data file: how its name ends, how its content begins
// (magic at offset), and how it is opened.
type format struct {
	suffixes []string
	magic    string
	offset   int64
	open     func(ctx context.Context, path string, size int64, opt Options) (*Set, error)
}

// formats lists the files that Open reads, longer endings first.
func formats() []format {
	return []format{
		{[]string{".csv", ".csv.gz"}, "", 0, openCSV},
		{[]string{".npy", ".npy.gz"}, "\x93NUMPY", 0, openNpyFile},
		{[]string{".npz"}, "", 0, openNpz},
		{[]string{"idx3-ubyte", "idx3-ubyte.gz"}, "\x00\x00\x08\x03", 0, layoutFile(openIdxFiles)},
		{[]string{"idx1-ubyte", "idx1-ubyte.gz"}, "\x00\x00\x08\x01", 0, layoutFile(openIdxFiles)}, // which says what would be right
		{[]string{".bin"}, "", 0, layoutFile(openCIFARFile)},
		{[]string{".mat"}, "MATLAB ", 0, layoutFile(openSVHN)},
		{[]string{"data_batch_1", "test_batch"}, "\x80", 0, layoutFile(openCIFARPickles)},
		{[]string{".tar.gz", ".tgz"}, "\x1f\x8b", 0, archiveOpener(walkTgz, openTgz)},
		{[]string{".tar"}, "ustar", 257, archiveOpener(walkTar, openTar)},
		{[]string{".zip"}, "PK", 0, archiveOpener(walkZip, openZip)},
	}
}

// Open opens the data at path: a folder or an archive (.tar, .tar.gz, .tgz,
// .zip) of images; an array (.npy, .npz) or a table (.csv), gzipped too; what
// small images are published in, as a folder, an archive or one of the files:
// idx files (MNIST), CIFAR's binary and Python batches, SVHN's MATLAB files;
// data that the program carries ("embedded:photos", see Embedded); or data that
// it makes up ("synthetic:shapes?n=1000&size=32&seed=0", see Synthetic). A file
// whose name says nothing is known by its content. Archives are never unpacked
// to disk. Errors that the user can mend satisfy errors.Is(err, usage.Err).
//
// What a file says of itself is checked against its size before memory is
// taken for it; where data are compressed, memory grows with what really comes
// out. Errors are one line each.
func Open(ctx context.Context, path string, opt Options) (*Set, error) {
	set, err := openAny(ctx, path, opt)
	return set, usage.Line(err, path)
}

func openAny(ctx context.Context, path string, opt Options) (*Set, error) {
	opt = opt.withDefaults()
	if opt.Limit < 0 {
		return nil, usage.Errorf("dataset: limit %d: want a number of items, or 0 for all", opt.Limit)
	}
	if name, ok := strings.CutPrefix(path, embeddedPrefix); ok {
		return openEmbedded(ctx, name, opt)
	}
	if strings.HasPrefix(path, syntheticPrefix) {
		return openSynthetic(ctx, path, opt)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, usage.Errorf("dataset: no such data: %w", err)
	}
	if info.IsDir() {
		return openDirectory(ctx, path, opt)
	}
	if !info.Mode().IsRegular() {
		return nil, usage.Errorf("dataset: %s is neither a folder nor a regular file", path)
	}
	f, err := formatOf(path)
	if err != nil {
		return nil, err
	}
	return f.open(ctx, path, info.Size(), opt)
}

// formatOf goes by the name's ending, else by the content.
func formatOf(path string) (format, error) {
	lower := strings.ToLower(path)
	var known []string
	for _, f := range formats() {
		for _, suffix := range f.suffixes {
			if strings.HasSuffix(lower, suffix) {
				return f, nil
			}
			known = append(known, suffix)
		}
	}
	file, err := os.Open(path)
	if err != nil {
		return format{}, usage.Errorf("dataset: %w", err)
	}
	defer file.Close()
	head := make([]byte, 512)
	n, err := file.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return format{}, usage.Errorf("dataset: %w", err)
	}
	head = head[:n]
	for _, f := range formats() {
		if f.magic != "" && int64(len(head)) > f.offset && bytes.HasPrefix(head[f.offset:], []byte(f.magic)) {
			return f, nil
		}
	}
	return format{}, usage.Errorf("dataset: %s: unknown kind of data: want a folder of images, or a file ending in %s", path, strings.Join(known, ", "))
}

// archiveOpener makes a set of an archive: of the rows that walk finds in it,
// or else of images below its common top folder.
func archiveOpener[S source](walk archiveWalk, open func(context.Context, string, int64, Options) (S, error)) func(context.Context, string, int64, Options) (*Set, error) {
	return func(ctx context.Context, path string, size int64, opt Options) (*Set, error) {
		if set, err := openArchivedRows(ctx, path, size, walk, opt); set != nil || err != nil {
			return set, err
		}
		src, err := open(ctx, path, size, opt)
		if err != nil {
			return nil, err
		}
		set, err := openImages(ctx, path, commonTop(src.files()), src, opt)
		if err != nil {
			src.Close()
			return nil, err
		}
		return set, nil
	}
}
