package orchestrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/usage"
)

// noMaps is the error of a path that is not there, or is a run of a study without maps.
func noMaps(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return usage.Errorf("%s: there is no such file or folder", path)
	}
	plan, err := readPrior(path)
	if err == nil && plan != nil && plan.Study != explainID {
		return usage.Errorf("%s is a run of %s: want an %s run, an .npz of maps by image id, or a folder of them", path, plan.Study, explainID)
	}
	return nil // of another fault the reader tells
}

// openAttributions is openGiven for maps alone, and says what else a folder is.
func openAttributions(ctx context.Context, path string) (givenFile, error) {
	if err := noMaps(path); err != nil {
		return nil, err
	}
	if runOf(path) == path && !ended(path) {
		return nil, usage.Errorf("%s is an %s run that is unfinished and has no maps yet: assay run %s --out %s goes on with it", path, explainID, filepath.Join(path, PlanFile), path)
	}
	return openGiven(ctx, path)
}

// runOf is the folder of the run that a path is in, "" where it is in none.
func runOf(path string) string {
	const levels = 4 // OUT/maps/NET/METHOD
	for range levels {
		if info, err := os.Stat(filepath.Join(path, PlanFile)); err == nil && info.Mode().IsRegular() {
			return path
		}
		up := filepath.Dir(path)
		if up == path {
			break
		}
		path = up
	}
	return ""
}

// ended says whether a run has come to its summary.
func ended(out string) bool {
	_, err := os.Stat(filepath.Join(out, SummaryJSONFile))
	return err == nil
}

// unfinished names the run that made maps where it has not ended; "" where it has, or
// where no run did.
func (g *givenMaps) unfinished() string {
	root := runOf(g.Path)
	if root == "" || ended(root) {
		return ""
	}
	if plan, err := readPrior(root); err != nil || plan == nil || plan.Study != explainID {
		return ""
	}
	return root
}

// what says whose maps there are.
func (g *givenMaps) what() string {
	var images nameList
	for _, id := range g.IDs() {
		images.add(id)
	}
	text := "it has maps of " + images.String()
	if g.index != nil && g.index.Net != "" {
		text += ", by net " + g.index.Net
	}
	return text
}

// badMaps is the error of given maps that do not go with the data. The maps of several
// files are told of together.
type badMaps struct{ error }

func (e *badMaps) Unwrap() error { return e.error }

// joinBadMaps makes one error of several, each once.
func joinBadMaps(list []*badMaps) error {
	var texts []string
	for _, e := range list {
		if text := e.Error(); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(texts) == 1 {
		return list[0]
	}
	for i := 1; i < len(texts); i++ {
		texts[i] = strings.TrimPrefix(texts[i], attributionsKey+": ")
	}
	return usage.Errorf("%s", strings.Join(texts, "; "))
}

// otherTarget are maps of another class than the run is about.
type otherTarget struct {
	maps, here string
	paths      nameList
	seen       map[string]bool
}

// noteTarget keeps that maps explain another class than the one that is tracked.
func (r *Resolved) noteTarget(index *dataset.MapIndex, path, here string) {
	if index.Target == "" || here == "" || index.Target == here {
		return
	}
	i := slices.IndexFunc(r.targets, func(o *otherTarget) bool { return o.maps == index.Target && o.here == here })
	if i < 0 {
		i = len(r.targets)
		r.targets = append(r.targets, &otherTarget{maps: index.Target, here: here, seen: map[string]bool{}})
	}
	if o := r.targets[i]; !o.seen[path] {
		o.seen[path] = true
		o.paths.add(filepath.Base(path))
	}
}

// warnTargets warns once for all maps of other classes.
func (r *Resolved) warnTargets() {
	for _, o := range r.targets {
		whose := "the maps of " + o.paths.String()
		if o.paths.count > 1 {
			whose = fmt.Sprintf("the maps of %d methods (%s)", o.paths.count, &o.paths)
		}
		r.warnOnce(fmt.Sprintf("%s explain the class by --target %s, and this run is about that by --target %s", whose, o.maps, o.here))
	}
}
