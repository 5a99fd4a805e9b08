package dataset

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// splitNames are the folders that make splits of a root.
var splitNames = []string{"train", "val", "test"}

// openImages finds splits, classes and ids in a tree of files. It owns src.
func openImages(ctx context.Context, name, base string, src source, opt Options) (*Set, error) {
	set := &Set{Path: name, Kind: Images}
	tree := tree{name: name, src: src, base: base}
	for _, e := range src.files() {
		if rel, ok := below(base, e.path); ok {
			tree.files = append(tree.files, file{rel: rel, entry: e})
		}
	}
	for _, dir := range src.folders() {
		if rel, ok := below(base, dir); ok {
			tree.dirs = append(tree.dirs, rel)
		}
	}
	if len(tree.files) == 0 {
		return nil, usage.Errorf("dataset: %s holds no images: want files ending in .jpg, .jpeg or .png (arrays and tables are given by file)", name)
	}
	set.Splits = tree.splits()
	split, err := chooseSplit(name, set.Splits, opt.Split)
	if err != nil {
		return nil, err
	}
	set.Split = split

	chosen := tree.files
	if split != "" {
		chosen = nil
		for _, f := range tree.files {
			if rel, ok := below(split, f.rel); ok {
				chosen = append(chosen, file{rel: rel, entry: f.entry})
			}
		}
	}
	if len(chosen) == 0 {
		return nil, usage.Errorf("dataset: %s: split %q holds no images", name, split)
	}
	if err := uniqueIDs(name, chosen); err != nil {
		return nil, err
	}
	if err := tree.label(set, chosen, opt); err != nil {
		return nil, err
	}
	if chosen, err = limitFiles(chosen, opt.Limit); err != nil {
		return nil, err
	}
	entries := make([]entry, len(chosen))
	for i, f := range chosen {
		entries[i] = f.entry
	}
	if src.choose(entries) { // else: by id, as uniqueIDs left them
		sort.Slice(chosen, func(a, b int) bool { return chosen[a].entry.loc < chosen[b].entry.loc })
	}
	files := &fileStore{src: src, entries: make([]entry, len(chosen))}
	set.items = make([]Item, len(chosen))
	for i, f := range chosen {
		set.items[i] = Item{ID: f.rel, Class: f.class, Size: f.entry.size}
		files.entries[i] = f.entry
	}
	set.finish(files)
	return set, nil
}

// finish puts items and their store into use.
func (s *Set) finish(st store) {
	s.store = st
	s.hashes = make([][sha256.Size]byte, len(s.items))
	s.known = make([]bool, len(s.items))
}

// fileStore reads the chosen files of a source.
type fileStore struct {
	src     source
	entries []entry
}

func (f *fileStore) bytes(ctx context.Context, i int) ([]byte, error) {
	return f.src.read(ctx, f.entries[i])
}

func (f *fileStore) values(int) ([]float32, []int, error) {
	return nil, nil, errors.New("images have no values before they are decoded")
}

func (f *fileStore) Close() error { return f.src.Close() }

// file is an image of a tree; rel is its path below the root or the split.
type file struct {
	rel   string
	entry entry
	class int
}

// tree is what lies below the root of the data.
type tree struct {
	name  string
	src   source
	base  string // folder of src that is the root, "" for its top
	files []file
	dirs  []string
}

// below returns name relative to folder, and whether it lies in it.
func below(folder, name string) (string, bool) {
	if folder == "" {
		return name, true
	}
	return strings.CutPrefix(name, folder+"/")
}

// commonTop is the one folder that holds everything, "" where there is none or
// where it means something itself: a split or a class of ImageNet.
func commonTop(files []entry) string {
	top := ""
	for _, e := range files {
		first, _, nested := strings.Cut(e.path, "/")
		if !nested || top != "" && first != top {
			return ""
		}
		top = first
	}
	if slices.Contains(splitNames, top) || isWNID(top) {
		return ""
	}
	return top
}

// splits lists the splits: the top folders with images, if train/ and test/ or
// val/ are among them, or if there are none but those.
func (t *tree) splits() []string {
	has := map[string]bool{}
	onlySplits := true
	for _, f := range t.files {
		top, _, nested := strings.Cut(f.rel, "/")
		if nested {
			has[top] = true
		}
		onlySplits = onlySplits && nested && slices.Contains(splitNames, top)
	}
	if !onlySplits && !(has["train"] && (has["test"] || has["val"])) {
		return nil
	}
	var names []string
	for name := range has {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// chooseSplit applies the default: test, else val, else everything.
func chooseSplit(name string, splits []string, want string) (string, error) {
	if want == "" {
		for _, s := range []string{"test", "val"} {
			if slices.Contains(splits, s) {
				return s, nil
			}
		}
		if len(splits) == 1 {
			return splits[0], nil
		}
		return "", nil
	}
	if slices.Contains(splits, want) {
		return want, nil
	}
	if len(splits) == 0 {
		return "", usage.Errorf("dataset: %s: split %q: the data has no splits (folders train/ and test/ or val/): leave it out", name, want)
	}
	return "", usage.Errorf("dataset: %s: split %q: want one of %s", name, want, strings.Join(splits, ", "))
}

// uniqueIDs sorts files by id and refuses an id that two of them have.
func uniqueIDs(name string, files []file) error {
	sort.SliceStable(files, func(a, b int) bool { return files[a].rel < files[b].rel })
	for i := 1; i < len(files); i++ {
		if files[i].rel == files[i-1].rel {
			return usage.Errorf("dataset: %s: %s is there twice: image ids must be unique", name, files[i].rel)
		}
	}
	return nil
}

// label gives every file its class, and the set its names.
func (t *tree) label(set *Set, files []file, opt Options) error {
	labels, err := t.labelFile(set.Split, opt.Labels)
	if err != nil {
		return err
	}
	if labels != nil {
		ids := make([]string, len(files))
		for i, f := range files {
			ids[i] = f.rel
		}
		var classes []int
		if isGroundTruth(labels.text) {
			classes, err = applyGroundTruth(set, ids, labels.text, labels.from, labels.meta, opt.Classes)
		} else {
			classes, err = applyLabels(set, ids, labels.text, labels.from, opt.Classes)
		}
		for i := range classes {
			files[i].class = classes[i]
		}
		return err
	}
	flat, nested := "", ""
	for _, f := range files {
		if strings.Contains(f.rel, "/") {
			nested = f.rel
		} else {
			flat = f.rel
		}
	}
	switch {
	case nested == "":
		for i := range files {
			files[i].class = -1
		}
		return nil
	case flat != "":
		return usage.Errorf("dataset: %s: %s lies beside folders such as %s: want every image in a class folder, or labels.txt", t.name, flat, path.Dir(nested))
	}
	number, names, err := t.classes(set, opt.Classes)
	if err != nil {
		return err
	}
	set.ClassNames, set.HasLabels = names, true
	for i, f := range files {
		folder, _, _ := strings.Cut(f.rel, "/")
		files[i].class = number[folder]
	}
	return nil
}

// labelText is a file of labels; meta reads the meta.mat beside it.
type labelText struct {
	text []byte
	from string
	meta func() ([]byte, error)
}

// labelFile reads the labels that the user named, or labels.txt or ImageNet's
// ground truth in the split's folder, or in the root. nil where there is none
// of them.
func (t *tree) labelFile(split, override string) (*labelText, error) {
	if override != "" {
		b, err := os.ReadFile(override)
		if err != nil {
			return nil, usage.Errorf("dataset: labels: %w", err)
		}
		beside := filepath.Join(filepath.Dir(override), metaName)
		return &labelText{b, override, func() ([]byte, error) { return readSmall(beside, maxMetaBytes) }}, nil
	}
	for _, folder := range []string{path.Join(t.base, split), t.base} {
		for _, name := range []string{labelsName, groundTruthName} {
			from := path.Join(folder, name)
			b, err := t.src.text(from)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, usage.Errorf("dataset: labels of %s: %w", t.name, err)
			}
			return &labelText{b, path.Join(t.name, from), func() ([]byte, error) { return t.src.text(path.Join(folder, metaName)) }}, nil
		}
	}
	return nil, nil
}

// readSmall reads a file of at most limit bytes.
func readSmall(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAtMost(f, 0, limit)
}

// classes numbers the class folders of all splits, so that a split that lacks
// a class still numbers the others as the rest of the data does.
func (t *tree) classes(set *Set, netClasses int) (number map[string]int, names []string, err error) {
	seen := map[string]bool{}
	add := func(rel string, isDir bool) {
		if set.Split != "" {
			top, rest, nested := strings.Cut(rel, "/")
			if !nested || !slices.Contains(set.Splits, top) {
				return
			}
			rel = rest
		}
		folder, _, nested := strings.Cut(rel, "/")
		if nested || isDir {
			seen[folder] = true
		}
	}
	for _, f := range t.files {
		add(f.rel, false)
	}
	for _, d := range t.dirs {
		add(d, true)
	}
	for folder := range seen {
		names = append(names, folder)
	}
	sort.Strings(names)
	if netClasses == 0 || netClasses == len(wnids()) {
		if number, unknown := wnidNumbers(names); number != nil {
			return number, ImageNetNames(), nil
		} else if unknown != "" {
			set.Warnings = append(set.Warnings, fmt.Sprintf("%s: folder %s is not among ImageNet's 1000 classes: folders are numbered in name order", t.name, unknown))
		}
	}
	if netClasses > 0 && len(names) > netClasses {
		return nil, nil, usage.Errorf("dataset: %s: %d class folders (%s .. %s), but the net knows %d classes: want classes 0..%d", t.name, len(names), names[0], names[len(names)-1], netClasses, netClasses-1)
	}
	number = make(map[string]int, len(names))
	for i, folder := range names {
		number[folder] = i
	}
	return number, names, nil
}
