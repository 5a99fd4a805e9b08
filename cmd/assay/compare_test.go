package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/orchestrate"
)

func TestCompare(t *testing.T) {
	s := newShop(t, 6)
	for _, words := range []string{
		"--out a --edge 2 --solver sa --iterations 20", "--out b --edge 2 --solver greedy --objective le",
		"--out seeds --edge 2 --solver sa --iterations 20 --seed 1,2", "--out fine --edge 4 --solver sa --iterations 20",
	} {
		code, _, errs := s.assay("trace --quiet " + words + common)
		require.Zero(t, code, errs)
	}
	code, out, errs := s.assay("compare a b --out c.csv")
	require.Zero(t, code, errs)
	require.Contains(t, out, "differs: solver: sa | greedy")
	require.Contains(t, out, "6 pairs of units on 6 images match")
	require.Regexp(t, `prob-le +\S+ +\S+ +-?\d`, out)
	require.Contains(t, out, "Spearman")

	text, err := os.ReadFile("c.csv")
	require.NoError(t, err)
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	require.NoError(t, err)
	require.Equal(t, "metric", rows[0][0])

	code, out, errs = s.assay("compare --json a b --out c.html")
	require.Zero(t, code, errs)
	var c orchestrate.Comparison
	require.NoError(t, json.Unmarshal([]byte(out), &c))
	require.Equal(t, 6, c.Matched)
	require.Len(t, rows, 1+len(c.Groups[0].Scores)+3)
	page, err := os.ReadFile("c.html")
	require.NoError(t, err)
	require.Contains(t, string(page), "prob-le-mo")
	require.NotContains(t, string(page), "<no value>")

	code, out, errs = s.assay("compare a fine")
	require.Zero(t, code, errs)
	require.Contains(t, out, "prob-le-mean")
	require.Contains(t, out, "note: trajectories of 4 and of 16 features do not compare")

	for words, want := range map[string]string{
		"compare a":                       "takes two folders of runs, there are 1 arguments",
		"compare a nowhere":               "nowhere: want the folder of a run",
		"compare a seeds":                 "choose one, for example --where B:seed=1",
		"compare a b --out c.pdf":         "want a file that ends in .csv or .html",
		"compare a b --out c":             "want a file that ends in .csv or .html",
		"compare a b --where solver=x":    "leaves nothing of a: its solver is sa",
		"compare a seeds --where A:sed=1": `has no "sed": did you mean seed`,
	} {
		code, _, errs := s.assay(words)
		require.Equal(t, exitUsage, code, words)
		require.Contains(t, errs, want)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
	}
	code, out, errs = s.assay("compare a seeds --where B:seed=2")
	require.Zero(t, code, errs)
	require.Contains(t, out, "differs: seed: 0 | 2")
}

// What a run found is where another begins, and compares with it.
func TestTraceFromARun(t *testing.T) {
	s := newShop(t, 4)
	code, _, errs := s.assay("trace --quiet --edge 2 --solver sa --iterations 10 --out a" + common)
	require.Zero(t, code, errs)
	code, _, errs = s.assay("trace --quiet --edge 2 --solver order --map a --out b" + common)
	require.Zero(t, code, errs)
	code, out, errs := s.assay("compare --json a b")
	require.Zero(t, code, errs)
	var c orchestrate.Comparison
	require.NoError(t, json.Unmarshal([]byte(out), &c))
	require.Equal(t, 4, c.Groups[0].Orders.Same)
	require.Equal(t, 4, c.Groups[0].Scores[0].Equal)
	code, _, errs = s.assay("trace --start map" + common)
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "which orders? give --map FILE")
}

// Metrics that the grid names stand in one column, by their names; what only describes
// maps has no better side, and one image no bounds.
func TestCompareMetrics(t *testing.T) {
	s := newShop(t, 3)
	code, _, errs := s.assay("score --quiet --methods weights,random --metrics sparseness,le-mo(edge=2) --out scores" + common)
	require.Zero(t, code, errs)
	code, out, errs := s.assay("compare scores scores --where A:method=weights --where B:method=random --out c.csv")
	require.Zero(t, code, errs)
	require.Regexp(t, `(?m)^metric +A +B +B - A `, out)
	require.Regexp(t, `(?m)^sparseness +\S+ +\S+ +\S+ +\S+ \.\. \S+ +\d +\d +\d +3$`, out)
	text, err := os.ReadFile("c.csv")
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), "metric"), "the head alone")
	code, out, errs = s.assay("compare scores scores --where A:method=weights --where B:method=random --where metric=sparseness")
	require.Zero(t, code, errs)
	require.Regexp(t, `(?m)^sparseness `, out)

	code, _, errs = s.assay("road --quiet --methods weights,random --limit 1 --fractions .5 --out road" + common)
	require.Zero(t, code, errs)
	code, out, errs = s.assay("compare road road --where A:method=weights --where B:method=random --out c.csv")
	require.Zero(t, code, errs)
	require.Regexp(t, `(?m)^lerf +map-variation +\S+ +\S+ +\S+ +- +- +\d +- +1$`, out)
	require.Regexp(t, `(?m)^lerf +mean-probability +\S+ +\S+ +\S+ +- +\d +\d +\d +1$`, out)
	text, err = os.ReadFile("c.csv")
	require.NoError(t, err)
	require.Regexp(t, `(?m)^lerf,map-variation,[^,]+,[^,]+,[^,]+,,,,\d,,1$`, string(text))
}
