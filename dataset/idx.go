package dataset

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// The idx format of MNIST (http://yann.lecun.com/exdb/mnist, "FILE FORMATS"):
// two zero bytes, the type of the elements (8: unsigned byte), the number of
// dimensions, the size of each as a big-endian 32-bit integer, the elements in
// C order. Images are [N,H,W], labels [N].
const (
	idxImages = 0x00000803
	idxLabels = 0x00000801
)

// idxName matches MNIST's names and torchvision's spelling of them.
var idxName = regexp.MustCompile(`^(train|t10k)-images[-.]idx3-ubyte(\.gz)?$`)

func idxSplit(base string) string {
	switch m := idxName.FindStringSubmatch(base); {
	case m == nil:
		return ""
	case m[1] == "train":
		return "train"
	}
	return "test"
}

// openIdxFiles opens files of images, each with the labels beside it.
func openIdxFiles(ctx context.Context, b bundle, files []string, opt Options) (d *rowData, err error) {
	rows := &pixelRows{}
	defer func() {
		if err != nil {
			rows.Close()
		}
	}()
	d = &rowData{kind: Arrays, reader: rows}
	labelled := true
	var labels []string
	var seen []string
	for _, name := range files {
		// A folder may hold a file both as it is and gzipped.
		stem := strings.TrimSuffix(name, ".gz")
		if slices.Contains(seen, stem) {
			continue
		}
		seen = append(seen, stem)
		images, err := openIdx(ctx, b, name, idxImages)
		if err != nil {
			return nil, err
		}
		shape := []int{1, images.sizes[1], images.sizes[2]}
		if rows.shape != nil && !slices.Equal(rows.shape, shape) {
			images.Close()
			return nil, usage.Errorf("dataset: %s: images of %dx%d pixels beside others of %dx%d: choose a split", images.name, shape[1], shape[2], rows.shape[1], rows.shape[2])
		}
		rows.shape = shape
		rows.add(images.blob, images.sizes[0], images.offset, int64(area(shape)))
		beside := idxLabelsOf(b, name)
		if beside == "" || !labelled || opt.Labels != "" {
			labelled = false
			continue
		}
		classes, err := readIdxLabels(ctx, b, beside, images.sizes[0], b.at(name))
		if err != nil {
			return nil, err
		}
		d.classes = append(d.classes, classes...)
		labels = append(labels, b.at(beside))
	}
	d.count = rows.count()
	if labelled {
		d.where = whereIn(rows, labels)
	} else {
		d.classes = nil
	}
	if strings.Contains(strings.ToLower(b.at("")), "fashion") {
		d.names = ClassNames("fashion-mnist") // the files themselves name none
	}
	return d, nil
}

// whereIn says in which of the label files, one a part, a row's label stands.
func whereIn(rows *pixelRows, labels []string) func(int) string {
	return func(row int) string {
		for i, part := range rows.parts {
			if row < part.end {
				_, k := rows.where(row)
				return labels[i] + ": row " + rowID(k)
			}
		}
		return ""
	}
}

// idxLabelsOf is the file of labels beside one of images, "" without.
func idxLabelsOf(b bundle, images string) string {
	stem := strings.TrimSuffix(images, ".gz")
	stem = strings.Replace(stem, "images", "labels", 1)
	stem = strings.Replace(stem, "idx3", "idx1", 1)
	if stem == strings.TrimSuffix(images, ".gz") {
		return ""
	}
	for _, name := range []string{stem, stem + ".gz"} {
		if slices.Contains(b.names(), name) {
			return name
		}
	}
	return ""
}

func readIdxLabels(ctx context.Context, b bundle, name string, count int, images string) ([]int, error) {
	f, err := openIdx(ctx, b, name, idxLabels)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.sizes[0] != count {
		return nil, usage.Errorf("dataset: %s: %d labels for the %d images of %s", f.name, f.sizes[0], count, path.Base(images))
	}
	raw := make([]byte, count)
	if n, err := f.ReadAt(raw, f.offset); n < count {
		return nil, usage.Errorf("dataset: %s is cut off: %w", f.name, err)
	}
	classes := make([]int, count)
	for i, c := range raw {
		classes[i] = int(c)
	}
	return classes, nil
}

// idxFile is an opened idx file; offset is where its elements begin.
type idxFile struct {
	*blob
	sizes  []int
	offset int64
}

// openIdx opens a file and reads its header; a gzipped one is unpacked into
// memory, as far as its header says.
func openIdx(ctx context.Context, b bundle, name string, magic uint32) (*idxFile, error) {
	blobs, err := b.open(ctx, []string{name})
	if err != nil {
		return nil, err
	}
	f, err := readIdx(blobs[0], strings.HasSuffix(name, ".gz"), magic)
	if err != nil {
		blobs[0].Close()
		return nil, err
	}
	return f, nil
}

func readIdx(file *blob, zipped bool, magic uint32) (*idxFile, error) {
	stream := file.stream()
	if zipped {
		unzipped, err := gzip.NewReader(stream)
		if err != nil {
			return nil, usage.Errorf("dataset: %s: no gzip file, or one cut off: %w", file.name, err)
		}
		stream = unzipped
	}
	damaged := func(err error) error {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return usage.Errorf("dataset: %s is cut off: get it again", file.name)
		}
		return usage.Errorf("dataset: %s is damaged: %w", file.name, err)
	}
	head := make([]byte, 4, 16)
	if _, err := io.ReadFull(stream, head); err != nil {
		return nil, damaged(err)
	}
	if err := checkIdxMagic(file.name, binary.BigEndian.Uint32(head), magic); err != nil {
		return nil, err
	}
	f := &idxFile{blob: file, sizes: make([]int, magic&0xff)}
	head = head[:4+4*len(f.sizes)]
	f.offset = int64(len(head))
	if _, err := io.ReadFull(stream, head[4:]); err != nil {
		return nil, damaged(err)
	}
	need := int64(1)
	for i := range f.sizes {
		size := int64(binary.BigEndian.Uint32(head[4+4*i:]))
		f.sizes[i] = int(size)
		if size < 1 || i > 0 && size > maxSide {
			return nil, usage.Errorf("dataset: %s: sizes %v in its header: want 1 or more rows, sides 1..%d", file.name, f.sizes[:i+1], maxSide)
		}
		need *= size // at most 2^32 * 2^26
	}
	if zipped {
		return f, f.unpack(stream, need, damaged)
	}
	if have := file.size - f.offset; have != need {
		return nil, usage.Errorf("dataset: %s: sizes %v need %d bytes after the header, there are %d: cut off, or another file?", file.name, f.sizes, need, have)
	}
	return f, nil
}

// unpack reads what follows the header into memory. Memory grows with what
// comes, not with what the header says.
func (f *idxFile) unpack(stream io.Reader, need int64, damaged func(error) error) error {
	if err := checkUnpacked(f.name, need, f.size); err != nil {
		return err
	}
	content, err := readAtMost(io.LimitReader(stream, need), need, need)
	if err != nil {
		return damaged(err)
	}
	if int64(len(content)) < need {
		return usage.Errorf("dataset: %s: sizes %v need %d bytes after the header, there are %d: cut off, or another file?", f.name, f.sizes, need, len(content))
	}
	// The checksum comes with the end.
	switch n, err := stream.Read(make([]byte, 1)); {
	case n > 0:
		return usage.Errorf("dataset: %s: more than the %d bytes that its sizes %v need: another file?", f.name, need, f.sizes)
	case err != nil && err != io.EOF:
		return damaged(err)
	}
	old := f.blob
	f.blob = &blob{ReaderAt: bytes.NewReader(content), name: old.name, size: need}
	f.offset = 0
	return old.Close()
}

// checkIdxMagic says what is wrong with the first four bytes of a file.
func checkIdxMagic(name string, have, want uint32) error {
	switch {
	case have == want:
		return nil
	case have == idxLabels:
		return usage.Errorf("dataset: %s holds labels: want the file of images beside it, or the folder", name)
	case have == idxImages:
		return usage.Errorf("dataset: %s holds images: want labels", name)
	}
	return usage.Errorf("dataset: %s begins with %08x: want %08x, an idx file of unsigned bytes with %d dimensions", name, have, want, want&0xff)
}
