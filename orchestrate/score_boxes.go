package orchestrate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/scores"
)

// givenBoxes are the boxes of images, by id.
type givenBoxes struct {
	path, sum string
	boxes     map[string][]scores.Box
}

// openBoxes reads lines IMAGE X0 Y0 X1 Y1, separated by blanks or commas; # begins a
// comment, an image may have several lines. A box has the pixels X0 <= x < X1,
// Y0 <= y < Y1 of what the net sees.
func openBoxes(_ context.Context, path string) (givenFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, usage.Errorf("%w", err)
	}
	sum := sha256.Sum256(text)
	g := &givenBoxes{path: path, sum: hex.EncodeToString(sum[:]), boxes: map[string][]scores.Box{}}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		content, _, _ := strings.Cut(string(line), "#")
		words := strings.FieldsFunc(content, func(c rune) bool { return c == ',' || c == ' ' || c == '\t' || c == '\r' || c == '\n' })
		if len(words) == 0 {
			continue
		}
		if len(words) != 5 {
			return nil, usage.Errorf("%s:%d: %d words: want IMAGE X0 Y0 X1 Y1", path, n, len(words))
		}
		var sides [4]int
		for i := range sides {
			if sides[i], err = strconv.Atoi(words[i+1]); err != nil {
				return nil, usage.Errorf("%s:%d: %s: want whole numbers of pixels", path, n, usage.Quote(words[i+1]))
			}
		}
		b := scores.Box{X0: sides[0], Y0: sides[1], X1: sides[2], Y1: sides[3]}
		if b.X0 < 0 || b.Y0 < 0 || b.X1 <= b.X0 || b.Y1 <= b.Y0 {
			return nil, usage.Errorf("%s:%d: the box from %d,%d to %d,%d has no pixel: want 0 <= X0 < X1 and 0 <= Y0 < Y1", path, n, b.X0, b.Y0, b.X1, b.Y1)
		}
		g.boxes[words[0]] = append(g.boxes[words[0]], b)
	}
	if len(g.boxes) == 0 {
		return nil, usage.Errorf("%s has no boxes: want lines IMAGE X0 Y0 X1 Y1", path)
	}
	return g, nil
}

func (g *givenBoxes) hash() string { return g.sum }

func (g *givenBoxes) check(Unit, []int) error { return nil }

func (g *givenBoxes) order(Unit, []int, []int32, int) ([]int, error) {
	return nil, usage.Errorf("%s has boxes, and no orders", g.path)
}

func (g *givenBoxes) Close() error { return nil }

// checkBoxes compares boxes with the images.
func (r *Resolved) checkBoxes(n *ResolvedNet, d *ResolvedData, p Params, shape []int) error {
	label := p.Text(boxesKey)
	if label == "" {
		return nil
	}
	g, ok := r.files[label].(*givenBoxes)
	if !ok {
		return usage.Errorf("boxes: %s: want lines IMAGE X0 Y0 X1 Y1", label)
	}
	if len(shape) != 3 {
		return usage.Errorf("boxes: net %s sees no images", n.Name)
	}
	known := 0
	for _, item := range d.Set.Items() {
		for _, b := range g.boxes[item.ID] {
			if known++; b.X1 > shape[2] || b.Y1 > shape[1] {
				return usage.Errorf("boxes: %s: the box of %s to %d,%d lies outside of the %s pixels that net %s sees", g.path, item.ID, b.X1, b.Y1, times(mapShape(shape)), n.Name)
			}
		}
	}
	if known == 0 {
		return usage.Errorf("boxes: %s has boxes of none of the images of %s", g.path, d.Name)
	}
	var without nameList
	for _, item := range d.Set.Items() {
		if g.boxes[item.ID] == nil {
			without.add(item.ID)
		}
	}
	if without.count > 0 {
		r.warnOnce(fmt.Sprintf("%s has no box for %d of %d images, whose pointing game is undefined (%s)", g.path, without.count, d.Set.Len(), &without))
	}
	return nil
}

// region is what is to be found in a unit's image, for scores that ask.
func (j *judge) region(u Unit, score scores.Score) (*scores.Region, error) {
	if !score.Needs(scores.InputRegion) {
		return nil, nil
	}
	if g, ok := j.s.files[u.Params.Text(boxesKey)].(*givenBoxes); ok {
		boxes := g.boxes[u.Data.Set.Items()[u.Item].ID]
		if boxes == nil {
			return nil, nil
		}
		return &scores.Region{Boxes: boxes}, nil
	}
	mask, err := u.Data.Set.Foreground(u.Item)
	if err != nil {
		return nil, err
	}
	return &scores.Region{Mask: mask}, nil
}
