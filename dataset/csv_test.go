package dataset

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTables(t *testing.T) {
	for _, c := range []struct {
		name, text, schema string
		columns            []string
		label              string
		rows               [][]float32
		classes            []int
		names              []string
		warnings           int
	}{
		{
			name: "header, label last, names", text: "w,h,kind\n1,2,dog\n3,4,cat\n5,6.5,dog\n",
			columns: []string{"w", "h"}, label: "kind", rows: [][]float32{{1, 2}, {3, 4}, {5, 6.5}},
			classes: []int{1, 0, 1}, names: []string{"cat", "dog"},
		},
		{
			name: "label by its name, numbers", text: "a,Class,b\r\n1,2,3\r\n\r\n4,0,6\r\n",
			columns: []string{"a", "b"}, label: "Class", rows: [][]float32{{1, 3}, {4, 6}}, classes: []int{2, 0},
		},
		{
			name: "no header", text: "1,2,0\n3,4,1.0\n",
			columns: []string{"x0", "x1"}, label: "x2", rows: [][]float32{{1, 2}, {3, 4}}, classes: []int{0, 1},
		},
		{
			name: "no header, labels are words", text: "1,2,b\n3,4,a\n",
			columns: []string{"x0", "x1"}, label: "x2", rows: [][]float32{{1, 2}, {3, 4}}, classes: []int{1, 0}, names: []string{"a", "b"},
		},
		{
			name: "pandas without names, with row numbers", text: ",a,y\n0,5,1\n1,6,0\n",
			columns: []string{"a"}, label: "y", rows: [][]float32{{5}, {6}}, classes: []int{1, 0}, warnings: 1,
		},
		{
			name: "pandas counts columns", text: "0,1,2\n5,6,1\n7,8,0\n",
			columns: []string{"0", "1"}, label: "2", rows: [][]float32{{5, 6}, {7, 8}}, classes: []int{1, 0},
		},
		{
			name: "scikit-learn's first line", text: "2,2,no,yes\n1,2,1\n3,4,0\n",
			columns: []string{"x0", "x1"}, label: "x2", rows: [][]float32{{1, 2}, {3, 4}}, classes: []int{1, 0}, names: []string{"no", "yes"},
		},
		{
			name: "semicolons, blanks, a byte order mark", text: "\xef\xbb\xbf\"a b\"; c ;y\n 1 ;2e1;0\n",
			columns: []string{"a b", "c"}, label: "y", rows: [][]float32{{1, 20}}, classes: []int{0},
		},
		{
			name: "schema: label, ignored, classes", text: "id,kind,a,b\n7,M,1,2\n8,B,3,4\n",
			schema:  "label: kind\nignore: [id]\nclasses: [M, B]\n",
			columns: []string{"a", "b"}, label: "kind", rows: [][]float32{{1, 2}, {3, 4}}, classes: []int{0, 1}, names: []string{"M", "B"},
		},
		{
			name: "schema: no label", text: "a,b\n1,2\n", schema: "label: none\n",
			columns: []string{"a", "b"}, rows: [][]float32{{1, 2}}, classes: []int{-1},
		},
		{
			name: "schema: names instead of a header", text: "1,2\n3,0\n", schema: "header: false\ncolumns: [size, y]\n",
			columns: []string{"size"}, label: "y", rows: [][]float32{{1}, {3}}, classes: []int{2, 0},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if c.schema != "" {
				writeFile(t, filepath.Join(dir, "t.schema.yaml"), []byte(c.schema))
			}
			for _, path := range []string{
				writeFile(t, filepath.Join(dir, "t.csv"), []byte(c.text)),
				writeFile(t, filepath.Join(dir, "t.csv.gz"), gzipBytes(t, []byte(c.text))),
			} {
				set := open(t, path, Options{})
				require.Equal(t, Table, set.Kind)
				var columns []string
				for _, col := range set.Schema.Columns {
					columns = append(columns, col.Name)
				}
				require.Equal(t, c.columns, columns)
				require.Equal(t, c.label, set.Schema.Label)
				require.Equal(t, c.classes, classes(set))
				require.Equal(t, c.names, set.ClassNames)
				require.Len(t, set.Warnings, c.warnings)
				require.Equal(t, len(c.rows), set.Len())
				for i, want := range c.rows {
					values, shape, err := set.Values(i)
					require.NoError(t, err)
					require.Equal(t, want, values)
					require.Equal(t, []int{len(want)}, shape)
				}
			}
		})
	}
}

func TestTableErrors(t *testing.T) {
	for _, c := range []struct {
		name, text, schema string
		opt                Options
		want               []string
	}{
		{"empty", "", "", Options{}, []string{"is empty"}},
		{"header only", "a,b,y\n", "", Options{}, []string{"no rows"}},
		{"a word", "a,b,y\n1,2,0\n1,two,0\n", "", Options{}, []string{"t.csv:3", "column 2 (b)", `"two"`}},
		{"a gap", "a,b,y\n1,,0\n", "", Options{}, []string{"t.csv:2", "column 2 (b)", `""`}},
		{"not finite", "a,y\n1,0\nnan,0\n", "", Options{}, []string{"t.csv:3", "column 1 (a)", `"nan"`}},
		{"too large for float32", "a,y\n1,0\n1e39,0\n", "", Options{}, []string{"t.csv:3", `"1e39"`}},
		{"a field too few", "a,b,y\n1,2,0\n1,2\n", "", Options{}, []string{"t.csv:3", "2 columns: want 3"}},
		{"a quote left open", "a,y\n1,0\n\"1,0\n", "", Options{}, []string{"t.csv:"}},
		{"no label", "a,y\n1,0\n1,\n", "", Options{}, []string{"t.csv:3", "column 2 (y)", "no label"}},
		{"label is no class", "a,y\n1,0\n1,.5\n", "", Options{}, []string{"t.csv:3", `".5"`, "column y", "label: none"}},
		{"words and numbers", "a,y\n1,cat\n1,0\n", "", Options{}, []string{"t.csv:3", `"0"`}},
		{"label out of range", "a,y\n1,0\n1,3\n", "", Options{Classes: 3}, []string{"t.csv:3", "class 3", "0..2"}},
		{"label outside the schema", "a,y\n1,A\n1,C\n", "classes: [A, B]", Options{}, []string{"t.csv:3", `"C"`, "A, B"}},
		{"no such column", "size,y\n1,0\n", "label: sise", Options{}, []string{`"sise"`, "did you mean size?"}},
		{"columns twice", "a,a,y\n1,2,0\n", "", Options{}, []string{"columns 1 and 2", `"a"`}},
		{"schema of other width", "a,y\n1,0\n", "columns: [a, b, y]", Options{}, []string{"2 columns", "names 3"}},
		{"unknown key", "a,y\n1,0\n", "\nlable: y", Options{}, []string{"t.schema.yaml", "t.schema.yaml:2:1: "}},
		{"shape", "a,b,y\n1,2,0\n", "shape: [1, 3, 1]", Options{}, []string{"2 columns", "[1 3 1]"}},
		{"shape of nothing", "a,b,y\n1,2,0\n", "shape: [1, 0, 1]", Options{}, []string{"[1 0 1]"}},
		{"other separator", "a|y\n1|0\n", "", Options{}, []string{"separator"}},
		{"cut off", "3,1,no,yes\n1,0\n", "", Options{}, []string{"1 rows", "says 3"}},
		{"split", "a,y\n1,0\n", "", Options{Split: "test"}, []string{"no splits"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if c.schema != "" {
				writeFile(t, filepath.Join(dir, "t.schema.yaml"), []byte(c.schema))
			}
			_, err := Open(context.Background(), writeFile(t, filepath.Join(dir, "t.csv"), []byte(c.text)), c.opt)
			requireUsage(t, err, c.want...)
		})
	}
	content := gzipBytes(t, []byte(strings.Repeat("1,2,0\n", 1000)))
	path := writeFile(t, filepath.Join(t.TempDir(), "cut.csv.gz"), content[:len(content)-10])
	_, err := Open(context.Background(), path, Options{})
	requireUsage(t, err, path, "cut off")
}

func TestTablePresetStandardises(t *testing.T) {
	path := writeFile(t, filepath.Join(t.TempDir(), "t.csv"), []byte("a,b,y\n1,5,0\n3,5,1\n"))
	set := open(t, path, Options{})
	p, err := PresetByID("table")
	require.NoError(t, err)
	p = p.ForSet(set)
	require.Equal(t, []float64{2, 5}, p.Mean)
	require.Equal(t, []float64{1, 1}, p.Std, "a constant column keeps its scale")
	require.NoError(t, p.Validate())
	values, shape, err := set.Values(1)
	require.NoError(t, err)
	require.NoError(t, p.Normalise(values, shape))
	require.Equal(t, []float32{1, 0}, values)
	values, _, err = set.Values(1)
	require.NoError(t, err)
	require.Equal(t, []float32{3, 5}, values, "the caller owned what it changed")
	cifar, err := PresetByID("cifar10")
	require.NoError(t, err)
	require.Equal(t, cifar, cifar.ForSet(set))
}

func TestShapeMakesImagesOfRows(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "t.schema.yaml"), []byte("shape: [1, 2, 2]"))
	set := open(t, writeFile(t, filepath.Join(dir, "t.csv"), []byte("1,2,3,4,0\n5,6,7,8,1\n")), Options{})
	require.Equal(t, Arrays, set.Kind)
	values, shape, err := set.Values(1)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 2}, shape)
	require.Equal(t, []float32{5, 6, 7, 8}, values)
}
