package report

import (
	"bytes"
	"fmt"
	"html/template"
	"image"
	"image/jpeg"
	_ "image/png" // views are PNG files
	"os"
	"path/filepath"
)

const (
	// maxViewSide bounds what is decoded.
	maxViewSide = 4096
	// pixelArt is the side up to which a picture is kept without loss and shown
	// with hard pixels.
	pixelArt    = 96
	jpegQuality = 85
)

// view is a photograph as the net saw it.
type view struct {
	ID     string // of the <image> element
	URL    template.URL
	W, H   int
	Pixels pixels
	Crisp  bool
}

// openView reads the view of an image; nil and a reason where there is none.
func (r *run) openView(k imageKey, id string) (*view, string) {
	name := r.view(k)
	if name == "" {
		return nil, "the run kept no picture of this image"
	}
	v, err := readView(filepath.Join(r.out, "images", name))
	if err != nil {
		r.note("images/%s: %v", name, err)
		return nil, "its picture cannot be read"
	}
	v.ID = id
	return v, ""
}

func readView(path string) (*view, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	config, _, err := image.DecodeConfig(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	if config.Width < 1 || config.Height < 1 || max(config.Width, config.Height) > maxViewSide {
		return nil, fmt.Errorf("%d x %d pixels: want 1 to %d a side", config.Width, config.Height, maxViewSide)
	}
	img, _, err := image.Decode(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	v := &view{W: config.Width, H: config.Height, Pixels: newPixels(img)}
	v.Crisp = max(v.W, v.H) <= pixelArt
	v.URL, err = pictureURL(v.Pixels.image(), v.Crisp)
	return v, err
}

// pictureURL keeps small pictures without loss and photographs as JPEG.
func pictureURL(img image.Image, lossless bool) (template.URL, error) {
	if lossless {
		return pngURL(img)
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: jpegQuality}); err != nil {
		return "", fmt.Errorf("report: drawing: %w", err)
	}
	return dataURL("image/jpeg", b.Bytes()), nil
}
