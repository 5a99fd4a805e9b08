package orchestrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
)

// Files of a run, relative to OUT.
const (
	PlanFile        = "plan.yaml"
	EnvFile         = "env.json"
	SummaryCSVFile  = "summary.csv"
	SummaryJSONFile = "summary.json"
	// ClassesFile is a JSON array of class names, absent where they are unknown.
	ClassesFile = "classes.json"
	// ImagesFolder holds views of images, ImagesIndex maps image ids to them.
	ImagesFolder = "images"
	ImagesIndex  = "images/index.json"
	// SearchesFolder holds the scores of searches that are under way; it goes
	// when the run is done.
	SearchesFolder = "searches"
)

// writeFile puts a whole file in place, or nothing: temporary name, sync, rename.
func writeFile(path string, data []byte) error {
	if err := renameio.WriteFile(path, data, 0o666, renameio.WithTempDir(filepath.Dir(path))); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return writeFile(path, append(text, '\n'))
}

// readPrior reads the resolved plan of a folder, nil where there is none.
func readPrior(out string) (*Plan, error) {
	if info, err := os.Stat(out); err == nil && !info.IsDir() {
		return nil, usage.Errorf("out: %s is a file: want a folder", out)
	}
	path := filepath.Join(out, PlanFile)
	text, err := os.ReadFile(path)
	switch {
	case err == nil:
		return ParsePlan(path, text)
	case errors.Is(err, fs.ErrNotExist):
		return nil, checkFresh(out)
	}
	return nil, usage.Errorf("out: %w", err)
}

// checkFresh refuses a folder that holds records without a plan.
func checkFresh(out string) error {
	if info, err := os.Stat(filepath.Join(out, record.FileName)); err == nil && info.Size() > 0 {
		return usage.Errorf("out: %s has %s but no %s, so nobody knows what was measured: choose another folder", out, record.FileName, PlanFile)
	}
	return nil
}

// checkOutside refuses a new run in a folder of its data: the views that it
// writes are images, and would be data from then on.
func checkOutside(out string, data []DataPlan) error {
	for _, d := range data {
		if info, err := os.Stat(d.Path); err != nil || !info.IsDir() {
			continue
		}
		rel, err := filepath.Rel(absolute(d.Path), absolute(out))
		if err == nil && filepath.IsLocal(rel) {
			return usage.Errorf("out: %s lies in the data folder %s: choose a folder outside it", out, d.Path)
		}
	}
	return nil
}

// writeOrigin writes what results come from: the plan as text, and beside it the environment,
// with what the program says of itself, and the names of classes where there are some.
func writeOrigin(ctx context.Context, b Backend, plan string, text []byte, program map[string]any, classes []string) error {
	if err := writeFile(plan, text); err != nil {
		return err
	}
	env, err := b.Runtime(ctx)
	if err != nil {
		return err
	}
	all := map[string]any{"runtime": env}
	maps.Copy(all, program)
	out := filepath.Dir(plan)
	if err := writeJSON(filepath.Join(out, EnvFile), all); err != nil {
		return err
	}
	if classes == nil {
		return nil
	}
	return writeJSON(filepath.Join(out, ClassesFile), classes)
}

// sweep removes temporary files that a killed run has left. It may only be
// called with the records' lock held.
func sweep(out string) {
	for _, dir := range []string{out, filepath.Join(out, ImagesFolder)} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			for _, name := range []string{PlanFile, EnvFile, SummaryCSVFile, SummaryJSONFile, ClassesFile, ClaimsFile, RanksFile, WinsFile, ContestsFile, ConsistencyCSVFile, ConsistencyJSONFile, "index.json", "report.html", ".png"} {
				if e.Type().IsRegular() && strings.HasPrefix(e.Name(), ".") && strings.Contains(e.Name(), name) {
					os.Remove(filepath.Join(dir, e.Name()))
				}
			}
		}
	}
}
