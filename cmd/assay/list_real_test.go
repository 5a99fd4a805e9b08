//go:build cgo

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/weights"
)

// tvNumbers are the parameters of torchvision's nets by id, heads that are for
// training alone taken off (scripts/published_weights.py, scripts/golden_names.py).
func tvNumbers(t *testing.T) map[string]int64 {
	read := func(name string, into any) {
		text, err := os.ReadFile("../../weights/testdata/" + name)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, into))
	}
	var golden struct {
		Files []struct {
			Net        string
			Version    string
			Parameters int64
		}
	}
	read("published.json", &golden)
	numbers := map[string]int64{}
	for _, f := range golden.Files {
		if f.Version == "IMAGENET1K_V1" {
			numbers[f.Net] = f.Parameters
		}
	}
	// GoogLeNet's number is without its two heads, Inception's with its one.
	var names struct {
		Cases []struct {
			Name string
			Rows [][3]any
		}
	}
	read("names.json", &names)
	for _, c := range names.Cases {
		for _, row := range c.Rows {
			name := row[0].(string)
			if !strings.HasPrefix(name, "AuxLogits.") || strings.Contains(name, ".running_") {
				continue
			}
			count := int64(1)
			for _, n := range row[2].([]any) {
				count *= int64(n.(float64))
			}
			if strings.HasPrefix(name, "AuxLogits.fc.") {
				count = count / 3 * 1000 // classes
			}
			numbers["inception-v3"] -= count
		}
	}
	return numbers
}

// The nets as they are, with what the tables of weights and presets say of them.
func TestListRealNets(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	assay := func(words string) string {
		var out, errs bytes.Buffer
		code := run(context.Background(), environment{stdout: &out, stderr: &errs, open: openDevice}, strings.Fields(words))
		require.Equal(t, 0, code, errs.String())
		return out.String()
	}
	var nets []listedNet
	require.NoError(t, json.Unmarshal([]byte(assay("list nets --json")), &nets))
	table := assay("list nets")
	numbers := tvNumbers(t)
	require.Len(t, numbers, 22)
	byID := map[string]listedNet{}
	for _, n := range nets {
		byID[n.ID] = n
		require.Contains(t, table, "\n"+n.ID+" ")
		_, err := dataset.PresetByID(n.Preset)
		require.NoError(t, err, n.ID)
		names := map[string]bool{}
		for _, l := range n.Layers {
			require.NotEmpty(t, l.Name, n.ID)
			require.NotEmpty(t, l.Outputs, "%s %s", n.ID, l.Name)
			names[l.Name] = true
		}
		require.NotEmpty(t, names, n.ID)
		require.True(t, n.DefaultLayer == "" || names[n.DefaultLayer], "%s has no layer %s", n.ID, n.DefaultLayer)
		if want, ok := numbers[n.ID]; ok {
			require.Equal(t, want, n.ParameterCount, n.ID)
			delete(numbers, n.ID)
		}
		if len(n.Weights) == 0 {
			continue
		}
		// The net's own preset is that of its default weights, its licence the
		// short form of theirs.
		require.Equal(t, n.Weights[0].Preset, n.Preset, n.ID)
		require.NotEmpty(t, n.Licence, n.ID)
		require.True(t, strings.HasPrefix(n.Weights[0].Licence, n.Licence), "%s: %s", n.ID, n.Licence)
	}
	require.Empty(t, numbers, "nets of torchvision that are not listed")
	for _, p := range weights.Published() {
		require.NotEmpty(t, byID[p.Net].ID, p.Net)
	}
	for _, e := range weights.Embedded() {
		require.Contains(t, byID[e.Net].Embedded, e.Path)
	}

	var errs bytes.Buffer
	code := run(context.Background(), environment{stdout: &errs, stderr: &errs, open: openDevice}, []string{"list", "layers", "--net", "vit-b16"})
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs.String(), `"vit-b16"`)

	one := assay("list nets vit-b-16")
	require.Contains(t, one, "parameters     86567656\n")
	require.Contains(t, one, "CC-BY-NC-4.0")
	require.True(t, strings.HasSuffix(one, assay("list layers --net vit-b-16")))
}
