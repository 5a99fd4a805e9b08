package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScoreCommand(t *testing.T) {
	s := newShop(t, 4)
	words := "score --methods weights,scaled(random,factor=3),plain --metrics sparseness,le-mo(edge=4),deletion(step=16) --baseline trace(iterations=20) --out run" + common
	code, out, errs := s.assay(words)
	require.Equal(t, 0, code, errs)
	require.Regexp(t, `(?m)^method +sparseness ↑ +95 % of means +rank +le-mo\(edge=4\) ↑ +95 % of means +rank +share of the optimum +deletion\(step=16\) ↓ `, out)
	require.Regexp(t, `(?m)^plain +0 +0 \.\. 0 +3 `, out)
	require.Regexp(t, `(?m)^trace optimum .* 1\.000`, out)
	require.Regexp(t, `(?m)^weights +\S`, out)
	require.Contains(t, out, "Means over 4 images")
	require.Contains(t, out, "sparseness, le-mo(edge=4), deletion(step=16): no method is significantly better than another (Wilcoxon, Holm over 3 pairs, level 0.05; 4 images cannot show more for 3 pairs)")
	for _, name := range []string{"summary.csv", "ranks.csv", "wins.csv", "contests.json", "report.html"} {
		require.FileExists(t, "run/"+name)
	}
	page, err := os.ReadFile("run/report.html")
	require.NoError(t, err)
	require.Contains(t, string(page), "How often the row is better than the column")

	// The plan does the same, and nothing again.
	code, again, errs := s.assay("run run/plan.yaml --out run")
	require.Equal(t, 0, code, errs)
	require.Contains(t, errs, "40 of 40 units were done before")
	require.Equal(t, out, again)

	// Maps of an explain run count as its methods; with --json all is one object.
	code, _, errs = s.assay("explain --overlays=false --methods weights,random --out maps" + common)
	require.Equal(t, 0, code, errs)
	code, out, errs = s.assay("score --json --quiet --attributions maps --metrics sparseness --methods plain --out given" + common)
	require.Equal(t, 0, code, errs)
	var result runResult
	require.NoError(t, json.Unmarshal([]byte(out), &result))
	require.Equal(t, 12, result.Units)
	var names []string
	for _, c := range result.Contests[0].Competitors {
		names = append(names, c.Name)
	}
	require.ElementsMatch(t, []string{"plain", "weights", "random"}, names)

	// What cannot be is in the table, too.
	code, out, errs = s.assay("score --methods holes,weights --metrics sparseness --skip-nan" + common)
	require.Equal(t, 0, code, errs)
	require.Regexp(t, `(?m)^holes +- +- +-$`, out)
	require.Contains(t, out, "4 scores are undefined and in no mean")
}

func TestScoreCommandMistakes(t *testing.T) {
	s := newShop(t, 2)
	s.refuses("score", map[string]string{
		"--methods weights --metrics delation":                          "did you mean deletion?",
		"--methods weights --metrics deletion(steps=2)":                 "did you mean step?",
		"--methods weights --metrics ,":                                 "--metrics is empty",
		"--methods weights --metric deletion":                           "did you mean --metrics?",
		"--metrics deletion --baseline trace":                           "the optimum of what?",
		"--methods weights --metrics le --baseline trcae":               "want one of trace",
		"--attributions nowhere":                                        "nowhere",
		"--methods weights --metrics pointing-game":                     "needs boxes or masks",
		"--methods weights --metrics deletion --reduce mean":            "want one of",
		"--methods weights --metrics deletion(reference=blur(kernel=3)": "want a comma or a closing parenthesis",
	})
}

// The examples of the help are commands that the program takes.
func TestScoreExamples(t *testing.T) {
	newShop(t, 0).understands("score", scoreExamples, 3)
}

func TestListMetrics(t *testing.T) {
	s := newShop(t, 0)
	code, out, errs := s.assay("list metrics")
	require.Equal(t, 0, code, errs)
	require.Regexp(t, `(?m)^score +deletion .* lower is better +map, net +step=0, reference=zero, output=probability, reduce=sum +Petsiuk`, out)
	require.Regexp(t, `(?m)^score +randomisation .* map, maps, net, graph +mode=cascading`, out)
	require.Regexp(t, `(?m)^eval +top1 .* higher is better +- +- +-$`, out)
	code, out, errs = s.assay("list metrics --json")
	require.Equal(t, 0, code, errs)
	var lines []listed
	require.NoError(t, json.Unmarshal([]byte(out), &lines))
	papers := 0
	for _, l := range lines {
		if l.Study == "score" {
			require.NotEmpty(t, l.Paper, l.ID)
			require.NotEmpty(t, l.Direction, l.ID)
			require.NotEmpty(t, l.Inputs, l.ID)
			papers++
		}
	}
	require.GreaterOrEqual(t, papers, 16)
}

// One image has no bounds: neither on the terminal nor in files.
func TestScoreOfOneImage(t *testing.T) {
	s := newShop(t, 2)
	code, out, errs := s.assay("score --quiet --limit 1 --methods weights,random --metrics sparseness --out one" + common)
	require.Equal(t, 0, code, errs)
	require.Regexp(t, `(?m)^weights +[▸*]?\s*\S+ +- +[12]$`, out)
	require.NotContains(t, out, " .. ")
	text, err := os.ReadFile("one/ranks.csv")
	require.NoError(t, err)
	require.Regexp(t, `(?m)^\w+,,predicted,sparseness,weights,[^,]+,,,1,0,[12],,,`, string(text))
	text, err = os.ReadFile("one/summary.csv")
	require.NoError(t, err)
	require.Regexp(t, `(?m)sparseness,[^,]+,,,1,`, string(text))
}

// What two runs made has names that say what is whose.
func TestScoreTellsWhoseMaps(t *testing.T) {
	s := newShop(t, 4)
	for _, words := range []string{"--methods weights,random --seed 0 --out one", "--methods weights,random --seed 1 --out two"} {
		code, _, errs := s.assay("explain --overlays=false " + words + common)
		require.Equal(t, 0, code, errs)
	}
	for _, command := range []string{"score --metrics sparseness", "road --target predicted --fractions .5"} {
		out := "out-" + strings.Fields(command)[0]
		code, printed, errs := s.assay(command + " --attributions one/maps/random,two/maps/random --out " + out + common)
		require.Equal(t, 0, code, errs)
		for _, folder := range []string{"one", "two"} {
			line := regexp.MustCompile(`(?m)^(random#[0-9a-f]{8}): ` + folder + `/maps/random$`).FindStringSubmatch(printed)
			require.NotNil(t, line, printed)
			require.GreaterOrEqual(t, strings.Count(printed, line[1]), 2, "the table's name")
			require.Regexp(t, regexp.QuoteMeta(line[1])+` is /\S+/`+folder+`/maps/random`, s.read(out+"/report.html"))
		}
		// One is called by its method, a file of a run as well.
		for _, path := range []string{"one/maps/random", "one/maps/random/0000.npz"} {
			code, printed, errs = s.assay(command + " --attributions " + path + common)
			require.Equal(t, 0, code, errs)
			require.Regexp(t, `(?m)^(morf +)?random `, printed)
			require.NotContains(t, printed, "#")
		}
		code, printed, errs = s.assay(command + " --attributions one/maps/random/0000.npz,two/maps/random/0000.npz" + common)
		require.Equal(t, 0, code, errs)
		require.Regexp(t, `(?m)^0000.npz#[0-9a-f]{8}: two/maps/random/0000.npz$`, printed)
	}
}
