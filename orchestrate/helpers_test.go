package orchestrate_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/assay-xai/assay/internal/fake"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/orchestrate"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		child(dir)
		return
	}
	if dir := os.Getenv(longChildVariable); dir != "" {
		longChild(dir)
		return
	}
	if dir := os.Getenv(trainChildVariable); dir != "" {
		trainChild(dir)
		return
	}
	if dir := os.Getenv(explainChildVariable); dir != "" {
		explainChild(dir)
		return
	}
	if dir := os.Getenv(mergeChildVariable); dir != "" {
		mergeChild(dir)
		return
	}
	if dir := os.Getenv(roadChildVariable); dir != "" {
		roadChild(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// killChildren starts the test binary again and again, for dir by a variable, and kills
// it once progressed says so, which watch makes when the child has started: a place
// in the run, not a time. It ends with a child that was done first, or after `times`, and
// says how many were killed.
func killChildren(t *testing.T, variable, dir string, times int, watch func(killed int) (progressed func() bool)) int {
	killed := 0
	for range times {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), variable+"="+dir)
		var words strings.Builder
		cmd.Stderr = &words
		require.NoError(t, cmd.Start())
		progressed := watch(killed)
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		var waited error
		for running := true; running; {
			select {
			case waited = <-ended:
				running = false
			default:
				time.Sleep(200 * time.Microsecond)
				if progressed() {
					cmd.Process.Kill()
					waited = <-ended
					running = false
				}
			}
		}
		if waited == nil {
			break
		}
		require.Empty(t, words.String())
		killed++
	}
	require.Positive(t, killed)
	return killed
}

// moreLines watches a file of records grow.
func moreLines(path string) func(int) func() bool {
	return func(int) func() bool {
		before := lines(path)
		return func() bool { return lines(path) > before }
	}
}

// world is a folder with weights and images.
type world struct {
	t       *testing.T
	dir     string
	backend *fake.Backend
}

func newWorld(t *testing.T, images int) *world {
	w := &world{t: t, dir: t.TempDir(), backend: &fake.Backend{}}
	w.make(images)
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) make(images int) {
	require.NoError(w.t, fake.Weights(w.path("tiny.safetensors"), 10))
	for i := range images {
		w.image(fmt.Sprintf("%c/%04d.jpg", 'a'+i%3, i), fmt.Sprint("image ", i))
	}
}

func (w *world) image(name, content string) {
	path := filepath.Join(w.dir, "data", name)
	require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o777))
	require.NoError(w.t, os.WriteFile(path, []byte(content), 0o666))
}

// text is a plan over the world's data; grid is YAML.
func planText(dir, study, grid string) string {
	return strings.ReplaceAll(fmt.Sprintf(`version: 1
study: %s
nets:
- net: tiny
  weights: DIR/tiny.safetensors
  preset: {id: small, resize: squash, height: 8, width: 8, channels: 3, mean: [0, 0, 0], std: [1, 1, 1]}
data:
- path: DIR/data
grid: %s
batch: 4
threads: 1
device: cpu
`, study, grid), "DIR", dir)
}

func (w *world) plan(study, grid string) *orchestrate.Plan {
	p, err := orchestrate.ParsePlan("plan.yaml", []byte(planText(w.dir, study, grid)))
	require.NoError(w.t, err)
	return p
}

// columns is a plan of searches on a table of three rows and nine columns, so few
// that all their states are quickly scored.
func (w *world) columns(grid string) *orchestrate.Plan {
	require.NoError(w.t, fake.Weights(w.path("logistic.safetensors"), 2))
	require.NoError(w.t, os.WriteFile(w.path("t.csv"), []byte("a,b,c,d,e,f,g,h,i,class\n"+
		"1,2,3,4,5,6,7,8,9,0\n2,-1,4,-3,2,5,-2,3,1,1\n5,-5,5,0,2,-2,2,1,-4,1\n"), 0o666))
	p, err := orchestrate.ParsePlan("plan.yaml", []byte(subst("version: 1\nstudy: trace\n"+
		"nets: [{net: logistic, weights: DIR/logistic.safetensors, preset: table}]\n"+
		"data: [{path: DIR/t.csv}]\ngrid: "+grid+"\nbatch: 8\nthreads: 1\n", w.dir)))
	require.NoError(w.t, err)
	return p
}

func (w *world) run(p *orchestrate.Plan, out string) (orchestrate.Outcome, error) {
	return orchestrate.Run(w.t.Context(), orchestrate.Job{Plan: p, Out: w.path(out), Open: w.backend.Opener()})
}

func (w *world) read(name string) string {
	text, err := os.ReadFile(w.path(name))
	require.NoError(w.t, err)
	return string(text)
}

// records are the records of a run by id, without their cost.
func (w *world) records(out string) map[string]record.Record {
	found := map[string]record.Record{}
	require.NoError(w.t, record.Scan(w.path(out+"/"+record.FileName), func(r record.Record) error {
		require.NotContains(w.t, found, r.ID, "a unit was recorded twice")
		r.Cost = record.Cost{}
		found[r.ID] = r
		return nil
	}))
	return found
}

// closed says that everything that was opened was closed.
func (w *world) closed() {
	require.Zero(w.t, w.backend.OpenImages.Load(), "images left open")
	require.Zero(w.t, w.backend.OpenNets.Load(), "nets left open")
	require.Zero(w.t, w.backend.OpenScenes.Load(), "scenes left open")
	require.Zero(w.t, w.backend.Opened.Load(), "devices left open")
}

const searchGrid = "{edge: 4, solver: sa, iterations: 30, objective: [le, le-mo]}"

var background = context.Background()

func subst(text, dir string) string { return strings.ReplaceAll(text, "DIR", dir) }

func substAll(text, dir, study, grid string) string {
	return strings.NewReplacer("DIR", dir, "STUDY", study, "GRID", grid).Replace(text)
}

func weightsFor(path string, classes int) error { return fake.Weights(path, classes) }
