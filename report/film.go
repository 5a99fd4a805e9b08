package report

import (
	"context"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/trace"
)

// defaultSteps is how many pictures a film strip has.
const defaultSteps = 8

// film is the deletion of one image, picture by picture.
type film struct {
	Image, Title string
	R            result
	LeRF, MoRF   []frame
}

// chosenResults are the results on the cards that a figure shows, in the order of
// the page.
func (r *run) chosenResults(spec figureSpec, cards []card) (out []chosenResult) {
	for _, c := range cards {
		for _, res := range c.Results {
			if res.entry != nil && res.record != nil && !res.Bound && res.Edge > 0 && spec.keeps(res.entry.group) {
				out = append(out, chosenResult{c, res})
			}
		}
	}
	return out
}

type chosenResult struct {
	card card
	res  result
}

// filmFigure shows deletion step by step, the pictures of one image in a row.
func filmFigure(_ context.Context, r *run, spec figureSpec, cards []card) (figureBlock, error) {
	b := figureBlock{Title: "Deletion, step by step"}
	steps := spec.Steps
	if steps == 0 {
		steps = defaultSteps
	}
	if steps < 1 || steps > 64 {
		return b, usage.Errorf("steps %d: want 1 to 64", steps)
	}
	if !slices.Contains([]string{"", "lerf", "morf", "both"}, spec.Order) {
		return b, usage.Errorf("order %q: want lerf, morf or both", spec.Order)
	}
	sketch := false
	for _, c := range r.chosenResults(spec, cards) {
		if c.res.View == nil {
			continue
		}
		f, err := r.newFilm(c, spec.Order, steps)
		if err != nil {
			return b, err
		}
		sketch = sketch || c.res.Sketch
		b.Films = append(b.Films, f)
	}
	b.Caption = "Below each picture: the part that is deleted, and the probability of the tracked class. Deleted patches are drawn as the network's reference"
	if sketch {
		b.Caption += ", or grey where the page cannot know it"
	}
	b.Caption += "; pictures are rounded to 8 bits."
	return b, nil
}

func (r *run) newFilm(c chosenResult, order string, steps int) (film, error) {
	t := c.res.record.Trace
	f := film{Image: c.card.Image, Title: c.res.Title, R: c.res}
	patches, err := trace.PatchMap(t.EdgePatches, c.res.H, c.res.W)
	if err != nil {
		return f, err
	}
	id := fmt.Sprintf("f%d", r.films)
	r.films++
	for _, k := range filmSteps(t.Features, steps) {
		if order != "morf" {
			frame, err := newFrame(&c.res, id+"l", k, t, t.Trajectory[:k], t.Curves.Prob.Le[k], patches)
			if err != nil {
				return f, err
			}
			f.LeRF = append(f.LeRF, frame)
		}
		if order == "morf" || order == "both" {
			frame, err := newFrame(&c.res, id+"m", k, t, t.Trajectory[t.Features-k:], t.Curves.Prob.Mo[k], patches)
			if err != nil {
				return f, err
			}
			f.MoRF = append(f.MoRF, frame)
		}
	}
	return f, nil
}

// filmSteps spreads steps over the states of t patches: from none deleted to
// one patch left.
func filmSteps(t, steps int) []int {
	var out []int
	for i := range steps {
		k := 0
		if steps > 1 {
			k = int(math.Round(float64(i) * float64(t-1) / float64(steps-1)))
		}
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// pictureTable shows heat maps of one image side by side.
type pictureTable struct {
	Image  string
	View   *view
	Header []string
	Rows   []pictureRow
}

type pictureRow struct {
	Name  string
	Cells []picture
}

// picture is a heat map over its image; empty where there is none.
type picture struct {
	Heat     template.URL
	W, H     int
	ViewID   string
	Describe string
	P        string
}

// heatFigure shows the heat maps psi = (rank/t)^alpha of an image side by side.
func heatFigure(_ context.Context, r *run, spec figureSpec, cards []card) (figureBlock, error) {
	b := figureBlock{Title: "Heat maps side by side", Caption: "(rank/t)^α over the image, from the first patch to be deleted (dark) to the last (bright); below: the order's value."}
	alphas := spec.Alphas
	if len(alphas) == 0 {
		alphas = []float64{r.opt.Alpha}
	}
	for _, a := range alphas {
		if !(a > 0) || math.IsInf(a, 0) {
			return b, usage.Errorf("alpha %v: want more than 0", a)
		}
	}
	list := r.chosenResults(spec, cards)
	var groups []*group
	for _, c := range list {
		if !slices.Contains(groups, c.res.entry.group) {
			groups = append(groups, c.res.entry.group)
		}
	}
	others := settingFacts(groups, figureSpec{Lines: spec.Rows, Panels: spec.Columns})
	for _, c := range cards {
		t := pictureTable{Image: c.Image, View: c.View}
		for _, x := range list {
			if x.card.Anchor != c.Anchor || !x.first() {
				continue
			}
			f := x.res.entry.group.facts()
			name := factText(spec.Rows, f[spec.Rows])
			if spec.Rows == "" {
				name = ""
			}
			for _, k := range others {
				name += " · " + factText(k, f[k])
			}
			name = strings.TrimPrefix(name, " · ")
			for _, a := range alphas {
				head := ""
				if spec.Columns != "" {
					head = factText(spec.Columns, f[spec.Columns])
				}
				if len(alphas) > 1 {
					head += " α = " + formatTick(a)
				}
				p, err := newPicture(x.res, a)
				if err != nil {
					return b, err
				}
				t.put(name, head, p)
			}
		}
		if len(t.Rows) > 0 {
			b.Pictures = append(b.Pictures, t)
		}
	}
	return b, nil
}

// first says that the result is of the first seed of its group.
func (c chosenResult) first() bool {
	for _, e := range c.res.entry.group.entries {
		if e.key() == c.res.entry.key() {
			return e.id == c.res.entry.id
		}
	}
	return false
}

// put places a picture; rows and columns come in the order of their first one.
func (t *pictureTable) put(row, column string, p picture) {
	at := slices.Index(t.Header, column)
	if at < 0 {
		t.Header = append(t.Header, column)
		at = len(t.Header) - 1
	}
	i := slices.IndexFunc(t.Rows, func(r pictureRow) bool { return r.Name == row })
	if i < 0 {
		t.Rows = append(t.Rows, pictureRow{Name: row})
		i = len(t.Rows) - 1
	}
	for j := range t.Rows {
		for len(t.Rows[j].Cells) < len(t.Header) {
			t.Rows[j].Cells = append(t.Rows[j].Cells, picture{})
		}
	}
	if t.Rows[i].Cells[at].Heat == "" {
		t.Rows[i].Cells[at] = p
	}
}

func newPicture(res result, alpha float64) (picture, error) {
	t := res.record.Trace
	p := picture{W: res.W, H: res.H, Describe: res.HeatTitle, P: value(t.Value)}
	if res.View != nil {
		p.ViewID = res.View.ID
	}
	patches, err := trace.PatchMap(t.EdgePatches, res.H, res.W)
	if err != nil {
		return p, err
	}
	p.Heat, err = pngURL(heatMap(trace.Heat(t.Trajectory, alpha), patches, res.H, res.W))
	return p, err
}
