package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/trace"
)

// plainSide is the side of heat maps of images without a view, about.
const plainSide = 224

// pictures fills the heat map, the reference and the strips of deletion.
func (r *run) pictures(rec *record.Record, res *result) error {
	t := rec.Trace
	edge := t.EdgePatches
	res.H, res.W = edge*max(1, plainSide/edge), edge*max(1, plainSide/edge)
	if res.View != nil {
		res.H, res.W = res.View.H, res.View.W
	}
	patches, err := trace.PatchMap(edge, res.H, res.W)
	if err != nil { // a view of another size than the net's input, or an unknown edge
		r.note("image %s: no heat map: %v", rec.Image, err)
		res.View, res.Edge = nil, 0
		return nil
	}
	psi := trace.Heat(t.Trajectory, r.opt.Alpha)
	if res.Heat, err = pngURL(heatMap(psi, patches, res.H, res.W)); err != nil {
		return err
	}
	res.HeatTitle = fmt.Sprintf("Heat map of %d × %d patches; the most relevant is in row %d, column %d.", edge, edge,
		t.Trajectory[t.Features-1]/edge+1, t.Trajectory[t.Features-1]%edge+1)
	if res.View == nil {
		return nil
	}
	if t.Features <= maxScrub {
		res.Order = join(t.Trajectory)
	}
	res.RefSpec = plain(rec.Params["reference"])
	n, known := r.normalisation(rec.Net)
	ref := newReference(res.RefSpec, res.View.Pixels, n, known, patches)
	res.Sketch, res.Flat = ref.sketch, hex(ref.flat)
	if ref.image != nil {
		res.Flat = ""
		if res.Reference, err = pictureURL(ref.image, res.View.Crisp); err != nil {
			return err
		}
	}
	for _, k := range stripSteps(t.Features) {
		gone := t.Trajectory[:k]
		f, err := newFrame(res, "l", k, t, gone, t.Curves.Prob.Le[k], patches)
		if err != nil {
			return err
		}
		res.LeRF = append(res.LeRF, f)
		gone = t.Trajectory[t.Features-k:]
		if f, err = newFrame(res, "m", k, t, gone, t.Curves.Prob.Mo[k], patches); err != nil {
			return err
		}
		res.MoRF = append(res.MoRF, f)
	}
	return nil
}

func newFrame(res *result, kind string, k int, t *record.Trace, gone []int, p float64, patches []int32) (frame, error) {
	mask, err := pngURL(deletedMask(gone, t.Features, patches, res.H, res.W))
	order := "least"
	if strings.HasSuffix(kind, "m") {
		order = "most"
	}
	return frame{ID: fmt.Sprintf("%s%s%d", res.ID, kind, k), Mask: mask, Fraction: percent(float64(k)/float64(t.Features), 0),
		P: decimal(p, 2), Describe: fmt.Sprintf("The %d %s relevant of %d patches deleted: probability %s", k, order, t.Features, decimal(p, 2))}, err
}

func join(values []int) string {
	var b strings.Builder
	for i, v := range values {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(v))
	}
	return b.String()
}

// normalisation is that of a net's preset, where the plan has it.
func (r *run) normalisation(net string) (normalisation, bool) {
	for _, n := range r.plan.Nets {
		if n.Name == net || n.Name == "" && n.Net == net {
			return newNormalisation(n.Preset)
		}
	}
	return normalisation{}, false
}
