package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRoadCommand(t *testing.T) {
	s := newShop(t, 4)
	words := "road --methods weights,scaled(random,factor=3) --imputers noisy-linear,zero --orders morf,lerf,random --fractions .2,.5,0 --out run" + common
	code, out, errs := s.assay(words)
	require.Equal(t, 0, code, errs)
	require.Contains(t, errs, "fractions 0.2,0.5,0: taken in order, each once: 0,0.2,0.5")
	require.Contains(t, out, "imputer noisy-linear: accuracy of the net by the fraction of pixels that is removed\n")
	require.Regexp(t, `(?m)^order +method +0 % +20 % +50 % +mean +rank$`, out)
	require.Regexp(t, `(?m)^morf +weights +\S+ +\S+ +\S+ +\S+ +[12]`, out)
	require.Regexp(t, `(?m)^lerf +scaled\(random,factor=3\) `, out)
	require.Regexp(t, `(?m)^random +chance .* -$`, out)
	require.Regexp(t, `(?m)^method +road-combined ↑ +95 % of means +rank +variation of the map$`, out)
	require.Contains(t, out, "Means over 4 images")
	for _, name := range []string{"summary.csv", "ranks.csv", "wins.csv", "contests.json", "report.html", "strips/index.json"} {
		require.FileExists(t, "run/"+name)
	}
	code, again, errs := s.assay("run run/plan.yaml --out run")
	require.Equal(t, 0, code, errs)
	require.Contains(t, errs, "40 of 40 units were done before")
	require.Equal(t, out, again)

	code, _, errs = s.assay("explain --overlays=false --methods weights,random --target label --out maps" + common)
	require.Equal(t, 0, code, errs)
	code, out, errs = s.assay("road --json --quiet --attributions maps --methods plain --fractions .5 --out given" + common)
	require.Equal(t, 0, code, errs)
	var result runResult
	require.NoError(t, json.Unmarshal([]byte(out), &result))
	require.Equal(t, 24, result.Units)
	var names []string
	for _, c := range result.Contests[0].Competitors {
		names = append(names, c.Name)
	}
	require.ElementsMatch(t, []string{"plain", "weights", "random"}, names)
}

// Tables of one imputer say in what they differ.
func TestRoadTablesAreNamed(t *testing.T) {
	s := newShop(t, 3)
	code, out, errs := s.assay("road --methods weights,random --imputers zero --fractions .5 --ties random,index --reduce sum,abs-sum --target label,predicted --out run" + common)
	require.Equal(t, 0, code, errs)
	titles := regexp.MustCompile(`(?m)^tiny.*:`).FindAllString(out, -1)
	require.Len(t, titles, 4)
	for _, want := range []string{"target label, ties random", "target label, ties index", "target predicted, ties random", "target predicted, ties index"} {
		require.Contains(t, out, "tiny, imputer zero, "+want+": accuracy")
	}
	require.Regexp(t, `(?m)^morf +weights abs-sum `, out)

	s.write("lists.yaml", strings.Replace(contentOf(t, "run/plan.yaml"), "fractions: \"0.5\"", "fractions: [[.2, .5], [.5, .9]]", 1))
	code, out, errs = s.assay("run lists.yaml --out lists")
	require.Equal(t, 0, code, errs)
	require.Contains(t, out, "ties index, fractions 0.2,0.5: accuracy")
	require.Contains(t, out, "ties index, fractions 0.5,0.9: accuracy")
	page := contentOf(t, "lists/report.html")
	require.Contains(t, page, "fractions 0.5,0.9")
}

func contentOf(t *testing.T, path string) string {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func TestRoadByChanceAlone(t *testing.T) {
	s := newShop(t, 4)
	const says = "warning: --orders random removes pixels by chance, whatever maps say: --methods is not used"
	_, _, errs := s.assay("road --orders random --methods weights --fractions .5 --out one" + common)
	require.Contains(t, errs, says)
	for _, words := range []string{"--orders random", "--orders random,morf --methods weights", "--quiet --orders random --methods weights"} {
		_, _, errs := s.assay("road --fractions .5 " + words + common)
		require.NotContains(t, errs, "by chance", words)
	}
}

func TestRoadCommandMistakes(t *testing.T) {
	s := newShop(t, 2)
	s.refuses("road", map[string]string{
		"--methods weights --fractions .1,1.5":          "1.5: want numbers from 0, nothing removed, to 1, everything",
		"--methods weights --fractions .1,-0.5":         "-0.5: want numbers from 0",
		"--methods weights --fractions .1,half":         `"half": want numbers from 0 to 1`,
		"--methods weights --fractions ,":               "an empty list",
		"--methods weights --imputers noisy-lniear":     "did you mean noisy-linear?",
		"--methods weights --imputers ,":                "--imputers is empty",
		"--methods weights --imputers image":            "removal takes no other image",
		"--methods weights --imputers noisy-linear(n=)": "want name=value",
		"--methods weights --orders mrof":               "did you mean morf?",
		"--methods weights --ties fair":                 "want one of random, index, noise",
		"--methods wieghts":                             "did you mean weights?",
		"--methods weights --reduce none":               "want one of",
		"--methods weights --imputer zero":              "did you mean --imputers?",
		"--attributions nowhere":                        "nowhere",
	})
}

// The examples of the help are commands that the program takes.
func TestRoadExamples(t *testing.T) {
	newShop(t, 0).understands("road", roadExamples, 3)
}
