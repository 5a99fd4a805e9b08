package report

import (
	"bytes"
	"fmt"
	"html/template"
	"image"
	"image/draw"
	"os"
	"path/filepath"
)

// roadFilm shows what the net saw of an image.
type roadFilm struct {
	Image, Target string
	View          template.URL
	Strips        []roadStrip
}

type roadStrip struct {
	Title   string
	W, H    int // of a picture
	Crisp   bool
	Frames  []roadFrame
	Columns template.CSS
}

type roadFrame struct {
	URL                              template.URL
	Fraction, Predicted, Probability string
	Wrong                            bool
}

// roadStripFile is an entry of strips/index.json.
type roadStripFile struct {
	ID, File, Image, Method, Order, Imputer string
	Target, Width, Height                   int
	Fractions, Probabilities                []float64
	Predicted                               []int
}

// roadFilms reads the strips, an image's together.
func (r *run) roadFilms() ([]roadFilm, error) {
	var files []roadStripFile
	if !r.readJSON(filepath.Join("strips", "index.json"), &files) {
		return nil, nil
	}
	var out []roadFilm
	at := map[string]int{}
	nets := map[string]string{}
	for _, e := range r.entries {
		nets[e.id] = e.net
	}
	for _, f := range files {
		s, err := r.roadStrip(f, nets[f.ID])
		if err != nil {
			r.note("strips/%s: %v", f.File, err)
			continue
		}
		i, ok := at[f.Image]
		if !ok {
			i = len(out)
			at[f.Image] = i
			film := roadFilm{Image: f.Image, Target: r.classText(nets[f.ID], f.Target)}
			if v, _ := r.openView(imageKey{id: f.Image}, ""); v != nil {
				film.View = v.URL
			}
			out = append(out, film)
		}
		out[i].Strips = append(out[i].Strips, s)
	}
	return out, nil
}

// classText is a class's name, or its number.
func (r *run) classText(net string, class int) string {
	if name := r.className(net, class); name != "" {
		return name
	}
	return fmt.Sprintf("class %d", class)
}

func (r *run) roadStrip(f roadStripFile, net string) (s roadStrip, err error) {
	n := len(f.Fractions)
	if !filepath.IsLocal(f.File) || n == 0 || len(f.Probabilities) != n || len(f.Predicted) != n {
		return s, fmt.Errorf("want a local file with a probability and a class for each fraction")
	}
	content, err := os.ReadFile(filepath.Join(r.out, "strips", f.File))
	if err != nil {
		return s, err
	}
	config, kind, err := image.DecodeConfig(bytes.NewReader(content))
	if err != nil {
		return s, err
	}
	if kind != "png" || config.Width != f.Width*n || config.Height != f.Height {
		return s, fmt.Errorf("a %s of %d x %d pixels: want a PNG of %d x %d", kind, config.Width, config.Height, f.Width*n, f.Height)
	}
	title := f.Imputer + ", " + orderWords(f.Order)
	if f.Method != "" {
		title += " by " + f.Method
	}
	s = roadStrip{Title: title, W: f.Width, H: f.Height, Crisp: f.Height <= pixelArt,
		Columns: template.CSS(fmt.Sprintf("grid-template-columns:repeat(%d,minmax(0,1fr))", n))}
	img, _, err := image.Decode(bytes.NewReader(content))
	if err != nil {
		return s, err
	}
	for i, fraction := range f.Fractions {
		frame := image.NewNRGBA(image.Rect(0, 0, f.Width, f.Height))
		draw.Draw(frame, frame.Rect, img, image.Pt(i*f.Width, 0), draw.Src)
		url, err := pictureURL(frame, s.Crisp)
		if err != nil {
			return s, err
		}
		s.Frames = append(s.Frames, roadFrame{URL: url, Fraction: fractionText(fraction), Predicted: r.classText(net, f.Predicted[i]),
			Probability: probability(f.Probabilities[i]), Wrong: f.Predicted[i] != f.Target})
	}
	return s, nil
}
