package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Table writes an aligned table for a terminal: the header, a rule, the rows,
// two blanks between columns. Columns whose cells are all numbers (or empty)
// are aligned right. Characters that could move the cursor are written as
// escapes, because names of files are anybody's. A row may be shorter than the
// header; a longer one is an error.
func Table(w io.Writer, header []string, rows [][]string) error {
	cells := make([][]string, 0, len(rows)+1)
	widths := make([]int, len(header))
	right := make([]bool, len(header))
	for i := range right {
		right[i] = len(rows) > 0
	}
	for i, row := range append([][]string{header}, rows...) {
		if len(row) > len(header) {
			return fmt.Errorf("report: row %d of a table has %d cells, want at most %d", i, len(row), len(header))
		}
		line := make([]string, len(header))
		for c, text := range row {
			line[c] = printable(text)
			widths[c] = max(widths[c], utf8.RuneCountInString(line[c]))
			if i > 0 && !numeric(line[c]) {
				right[c] = false
			}
		}
		cells = append(cells, line)
	}
	rule := make([]string, len(header))
	for c, width := range widths {
		rule[c] = strings.Repeat("-", width)
	}
	var b strings.Builder
	for i, line := range cells {
		writeLine(&b, line, widths, right)
		if i == 0 {
			writeLine(&b, rule, widths, right)
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("report: writing a table: %w", err)
	}
	return nil
}

func writeLine(b *strings.Builder, cells []string, widths []int, right []bool) {
	var line strings.Builder
	for c, text := range cells {
		if c > 0 {
			line.WriteString("  ")
		}
		pad := strings.Repeat(" ", widths[c]-utf8.RuneCountInString(text))
		if right[c] {
			line.WriteString(pad + text)
		} else {
			line.WriteString(text + pad)
		}
	}
	b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

// numeric says whether a cell looks like a number: digits with sign, point,
// exponent, grouping and a percent sign; "-" and nothing stand for no number.
func numeric(text string) bool {
	text = strings.NewReplacer(",", "", "%", "", " ", "").Replace(text)
	if text == "" || text == "-" || text == "–" {
		return true
	}
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

func printable(text string) string {
	clean := true
	for _, r := range text {
		clean = clean && unicode.IsPrint(r)
	}
	if clean {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}
