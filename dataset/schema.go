package dataset

// Schema describes a table.
type Schema struct {
	// Columns are the inputs, in order.
	Columns []Column
	// Label is the column with the classes, "" where there is none.
	Label string
}

// Column is one numeric input of a table.
type Column struct {
	Name string
	// Mean and Std (population) are over the rows of split train, or over all
	// rows where the table has no splits.
	Mean, Std float64
}
