package dataset

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// maxTableBytes bounds the text of a table, which is held in memory as numbers.
const maxTableBytes = 4 << 30

// openCSV opens a table, gzipped or not.
func openCSV(ctx context.Context, path string, _ int64, opt Options) (*Set, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usage.Errorf("dataset: %w", err)
	}
	defer f.Close()
	schema, err := readSchemaBeside(path)
	if err != nil {
		return nil, err
	}
	var r io.Reader = f
	if strings.HasSuffix(strings.ToLower(path), ".gz") {
		if r, err = gzip.NewReader(bufio.NewReader(f)); err != nil {
			return nil, usage.Errorf("dataset: %s: no gzip file, or one cut off: %w", path, err)
		}
	}
	t, err := parseTable(ctx, path, r, schema)
	if err != nil {
		return nil, err
	}
	return t.set(nil, opt)
}

// table is a parsed CSV file.
type table struct {
	path    string
	columns []Column
	values  []float32 // rows of len(columns)
	shape   []int
	classes []int // nil without label column
	lines   []int32
	label   string
	names   []string
	notes   []string
}

func (t *table) row(i int) ([]float32, []int, error) {
	width := len(t.columns)
	return slices.Clone(t.values[i*width : (i+1)*width]), slices.Clone(t.shape), nil
}

// Close does nothing: the table is in memory.
func (t *table) Close() error { return nil }

// set makes a set of the table; parts are the rows of each split, nil without.
func (t *table) set(parts map[string][]int, opt Options) (*Set, error) {
	rows, trains := parts["train"]
	if !trains {
		rows = make([]int, len(t.lines))
		for i := range rows {
			rows[i] = i
		}
	}
	describe(t.columns, t.values, rows)
	d := &rowData{path: t.path, kind: Table, count: len(t.lines), reader: t, classes: t.classes, names: t.names,
		schema: &Schema{Columns: t.columns, Label: t.label},
		where:  func(row int) string { return fmt.Sprintf("%s:%d", t.path, t.lines[row]) }}
	if len(t.shape) > 1 {
		d.kind, d.schema = Arrays, nil
	}
	set, err := d.set(parts, opt)
	if err == nil {
		set.Warnings = append(set.Warnings, t.notes...)
	}
	return set, err
}

// csvReader reads records with the line of each.
type csvReader struct {
	*csv.Reader
	path string
}

func (r csvReader) next() (record []string, line int, err error) {
	record, err = r.Read()
	if err == io.EOF {
		return nil, 0, err
	}
	if err != nil {
		var bad *csv.ParseError
		if errors.As(err, &bad) {
			return nil, 0, usage.Errorf("dataset: %s:%d: column %d: %w", r.path, bad.Line, bad.Column, bad.Err)
		}
		return nil, 0, usage.Errorf("dataset: %s is damaged or cut off: %w", r.path, err)
	}
	line, _ = r.FieldPos(0)
	for i := range record {
		record[i] = strings.TrimSpace(record[i])
	}
	return record, line, nil
}

// parseTable reads a CSV file. The separator is a comma, semicolon or tab,
// whichever the first line has most of. Every column but the label must be
// numbers; errors name line and column.
func parseTable(ctx context.Context, path string, r io.Reader, schema TableSchema) (*table, error) {
	limited := &io.LimitedReader{R: r, N: maxTableBytes}
	buffered := bufio.NewReaderSize(limited, 1<<16)
	if mark, _ := buffered.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		buffered.Discard(3)
	}
	head, _ := buffered.Peek(1 << 15)
	reader := csvReader{csv.NewReader(buffered), path}
	reader.Comma = separator(head)
	reader.FieldsPerRecord = -1

	var first [][]string // the records that inference looks at
	var firstLines []int
	for len(first) < 2 {
		record, line, err := reader.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		first, firstLines = append(first, record), append(firstLines, line)
	}
	if len(first) == 0 {
		return nil, usage.Errorf("dataset: %s is empty: want a line with the names of the columns and then rows", path)
	}
	h := inferHeader(first, schema)
	t := &table{path: path, names: schema.Classes}
	if h.classes != nil && t.names == nil {
		t.names = h.classes
	}
	plan, err := t.plan(h, schema)
	if err != nil {
		return nil, err
	}
	labels := newLabelParser(path, t.names)
	take := func(record []string, line int) error {
		if len(t.lines)%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		return t.take(record, line, plan, labels)
	}
	for i := range first {
		if i == 0 && h.isHeader {
			continue
		}
		if err := take(first[i], firstLines[i]); err != nil {
			return nil, err
		}
	}
	reader.ReuseRecord = true
	for {
		record, line, err := reader.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := take(record, line); err != nil {
			return nil, err
		}
	}
	if limited.N <= 0 {
		return nil, usage.Errorf("dataset: %s has more than %d bytes of text", path, int64(maxTableBytes))
	}
	if len(t.lines) == 0 {
		return nil, usage.Errorf("dataset: %s has no rows below its header", path)
	}
	if h.rows > 0 && h.rows != len(t.lines) {
		return nil, usage.Errorf("dataset: %s has %d rows, but its first line says %d: cut off?", path, len(t.lines), h.rows)
	}
	if plan.label >= 0 {
		if t.classes, t.names, err = labels.finish(plan.names[plan.label]); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// separator is the commonest candidate in the first line.
func separator(head []byte) rune {
	if end := bytes.IndexByte(head, '\n'); end >= 0 {
		head = head[:end]
	}
	best, most := ',', bytes.Count(head, []byte(","))
	for _, c := range []rune{';', '\t'} {
		if n := bytes.Count(head, []byte(string(c))); n > most {
			best, most = c, n
		}
	}
	return best
}

// header is what the first lines say about the columns.
type header struct {
	isHeader bool
	names    []string
	width    int
	classes  []string // of scikit-learn's first line
	rows     int      // promised by it, 0 if none
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

// inferHeader looks at the first two records. The first is a header if it has
// a word where the second has a number, or words only, or the numbers 0,1,2...
// that pandas gives unnamed columns; or if it is scikit-learn's: number of
// rows, number of inputs, two or more class names.
func inferHeader(first [][]string, schema TableSchema) header {
	one := first[0]
	h := header{width: len(one), names: schema.Columns}
	var two []string
	if len(first) > 1 {
		two = first[1]
	}
	words, evidence, counting := 0, false, len(one) > 1
	for i, s := range one {
		counting = counting && s == strconv.Itoa(i)
		if !isNumber(s) {
			words++
			evidence = evidence || i < len(two) && isNumber(two[i])
		}
	}
	rows, features, ok := 0, 0, false
	if words >= 2 && words == len(one)-2 {
		var err1, err2 error
		rows, err1 = strconv.Atoi(one[0])
		features, err2 = strconv.Atoi(one[1])
		ok = err1 == nil && err2 == nil && rows > 0 && features+1 == len(two)
	}
	switch {
	case schema.Header == nil && ok:
		h.isHeader, h.rows, h.width, h.classes = true, rows, len(two), slices.Clone(one[2:])
	case schema.Header == nil && (evidence || words == len(one) || counting), schema.Header != nil && *schema.Header:
		h.isHeader = true
		if h.names == nil {
			h.names = slices.Clone(one)
		}
	}
	if h.names == nil {
		for i := range h.width {
			h.names = append(h.names, fmt.Sprintf("x%d", i))
		}
	}
	return h
}

// columnPlan says what the fields of a record are.
type columnPlan struct {
	names  []string
	label  int // -1: none
	inputs []int
}

// plan decides which columns are inputs and which is the label.
func (t *table) plan(h header, schema TableSchema) (columnPlan, error) {
	p := columnPlan{names: h.names, label: -1}
	if len(h.names) != h.width {
		return p, usage.Errorf("dataset: %s has %d columns, but its schema names %d", t.path, h.width, len(h.names))
	}
	place := map[string]int{}
	for i, name := range h.names {
		if before, twice := place[name]; twice && name != "" {
			return p, usage.Errorf("dataset: %s: columns %d and %d are both called %q", t.path, before+1, i+1, name)
		}
		place[name] = i
	}
	find := func(name string) (int, error) {
		if i, ok := place[name]; ok {
			return i, nil
		}
		hint := ""
		if near := nearest(name, h.names); near != "" {
			hint = "did you mean " + near + "? "
		}
		return 0, usage.Errorf("dataset: %s has no column %q: %sthere are %s", t.path, name, hint, strings.Join(h.names, ", "))
	}
	ignored := map[int]bool{}
	for _, name := range schema.Ignore {
		i, err := find(name)
		if err != nil {
			return p, err
		}
		ignored[i] = true
	}
	if h.isHeader && h.names[0] == "" && h.width > 1 && schema.Columns == nil {
		ignored[0] = true
		t.notes = append(t.notes, t.path+": the first column has no name: taken for row numbers and left out")
	}
	switch {
	case schema.Label == noLabel:
	case schema.Label != "":
		i, err := find(schema.Label)
		if err != nil {
			return p, err
		}
		p.label = i
	default:
		p.label = h.width - 1
		for _, want := range labelNames {
			if i := slices.IndexFunc(h.names, func(s string) bool { return strings.EqualFold(s, want) }); i >= 0 {
				p.label = i
				break
			}
		}
	}
	if p.label >= 0 {
		t.label = h.names[p.label]
	}
	for i, name := range h.names {
		if i != p.label && !ignored[i] {
			p.inputs = append(p.inputs, i)
			t.columns = append(t.columns, Column{Name: name})
		}
	}
	if len(p.inputs) == 0 {
		return p, usage.Errorf("dataset: %s has no column of inputs besides the label %q: is the separator a comma, semicolon or tab?", t.path, t.label)
	}
	t.shape = []int{len(p.inputs)}
	if len(schema.Shape) > 0 {
		t.shape = schema.Shape
		if n := schema.Shape[0] * schema.Shape[1] * schema.Shape[2]; n != len(p.inputs) {
			return p, usage.Errorf("dataset: %s has %d columns of inputs, but its shape %v has %d", t.path, len(p.inputs), t.shape, n)
		}
	}
	return p, nil
}

// take adds a row.
func (t *table) take(record []string, line int, p columnPlan, labels *labelParser) error {
	if len(record) != len(p.names) {
		return usage.Errorf("dataset: %s:%d: %d columns: want %d", t.path, line, len(record), len(p.names))
	}
	for _, i := range p.inputs {
		v, err := strconv.ParseFloat(record[i], 32)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return usage.Errorf("dataset: %s:%d: column %d (%s): %q: want a finite number", t.path, line, i+1, p.names[i], record[i])
		}
		t.values = append(t.values, float32(v))
	}
	if p.label >= 0 {
		if err := labels.take(record[p.label], line, p.label+1, p.names[p.label]); err != nil {
			return err
		}
	}
	t.lines = append(t.lines, int32(min(line, math.MaxInt32)))
	return nil
}
