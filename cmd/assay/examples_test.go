package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// example is a command that help or documentation shows.
type example struct {
	where, text, command string
	flags                map[string]string
	words                []string
}

var exampleLine = regexp.MustCompile(`^ *(?:build/)?assay ([a-z]+) +(.*)$`)

// readExamples reads the commands of a text, one a line or gone on with after a backslash
// or within quotes.
func readExamples(where, text string) (out []example) {
	text = strings.ReplaceAll(text, "\\\n", " ")
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		m := exampleLine.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		rest := m[2]
		for strings.Count(rest, "'")%2 == 1 && i+1 < len(lines) {
			i++
			rest += strings.TrimSpace(lines[i])
		}
		rest, _, _ = strings.Cut(rest, " #")
		rest, _, _ = strings.Cut(rest, " && ")
		e := example{where: where, command: m[1], flags: map[string]string{}, words: strings.Fields(rest)}
		e.text = m[1] + " " + strings.Join(e.words, " ")
		for j, w := range e.words {
			if name, ok := strings.CutPrefix(w, "--"); ok && j+1 < len(e.words) {
				e.flags[name] = strings.Trim(e.words[j+1], "'")
			}
		}
		out = append(out, e)
	}
	return out
}

func allExamples(t *testing.T) (out []example) {
	app := newApp(environment{stdout: io.Discard, stderr: io.Discard})
	for _, c := range app.Commands {
		out = append(out, readExamples("assay "+c.Name+" --help", c.Description)...)
	}
	files, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	for _, file := range append(files, "../../README.md", "../../recipes/README.md") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for i, block := range strings.Split("\n"+string(text), "\n```") {
			if i%2 == 1 { // between fences
				out = append(out, readExamples(file, block)...)
			}
		}
	}
	require.Greater(t, len(out), 30)
	return out
}

// Examples that are pasted one after the other do not go into the folder of another
// one, and find what they read.
func TestExamplesAgree(t *testing.T) {
	list := allExamples(t)
	writers := map[string]example{}
	for _, e := range list {
		out, ok := e.flags["out"]
		if !ok || e.flags["resume"] != "" {
			continue
		}
		if first, taken := writers[out]; taken && !e.again(first) {
			t.Errorf("%s is made by two examples:\n%s: assay %s\n%s: assay %s", out, first.where, first.text, e.where, e.text)
		}
		writers[out] = e
	}
	for _, e := range list {
		maps := e.flags["attributions"]
		if maps == "" || !strings.HasPrefix(maps, "runs/digit") {
			continue
		}
		made, ok := writers[maps]
		require.True(t, ok, "%s: nothing makes %s", e.where, maps)
		for _, flag := range []string{"net", "data", "limit"} {
			require.Equal(t, made.flags[flag], e.flags[flag], "%s: --%s of %s", e.where, flag, maps)
		}
	}
	for _, e := range list {
		if e.command != "compare" {
			continue
		}
		for _, folder := range e.words[:2] {
			if strings.HasPrefix(folder, "runs/") {
				require.Contains(t, writers, folder, "%s: assay %s", e.where, e.text)
			}
		}
	}
}

// again says that an example shows another one again, or writes jobs for as many shards.
func (e example) again(first example) bool {
	return e.text == first.text || e.command == "slurm" && first.command == "slurm" && e.flags["shards"] == first.flags["shards"]
}

// The flags of all examples exist.
func TestExamplesParse(t *testing.T) {
	app := newApp(environment{stdout: io.Discard, stderr: io.Discard})
	for _, e := range allExamples(t) {
		command := app.Command(e.command)
		require.NotNil(t, command, "%s: assay %s", e.where, e.text)
		var names []string
		for _, f := range command.Flags {
			names = append(names, f.Names()...)
		}
		for _, w := range e.words {
			if name, ok := strings.CutPrefix(w, "--"); ok {
				name, _, _ = strings.Cut(name, "=")
				if name != "help" {
					require.Contains(t, names, name, "%s: assay %s", e.where, e.text)
				}
			}
		}
	}
}
