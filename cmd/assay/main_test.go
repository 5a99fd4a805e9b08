package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/assay-xai/assay/internal/fake"
	"github.com/assay-xai/assay/orchestrate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shop is a folder with data and weights, and a program on a fake device.
type shop struct {
	t       *testing.T
	backend *fake.Backend
}

// refuses tries a command's mistakes, each with what is said of it: nothing is written.
func (s *shop) refuses(command string, mistakes map[string]string) {
	s.t.Helper()
	for words, want := range mistakes {
		code, _, errs := s.assay(command + " --out run " + words + common)
		require.Equal(s.t, exitUsage, code, words)
		require.Contains(s.t, errs, want, words)
	}
	require.NoDirExists(s.t, "run")
}

// understands tries a command's n examples. The fake does not have their methods or
// maps: that it says so means that all before was understood.
func (s *shop) understands(command, help string, n int) {
	s.t.Helper()
	examples := regexp.MustCompile(`(?m)^ +assay (`+command+` .*)$`).FindAllStringSubmatch(help, -1)
	require.Len(s.t, examples, n)
	for _, e := range examples {
		_, _, errs := s.assay(strings.ReplaceAll(e[1], "'", ""))
		require.NotContains(s.t, errs, "unknown flag", e[1])
		require.NotContains(s.t, errs, "dataset:", e[1])
		require.Regexp(s.t, "gradient|runs/digit-maps", errs, e[1])
	}
}

func newShop(t *testing.T, images int) *shop {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	t.Setenv("TMPDIR", dir)
	s := &shop{t, &fake.Backend{}}
	require.NoError(t, fake.Weights("w.safetensors", 10))
	for i := range images {
		s.write(fmt.Sprintf("data/%c/%04d.jpg", 'a'+i%2, i), fmt.Sprint("image ", i))
	}
	s.write("preset.yaml", "id: small\nresize: squash\nheight: 8\nwidth: 8\n")
	return s
}

func (s *shop) write(name, text string) {
	require.NoError(s.t, os.MkdirAll(filepath.Dir(name), 0o777))
	require.NoError(s.t, os.WriteFile(name, []byte(text), 0o666))
}

// assay runs the program; words are split at blanks.
func (s *shop) assay(words string) (code int, stdout, stderr string) {
	return s.args(context.Background(), strings.Fields(words)...)
}

func (s *shop) args(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, environment{stdout: &out, stderr: &errs, open: s.backend.Opener()}, args)
	return code, out.String(), errs.String()
}

const common = " --net tiny --weights w.safetensors --preset preset.yaml --data data --batch 4 --threads 1"

func TestPredictionsWithoutFolder(t *testing.T) {
	s := newShop(t, 2)
	code, _, errs := s.assay("eval --predictions none/p.jsonl --out runs" + common)
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "there is no folder none")
	require.NoDirExists(t, "runs")
}

func TestEvalAsJSON(t *testing.T) {
	s := newShop(t, 8)
	code, out, errs := s.assay("eval --json --predictions p.jsonl" + common)
	require.Equal(t, 0, code, errs)
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Len(t, got, 4)
	require.Equal(t, 8., got["images"])
	require.Equal(t, 0., got["skipped"])
	text, err := os.ReadFile("p.jsonl")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Len(t, lines, 8)
	right := 0.
	for _, l := range lines {
		var p map[string]any
		require.NoError(t, json.Unmarshal([]byte(l), &p))
		require.Len(t, p, 4)
		require.Equal(t, float64(p["image"].(string)[0]-'a'), p["label"])
		if p["label"] == p["predicted"] {
			right++
		}
	}
	require.InDelta(t, right/8, got["top1"], 1e-12)
	for l := range strings.Lines(errs) {
		require.True(t, json.Valid([]byte(l)), "progress as JSON: %s", l)
	}
	// Nothing but what was there and asked for is left.
	var names []string
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Equal(t, []string{"data", "p.jsonl", "preset.yaml", "w.safetensors"}, names)
}

func TestEvalWithoutLabels(t *testing.T) {
	s := newShop(t, 0)
	s.write("data/one.jpg", "1")
	s.write("data/two.jpg", "BAD")
	code, out, _ := s.assay("eval --json --quiet" + common)
	require.Equal(t, 3, code)
	require.JSONEq(t, `{"top1":null,"top5":null,"images":1,"skipped":1}`, out)
	code, out, errs := s.assay("eval" + common)
	require.Equal(t, 3, code)
	require.Contains(t, out, "no labels")
	require.Contains(t, errs, "1 of 2 units failed")
	require.Contains(t, errs, "two.jpg")
}

func TestTraceLeavesARun(t *testing.T) {
	s := newShop(t, 3)
	code, out, errs := s.assay("trace --edge 2,4 --solver greedy --objective le --reference blur(sigma=3.5,kernel=5),zero --out run" + common)
	require.Equal(t, 0, code, errs)
	require.Contains(t, out, "blur(kernel=5,sigma=3.5)")
	require.Contains(t, out, "prob-le-mo")
	require.Contains(t, errs, "report: ")
	for _, name := range []string{"plan.yaml", "env.json", "results.jsonl", "summary.csv", "summary.json", "report.html", "images/index.json"} {
		require.FileExists(t, "run/"+name)
	}
	code, _, errs = s.assay("trace --resume --quiet --edge 2,4 --solver greedy --objective le --reference blur(sigma=3.5,kernel=5),zero --out run" + common)
	require.Equal(t, 0, code)
	require.Empty(t, errs)
	code, _, errs = s.assay("trace --edge 2 --solver greedy --objective le --out run" + common)
	require.Equal(t, 2, code)
	require.Contains(t, errs, "holds another run: grid.edge is 2, 4 there and 2 here")

	// A report needs neither data nor weights.
	require.NoError(t, os.RemoveAll("data"))
	require.NoError(t, os.Remove("w.safetensors"))
	require.NoError(t, os.Remove("run/report.html"))
	code, out, errs = s.assay("report run --alpha 3")
	require.Equal(t, 0, code, errs)
	require.Equal(t, "run/report.html\n", out)
	require.FileExists(t, "run/report.html")
}

func TestRunTakesFlagsAfterThePlan(t *testing.T) {
	s := newShop(t, 4)
	s.write("r.yaml", "version: 1\nstudy: eval\nnets: [{net: tiny, weights: w.safetensors, preset: preset.yaml}]\ndata: [{path: data}]\nscale: {small: {limit: 1}}\nbatch: 4\n")
	code, out, errs := s.assay("run r.yaml --out T --scale small --json")
	require.Equal(t, 0, code, errs)
	require.Contains(t, out, `"images":1`)
	require.FileExists(t, "T/summary.csv")
	code, _, errs = s.assay("run T/plan.yaml --out T --quiet")
	require.Equal(t, 0, code, errs)
	code, _, errs = s.assay("run r.yaml --out T")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "limit is 1 there and 0 here")
}

// Mistakes are one line that names the thing and what would be right, code 2.
func TestMistakes(t *testing.T) {
	s := newShop(t, 2)
	s.write("bad.yaml", "version: 1\nstudie: eval\n")
	for _, c := range []struct{ words, want string }{
		{"evla", `unknown command "evla": did you mean eval?`},
		{"eval --nett tiny", "unknown flag --nett: did you mean --net?"},
		{"eval --nett=tiny", "unknown flag --nett: did you mean --net?"},
		{"--frobnicate", "unknown flag --frobnicate"},
		{"eval --data data", "no net: give one with --net NET"},
		{"eval --net tiny", "no data: give"},
		{"eval extra" + common, `"extra": assay eval takes flags only`},
		{"eval --net", "--net needs a value"},
		{"eval --threads x --net tiny", `--threads "x": want a whole number`},
		{"eval --threads 0" + strings.ReplaceAll(common, "--threads 1", ""), "--threads 0: want at least 1"},
		{"eval --limit -3" + common, `--limit "-3": want a whole number from 0`},
		{"eval --seed x" + common, `--seed "x"`},
		{"eval --batch big" + strings.ReplaceAll(common, "--batch 4", ""), "batch big: want auto, or a number"},
		{"eval --device tpu" + common, `device "tpu": want cpu`},
		{"eval --precision f16" + common, `precision "f16": did you mean bf16`},
		{"eval --resume" + common, "--resume: which run?"},
		{"eval --resume --out nowhere" + common, "nowhere holds no run"},
		{"eval --net tinny --data data", `net "tinny": did you mean tiny`},
		{"eval --net tiny,tiny-wide --weights w.safetensors --data data", "1 files for 2 nets"},
		{"eval --weights none.pth --net tiny --data data", "none.pth"},
		{"eval --preset imgnet" + strings.ReplaceAll(common, " --preset preset.yaml", ""), `preset "imgnet": did you mean imagenet`},
		{"eval --data nowhere --net tiny --weights w.safetensors", "nowhere"},
		{"eval --split tset" + common, "split"},
		{"eval --target best" + common, `target "best"`},
		{"trace --edge 9" + common, "edge 9: want one of 2,4,7,8"},
		{"trace --edge 28" + common, "edge 28 is larger than the image"},
		{"trace --solver as" + common, `solver "as": did you mean sa?`},
		{"trace --reference blur(sigma=x)" + common, "sigma x: want a number"},
		{"run", "takes one plan file"},
		{"run nothing.yaml", "nothing.yaml"},
		{"run bad.yaml", `bad.yaml:2:1: unknown field "studie"`},
		{"report nothing", "nothing"},
		{"report", "takes one folder"},
		{"list", "takes one of nets"},
		{"list solver", `list "solver": did you mean solvers?`},
		{"list solvers sa", "takes one of nets"},
		{"list nets tinny", `net "tinny": did you mean tiny`},
		{"list layers", "wants --net ID"},
		{"fetch", "assay fetch --list"},
		{"fetch resnet19", "resnet19"},
		{"fetch resnet18 --version V2", "no version V2: want one of IMAGENET1K_V1"},
		{"fetch resnet18 resnet34", "there are 2 arguments"},
		{"fetch --list resnet19", "no weights of resnet19 are published"},
		{"version now", "takes flags only"},
	} {
		t.Run(c.words, func(t *testing.T) {
			code, out, errs := s.assay(c.words)
			require.Equal(t, 2, code, errs)
			require.Empty(t, out)
			require.Contains(t, errs, c.want)
			require.Equal(t, 1, strings.Count(errs, "\n"), errs)
			require.True(t, strings.HasPrefix(errs, "assay: "), errs)

			code, _, errs = s.assay(c.words + " --json")
			require.Equal(t, 2, code)
			last := strings.TrimSpace(errs)
			last = last[strings.LastIndex(last, "\n")+1:]
			var message struct {
				Error string
				Code  int
			}
			require.NoError(t, json.Unmarshal([]byte(last), &message), last)
			require.Equal(t, 2, message.Code)
		})
	}
	require.NoDirExists(t, "nowhere")
}

func TestStoppedRunGoesOn(t *testing.T) {
	s := newShop(t, 6)
	ctx, cancel := context.WithCancel(context.Background())
	s.backend.Fail = func(call int64) error {
		if call == 4 {
			cancel()
		}
		return nil
	}
	words := strings.Fields("trace --edge 2 --iterations 20 --out run" + common)
	code, out, errs := s.args(ctx, words...)
	require.Equal(t, 130, code)
	require.Empty(t, out)
	require.Contains(t, errs, "the same command goes on from here")
	s.backend.Fail = nil
	code, _, errs = s.args(context.Background(), words...)
	require.Equal(t, 0, code, errs)
	code, _, errs = s.args(context.Background(), strings.Fields("trace --edge 2 --iterations 20 --out whole"+common)...)
	require.Equal(t, 0, code, errs)
	a, err := os.ReadFile("run/summary.csv")
	require.NoError(t, err)
	b, err := os.ReadFile("whole/summary.csv")
	require.NoError(t, err)
	require.Equal(t, string(b), string(a))
}

func TestLists(t *testing.T) {
	s := newShop(t, 0)
	for _, shelf := range shelves() {
		code, out, errs := s.assay("list " + shelf.name)
		require.Equal(t, 0, code, errs)
		code, text, errs := s.assay("list --json " + shelf.name)
		require.Equal(t, 0, code, errs)
		var lines []listed
		require.NoError(t, json.Unmarshal([]byte(text), &lines))
		require.Equal(t, len(lines)+1, strings.Count(out, "\n"))
		for _, l := range lines {
			require.NotEmpty(t, l.Summary, l.ID)
			require.Contains(t, out, l.ID)
		}
	}
}

func TestDoctorAndVersionAndFetchList(t *testing.T) {
	s := newShop(t, 0)
	code, out, errs := s.assay("doctor --json")
	require.Equal(t, 0, code, errs)
	var d diagnosis
	require.NoError(t, json.Unmarshal([]byte(out), &d))
	require.Equal(t, "fake", d.Runtime["torch"])
	require.True(t, d.Writable)
	require.NotEmpty(t, d.Missing)
	for _, words := range []string{"doctor", "version", "version --json", "fetch --list", "fetch --list --json", "--help", "eval --help", ""} {
		code, out, errs := s.assay(words)
		require.Equal(t, 0, code, errs)
		require.NotEmpty(t, out)
		require.Empty(t, errs)
	}
}

func TestHoist(t *testing.T) {
	known := runCommand(environment{}).Flags
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"r.yaml", "r.yaml"},
		{"r.yaml --out T", "--out T r.yaml"},
		{"--out T r.yaml", "--out T r.yaml"},
		{"r.yaml --out=T --json", "--out=T --json r.yaml"},
		{"--json r.yaml --out T", "--json --out T r.yaml"},
		{"r.yaml -out T", "-out T r.yaml"},
		{"r.yaml --limit -3", "--limit -3 r.yaml"},
		{"a --unknown b", "--unknown a b"},
		{"a --out T -- --json b", "--out T a -- --json b"},
		{"a --out", "--out a"},
		{"- --json", "--json -"},
	} {
		flags, rest := hoist(known, strings.Fields(c.in))
		require.Equal(t, c.want, strings.Join(append(flags, rest...), " "), c.in)
	}
}

func TestSplitLeavesParenthesesWhole(t *testing.T) {
	require.Equal(t, []string{"gradient", "smoothgrad(integrated-gradients,samples=15)", "x(y(1,2),3)"},
		split("gradient, smoothgrad(integrated-gradients,samples=15),x(y(1,2),3),"))
	require.Equal(t, []any{4, 7.5, "zero"}, list("4,7.5,zero"))
	require.Equal(t, 4, list("4"))
}

// Every parameter of a study has a flag, spelled as interface.md spells it.
func TestFlagNames(t *testing.T) {
	s := newShop(t, 0)
	_, out, _ := s.assay("trace --help")
	for _, name := range strings.Fields("net weights data split labels preset target limit seed device batch precision threads out json quiet " +
		"edge reference objective score-on solver schedule start iterations evaluations time neighbourhood resume") {
		require.Contains(t, out, "--"+name+" ")
	}
}

func TestExitCodes(t *testing.T) {
	for want, err := range map[int]error{
		exitOK: nil, exitFailed: os.ErrClosed, exitInterrupted: fmt.Errorf("a: %w", context.Canceled),
		exitIncomplete: fmt.Errorf("a: %w", &orchestrate.Incomplete{Failed: 1}),
	} {
		require.Equal(t, want, exitCode(err))
	}
}

// Lines of one image say which setting they are of.
func TestTraceListTellsSettings(t *testing.T) {
	s := newShop(t, 1)
	code, out, errs := s.assay("trace --edge 2 --iterations 2 --t0 1 --reference zero,channel-mean --score-on prob,logit --seed 3,4" + common)
	require.Equal(t, 0, code, errs)
	list, _, _ := strings.Cut(out, "\n\n")
	lines := strings.Split(list, "\n")
	require.Len(t, lines, 1+2*2*2)
	require.Regexp(t, `^net +image +tracked class +search +reference +scoreOn +seed +value +LeRF`, lines[0])
	var settings []string
	for _, line := range lines[1:] {
		words := strings.Fields(line)
		settings = append(settings, strings.Join(words[len(words)-8:len(words)-5], " "))
	}
	require.Equal(t, []string{"channel-mean logit 3", "channel-mean logit 4", "channel-mean prob 3", "channel-mean prob 4", "zero logit 3", "zero logit 4", "zero prob 3", "zero prob 4"}, settings)
	_, out, _ = s.assay("trace --edge 2,4 --iterations 2" + common)
	list, _, _ = strings.Cut(out, "\n")
	require.Regexp(t, `search +value`, list)
}
