package dataset

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/internal/yamlfile"
)

// Schema describes the columns of an opened table.
type Schema struct {
	// Columns are the inputs, in order.
	Columns []Column
	// Label is the name of the column with the classes, "" where there is none.
	Label string
}

// Column is one numeric input of a table.
type Column struct {
	Name string
	// Mean and Std (population, so that the standardised column has variance 1)
	// are over the rows of split train, or over all rows of a table without
	// splits.
	Mean, Std float64
}

// TableSchema says how a CSV file is to be read, in YAML beside it: data.csv
// or data.csv.gz has data.schema.yaml. What it leaves out is inferred, see
// inferHeader and parseTable.
type TableSchema struct {
	// Header says whether the first line names the columns.
	Header *bool `yaml:"header"`
	// Columns names all columns, the label's included, in the order of the file.
	Columns []string `yaml:"columns"`
	// Label names the column of the classes, or is "none". Else it is the one
	// called label, class, target or y, else the last.
	Label string `yaml:"label"`
	// Ignore names columns that are neither inputs nor label.
	Ignore []string `yaml:"ignore"`
	// Classes names the classes, class 0 first; labels are these names or numbers.
	Classes []string `yaml:"classes"`
	// Shape [C,H,W] makes images of the rows, the columns being row-major pixels.
	Shape []int `yaml:"shape"`
}

// noLabel in TableSchema.Label says that all columns are inputs.
const noLabel = "none"

// labelNames are the names that make a column the label.
var labelNames = []string{"label", "class", "target", "y"}

// readSchemaBeside reads the schema of a CSV file; without one it is empty.
func readSchemaBeside(path string) (TableSchema, error) {
	var s TableSchema
	name := strings.TrimSuffix(path, ".gz")
	name = strings.TrimSuffix(name, ".csv") + ".schema.yaml"
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, usage.Errorf("dataset: schema: %w", err)
	}
	if err := yamlfile.Decode(name, text, &s); err != nil {
		return s, usage.Errorf("dataset: schema %w", err)
	}
	for _, n := range s.Shape {
		if n < 1 || n > maxSide {
			return s, usage.Errorf("dataset: schema %s: shape %v: want sizes 1..%d", name, s.Shape, maxSide)
		}
	}
	if len(s.Shape) != 0 && len(s.Shape) != 3 {
		return s, usage.Errorf("dataset: schema %s: shape %v: want [C,H,W]", name, s.Shape)
	}
	return s, nil
}

// describe fills in the means and stds of columns from rows of values.
func describe(columns []Column, values []float32, rows []int) {
	width := len(columns)
	for c := range columns {
		sum, squares := 0.0, 0.0
		for _, r := range rows {
			sum += float64(values[r*width+c])
		}
		mean := sum / float64(len(rows))
		for _, r := range rows {
			d := float64(values[r*width+c]) - mean
			squares += d * d
		}
		columns[c].Mean, columns[c].Std = mean, math.Sqrt(squares/float64(len(rows)))
	}
}
