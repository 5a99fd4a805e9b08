package dataset

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// maxArrayBytes bounds an array that must be unpacked into memory.
const maxArrayBytes = 4 << 30

// maxBehind bounds what may follow an array that is unpacked.
const maxBehind = 1 << 20

// openNpy opens an array file; a gzipped one is unpacked into memory.
func openNpy(name string) (*ndarray, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, usage.Errorf("dataset: %w", err)
	}
	if strings.HasSuffix(strings.ToLower(name), ".gz") {
		defer f.Close()
		zipped, err := gzip.NewReader(f)
		if err != nil {
			return nil, usage.Errorf("dataset: %s: no gzip file, or one cut off: %w", name, err)
		}
		return unpackNpy(name, zipped, maxArrayBytes)
	}
	info, err := f.Stat()
	if err == nil {
		var a *ndarray
		if a, err = readNpyHeader(name, f, info.Size()); err == nil {
			a.closer = f
			return a, nil
		}
	}
	f.Close()
	return nil, err
}

// openNpyFile opens an .npy; its labels are Options.Labels or those of the
// file beside it whose name says "y" for "x" or "labels" for "images".
func openNpyFile(_ context.Context, path string, _ int64, opt Options) (*Set, error) {
	a, err := openNpy(path)
	if err != nil {
		return nil, err
	}
	set, err := func() (*Set, error) {
		if _, err := a.inputShape(); err != nil {
			return nil, err
		}
		d := &rowData{path: path, kind: Arrays, count: a.shape[0], reader: a}
		if beside := labelsBeside(path); opt.Labels == "" && beside != "" {
			if d.classes, err = readLabelArray(beside, d.count); err != nil {
				return nil, err
			}
			d.where = func(row int) string { return beside + ": row " + rowID(row) }
		}
		return d.set(nil, opt)
	}()
	if err != nil {
		a.Close()
		return nil, err
	}
	return set, nil
}

func readLabelArray(name string, count int) ([]int, error) {
	a, err := openNpy(name)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	return a.labels(count)
}

// labelsBeside is the existing file with the labels of x.npy, x_test.npy,
// images.npy, test_images.npy and so on; "" where there is none.
func labelsBeside(path string) string {
	folder, name := filepath.Split(path)
	stem, ending, _ := strings.Cut(name, ".")
	part, role := arrayRole(stem)
	if role != dataRole {
		return ""
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return ""
	}
	for _, e := range entries {
		otherStem, otherEnding, _ := strings.Cut(e.Name(), ".")
		if otherPart, role := arrayRole(otherStem); role == labelRole && otherPart == part && otherEnding == ending {
			return folder + e.Name()
		}
	}
	return ""
}

// The roles of arrays.
const (
	dataRole  = "data"
	labelRole = "labels"
)

// arrayRole reads names such as x, X_train, test_images, labels: the split
// ("" without one) and the role, "" for other names.
func arrayRole(name string) (split, role string) {
	lower := strings.ToLower(name)
	for _, s := range splitNames {
		if rest, ok := strings.CutSuffix(lower, "_"+s); ok {
			split, lower = s, rest
			break
		}
		if rest, ok := strings.CutPrefix(lower, s+"_"); ok {
			split, lower = s, rest
			break
		}
	}
	switch lower {
	case "x", "images", "data", "arr_0":
		return split, dataRole
	case "y", "labels", "label", "target", "targets", "arr_1":
		return split, labelRole
	}
	return "", ""
}

// openNpz opens an .npz with x and y (or images and labels), or one of those a
// split: x_train, y_train, x_test, y_test.
func openNpz(_ context.Context, path string, size int64, opt Options) (*Set, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, usage.Errorf("dataset: %w", err)
	}
	set, err := openNpzArrays(path, file, size, opt)
	if err != nil {
		file.Close()
		return nil, err
	}
	return set, nil
}

func openNpzArrays(path string, file *os.File, size int64, opt Options) (*Set, error) {
	archive, err := zip.NewReader(file, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, usage.Errorf("dataset: %s is no .npz file, or one cut off: %w", path, err)
	}
	roles := map[string]map[string]*zip.File{} // split, role
	var keys, splits []string
	for _, f := range archive.File {
		key := strings.TrimSuffix(f.Name, ".npy")
		keys = append(keys, key)
		split, role := arrayRole(key)
		if role == "" {
			continue
		}
		if roles[split] == nil {
			roles[split] = map[string]*zip.File{}
		}
		if roles[split][role] != nil {
			return nil, usage.Errorf("dataset: %s: %s and %s both look like the %s", path, roles[split][role].Name, f.Name, role)
		}
		roles[split][role] = f
	}
	for split, files := range roles {
		if split != "" && files[dataRole] != nil {
			splits = append(splits, split)
		}
	}
	sort.Strings(splits)
	split := ""
	if roles[""][dataRole] == nil || len(splits) > 0 && opt.Split != "" {
		if split, err = chooseSplit(path, splits, opt.Split); err != nil {
			return nil, err
		}
	} else if opt.Split != "" {
		_, err := chooseSplit(path, nil, opt.Split)
		return nil, err
	}
	data := roles[split][dataRole]
	if data == nil {
		return nil, usage.Errorf("dataset: %s has the arrays %s: want x and y, or images and labels, or x_train, y_train, x_test, y_test", path, strings.Join(keys, ", "))
	}
	a, err := openMember(path, file, size, data)
	if err != nil {
		return nil, err
	}
	if _, err := a.inputShape(); err != nil {
		return nil, err
	}
	a.closer = file
	d := &rowData{path: path, kind: Arrays, count: a.shape[0], reader: a}
	if f := roles[split][labelRole]; f != nil && opt.Labels == "" {
		labels, err := openMember(path, file, size, f)
		if err != nil {
			return nil, err
		}
		if d.classes, err = labels.labels(d.count); err != nil {
			return nil, err
		}
		d.where = func(row int) string { return labels.name + ": row " + rowID(row) }
	}
	rest := opt
	rest.Split = ""
	set, err := d.set(nil, rest)
	if err != nil {
		return nil, err
	}
	set.Split, set.Splits = split, splits
	return set, nil
}

// openMember opens an array of an .npz: in place where it is stored as it is
// (numpy.savez), else in memory (numpy.savez_compressed).
func openMember(path string, file io.ReaderAt, fileSize int64, f *zip.File) (*ndarray, error) {
	name := path + ": " + f.Name
	if f.Method == zip.Store {
		offset, err := f.DataOffset()
		if err != nil {
			return nil, usage.Errorf("dataset: %s is damaged: %w", name, err)
		}
		size := int64(min(f.UncompressedSize64, uint64(max(0, fileSize-offset))))
		return readNpyHeader(name, io.NewSectionReader(file, offset, size), size)
	}
	if f.UncompressedSize64 > maxArrayBytes {
		return nil, usage.Errorf("dataset: %s unpacks to %d bytes: want at most %d; save it with numpy.savez, which is read in place", name, f.UncompressedSize64, int64(maxArrayBytes))
	}
	r, err := f.Open()
	if err != nil {
		return nil, usage.Errorf("dataset: %s is damaged: %w", name, err)
	}
	defer r.Close()
	return unpackNpy(name, r, int64(f.UncompressedSize64))
}

// unpackNpy reads an array of about size bytes from a stream into memory, its
// header first: a shape that cannot be is refused before the data come.
func unpackNpy(name string, r io.Reader, size int64) (*ndarray, error) {
	damaged := func(err error) error { return usage.Errorf("dataset: %s is damaged or cut off: %w", name, err) }
	head, err := readAtMost(io.LimitReader(r, maxHeaderBytes+12), maxHeaderBytes+12, maxHeaderBytes+12)
	if err != nil {
		return nil, damaged(err)
	}
	a, err := readNpyHeader(name, bytes.NewReader(head), max(size, int64(len(head))))
	if err != nil {
		return nil, err
	}
	bytesInAll := a.offset + a.bytes()
	if bytesInAll > maxArrayBytes {
		return nil, usage.Errorf("dataset: %s unpacks to %d bytes: want at most %d", name, bytesInAll, int64(maxArrayBytes))
	}
	b, err := readAtMost(io.LimitReader(io.MultiReader(bytes.NewReader(head), r), bytesInAll), bytesInAll, bytesInAll)
	if err == nil && int64(len(b)) < bytesInAll {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, damaged(err)
	}
	// The checksum comes at the end; numpy takes no notice of what stands there.
	switch n, err := io.CopyN(io.Discard, r, maxBehind); {
	case err != nil && err != io.EOF:
		return nil, damaged(err)
	case n == maxBehind:
		return nil, usage.Errorf("dataset: %s: more than %d bytes behind its array of shape %v", name, maxBehind-1, a.shape)
	}
	a.r = bytes.NewReader(b)
	return a, nil
}
