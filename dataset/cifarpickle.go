package dataset

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nlpodyssey/gopickle/types"

	"github.com/assay-xai/assay/internal/pickle"
	"github.com/assay-xai/assay/internal/usage"
)

// CIFAR's Python files (https://www.cs.toronto.edu/~kriz/cifar.html, "Python
// version"): pickled dicts with data, uint8 [N,3072] (red, green and blue, each
// 32x32 row by row), and labels, or coarse_labels and fine_labels.

func cifar10PickleSplit(base string) string {
	switch {
	case base == "test_batch":
		return "test"
	case cifarBatch.MatchString(base) && !strings.HasSuffix(base, ".bin"):
		return "train"
	}
	return ""
}

func cifar100PickleSplit(base string) string {
	if base == "train" || base == "test" {
		return base
	}
	return ""
}

// openCIFARPickles opens batches of either set: what they hold says which.
func openCIFARPickles(ctx context.Context, b bundle, files []string, opt Options) (*rowData, error) {
	rows := &pixelRows{shape: cifarShape()}
	d := &rowData{kind: Arrays, reader: rows}
	var kind cifarKind
	var from []string
	for _, name := range files {
		batch, err := readPickle(ctx, b, name)
		if err != nil {
			return nil, err
		}
		k, classes, images, err := cifarRows(batch, opt)
		if err == nil && kind.name != "" && k.name != kind.name {
			err = fmt.Errorf("a batch of %s beside one of %s", k.name, kind.name)
		}
		if err != nil {
			return nil, usage.Errorf("dataset: %s: %w", b.at(name), err)
		}
		kind = k
		rows.add(&blob{ReaderAt: images.data, name: b.at(name), size: images.size}, len(classes), 0, cifarPixels)
		d.classes = append(d.classes, classes...)
		from = append(from, b.at(name))
	}
	d.count, d.where = rows.count(), whereIn(rows, from)
	names, err := kind.pickledClassNames(ctx, b, opt)
	if err != nil {
		return nil, err
	}
	d.names, d.warnings = names, kind.missingBatches(b, files)
	return d, nil
}

// readPickle reads a file that holds one pickled dict.
func readPickle(ctx context.Context, b bundle, name string) ([]types.DictEntry, error) {
	blobs, err := b.open(ctx, []string{name})
	if err != nil {
		return nil, err
	}
	defer closeAll(blobs)
	raw, err := blobs[0].all(int64(batchPickle().Bytes))
	if err != nil {
		return nil, err
	}
	v, err := loadBatchPickle(raw)
	if err != nil {
		return nil, usage.Errorf("dataset: %s: %w", b.at(name), err)
	}
	entries, ok := pickle.Entries(v)
	if !ok {
		return nil, usage.Errorf("dataset: %s holds %s: want a dict with data and labels, a batch of CIFAR", b.at(name), pickle.Describe(v))
	}
	return entries, nil
}

// lookup finds a key, which Python 3 may have as bytes.
func lookup(entries []types.DictEntry, key string) any {
	for _, e := range entries {
		if k, ok := text(e.Key); ok && k == key {
			return e.Value
		}
	}
	return nil
}

// cifarRows checks a batch: which set it is of, its classes, its images.
func cifarRows(batch []types.DictEntry, opt Options) (kind cifarKind, classes []int, images *pickledArray, err error) {
	kind, keys := cifar10(), []string{"labels"}
	if lookup(batch, "labels") == nil {
		kind, keys = cifar100(), []string{"coarse_labels", "fine_labels"}
	}
	at := kind.label(opt)
	images, ok := lookup(batch, "data").(*pickledArray)
	if !ok || len(images.shape) != 2 || images.shape[1] != cifarPixels {
		return kind, nil, nil, fmt.Errorf("data is %s: want an array of uint8 of shape [N,%d]", describeArray(lookup(batch, "data")), cifarPixels)
	}
	list, ok := lookup(batch, keys[at]).(*types.List)
	if !ok {
		return kind, nil, nil, fmt.Errorf("%s is %s: want a list of classes", keys[at], pickle.Describe(lookup(batch, keys[at])))
	}
	if list.Len() != images.shape[0] {
		return kind, nil, nil, fmt.Errorf("%s has %d entries for %d images", keys[at], list.Len(), images.shape[0])
	}
	classes = make([]int, list.Len())
	for i, v := range *list {
		c, ok := v.(int)
		if !ok || c < 0 || c >= kind.classes[at] {
			return kind, nil, nil, fmt.Errorf("%s: row %s: %s: want 0..%d", keys[at], rowID(i), pickle.Describe(v), kind.classes[at]-1)
		}
		classes[i] = c
	}
	return kind, classes, images, nil
}

func describeArray(v any) string {
	if a, ok := v.(*pickledArray); ok {
		return fmt.Sprintf("of shape %v", a.shape)
	}
	return pickle.Describe(v)
}

// pickledClassNames reads the names beside the batches.
func (k cifarKind) pickledClassNames(ctx context.Context, b bundle, opt Options) ([]string, error) {
	file, keys := "batches.meta", []string{"label_names"}
	if len(k.classes) == 2 {
		file, keys = "meta", []string{"coarse_label_names", "fine_label_names"}
	}
	if !slices.Contains(b.names(), file) {
		return k.knownNames(), nil
	}
	meta, err := readPickle(ctx, b, file)
	if err != nil {
		return nil, err
	}
	key := keys[k.label(opt)]
	list, ok := lookup(meta, key).(*types.List)
	if !ok {
		return nil, usage.Errorf("dataset: %s: %s is %s: want a list of names", b.at(file), key, pickle.Describe(lookup(meta, key)))
	}
	var names []string
	for _, v := range *list {
		name, ok := text(v)
		if !ok {
			return nil, usage.Errorf("dataset: %s: %s holds %s: want names", b.at(file), key, pickle.Describe(v))
		}
		names = append(names, name)
	}
	return k.checkNames(b.at(file), names, k.label(opt))
}
