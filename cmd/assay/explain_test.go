package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/orchestrate"
)

func TestExplainCommand(t *testing.T) {
	s := newShop(t, 4)
	words := "explain --methods weights,scaled(random,factor=3),holes,plain,picky --reduce sum --format safetensors --seed 3 --out run" + common
	code, out, errs := s.assay(words)
	require.Equal(t, 3, code, errs)
	for _, want := range []string{"scaled(random,factor=3)", "picky on tiny failed on "} {
		require.Contains(t, out, want)
	}
	cells := regexp.MustCompile(`(?m)^tiny +holes +sum +predicted +4 +0 .* 0 +4 +-$`)
	require.Regexp(t, cells, out, "four maps with values that are no numbers")
	require.Regexp(t, regexp.MustCompile(`(?m)^tiny +plain +sum +predicted +4 +0 .* 4 +0 +-$`), out)
	maps, err := dataset.OpenMaps(t.Context(), "run/maps/scaled-random-factor-3")
	require.NoError(t, err)
	require.Len(t, maps.IDs(), 4)
	require.NoError(t, maps.Close())
	require.FileExists(t, "run/maps/weights/0000.safetensors")
	require.FileExists(t, "run/overlays/weights/a/0000.jpg.png")

	// The plan does the same, and the report can be made again.
	code, _, errs = s.assay("run run/plan.yaml --out run")
	require.Equal(t, 3, code, errs)
	require.Contains(t, errs, "20 of 20 units were done before")
	page, err := os.ReadFile("run/report.html")
	require.NoError(t, err)
	require.NoError(t, os.Remove("run/report.html"))
	code, out, errs = s.assay("report run")
	require.Equal(t, 0, code, errs)
	require.Equal(t, "run/report.html", strings.TrimSpace(out))
	again, err := os.ReadFile("run/report.html")
	require.NoError(t, err)
	require.Equal(t, string(page), string(again))

	code, _, errs = s.assay("explain --overlays=false --out bare" + common)
	require.NotEqual(t, 0, code)
	require.Contains(t, errs, "gradient", "the fake has no such method")
	code, out, errs = s.assay("explain --json --quiet --overlays=false --methods weights --out bare" + common)
	require.Equal(t, 0, code, errs)
	var result runResult
	require.NoError(t, json.Unmarshal([]byte(out), &result))
	require.Equal(t, 4, result.Units)
	require.NoDirExists(t, "bare/overlays")
}

func TestExplainMistakes(t *testing.T) {
	s := newShop(t, 2)
	s.refuses("explain", map[string]string{
		"--methods wieghts":                    "did you mean weights?",
		"--methods scaled(weights,fcator=2)":   "did you mean factor?",
		"--methods scaled(factor=-2)":          "want at least 0",
		"--methods weights(random)":            "takes no other method",
		"--methods layered(layer=fcc)":         "did you mean fc?",
		"--methods ,":                          "--methods is empty",
		"--reduce mean --methods weights":      "want one of none",
		"--format csv --methods weights":       "want one of npz, npy, safetensors",
		"--methods weights --target label=2":   "want label, predicted",
		"--methods weights --overlay":          "did you mean --overlays?",
		"--methods smoothgrad(weights,samples": "want",
	})
}

// The examples of the help are commands that the program takes; they run on the
// device in internal/device's and by hand.
func TestExplainExamples(t *testing.T) {
	newShop(t, 0).understands("explain", explainExamples, 3)
}

func TestListMethods(t *testing.T) {
	s := newShop(t, 0)
	code, out, errs := s.assay("list methods")
	require.Equal(t, 0, code, errs)
	require.Regexp(t, `(?m)^gradient +scaled +another map times a factor +input gradient +weights, factor=2 +none$`, out)
	require.Regexp(t, `(?m)^cam +layered .* layer=\.\.\. `, out)
	code, out, errs = s.assay("list methods --json")
	require.Equal(t, 0, code, errs)
	var lines []orchestrate.Entry
	require.NoError(t, json.Unmarshal([]byte(out), &lines))
	for _, l := range lines {
		if l.ID == "scaled" {
			require.Equal(t, "weights", l.Base)
			require.Equal(t, "gradient", l.Family)
			require.Equal(t, 0., *l.Parameters[0].Minimum)
			return
		}
	}
	require.Fail(t, "scaled is not there")
}
