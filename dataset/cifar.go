package dataset

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// CIFAR's binary files (https://www.cs.toronto.edu/~kriz/cifar.html, "Binary
// version"): rows of a label, or for CIFAR-100 a coarse and a fine label, and
// 3072 bytes: red, green and blue, each 32x32 row by row.
const cifarPixels = 3 * 32 * 32

func cifarShape() []int { return []int{3, 32, 32} }

// cifarKind is one of the two sets.
type cifarKind struct {
	name string
	// classes of each label of a row; the last label is the class by default.
	classes []int
	// binaryNames is the file with the names of each label's classes, beside
	// binary batches.
	binaryNames []string
	// batches is the number of files of the training split.
	batches int
}

func cifar10() cifarKind {
	return cifarKind{"CIFAR-10", []int{10}, []string{"batches.meta.txt"}, 5}
}

func cifar100() cifarKind {
	return cifarKind{"CIFAR-100", []int{20, 100}, []string{"coarse_label_names.txt", "fine_label_names.txt"}, 1}
}

// label is the place of the label that is asked for.
func (k cifarKind) label(opt Options) int {
	if opt.Coarse {
		return 0
	}
	return len(k.classes) - 1
}

var cifarBatch = regexp.MustCompile(`^data_batch_[0-9]{1,3}(\.bin)?$`)

func cifar10BinarySplit(base string) string {
	switch {
	case !strings.HasSuffix(base, ".bin"):
		return ""
	case base == "test_batch.bin":
		return "test"
	case cifarBatch.MatchString(base):
		return "train"
	}
	return ""
}

func cifar100BinarySplit(base string) string {
	if split, ok := strings.CutSuffix(base, ".bin"); ok && (split == "train" || split == "test") {
		return split
	}
	return ""
}

func openCIFAR10Binary(ctx context.Context, b bundle, files []string, opt Options) (*rowData, error) {
	return cifar10().openBinary(ctx, b, files, opt)
}

func openCIFAR100Binary(ctx context.Context, b bundle, files []string, opt Options) (*rowData, error) {
	return cifar100().openBinary(ctx, b, files, opt)
}

// openCIFARFile opens one binary batch; which of the two sets it is of, its
// name says, else its size.
func openCIFARFile(ctx context.Context, b bundle, files []string, opt Options) (*rowData, error) {
	name := files[0]
	switch size := sizeOf(b.at(name)); {
	case cifar10BinarySplit(name) != "":
		return openCIFAR10Binary(ctx, b, files, opt)
	case cifar100BinarySplit(name) != "":
		return openCIFAR100Binary(ctx, b, files, opt)
	case size > 0 && size%(cifarPixels+1) == 0:
		return openCIFAR10Binary(ctx, b, files, opt)
	case size > 0 && size%(cifarPixels+2) == 0:
		return openCIFAR100Binary(ctx, b, files, opt)
	}
	return nil, usage.Errorf("dataset: %s: %d bytes: want whole rows of CIFAR-10 (%d bytes) or CIFAR-100 (%d)", b.at(name), sizeOf(b.at(name)), cifarPixels+1, cifarPixels+2)
}

func (k cifarKind) openBinary(ctx context.Context, b bundle, files []string, opt Options) (*rowData, error) {
	blobs, err := b.open(ctx, files)
	if err != nil {
		return nil, err
	}
	d, err := k.readBinary(ctx, b, blobs, opt)
	if err != nil {
		closeAll(blobs)
		return nil, err
	}
	d.warnings = k.missingBatches(b, files)
	return d, nil
}

func (k cifarKind) readBinary(ctx context.Context, b bundle, blobs []*blob, opt Options) (*rowData, error) {
	rows := &pixelRows{shape: cifarShape()}
	stride := int64(len(k.classes) + cifarPixels)
	d := &rowData{kind: Arrays, reader: rows}
	for _, file := range blobs {
		if file.size == 0 || file.size%stride != 0 {
			return nil, usage.Errorf("dataset: %s: %d bytes: want whole rows of %s, %d bytes each: cut off?", file.name, file.size, k.name, stride)
		}
		count := int(file.size / stride)
		rows.add(file, count, int64(len(k.classes)), stride)
		classes, err := k.binaryLabels(ctx, file, count, opt)
		if err != nil {
			return nil, err
		}
		d.classes = append(d.classes, classes...)
	}
	d.count = rows.count()
	d.where = func(row int) string {
		part, at := rows.where(row)
		return part.blob.name + ": row " + rowID(at)
	}
	names, err := k.binaryClassNames(ctx, b, opt)
	d.names = names
	return d, err
}

// binaryLabels reads the labels of a file's rows and checks all of them.
func (k cifarKind) binaryLabels(ctx context.Context, file *blob, count int, opt Options) ([]int, error) {
	stride := len(k.classes) + cifarPixels
	classes := make([]int, count)
	buf := make([]byte, min(count, 128)*stride)
	for first := 0; first < count; first += 128 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		some := buf[:min(count-first, 128)*stride]
		if n, err := file.ReadAt(some, int64(first)*int64(stride)); n < len(some) {
			return nil, usage.Errorf("dataset: %s is cut off: %w", file.name, err)
		}
		for i := range len(some) / stride {
			for l, n := range k.classes {
				if c := int(some[i*stride+l]); c >= n {
					return nil, usage.Errorf("dataset: %s: row %s: label %d: want 0..%d: no binary file of %s?", file.name, rowID(first+i), c, n-1, k.name)
				}
			}
			classes[first+i] = int(some[i*stride+k.label(opt)])
		}
	}
	return classes, nil
}

// maxNamesBytes bounds a list of class names.
const maxNamesBytes = 1 << 16

// binaryClassNames reads the list of names beside the batches; without one the
// names of CIFAR-10 are known anyway.
func (k cifarKind) binaryClassNames(ctx context.Context, b bundle, opt Options) ([]string, error) {
	label := k.label(opt)
	file := k.binaryNames[label]
	if !slices.Contains(b.names(), file) {
		return k.knownNames(), nil
	}
	blobs, err := b.open(ctx, []string{file})
	if err != nil {
		return nil, err
	}
	defer closeAll(blobs)
	text, err := blobs[0].all(maxNamesBytes)
	if err != nil {
		return nil, err
	}
	return k.checkNames(blobs[0].name, strings.Fields(string(text)), label)
}

func (k cifarKind) knownNames() []string {
	if len(k.classes) == 1 {
		return ClassNames("cifar10")
	}
	return nil
}

func (k cifarKind) checkNames(from string, names []string, label int) ([]string, error) {
	if len(names) != k.classes[label] {
		return nil, usage.Errorf("dataset: %s: %d names of classes: want the %d of %s", from, len(names), k.classes[label], k.name)
	}
	return names, nil
}

// missingBatches warns where the training split is not whole: its rows'
// numbers then differ from those of the whole set.
func (k cifarKind) missingBatches(b bundle, files []string) []string {
	n := 0
	for _, f := range files {
		if cifarBatch.MatchString(f) {
			n++
		}
	}
	if n <= 1 || n == k.batches { // one alone was asked for by name
		return nil
	}
	return []string{b.at("") + ": some of " + k.name + "'s training batches are not there: rows are numbered over those that are"}
}
