// Command testcount reads the output of `go test -json`, prints one line a
// package, the output of what failed and the reason of what was skipped, and
// appends "passed failed skipped" to a file.
//
//	go test -json ./... | testcount COUNTS
//
// It exits with 1 if anything failed, also when a package did not compile.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// event is what test2json documents; build output comes with ImportPath.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

type counts struct{ passed, failed, skipped int }

// summarise copies what a person wants to see of the events to w. Tests are
// counted without their subtests; a package that fails without a failed test
// (it did not compile, or died) counts as one failure.
func summarise(r io.Reader, w io.Writer) (counts, error) {
	var all counts
	output := map[string][]string{} // by package and top-level test
	failed := map[string]int{}      // failed tests by package
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprintf(w, "%s", line) // the go command's own messages
			} else {
				all.add(e, output, failed, w)
			}
		}
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, fmt.Errorf("reading test events: %w", err)
		}
	}
}

func (c *counts) add(e event, output map[string][]string, failed map[string]int, w io.Writer) {
	top, _, isSub := strings.Cut(e.Test, "/")
	key := e.Package + " " + top
	switch e.Action {
	case "build-output":
		fmt.Fprint(w, e.Output)
	case "output":
		output[key] = append(output[key], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			c.closePackage(e, output[key], failed[e.Package], w)
			return
		}
		if isSub {
			return
		}
		switch e.Action {
		case "pass":
			c.passed++
		case "fail":
			c.failed++
			failed[e.Package]++
			fmt.Fprint(w, strings.Join(output[key], ""))
		case "skip":
			c.skipped++
			fmt.Fprint(w, reason(output[key]))
		}
		delete(output, key)
	}
}

func (c *counts) closePackage(e event, output []string, failedTests int, w io.Writer) {
	if e.Action == "fail" && failedTests == 0 {
		c.failed++
		fmt.Fprint(w, strings.Join(output, ""))
	}
	word := map[string]string{"pass": "ok  ", "fail": "FAIL", "skip": "?   "}[e.Action]
	if e.Action == "skip" {
		return // no test files
	}
	fmt.Fprintf(w, "%s %s %.1fs\n", word, e.Package, e.Elapsed)
}

// reason is a skipped test's output without the frame that go test puts round it.
func reason(output []string) string {
	var text strings.Builder
	for _, line := range output {
		if !strings.HasPrefix(line, "=== ") {
			text.WriteString(line)
		}
	}
	return text.String()
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go test -json ./... | testcount COUNTS")
		os.Exit(2)
	}
	c, err := summarise(os.Stdin, os.Stdout)
	if err == nil {
		err = appendCounts(os.Args[1], c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testcount:", err)
		os.Exit(1)
	}
	if c.failed > 0 {
		os.Exit(1)
	}
}

func appendCounts(path string, c counts) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(f, c.passed, c.failed, c.skipped); err != nil {
		_ = f.Close()
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return f.Close()
}
