package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// diagnosis is what doctor finds.
type diagnosis struct {
	Assay string `json:"assay"`
	Go    string `json:"go"`
	CPUs  int    `json:"cpus"`
	// Runtime is what the library says; nil where it does not load, then
	// Problem says why.
	Runtime map[string]any `json:"runtime,omitempty"`
	// ABIMatch: the library fits libtorch and this program.
	ABIMatch bool     `json:"abiMatch"`
	Cache    string   `json:"cache"`
	Weights  []string `json:"weights"`
	Missing  []string `json:"weightsMissing"`
	Folder   string   `json:"folder"`
	// Writable: the current folder, where runs are kept, can be written.
	Writable bool   `json:"writable"`
	Problem  string `json:"problem,omitempty"`
}

func doctorCommand(env environment) *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "what this machine can do",
		Flags: outputFlags(),
		Action: func(c *cli.Context) error {
			if err := noPositionals(c); err != nil {
				return err
			}
			d, err := diagnose(c.Context, env)
			if c.Bool("json") {
				if e := printJSON(env, d); e != nil {
					return e
				}
			} else {
				d.print(env)
			}
			return err
		},
	}
}

// diagnose asks the library and the file system. The error is the library's.
func diagnose(ctx context.Context, env environment) (diagnosis, error) {
	d := diagnosis{Assay: version(), Go: runtime.Version(), CPUs: runtime.NumCPU(), Weights: []string{}, Missing: []string{}}
	files, dir, err := publishedFiles()
	if err == nil {
		d.Cache = dir
	}
	for _, f := range files {
		if f.Cached {
			d.Weights = append(d.Weights, f.File)
		} else {
			d.Missing = append(d.Missing, f.File)
		}
	}
	d.Folder, _ = os.Getwd()
	d.Writable = writable(".")
	b, err := env.open("cpu", 0)
	if err == nil {
		defer b.Close()
		d.Runtime, err = b.Runtime(ctx)
	}
	if err != nil {
		d.Problem = explain(err)
		return d, fmt.Errorf("networks cannot be run: %w", err)
	}
	d.ABIMatch = true
	return d, nil
}

func writable(dir string) bool {
	f, err := os.CreateTemp(dir, ".assay-doctor-")
	if err != nil {
		return false
	}
	f.Close()
	return os.Remove(f.Name()) == nil
}

func (d diagnosis) print(env environment) {
	t := table{header: []string{"assay", d.Assay + ", " + d.Go}}
	if d.Problem != "" {
		t.add("libtorch", "does not run: "+d.Problem)
	} else {
		t.add("libtorch", fmt.Sprintf("%v (built for %v, fits: yes)", d.Runtime["torch"], orDash(d.Runtime["torchBuilt"])))
		if paths, ok := d.Runtime["torchLibraries"].([]any); ok {
			for _, folder := range folders(paths) {
				t.add("", "mapped from "+folder)
			}
		}
		t.add("cpu", fmt.Sprintf("%v, %d cores, %v threads", orDash(d.Runtime["cpu"]), d.CPUs, orDash(d.Runtime["threads"])))
		t.add("memory", memory(d.Runtime))
		t.add("gpu", gpus(d.Runtime))
	}
	t.add("cache", d.Cache)
	t.add("weights there", orNone(d.Weights))
	t.add("weights missing", orNone(d.Missing)+"  (assay fetch NAME)")
	can := "can be written"
	if !d.Writable {
		can = "cannot be written: give --out a folder elsewhere"
	}
	t.add("this folder", d.Folder+" "+can)
	t.print(env.stdout)
}

// orNone lists weights by file, wrapped by the terminal.
func orNone(files []string) string {
	if len(files) == 0 {
		return "none"
	}
	return strings.Join(files, " ")
}

func folders(paths []any) []string {
	found := map[string]bool{}
	for _, p := range paths {
		found[filepath.Dir(fmt.Sprint(p))] = true
	}
	return slices.Sorted(maps.Keys(found))
}

func memory(runtime map[string]any) string {
	gib := func(key string) string {
		switch v := runtime[key].(type) {
		case int64:
			return fmt.Sprintf("%.1f GiB", float64(v)/(1<<30))
		case float64:
			return fmt.Sprintf("%.1f GiB", v/(1<<30))
		}
		return "?"
	}
	return gib("memoryFree") + " free of " + gib("memoryTotal")
}

func gpus(runtime map[string]any) string {
	cuda, _ := runtime["cuda"].(map[string]any)
	devices, _ := cuda["devices"].([]any)
	if len(devices) == 0 {
		return "none"
	}
	var names []string
	for i, d := range devices {
		entry, _ := d.(map[string]any)
		names = append(names, fmt.Sprintf("cuda:%d %v", i, orDash(entry["name"])))
	}
	return strings.Join(names, ", ")
}
