package report

import (
	"bytes"
	"fmt"
	"html/template"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
)

// Document is a page of tables in the style of reports, for what is no run: a
// comparison, for example.
type Document struct {
	// Kind stands beside the program's name, Title below it.
	Kind, Title string
	Lede        []string
	Tables      []DocumentTable
	// Notes are what the reader should know.
	Notes []string
}

// DocumentTable is a table of texts; a column whose cells are all numbers is
// aligned right.
type DocumentTable struct {
	Title, Text string
	Header      []string
	Rows        [][]string
}

// documentPage is what the template shows.
type documentPage struct {
	Document
	Style  template.CSS
	Script template.JS
	Tables []documentTable
}

type documentTable struct {
	DocumentTable
	Number []bool
}

// numbers says whether a cell is a number, or bounds: 1.5 .. 2.5.
func numbers(text string) bool {
	for _, part := range strings.Split(text, " .. ") {
		if !numeric(part) {
			return false
		}
	}
	return true
}

// WriteDocument writes the page to path, whole or not at all.
func WriteDocument(path string, d Document) error {
	style, err := assets.ReadFile("assets/style.css")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	script, err := assets.ReadFile("assets/script.js")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	p := documentPage{Document: d, Style: template.CSS(style), Script: template.JS(script)}
	for _, t := range d.Tables {
		out := documentTable{t, make([]bool, len(t.Header))}
		for i := range t.Header {
			out.Number[i] = len(t.Rows) > 0
			for _, row := range t.Rows {
				out.Number[i] = out.Number[i] && i < len(row) && numbers(row[i])
			}
		}
		p.Tables = append(p.Tables, out)
	}
	var b bytes.Buffer
	if err := pageTemplate.ExecuteTemplate(&b, "document.html", p); err != nil {
		return fmt.Errorf("report: filling the page: %w", err)
	}
	if err := renameio.WriteFile(path, b.Bytes(), 0o666, renameio.WithTempDir(filepath.Dir(path))); err != nil {
		return fmt.Errorf("report: writing %s: %w", path, err)
	}
	return nil
}
