package orchestrate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/assay-xai/assay/dataset"
)

// Film strips of a road run, relative to OUT: what the net saw of some images. The
// index is a JSON array of Strip.
const (
	StripsFolder = "strips"
	StripsIndex  = "strips/index.json"
	// stripImages is how many images of the first data have strips, by the first
	// stripMethods methods, where sides are at most stripSide pixels; else by one.
	stripImages  = 2
	stripMethods = 4
	stripSide    = 96
)

// ReadStrips reads the index of a run's strips; a run without has none.
func ReadStrips(out string) ([]Strip, error) {
	var list []Strip
	text, err := os.ReadFile(filepath.Join(out, StripsIndex))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading strips: %w", err)
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("reading %s: %w", filepath.Join(out, StripsIndex), err)
	}
	return list, nil
}

// Strip is one image without more and more of its pixels, as the first net saw it: the
// pictures beside each other in one PNG file.
type Strip struct {
	// ID is the unit's, File in the folder.
	ID      string `json:"id"`
	File    string `json:"file"`
	Image   string `json:"image"`
	Method  string `json:"method,omitempty"`
	Order   string `json:"order"`
	Imputer string `json:"imputer"`
	Seed    uint64 `json:"seed"`
	Target  int    `json:"target"`
	// Width and Height are of one picture; there is one for each fraction.
	Width         int       `json:"width"`
	Height        int       `json:"height"`
	Fractions     []float64 `json:"fractions"`
	Probabilities []float64 `json:"probabilities"` // of the target
	Predicted     []int     `json:"predicted"`
}

// wantsStrip says whether a unit's image has strips: the first images of the first data
// on the first net, by the first methods and by chance, for the first seed.
func (x *remover) wantsStrip(u *Unit, shape []int) bool {
	if u.Net.Index != 0 || u.Data.Index != 0 || u.Item >= stripImages || len(x.s.Plan.Seeds) > 0 && u.Seed != x.s.Plan.Seeds[0] {
		return false
	}
	who := x.s.whose(u.Params)
	if who == "" {
		return true
	}
	var first []string
	for _, p := range x.s.Points {
		if name := x.s.whose(p); name != "" && !slices.Contains(first, name) {
			first = append(first, name)
		}
	}
	most := stripMethods
	if max(shape[1], shape[2]) > stripSide {
		most = 1
	}
	return slices.Index(first, who) < most
}

// strips asks again, for what the net saw of the images that have strips: it is much
// memory, and few want it.
func (x *remover) strips(ctx context.Context, some Images, list []stripped, c *removalCall) error {
	shape := some.Shape()
	if len(shape) != 3 || shape[0] != 1 && shape[0] != 3 {
		return nil
	}
	for i, e := range list {
		at := slices.DeleteFunc(slices.Clone(e.at), func(at int) bool {
			u := &e.units[at]
			return !x.wantsStrip(u, shape) || x.files.hasStrip(u.ID)
		})
		if len(at) == 0 {
			continue
		}
		own := stripped{bared: e.bared, at: at}
		one, err := x.plan(ctx, some, []stripped{own})
		if err != nil {
			return err
		}
		single, err := x.makes.rowsOf(ctx, some, []int{i})
		if err != nil {
			return err
		}
		one.spec.Inputs = true
		got, err := x.net.Remove(ctx, single, one.spec)
		if single != some {
			single.Close()
		}
		if err != nil {
			return fmt.Errorf("the strip of %s: %w", e.image, err)
		}
		if err := x.files.save(own, one, got, shape); err != nil {
			return err
		}
	}
	return nil
}

func (f *roadFiles) hasStrip(unit string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.strips, func(s Strip) bool { return s.ID == unit })
}

// index writes the index in the order of the plan's units.
func (f *roadFiles) index() error {
	slices.SortFunc(f.strips, func(a, b Strip) int { return cmp.Compare(f.order[a.ID], f.order[b.ID]) })
	return writeJSON(filepath.Join(f.out, StripsIndex), f.strips)
}

// save writes the strips of one image, then the index. Units of which the net made no number
// have none.
func (f *roadFiles) save(e stripped, c *removalCall, got Removal, shape []int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := os.MkdirAll(filepath.Join(f.out, StripsFolder), 0o777); err != nil {
		return fmt.Errorf("writing strips: %w", err)
	}
	for _, at := range e.at {
		u, rec := e.units[at], e.records[at]
		s := Strip{ID: u.ID, File: u.ID + ".png", Image: rec.Image, Method: rec.Method, Order: u.Params.Text(orderKey), Imputer: u.Params.Text(imputerKey),
			Seed: u.Seed, Target: rec.Target, Width: shape[2], Height: shape[1], Fractions: fractionsOf(u.Params)}
		var pictures [][]float32
		for _, fraction := range s.Fractions {
			k := c.index[rowOf(0, &u, fraction, removable(shape))]
			s.Probabilities, s.Predicted = append(s.Probabilities, got.Probabilities[k][0]), append(s.Predicted, got.Classes[k])
			pictures = append(pictures, got.Inputs[k])
		}
		if slices.ContainsFunc(s.Probabilities, math.IsNaN) {
			continue // its record is a failure
		}
		var b bytes.Buffer
		if err := png.Encode(&b, stripPicture(pictures, shape, c.spec.Preset)); err != nil {
			return fmt.Errorf("drawing the strip of %s: %w", s.Image, err)
		}
		if err := writeFile(filepath.Join(f.out, StripsFolder, s.File), b.Bytes()); err != nil {
			return err
		}
		f.strips = append(f.strips, s)
	}
	return f.index()
}

// stripPicture puts inputs [C,H,W] beside each other, normalisation taken back.
func stripPicture(inputs [][]float32, shape []int, preset dataset.Preset) image.Image {
	channels, h, w := shape[0], shape[1], shape[2]
	moment := func(list []float64, c int, otherwise float64) float64 {
		if len(list) == 0 {
			return otherwise
		}
		return list[min(c, len(list)-1)]
	}
	return picture(h, w*len(inputs), channels, func(y, x, c int) uint8 {
		v := float64(inputs[x/w][(c*h+y)*w+x%w])*moment(preset.Std, c, 1) + moment(preset.Mean, c, 0)
		return uint8(min(max(v*255+.5, 0), 255))
	})
}
