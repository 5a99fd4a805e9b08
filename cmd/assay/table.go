package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// table prints aligned columns.
type table struct {
	header []string
	right  map[int]bool // columns of numbers
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print(w io.Writer) {
	width := make([]int, len(t.header))
	all := append([][]string{t.header}, t.rows...)
	for _, row := range all {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range all {
		var b strings.Builder
		for i, cell := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if t.right[i] {
				b.WriteString(pad + cell)
			} else {
				b.WriteString(cell + pad)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// className is "281 tabby, tabby cat", or the number where there is no name.
func className(names []string, class int) string {
	if class < 0 || class >= len(names) || names[class] == "" {
		return fmt.Sprint(class)
	}
	const longest = 28
	name := []rune(names[class])
	if len(name) > longest {
		name = append(name[:longest-1], '…')
	}
	return fmt.Sprintf("%d %s", class, string(name))
}

// printJSON prints one line of JSON.
func printJSON(env environment, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("printing the result: %w", err)
	}
	_, err = fmt.Fprintln(env.stdout, string(line))
	return err
}
