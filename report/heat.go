package report

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html/template"
	"image"
	"image/color"
	"image/png"
	"math"
)

// ranks turns a trajectory (least relevant first) into ranks 1..t by feature.
func ranks(trajectory []int) []int {
	out := make([]int, len(trajectory))
	for i, f := range trajectory {
		out[f] = i + 1
	}
	return out
}

// heatMap paints psi by patch over h x w pixels.
func heatMap(psi []float64, patches []int32, h, w int) image.Image {
	palette := make(color.Palette, 256)
	for i := range palette {
		palette[i] = heatColor(float64(i) / 255)
	}
	img := image.NewPaletted(image.Rect(0, 0, w, h), palette)
	for i, p := range patches {
		img.Pix[i] = uint8(math.Round(min(max(psi[p], 0), 1) * 255))
	}
	return img
}

// deletedMask is white where the patch is deleted and transparent elsewhere.
func deletedMask(deleted []int, features int, patches []int32, h, w int) image.Image {
	gone := make([]uint8, features)
	for _, f := range deleted {
		gone[f] = 1
	}
	img := image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.NRGBA{}, color.NRGBA{255, 255, 255, 255}})
	for i, p := range patches {
		img.Pix[i] = gone[p]
	}
	return img
}

// pngURL is the image as a data URI.
func pngURL(img image.Image) (template.URL, error) {
	var b bytes.Buffer
	enc := png.Encoder{CompressionLevel: png.BestCompression}
	if err := enc.Encode(&b, img); err != nil {
		return "", fmt.Errorf("report: drawing: %w", err)
	}
	return dataURL("image/png", b.Bytes()), nil
}

func dataURL(kind string, content []byte) template.URL {
	return template.URL("data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(content))
}
