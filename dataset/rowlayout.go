package dataset

import (
	"context"
	"os"
	"path/filepath"
	"sort"

	"github.com/assay-xai/assay/internal/usage"
)

// rowLayout is a way in which a data set of small images is published: files
// of known names beside each other, in a folder or an archive.
type rowLayout struct {
	// what names it in messages.
	what string
	// splitOf is the split to which the rows of a file belong, by its name; ""
	// for a file that is none of the layout's.
	splitOf func(base string) string
	// open reads the labels and finds the pixels of the files of one split, in
	// the order of their names; the rows' numbers go on from file to file.
	open func(ctx context.Context, b bundle, files []string, opt Options) (*rowData, error)
}

// rowLayouts lists what Open finds in folders and archives, before it looks
// for images.
func rowLayouts() []rowLayout {
	return []rowLayout{
		{"idx files (MNIST)", idxSplit, openIdxFiles},
		{"binary batches of CIFAR-10", cifar10BinarySplit, openCIFAR10Binary},
		{"binary batches of CIFAR-100", cifar100BinarySplit, openCIFAR100Binary},
		{"MATLAB files of SVHN", svhnSplit, openSVHN},
		{"Python batches of CIFAR-10", cifar10PickleSplit, openCIFARPickles},
		{"Python batches of CIFAR-100", cifar100PickleSplit, openCIFARPickles},
	}
}

// knownRows says whether some layout knows a file of that name.
func knownRows(base string) bool {
	for _, l := range rowLayouts() {
		if l.splitOf(base) != "" {
			return true
		}
	}
	return false
}

// findLayout finds the first layout that a file of the bundle belongs to, and
// its files by split.
func findLayout(b bundle) (layout rowLayout, parts map[string][]string) {
	for _, l := range rowLayouts() {
		parts := map[string][]string{}
		for _, name := range b.names() {
			if split := l.splitOf(name); split != "" {
				parts[split] = append(parts[split], name)
			}
		}
		if len(parts) > 0 {
			return l, parts
		}
	}
	return rowLayout{}, nil
}

// openLayout opens the rows of a bundle; found is false where it holds none.
func openLayout(ctx context.Context, path string, b bundle, opt Options) (set *Set, found bool, err error) {
	layout, parts := findLayout(b)
	if parts == nil {
		return nil, false, nil
	}
	var splits []string
	for split, files := range parts {
		splits = append(splits, split)
		sort.Slice(files, func(i, j int) bool { // data_batch_10 after data_batch_9
			if len(files[i]) != len(files[j]) {
				return len(files[i]) < len(files[j])
			}
			return files[i] < files[j]
		})
	}
	sort.Strings(splits)
	split, err := chooseSplit(path+" ("+layout.what+")", splits, opt.Split)
	if err != nil {
		return nil, true, err
	}
	files := parts[split]
	if split == "" {
		for _, s := range splits {
			files = append(files, parts[s]...)
		}
	}
	d, err := layout.open(ctx, b, files, opt)
	if err != nil {
		return nil, true, err
	}
	set, err = d.whole(path, opt)
	if err != nil {
		return nil, true, err
	}
	set.Split, set.Splits = split, splits
	return set, true, nil
}

// whole makes a set of all rows that were read, whatever split they are.
func (d *rowData) whole(path string, opt Options) (*Set, error) {
	d.path = path
	opt.Split = ""
	set, err := d.set(nil, opt)
	if err != nil {
		d.reader.Close()
		return nil, err
	}
	set.Warnings = append(set.Warnings, d.warnings...)
	return set, nil
}

// openDirectory opens a folder of rows, or else one of images.
func openDirectory(ctx context.Context, path string, opt Options) (*Set, error) {
	rows, err := openFolderBundle(path)
	if err != nil {
		return nil, err
	}
	if set, found, err := openLayout(ctx, path, rows, opt); found {
		return set, err
	}
	src, err := openDir(ctx, path, opt)
	if err != nil {
		return nil, err
	}
	return openImages(ctx, path, "", src, opt)
}

// openArchivedRows opens the rows of an archive; nil where it holds none.
func openArchivedRows(ctx context.Context, path string, size int64, walk archiveWalk, opt Options) (*Set, error) {
	b := findBundle(ctx, path, size, walk, opt)
	if b == nil {
		return nil, nil
	}
	if err := b.index(ctx, size); err != nil {
		return nil, err
	}
	set, _, err := openLayout(ctx, path, b, opt)
	return set, err
}

// layoutFile opens a single file of a layout by itself: what lies beside it
// (labels, names of classes) is read, other splits are not.
func layoutFile(open func(ctx context.Context, b bundle, files []string, opt Options) (*rowData, error)) func(context.Context, string, int64, Options) (*Set, error) {
	return func(ctx context.Context, path string, _ int64, opt Options) (*Set, error) {
		if opt.Split != "" {
			return nil, usage.Errorf("dataset: %s: split %q: a single file has no splits: leave it out, or open its folder", path, opt.Split)
		}
		b, err := openFolderBundle(filepath.Dir(path))
		if err != nil {
			return nil, err
		}
		d, err := open(ctx, b, []string{filepath.Base(path)}, opt)
		if err != nil {
			return nil, err
		}
		return d.whole(path, opt)
	}
}

// sizeOf is the size of a file of a folder, -1 where it cannot be had.
func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return info.Size()
}
