package orchestrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/assay-xai/assay/dataset"
)

// views writes what nets see of some images as PNG files, so that a report
// needs neither the data nor the weights.
type views struct {
	out   string
	limit int
	data  int // the index of the data that is shown
	mu    sync.Mutex
	index map[string]string
}

// newViews goes on with the views that out has.
func newViews(out string, limit, data int) (*views, error) {
	v := &views{out: out, limit: limit, data: data, index: map[string]string{}}
	text, err := os.ReadFile(filepath.Join(out, ImagesIndex))
	if errors.Is(err, fs.ErrNotExist) {
		return v, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading views: %w", err)
	}
	if err := json.Unmarshal(text, &v.index); err != nil {
		return nil, fmt.Errorf("reading %s: %w", filepath.Join(out, ImagesIndex), err)
	}
	return v, nil
}

// wants is true of the first images of the first data, as the first net sees
// them, that have no view yet.
func (v *views) wants(n *ResolvedNet, d *ResolvedData, item int) bool {
	if v == nil || n.Index != 0 || d.Index != v.data || item >= v.limit {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	_, has := v.index[d.Set.Items()[item].ID]
	return !has
}

// save writes the views that are wanted of a batch.
func (v *views) save(n *ResolvedNet, d *ResolvedData, items []int, images Images, failed []error) error {
	added := map[string]string{}
	for i, item := range items {
		if failed[i] != nil || !v.wants(n, d, item) {
			continue
		}
		picture, err := view(n, d, item, images, i)
		if err != nil {
			return err
		}
		if picture == nil {
			continue
		}
		var b bytes.Buffer
		if err := png.Encode(&b, picture); err != nil {
			return fmt.Errorf("drawing %s: %w", d.Set.Items()[item].ID, err)
		}
		if err := os.MkdirAll(filepath.Join(v.out, ImagesFolder), 0o777); err != nil {
			return fmt.Errorf("writing views: %w", err)
		}
		name := fmt.Sprintf("%04d.png", item)
		if err := writeFile(filepath.Join(v.out, ImagesFolder, name), b.Bytes()); err != nil {
			return err
		}
		added[d.Set.Items()[item].ID] = name
	}
	if len(added) == 0 {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, name := range added {
		v.index[id] = name
	}
	return writeJSON(filepath.Join(v.out, ImagesIndex), v.index)
}

// view is a picture of row i, nil where the data is no picture.
func view(n *ResolvedNet, d *ResolvedData, item int, images Images, i int) (image.Image, error) {
	if d.Set.Kind == dataset.Images {
		pixels, err := images.Pixels(i)
		if err != nil || pixels == nil {
			return nil, err
		}
		shape := images.Shape()
		return picture(shape[1], shape[2], shape[0], func(y, x, c int) uint8 { return pixels[(y*shape[2]+x)*shape[0]+c] }), nil
	}
	values, shape, err := d.Set.Values(item)
	if err != nil || len(shape) != 3 || shape[0] != 1 && shape[0] != 3 {
		return nil, err
	}
	scale := n.Preset.Scale
	if scale == 0 {
		scale = 1
	}
	return picture(shape[1], shape[2], shape[0], func(y, x, c int) uint8 {
		return uint8(min(max(float64(values[(c*shape[1]+y)*shape[2]+x])/scale*255+.5, 0), 255))
	}), nil
}

func picture(height, width, channels int, at func(y, x, c int) uint8) image.Image {
	if channels == 1 {
		grey := image.NewGray(image.Rect(0, 0, width, height))
		for y := range height {
			for x := range width {
				grey.SetGray(x, y, color.Gray{Y: at(y, x, 0)})
			}
		}
		return grey
	}
	rgb := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			rgb.SetNRGBA(x, y, color.NRGBA{R: at(y, x, 0), G: at(y, x, 1), B: at(y, x, 2), A: 255})
		}
	}
	return rgb
}
