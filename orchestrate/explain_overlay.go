package orchestrate

import (
	"bytes"
	"fmt"
	"image/png"
	"os"
	"path/filepath"

	"github.com/assay-xai/assay/internal/heat"
)

const (
	// OverlaysFolder holds pictures of images with their maps, in folders like those
	// of MapsFolder.
	OverlaysFolder = "overlays"
	// overlaidImages is up to how many images a data entry gets overlays where the plan
	// does not say.
	overlaidImages = 20
)

// overlaid says whether images of data get overlays.
func (s *Session) overlaid(d *ResolvedData) bool {
	if s.Plan.Maps.Overlays != nil {
		return *s.Plan.Maps.Overlays
	}
	return d.Set.Len() <= overlaidImages
}

// overlay draws an image with its map, where that is wanted and they are pictures.
func (x *explainer) overlay(images Images, u Unit, e explained, values []float32, shape []int) error {
	if len(shape) != 3 || !x.s.overlaid(u.Data) {
		return nil
	}
	picture, err := view(u.Net, u.Data, u.Item, images, e.row)
	if err != nil || picture == nil {
		return err
	}
	var b bytes.Buffer
	if err := png.Encode(&b, heat.Overlay(picture, heat.NewMap(values, shape))); err != nil {
		return fmt.Errorf("drawing the map of %s: %w", e.image, err)
	}
	name := filepath.FromSlash(e.image)
	if !filepath.IsLocal(name) {
		name = fmt.Sprintf("%06d", u.Item)
	}
	path := filepath.Join(x.s.out, OverlaysFolder, x.store.path(&u), name+".png")
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fmt.Errorf("drawing the map of %s: %w", e.image, err)
	}
	return writeFile(path, b.Bytes())
}
