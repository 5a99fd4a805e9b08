package dataset

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/assay-xai/assay/internal/rng"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/testdata"
)

// embeddedPrefix marks the paths of data that the program carries.
const embeddedPrefix = "embedded:"

// EmbeddedEntry is one data set that the program carries.
type EmbeddedEntry struct {
	// Path is what Open takes.
	Path    string
	Summary string
	open    func(ctx context.Context, path string, opt Options) (*Set, error)
}

// Embedded lists the data that the program carries. The tables have splits
// train and test, see stratify. Sources: testdata/embedded/SOURCES.md.
func Embedded() []EmbeddedEntry {
	return []EmbeddedEntry{
		{"embedded:photos", "three photographs without labels: chelsea (a cat), coffee, rocket",
			openPhotos("chelsea.png", "coffee.png", "rocket.jpg")},
		{"embedded:digits", "1797 handwritten digits, 8x8 grey, values 0..16, 10 classes",
			openEmbeddedTable("digits.csv.gz", TableSchema{Header: new(bool), Shape: []int{1, 8, 8}, Classes: strings.Fields("0 1 2 3 4 5 6 7 8 9")})},
		{"embedded:breast-cancer", "569 rows of 30 columns, 2 classes",
			openEmbeddedTable("breast_cancer.csv", TableSchema{Columns: breastCancerColumns()})},
		{"embedded:iris", "150 rows of 4 columns, 3 classes",
			openEmbeddedTable("iris.csv", TableSchema{Columns: []string{"sepal length", "sepal width", "petal length", "petal width", "class"}})},
		{"embedded:wine", "178 rows of 13 columns, 3 classes",
			openEmbeddedTable("wine_data.csv", TableSchema{Columns: []string{"alcohol", "malic acid", "ash", "alcalinity of ash", "magnesium",
				"total phenols", "flavanoids", "nonflavanoid phenols", "proanthocyanins", "color intensity", "hue",
				"od280/od315 of diluted wines", "proline", "class"}})},
	}
}

// breastCancerColumns names ten measures three times: means, standard errors
// and worst values (Wolberg, Street, Mangasarian 1995).
func breastCancerColumns() []string {
	measures := []string{"radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity", "concave points", "symmetry", "fractal dimension"}
	var names []string
	for _, form := range []string{"mean %s", "%s error", "worst %s"} {
		for _, m := range measures {
			names = append(names, fmt.Sprintf(form, m))
		}
	}
	return append(names, "class")
}

func openEmbedded(ctx context.Context, name string, opt Options) (*Set, error) {
	var ids []string
	for _, e := range Embedded() {
		id := strings.TrimPrefix(e.Path, embeddedPrefix)
		if id == name {
			return e.open(ctx, e.Path, opt)
		}
		ids = append(ids, id)
	}
	hint := ""
	if near := nearest(name, ids); near != "" {
		hint = "did you mean " + embeddedPrefix + near + "? "
	}
	return nil, usage.Errorf("dataset: %s%s: %swant one of %s", embeddedPrefix, name, hint, strings.Join(ids, ", "))
}

// embeddedSource is a few embedded files.
type embeddedSource struct{ list []entry }

func (embeddedSource) folders() []string           { return nil }
func (embeddedSource) text(string) ([]byte, error) { return nil, fs.ErrNotExist }
func (embeddedSource) choose([]entry) bool         { return false }
func (embeddedSource) Close() error                { return nil }
func (s embeddedSource) files() []entry            { return s.list }

func (embeddedSource) read(ctx context.Context, e entry) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return fs.ReadFile(testdata.Embedded(), e.path)
}

func openPhotos(names ...string) func(context.Context, string, Options) (*Set, error) {
	return func(ctx context.Context, path string, opt Options) (*Set, error) {
		var src embeddedSource
		for _, name := range names {
			info, err := fs.Stat(testdata.Embedded(), name)
			if err != nil {
				return nil, fmt.Errorf("dataset: %s: %w", path, err)
			}
			src.list = append(src.list, entry{path: name, size: info.Size()})
		}
		return openImages(ctx, path, "", src, opt)
	}
}

func openEmbeddedTable(file string, schema TableSchema) func(context.Context, string, Options) (*Set, error) {
	return func(ctx context.Context, path string, opt Options) (*Set, error) {
		b, err := fs.ReadFile(testdata.Embedded(), file)
		if err != nil {
			return nil, fmt.Errorf("dataset: %s: %w", path, err)
		}
		var r io.Reader = bytes.NewReader(b)
		if strings.HasSuffix(file, ".gz") {
			if r, err = gzip.NewReader(r); err != nil {
				return nil, fmt.Errorf("dataset: %s: %w", path, err)
			}
		}
		t, err := parseTable(ctx, path, r, schema)
		if err != nil {
			return nil, err
		}
		return t.set(stratify(path, t.classes), opt)
	}
}

// stratify divides rows into train and test: of each class the nearest whole
// number to a fifth of its rows, chosen at random by seed 0, is test. Rows
// ascend within both.
func stratify(name string, classes []int) map[string][]int {
	byClass := map[int][]int{}
	for row, c := range classes {
		byClass[c] = append(byClass[c], row)
	}
	test := make([]bool, len(classes))
	stream := rng.New(0, "dataset/split", name)
	for c, rows := range byClass {
		order := stream.Perm(uint64(c), len(rows))
		for _, k := range order[:(len(rows)*2+5)/10] {
			test[rows[k]] = true
		}
	}
	split := map[string][]int{}
	for row := range classes {
		part := "train"
		if test[row] {
			part = "test"
		}
		split[part] = append(split[part], row)
	}
	return split
}
