package device_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/device"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/orchestrate"
)

// everyMethod writes all methods of the catalogue, those that draw with few samples.
func everyMethod(t *testing.T) (list []any, entries map[string]orchestrate.Entry) {
	t.Helper()
	catalogue, err := backend(t).Catalogue(t.Context())
	require.NoError(t, err)
	entries = map[string]orchestrate.Entry{}
	for _, e := range catalogue.Methods {
		text := e.ID
		for _, p := range e.Parameters {
			if n, ok := p.Default.(float64); ok && p.Type == "int" && p.Name == "samples" && n > 16 {
				text = fmt.Sprintf("%s(samples=%v)", e.ID, max(16, value(p.Minimum)))
			}
		}
		list = append(list, text)
		entries[e.ID] = e
	}
	return list, entries
}

func value(p *float64) float64 {
	if p == nil {
		return 0
	}
	return *p
}

func explainDigits(t *testing.T, out string, limit int, methods []any) map[string]record.Record {
	t.Helper()
	plan := &orchestrate.Plan{Version: orchestrate.PlanVersion, Study: "explain", Device: "cpu", Batch: 8,
		Nets: []orchestrate.NetPlan{{Net: "cnn3"}}, Data: []orchestrate.DataPlan{{Path: "embedded:digits", Limit: limit}},
		Grid: map[string]any{"method": methods}}
	_, err := orchestrate.Run(context.Background(), orchestrate.Job{Plan: plan, Out: out, Open: device.Open})
	var incomplete *orchestrate.Incomplete
	if err != nil {
		require.ErrorAs(t, err, &incomplete)
	}
	found := map[string]record.Record{}
	require.NoError(t, record.Scan(filepath.Join(out, record.FileName), func(r record.Record) error {
		r.Cost = record.Cost{}
		found[r.ID] = r
		return nil
	}))
	return found
}

// Every method on the trained net that the program carries: maps of the shape that
// its entry says, which do not depend on the images beside them, bit by bit.
func TestExplainDigits(t *testing.T) {
	methods, entries := everyMethod(t)
	dir := t.TempDir()
	all := explainDigits(t, filepath.Join(dir, "all"), 5, methods)
	few := explainDigits(t, filepath.Join(dir, "few"), 2, methods)
	require.Len(t, all, 5*len(methods))
	maps := map[string]int{}
	for _, r := range all {
		id, err := orchestrate.ParseSpec(r.Method)
		require.NoError(t, err)
		if r.Error != "" {
			t.Logf("%s on %s: %s", r.Method, r.Image, r.Error)
			continue
		}
		maps[id.Name]++
		require.Equal(t, []int{1, 8, 8}, r.Map.Shape, r.Method)
		require.Zero(t, r.Map.NonFinite, r.Method)
		require.False(t, math.IsNaN(r.Map.Sum), r.Method)
	}
	for id := range entries {
		require.Positive(t, maps[id], id)
	}
	for id, r := range few {
		require.Equal(t, all[id], r)
	}
	folders, err := dataset.FindMaps(filepath.Join(dir, "few"))
	require.NoError(t, err)
	for _, f := range folders {
		one, err := dataset.OpenMaps(t.Context(), f.Path)
		require.NoError(t, err)
		name, err := filepath.Rel(filepath.Join(dir, "few"), f.Path)
		require.NoError(t, err)
		other, err := dataset.OpenMaps(t.Context(), filepath.Join(dir, "all", name))
		require.NoError(t, err)
		for _, id := range one.IDs() {
			a, _, err := one.Raw(id)
			require.NoError(t, err)
			b, _, err := other.Raw(id)
			require.NoError(t, err)
			require.Equal(t, a, b, "%s of %s", f.Method, id)
		}
		require.NoError(t, one.Close())
		require.NoError(t, other.Close())
	}
	require.True(t, slices.ContainsFunc(folders, func(f dataset.MapFolder) bool { return f.Method == "gradient" && f.Count == 2 }))
	require.FileExists(t, filepath.Join(dir, "few", "overlays", "gradient", "000001.png"))
	_, err = os.Stat(filepath.Join(dir, "few", "maps", ".parts"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
