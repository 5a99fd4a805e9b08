package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A reader that stops, such as head, changes neither the files nor the exit code.
func TestReportWithClosedStdout(t *testing.T) {
	s := newShop(t, 4)
	for _, words := range []string{
		"road --methods weights,random --fractions .2,.6",
		"trace --edge 2 --iterations 2",
		"score --methods weights,random",
		"explain --methods weights",
		"eval",
	} {
		reader, writer, err := os.Pipe()
		require.NoError(t, err)
		require.NoError(t, reader.Close())
		var errs bytes.Buffer
		code := run(t.Context(), environment{stdout: writer, stderr: &errs, open: s.backend.Opener()}, strings.Fields(words+common+" --out out-"+strings.Fields(words)[0]))
		require.NoError(t, writer.Close())
		require.Equal(t, 0, code, "%s: %s", words, errs.String())
		for _, file := range []string{"report.html", "summary.csv", "results.jsonl"} {
			require.FileExists(t, "out-"+strings.Fields(words)[0]+"/"+file)
		}
	}
}

// unread is a stdout that nobody reads.
type unread struct{ t *testing.T }

func (u unread) Write(b []byte) (int, error) {
	require.FileExists(u.t, "out/report.html", "files come before what is printed")
	return len(b), nil
}

func TestFilesBeforeTables(t *testing.T) {
	s := newShop(t, 4)
	var errs bytes.Buffer
	code := run(t.Context(), environment{stdout: unread{t}, stderr: &errs, open: s.backend.Opener()}, strings.Fields("trace --edge 2 --iterations 2 --out out"+common))
	require.Equal(t, 0, code, errs.String())
}
