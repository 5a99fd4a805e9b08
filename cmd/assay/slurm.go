package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	"github.com/google/renameio/v2"
	"github.com/urfave/cli/v2"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

const clusterCategory = "What Slurm gives each job"

const slurmDescription = `Writes jobs for a Slurm cluster to OUT and submits nothing: bash OUT/submit.sh does.

   assay slurm plan.yaml --shards 16 --gpus 1 --time 4:00:00 --mem 16G --out runs/big

Three jobs follow each other: one resolves the plan (and trains what it trains), an array of --shards tasks runs the units, one merges the shards into OUT/merged. Submit again after a time limit or a lost node: tasks that were killed go on where they stopped, those that are done return at once. OUT, the data, the weights and this program have to be on a disk that all nodes share.`

// resources are options of sbatch by the flag that gives them. Those of the device go
// to no job that has none.
var resources = []struct {
	flag, option, usage string
	ofDevice            bool
	// syntax is what sbatch takes (its manual page), wanted says it in words.
	syntax *regexp.Regexp
	wanted string
}{
	{"time", "--time", "time limit `T` of a job, such as 4:00:00", false,
		regexp.MustCompile(`^(?i:\d+|\d+:\d\d?(:\d\d?)?|\d+-\d+(:\d\d?(:\d\d?)?)?|unlimited|infinite)$`), "minutes, HH:MM:SS or D-HH:MM, such as 4:00:00"},
	{"partition", "--partition", "`PARTITION` of the cluster", false, slurmName, "the name of a partition"},
	{"account", "--account", "`ACCOUNT` to charge", false, slurmName, "the name of an account"},
	{"mem", "--mem", "memory `M` of a node, such as 16G", false, regexp.MustCompile(`^\d+[KMGTkmgt]?$`), "a whole number of megabytes, or one with K, M, G or T, such as 16G"},
	{"cpus", "--cpus-per-task", "`N` cores of a task", false, regexp.MustCompile(`^0*[1-9]\d*$`), "a whole number from 1"},
	{"gpus", "--gpus", "`N` GPUs of a task, or TYPE:N", true, regexp.MustCompile(`^([A-Za-z][\w.-]*:)?0*[1-9]\d*$`), "a whole number from 1, or TYPE:N, such as a100:2"},
}

var slurmName = regexp.MustCompile(`^[^\s"'\\` + "`" + `$]+$`)

func slurmCommand(env environment) *cli.Command {
	flags := append(changeFlags(), deviceFlags()...)
	flags = append(flags,
		&cli.StringFlag{Name: "shards", Usage: "`N` tasks that share the units", Category: howCategory},
		&cli.StringFlag{Name: "out", Usage: "`FOLDER` for the jobs, the shards and the merged run", Category: howCategory},
		&cli.StringFlag{Name: "at-once", Usage: "at most `N` tasks run at a time", Category: clusterCategory},
		&cli.StringSliceFlag{Name: "sbatch", Usage: "one more `OPTION` of sbatch for all jobs, such as --sbatch=--qos=long; may be given again", Category: clusterCategory})
	for _, r := range resources {
		flags = append(flags, &cli.StringFlag{Name: r.flag, Usage: r.usage, Category: clusterCategory})
	}
	return &cli.Command{
		Name:        "slurm",
		Usage:       "write jobs that run a plan in shards on a Slurm cluster",
		ArgsUsage:   "PLAN",
		Description: slurmDescription,
		Flags:       append(flags, outputFlags()...),
		Action: func(c *cli.Context) error {
			job, err := newSlurmJob(c)
			if err != nil {
				return err
			}
			if err := job.write(); err != nil {
				return err
			}
			if c.Bool("json") {
				return printJSON(env, map[string]any{"submit": job.path("submit.sh"), "shards": job.Shards, "merged": job.path("merged")})
			}
			_, err = fmt.Fprintf(env.stdout, "bash %s submits %d shards and their merge into %s; given again it goes on\n", quote(job.path("submit.sh")), job.Shards, job.path("merged"))
			return err
		},
	}
}

// slurmJob is what the scripts say.
type slurmJob struct {
	Program, Folder, Out string
	// Plan are the arguments of assay run that name the plan and its changes.
	Plan   []string
	Shards int
	Array  string
	// Options are those of sbatch for all jobs, OfDevice for those with a device.
	Options, OfDevice []string
}

func newSlurmJob(c *cli.Context) (*slurmJob, error) {
	plan, err := changedPlan(c)
	if err != nil {
		return nil, err
	}
	shards, err := number(c, "shards", 1)
	if err != nil {
		return nil, err
	}
	if shards == 0 {
		return nil, usage.Errorf("assay slurm: how many tasks share the units? give --shards N")
	}
	if _, err := orchestrate.ParseShard(fmt.Sprintf("1/%d", shards)); err != nil {
		return nil, usage.Errorf("--shards: %w", err)
	}
	if c.String("out") == "" {
		return nil, usage.Errorf("assay slurm: give a folder for jobs and results with --out FOLDER")
	}
	images, known, err := orchestrate.CountImages(c.Context, plan)
	if err != nil {
		return nil, fmt.Errorf("counting the plan's images: %w", err)
	}
	if known && int(shards) > images {
		return nil, usage.Errorf("--shards %d: the plan's data has %d images: want at most so many shards", shards, images)
	}
	j := &slurmJob{Shards: int(shards), Array: fmt.Sprintf("1-%d", shards)}
	atOnce, err := number(c, "at-once", 1)
	if err != nil {
		return nil, err
	}
	if atOnce > 0 {
		j.Array += fmt.Sprintf("%%%d", atOnce)
	}
	if j.Program, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	if j.Folder, err = os.Getwd(); err != nil {
		return nil, fmt.Errorf("finding this folder: %w", err)
	}
	if j.Out, err = filepath.Abs(c.String("out")); err != nil {
		return nil, fmt.Errorf("finding %s: %w", c.String("out"), err)
	}
	j.Plan = []string{c.Args().First()}
	for _, name := range []string{"scale", "limit", "data", "generator", "device", "batch", "precision", "threads"} {
		if c.IsSet(name) {
			j.Plan = append(j.Plan, "--"+name, fmt.Sprint(c.Value(name)))
		}
	}
	for _, r := range resources {
		value := c.String(r.flag)
		switch {
		case !c.IsSet(r.flag):
			continue
		case !r.syntax.MatchString(value):
			return nil, usage.Errorf("--%s %q: want a value of sbatch's %s: %s", r.flag, value, r.option, r.wanted)
		}
		if r.ofDevice {
			j.OfDevice = append(j.OfDevice, r.option+"="+value)
		} else {
			j.Options = append(j.Options, r.option+"="+value)
		}
	}
	for _, option := range c.StringSlice("sbatch") {
		if !strings.HasPrefix(option, "-") {
			return nil, usage.Errorf("--sbatch %q: want an option of sbatch with its dashes, such as --qos=long", option)
		}
		j.Options = append(j.Options, option)
	}
	for _, text := range append(append([]string{j.Out, j.Folder, j.Program}, j.Options...), append(j.OfDevice, j.Plan...)...) {
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
			return nil, usage.Errorf("%s: want no line breaks or tabs, which scripts for Slurm cannot have here", strconv.Quote(text))
		}
	}
	if strings.ContainsAny(j.Out, `"\`) {
		return nil, usage.Errorf("--out %s: want a path without quotes and backslashes, which sbatch reads in its own way", j.Out)
	}
	return j, j.checkPrior()
}

// arrayOf finds the number of shards in a script that was written before.
var arrayOf = regexp.MustCompile(`(?m)^#SBATCH --array=1-(\d+)`)

// checkPrior refuses a folder with jobs for another number of shards, some of which
// may have run: these would never be merged.
func (j *slurmJob) checkPrior() error {
	text, err := os.ReadFile(j.path("shards.sbatch"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return usage.Errorf("--out: %w", err)
	}
	if m := arrayOf.FindSubmatch(text); m != nil && string(m[1]) != strconv.Itoa(j.Shards) {
		return usage.Errorf("--out %s: has jobs for %s shards, and this is for %d: choose another folder, or give --shards %s", j.Out, m[1], j.Shards, m[1])
	}
	return nil
}

func (j *slurmJob) path(name string) string { return filepath.Join(j.Out, name) }

// logs is the path of a log with a pattern of sbatch's, for which % has to be doubled.
func (j *slurmJob) logs(pattern string) string {
	return strings.ReplaceAll(j.path("log"), "%", "%%") + "/" + pattern
}

// quote is a word of the shell.
func quote(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=,+@", r))
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// scripts are the files of a job by name. sbatch keeps a copy of a script and runs
// that, so all paths are whole; exec lets a time limit's signal reach the program,
// which then keeps what is done.
var scripts = template.Must(template.New("").Parse(`
{{define "head"}}#!/bin/bash
# {{.What}}
#SBATCH --job-name={{.Name}}
#SBATCH --output="{{.Log}}"
#SBATCH --open-mode=append
{{range .Options}}#SBATCH {{.}}
{{end}}set -eu
cd {{.Folder}}
{{end}}
{{define "plan.sbatch"}}{{template "head" .Head}}exec {{.Program}} run {{.Plan}} --resolve-only --out {{.Out}}/plan
{{end}}
{{define "shards.sbatch"}}{{template "head" .Head}}exec {{.Program}} run {{.Out}}/plan/plan.yaml --shard "$SLURM_ARRAY_TASK_ID/{{.Shards}}" --out {{.Out}}/shard-"$SLURM_ARRAY_TASK_ID"
{{end}}
{{define "merge.sbatch"}}{{template "head" .Head}}shards=()
for ((i = 1; i <= {{.Shards}}; i++)); do shards+=({{.Out}}/shard-"$i"); done
exec {{.Program}} merge --out {{.Out}}/merged "${shards[@]}"
{{end}}
{{define "submit.sh"}}#!/bin/bash
# Submits what runs the plan: resolve it, run {{.Shards}} shards, merge them. Submit
# again when tasks were killed: they go on, and what is done returns at once.
set -eu
plan=$(sbatch --parsable {{.Out}}/plan.sbatch)
shards=$(sbatch --parsable --kill-on-invalid-dep=yes --dependency="afterok:${plan%%;*}" {{.Out}}/shards.sbatch)
merge=$(sbatch --parsable --dependency="afterany:${shards%%;*}" {{.Out}}/merge.sbatch)
echo "plan ${plan%%;*}, shards ${shards%%;*}, merge ${merge%%;*}: logs in "{{.Out}}/log
{{end}}`))

// write writes the scripts.
func (j *slurmJob) write() error {
	if err := os.MkdirAll(j.path("log"), 0o777); err != nil {
		return usage.Errorf("--out: %w", err)
	}
	words := make([]string, len(j.Plan))
	for i, w := range j.Plan {
		words[i] = quote(w)
	}
	type head struct {
		What, Name, Log, Folder string
		Options                 []string
	}
	withDevice := append(append([]string{}, j.Options...), j.OfDevice...)
	heads := map[string]head{
		"plan.sbatch": {"Finds and measures what the plan leaves open, once for all shards.", "assay-plan", j.logs("plan.log"), quote(j.Folder), withDevice},
		"shards.sbatch": {"Runs the plan's units, a shard a task.", "assay-shard", j.logs("shard-%a.log"), quote(j.Folder),
			append([]string{"--array=" + j.Array}, withDevice...)},
		"merge.sbatch": {"Makes one run of the shards.", "assay-merge", j.logs("merge.log"), quote(j.Folder), j.Options},
		"submit.sh":    {},
	}
	for name, h := range heads {
		var text strings.Builder
		data := map[string]any{"Head": h, "Program": quote(j.Program), "Plan": strings.Join(words, " "), "Out": quote(j.Out), "Shards": j.Shards}
		if err := scripts.ExecuteTemplate(&text, name, data); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		if err := renameio.WriteFile(j.path(name), []byte(text.String()), 0o777, renameio.WithTempDir(j.Out)); err != nil {
			return fmt.Errorf("writing %s: %w", j.path(name), err)
		}
	}
	return nil
}
