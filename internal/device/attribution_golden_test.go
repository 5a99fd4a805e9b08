package device_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image/png"
	"io/fs"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/testdata"
	"github.com/assay-xai/assay/torchx"
	"github.com/assay-xai/assay/weights"
)

// goldenMaps is a net's part of testdata/golden_attribution_real.json: what captum and
// pytorch-grad-cam return in double precision (scripts/golden_attribution.py).
type goldenMaps struct {
	Net       string
	Size      int
	Mean, Std []float64
	Images    []string
	Targets   []int32
	Keys      []uint64
	Maps      []struct {
		Method json.RawMessage
		Oracle string
		Shape  []int64
		Rows   []struct {
			Largest, Sum, Norm float64
			Values             []float64 // 1e7 is Largest
		}
	}
}

// photograph is the middle square of an embedded photograph, every (side/size)th
// pixel, normalised: [3,size,size].
func photograph(t *testing.T, name string, g goldenMaps) []float32 {
	t.Helper()
	file, err := fs.ReadFile(testdata.Embedded(), name)
	require.NoError(t, err)
	picture, err := png.Decode(bytes.NewReader(file))
	require.NoError(t, err)
	bounds := picture.Bounds()
	side := min(bounds.Dx(), bounds.Dy())
	top, left := (bounds.Dy()-side)/2, (bounds.Dx()-side)/2
	at := func(i int) int { return (2*i + 1) * side / (2 * g.Size) }
	out := make([]float32, 3*g.Size*g.Size)
	for i := range g.Size {
		for j := range g.Size {
			r, gr, b, _ := picture.At(left+at(j), top+at(i)).RGBA()
			for c, v := range []uint32{r, gr, b} {
				out[(c*g.Size+i)*g.Size+j] = float32((float64(v>>8)/255 - g.Mean[c]) / g.Std[c])
			}
		}
	}
	return out
}

// realNet is a net of published weights on the CPU.
func realNet(t *testing.T, d *torchx.Device, id, path string, precision torchx.Precision) *torchx.Net {
	t.Helper()
	ctx := context.Background()
	info, err := backend(t).Describe(ctx, id, 0, 0)
	require.NoError(t, err)
	dict, err := weights.Open(path)
	require.NoError(t, err)
	state, _, err := weights.Match(dict, info.Parameters)
	require.NoError(t, err)
	n, err := d.NewNet(ctx, torchx.NetSpec{Net: id})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	tensors := map[string]*torchx.Tensor{}
	for name, value := range state {
		dtype, err := torchx.ParseDType(value.DType)
		require.NoError(t, err)
		tensors[name], err = torchx.NewTensor(dtype, value.Shape, value.Data)
		require.NoError(t, err)
		defer tensors[name].Close()
	}
	require.NoError(t, n.Load(ctx, tensors))
	require.NoError(t, n.Prepare(ctx, precision))
	return n
}

// gap is the largest difference from a golden map, as a share of its largest value.
func gap(got []float64, g goldenMaps, m, row int) float64 {
	want := g.Maps[m].Rows[row]
	worst, sum, squares := 0., 0., 0.
	for k, v := range want.Values {
		i := k
		if len(got) > len(want.Values) {
			i = k * 2654435761 % len(got)
		}
		worst = max(worst, math.Abs(got[i]-v*1e-7*want.Largest)/want.Largest)
	}
	for _, v := range got {
		sum += v
		squares += v * v
	}
	worst = max(worst, math.Abs(sum-want.Sum)/(float64(len(got))*want.Largest))
	return max(worst, math.Abs(math.Sqrt(squares)-want.Norm)/want.Norm)
}

func cosine(a, b []float64) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += a[i] * b[i]
		aa += a[i] * a[i]
		bb += b[i] * b[i]
	}
	return ab / math.Sqrt(aa*bb)
}

// Maps of published weights within 1e-6 of captum's and pytorch-grad-cam's, in double
// precision on both sides; and those in f32 in the same direction.
func TestMapsOfPublishedWeightsAgainstOthers(t *testing.T) {
	text, err := os.ReadFile("../../testdata/golden_attribution_real.json")
	require.NoError(t, err)
	var golden struct{ Nets []goldenMaps }
	require.NoError(t, json.Unmarshal(text, &golden))
	require.Len(t, golden.Nets, 2)
	for _, g := range golden.Nets {
		t.Run(g.Net, func(t *testing.T) {
			path := ""
			if g.Net == "efficientnet-lite0" {
				path = liteWeights(t)
			} else {
				path = sharedFile(t, "weights/resnet20-12fca82f.th")
			}
			d, err := torchx.Open("cpu", 1)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, d.Close()) })
			var pixels []float32
			for _, name := range g.Images {
				pixels = append(pixels, photograph(t, name, g)...)
			}
			images, err := torchx.NewFloats([]int64{int64(len(g.Images)), 3, int64(g.Size), int64(g.Size)}, pixels)
			require.NoError(t, err)
			defer images.Close()
			wide, narrow := realNet(t, d, g.Net, path, torchx.PrecisionF64), realNet(t, d, g.Net, path, torchx.PrecisionF32)
			for m, want := range g.Maps {
				name := fmt.Sprintf("%s %s", want.Oracle, want.Method)
				ask := torchx.AttributeSpec{Method: want.Method, Targets: g.Targets, Keys: g.Keys, Batch: len(g.Images)}
				maps, _, err := wide.Attribute(context.Background(), images, ask)
				require.NoError(t, err, name)
				_, shape, err := maps.Describe()
				require.NoError(t, err)
				require.Equal(t, want.Shape, shape[1:], name)
				doubles, err := maps.Doubles()
				require.NoError(t, err)
				maps.Close()
				single, _, err := narrow.Attribute(context.Background(), images, ask)
				require.NoError(t, err, name)
				floats, err := single.Floats()
				require.NoError(t, err)
				single.Close()
				each := len(doubles) / len(g.Images)
				for row := range g.Images {
					exact := doubles[row*each : (row+1)*each]
					require.LessOrEqual(t, gap(exact, g, m, row), 1e-6, "%s, row %d", name, row)
					rounded := make([]float64, each)
					for i, v := range floats[row*each : (row+1)*each] {
						rounded[i] = float64(v)
					}
					require.GreaterOrEqual(t, cosine(exact, rounded), .9999, "%s in f32, row %d", name, row)
				}
			}
		})
	}
}
