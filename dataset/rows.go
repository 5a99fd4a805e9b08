package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// rowReader gives the rows of an array or a table by number, from 0. It is
// safe for several goroutines.
type rowReader interface {
	row(i int) (values []float32, shape []int, err error)
	io.Closer
}

// rowData is what the formats of rows hand over.
type rowData struct {
	path   string
	kind   Kind
	count  int
	reader rowReader
	// classes has a class a row, nil without labels; where says where the label
	// of a row stands ("file.csv:12").
	classes []int
	where   func(row int) string
	names   []string
	schema  *Schema
	// warnings become the set's.
	warnings []string
}

// set makes a set of rows; parts are the rows of each split, nil without.
func (d *rowData) set(parts map[string][]int, opt Options) (*Set, error) {
	set := &Set{Path: d.path, Kind: d.kind, ClassNames: d.names, Schema: d.schema}
	for name := range parts {
		set.Splits = append(set.Splits, name)
	}
	sort.Strings(set.Splits)
	split, err := chooseSplit(d.path, set.Splits, opt.Split)
	if err != nil {
		return nil, err
	}
	set.Split = split
	rows := parts[split]
	if split == "" {
		rows = make([]int, d.count)
		for i := range rows {
			rows[i] = i
		}
	}
	if len(rows) == 0 {
		return nil, usage.Errorf("dataset: %s has no rows", d.path)
	}
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = rowID(row)
	}
	classes, err := d.label(set, rows, ids, opt)
	if err != nil {
		return nil, err
	}
	keep, err := limitItems(classes, opt.Limit)
	if err != nil {
		return nil, err
	}
	st := &rowStore{reader: d.reader, rows: make([]int, len(keep))}
	set.items = make([]Item, len(keep))
	for i, k := range keep {
		set.items[i] = Item{ID: ids[k], Class: classes[k]}
		st.rows[i] = rows[k]
	}
	set.finish(st)
	return set, nil
}

// rowID is the id of a row: its number in six digits.
func rowID(row int) string { return fmt.Sprintf("%06d", row) }

// label returns a class for each of rows: those of Options.Labels, or the
// data's own, or -1.
func (d *rowData) label(set *Set, rows []int, ids []string, opt Options) ([]int, error) {
	classes := make([]int, len(rows))
	switch {
	case opt.Labels != "" && strings.EqualFold(filepath.Ext(opt.Labels), ".npy"):
		all, err := readLabelArray(opt.Labels, d.count)
		if err != nil {
			return nil, err
		}
		d.classes, d.where = all, func(row int) string { return opt.Labels + ": row " + rowID(row) }
	case opt.Labels != "":
		text, err := os.ReadFile(opt.Labels)
		if err != nil {
			return nil, usage.Errorf("dataset: labels: %w", err)
		}
		return applyLabels(set, ids, text, opt.Labels, opt.Classes)
	case d.classes == nil:
		for i := range classes {
			classes[i] = -1
		}
		return classes, nil
	}
	for i, row := range rows {
		classes[i] = d.classes[row]
		switch {
		case classes[i] < 0:
			return nil, usage.Errorf("dataset: %s: class %d: want a number from 0", d.where(row), classes[i])
		case opt.Classes > 0 && classes[i] >= opt.Classes:
			return nil, usage.Errorf("dataset: %s: class %d: want 0..%d", d.where(row), classes[i], opt.Classes-1)
		}
	}
	set.HasLabels = true
	return classes, nil
}

// rowStore reads the chosen rows.
type rowStore struct {
	reader rowReader
	rows   []int
}

func (r *rowStore) bytes(context.Context, int) ([]byte, error) {
	return nil, errors.New("rows have no files")
}

func (r *rowStore) values(i int) ([]float32, []int, error) {
	values, shape, err := r.reader.row(r.rows[i])
	if err != nil {
		return nil, nil, err
	}
	for k, v := range values {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, nil, usage.Errorf("value %d is %v: want a number", k, v)
		}
	}
	return values, shape, nil
}

func (r *rowStore) Close() error { return r.reader.Close() }
