package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A killed run's report says how far the run is, and is of what there is.
func TestReportOfUnfinishedRuns(t *testing.T) {
	s := newShop(t, 4)
	for study, words := range map[string]string{
		"road":    "road --methods weights,random --imputers zero --fractions .2,.5",
		"score":   "score --methods weights,random --metrics sparseness,complexity",
		"explain": "explain --methods weights,random,plain,scaled --overlays=false",
	} {
		code, _, errs := s.assay(words + " --out " + study + common)
		require.Equal(t, 0, code, errs)
		_, out, errs := s.assay("report " + study)
		require.NotContains(t, out+errs, "unfinished", "a finished one")
		text, err := os.ReadFile(study + "/results.jsonl")
		require.NoError(t, err)
		lines := strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
		require.Len(t, lines, 16)
		require.NoError(t, os.WriteFile(study+"/results.jsonl", []byte(strings.Join(lines[:10], "")), 0o666))
		for _, name := range []string{"summary.csv", "summary.json", "contests.json", "consistency.json"} {
			os.Remove(study + "/" + name)
		}
		code, out, errs = s.assay("report --json " + study)
		require.Equal(t, 0, code, errs)
		require.Contains(t, out, `"unfinished":"unfinished: 10 of 16 units"`)
		require.Contains(t, errs, study+": unfinished: 10 of 16 units")
		page, err := os.ReadFile(study + "/report.html")
		require.NoError(t, err)
		require.Contains(t, string(page), "<b>unfinished: 10 of 16 units</b>")
		require.NotContains(t, string(page), "<dt>methods</dt><dd>0</dd>", study)
		require.NotContains(t, string(page), "<dt>imputers</dt><dd>0</dd>")
		require.NoFileExists(t, study+"/summary.csv", "which is of finished runs")
	}
	// Where weights went away nobody knows how many units there are.
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".safetensors") {
			require.NoError(t, os.Remove(e.Name()))
		}
	}
	code, _, errs := s.assay("report road")
	require.Equal(t, 0, code, errs)
	require.Contains(t, errs, "unfinished: the run has no summary")
	page, err := os.ReadFile("road/report.html")
	require.NoError(t, err)
	require.Contains(t, string(page), "<b>unfinished: the run has no summary</b>")
}
