package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShardsAreMerged(t *testing.T) {
	s := newShop(t, 7)
	words := "explain --methods weights,random --reduce sum" + common
	code, _, errs := s.assay(words + " --out whole")
	require.Equal(t, 0, code, errs)
	for _, shard := range []string{"1", "2", "3"} {
		code, out, errs := s.assay(words + " --shard " + shard + "/3 --out part-" + shard)
		require.Equal(t, 0, code, errs)
		require.Contains(t, errs, "shard "+shard+" of 3: ")
		require.Contains(t, out, "Shard "+shard+" of 3: part of the units, ")
		require.Contains(t, s.read("part-"+shard+"/report.html"), "Shard "+shard+" of 3: part of the units.")
	}
	code, out, errs := s.assay("merge part-1 part-2 part-3 --out all")
	require.Equal(t, 0, code, errs)
	require.Contains(t, out, "weights")
	require.NotContains(t, out, "part of the units")
	require.Contains(t, errs, "report: all/report.html")
	for _, name := range []string{"summary.csv", "summary.json", "plan.yaml", "env.json", "maps/weights/0000.npz", "maps/random/index.json"} {
		require.Equal(t, s.read("whole/"+name), s.read("all/"+name), name)
	}
	require.NotContains(t, s.read("all/report.html"), "part of the units")

	// The same folder again is what it was, and a shard's plan goes on with it.
	code, _, errs = s.assay("merge part-2 part-1 part-3 --out all")
	require.Equal(t, 0, code, errs)
	require.Contains(t, errs, "all holds this merge already")
	code, out, errs = s.assay("run part-2/plan.yaml --out part-2 --json --quiet")
	require.Equal(t, 0, code, errs)
	var result runResult
	require.NoError(t, json.Unmarshal([]byte(out), &result))
	require.Equal(t, "2/3", result.Shard)
	require.Equal(t, result.Units, result.Before)
}

func (s *shop) read(name string) string {
	text, err := os.ReadFile(name)
	require.NoError(s.t, err)
	return string(text)
}

func TestShardMistakes(t *testing.T) {
	s := newShop(t, 4)
	code, _, errs := s.assay("eval --shard 1/2 --out one" + common)
	require.Equal(t, 0, code, errs)
	for words, want := range map[string]string{
		"eval --shard 3/2 --out x" + common:                `--shard "3/2": want one of 1/2 to 2/2`,
		"eval --shard half --out x" + common:               `--shard "half": want i/n`,
		"eval --shard 1/2" + common:                        "give one with --out FOLDER",
		"eval --resolve-only" + common:                     "give one with --out FOLDER",
		"eval --resolve-only --shard 1/2 --out x" + common: "want the whole plan",
		"eval --shard 2/2 --out one" + common:              "one holds shard 1 of 2, and this is shard 2 of 2",
		"eval --out one" + common:                          "one holds shard 1 of 2, and this is the whole run",
		"eval --shard 9/9 --out x" + common:                "9 shards: the plan's units are of 4 images",
		"merge one":                                        "--out FOLDER",
		"merge --out x":                                    "no shards",
		"merge --out x one":                                "of the 2 shards are missing: 2/2",
		"merge --out x one one":                            "one and one are one folder",
		"merge --out x one data":                           "data holds no run",
		"slurm":                                            "takes one plan file",
		"train --shard 1/2 --net tiny --data data":         "unknown flag --shard",
	} {
		code, _, errs := s.assay(words)
		require.Equal(t, exitUsage, code, words)
		require.Contains(t, errs, want, words)
		require.NoDirExists(t, "x", words)
	}
}

func TestResolveOnly(t *testing.T) {
	s := newShop(t, 4)
	code, out, errs := s.assay("eval --resolve-only --out plan" + common)
	require.Equal(t, 0, code, errs)
	require.Equal(t, "plan/plan.yaml: 4 units, of which none was run\n", out)
	for _, shard := range []string{"1", "2"} {
		code, _, errs = s.assay("run plan/plan.yaml --out part-" + shard + " --shard " + shard + "/2")
		require.Equal(t, 0, code, errs)
	}
	code, out, errs = s.assay("merge part-1 part-2 --out all --json --quiet")
	require.Equal(t, 0, code, errs)
	require.Contains(t, out, `"images":4`)
	require.Empty(t, errs)
}

func TestSlurmScripts(t *testing.T) {
	s := newShop(t, 4)
	s.write("a plan.yaml", "version: 1\nstudy: eval\nnets: [{net: tiny, weights: w.safetensors, preset: preset.yaml}]\ndata: [{path: data}]\nbatch: 4\n")
	code, out, errs := s.args(t.Context(), "slurm", "a plan.yaml", "--shards", "2", "--out", "it's big", "--time", "4:00:00", "--gpus", "1", "--mem", "16G", "--cpus", "8",
		"--at-once", "3", "--limit", "2", "--sbatch=--qos=long", "--sbatch", "--comment=x y")
	require.Equal(t, 0, code, errs)
	require.Contains(t, out, "submits 2 shards")
	shards := s.read("it's big/shards.sbatch")
	for _, want := range []string{"#SBATCH --array=1-2%3\n", "#SBATCH --time=4:00:00\n", "#SBATCH --gpus=1\n", "#SBATCH --mem=16G\n", "#SBATCH --cpus-per-task=8\n", "#SBATCH --qos=long\n",
		`--shard "$SLURM_ARRAY_TASK_ID/2"`, `it'\''s big'/shard-"$SLURM_ARRAY_TASK_ID"`} {
		require.Contains(t, shards, want)
	}
	require.True(t, strings.HasPrefix(shards, "#!/bin/bash\n"))
	require.Contains(t, s.read("it's big/plan.sbatch"), "run 'a plan.yaml' --limit 2 --resolve-only")
	merge := s.read("it's big/merge.sbatch")
	require.NotContains(t, merge, "--gpus")
	require.NotContains(t, merge, "--array")
	require.Contains(t, merge, "#SBATCH --time=4:00:00\n")
	submit := s.read("it's big/submit.sh")
	require.Less(t, strings.Index(submit, "plan.sbatch"), strings.Index(submit, "shards.sbatch"))
	require.Less(t, strings.Index(submit, "shards.sbatch"), strings.Index(submit, "merge.sbatch"))

	for words, want := range map[string]string{
		"slurm none.yaml --shards 2 --out x":            "none.yaml",
		"slurm p.yaml --out x":                          "give --shards N",
		"slurm p.yaml --shards 0 --out x":               "want a whole number from 1",
		"slurm p.yaml --shards 2":                       "--out FOLDER",
		"slurm p.yaml --shards 2 --out x --gpus $(rm)":  "want a value of sbatch's --gpus",
		"slurm p.yaml --shards 2 --out x --gpus x":      `--gpus "x": want a value of sbatch's --gpus: a whole number`,
		"slurm p.yaml --shards 2 --out x --gpus a100:":  "TYPE:N",
		"slurm p.yaml --shards 2 --out x --time 4hours": `--time "4hours": want a value of sbatch's --time: minutes`,
		"slurm p.yaml --shards 2 --out x --time 1-":     "D-HH:MM",
		"slurm p.yaml --shards 2 --out x --mem lots":    `--mem "lots": want a value of sbatch's --mem: a whole number`,
		"slurm p.yaml --shards 2 --out x --cpus 0":      "a whole number from 1",
		"slurm p.yaml --shards 5 --out x":               "--shards 5: the plan's data has 4 images",
		"slurm p.yaml --shards 4 --limit 3 --out x":     "--shards 4: the plan's data has 3 images",
		"slurm p.yaml --shards 2 --out x --sbatch qos":  "with its dashes",
		"slurm p.yaml --shards 2 --out x --batch many":  "want auto",
		"slurm p.yaml --shards 99999 --out x":           "at most 65536",
		"slurm p.yaml --shards 2 --out x --scale small": "scale",
	} {
		s.write("p.yaml", "version: 1\nstudy: eval\nnets: [{net: tiny}]\ndata: [{path: data}]\n")
		code, _, errs := s.assay(words)
		require.Equal(t, exitUsage, code, words)
		require.Contains(t, errs, want, words)
		require.NoDirExists(t, "x", words)
	}
}

func TestSlurmResources(t *testing.T) {
	s := newShop(t, 4)
	s.write("p.yaml", "version: 1\nstudy: eval\nnets: [{net: tiny}]\ndata: [{path: data}]\n")
	for _, words := range []string{"--time 30", "--time 30:15", "--time 4:00:00", "--time 2-12", "--time 2-12:30", "--time 2-12:30:00", "--time UNLIMITED",
		"--mem 0", "--mem 1600", "--mem 16g", "--gpus 2", "--gpus a100:2", "--gpus nvidia_h100-80gb:1", "--cpus 8", "--partition gpu,long", "--account me"} {
		code, _, errs := s.assay("slurm p.yaml --shards 2 --out x " + words)
		require.Equal(t, 0, code, words+errs)
		flag, value, _ := strings.Cut(words, " ")
		require.Contains(t, s.read("x/shards.sbatch"), "#SBATCH "+strings.Replace(flag, "--cpus", "--cpus-per-task", 1)+"="+value+"\n")
	}
	before := s.read("x/shards.sbatch")
	code, _, errs := s.assay("slurm p.yaml --shards 3 --out x")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "has jobs for 2 shards, and this is for 3")
	require.Equal(t, before, s.read("x/shards.sbatch"))

	// How many images there are is only known where they are.
	s.write("p.yaml", "version: 1\nstudy: eval\nnets: [{net: tiny}]\ndata: [{path: 'data:imagenet-val'}]\n")
	t.Setenv("ASSAY_DATA", t.TempDir())
	code, _, errs = s.assay("slurm p.yaml --shards 40 --out y")
	require.Equal(t, 0, code, errs)
}

// What the scripts do is what a shell does with them, sbatch apart.
func TestSlurmScriptsRun(t *testing.T) {
	s := newShop(t, 4)
	s.write("p.yaml", "version: 1\nstudy: eval\nnets: [{net: tiny, weights: w.safetensors, preset: preset.yaml}]\ndata: [{path: data}]\nbatch: 4\nthreads: 1\n")
	code, _, errs := s.assay("slurm p.yaml --shards 2 --out o%u")
	require.Equal(t, 0, code, errs)
	require.Contains(t, s.read("o%u/shards.sbatch"), "o%%u/log/shard-%a.log")
	folder, err := os.Getwd()
	require.NoError(t, err)
	run := func(script string, env ...string) {
		for _, words := range commandsOf(t, "o%u/"+script, env...) {
			code, _, errs := s.args(t.Context(), words...)
			require.Equal(t, 0, code, errs)
			t.Chdir(folder)
		}
	}
	run("plan.sbatch")
	run("shards.sbatch", "SLURM_ARRAY_TASK_ID=2")
	run("shards.sbatch", "SLURM_ARRAY_TASK_ID=1")
	run("merge.sbatch")
	code, _, errs = s.assay("run p.yaml --out whole")
	require.Equal(t, 0, code, errs)
	require.Equal(t, s.read("whole/summary.csv"), s.read("o%u/merged/summary.csv"))
}

// commandsOf runs a script with a program in place of this one that tells its
// arguments, and returns them.
func commandsOf(t *testing.T, script string, env ...string) [][]string {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("SKIP: no bash")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	text, err := os.ReadFile(script)
	require.NoError(t, err)
	require.Contains(t, string(text), "exec "+quote(self)+" ")
	told := strings.Replace(string(text), "exec "+quote(self)+" ", `printf '%s\n' `, 1)
	cmd := exec.Command(bash, "-c", told)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	require.NoError(t, err)
	return [][]string{strings.Split(strings.TrimSpace(string(out)), "\n")}
}
