package torchx

// #include "torchx.h"
import "C"

import (
	"encoding/json"
	"fmt"
	"runtime"
	"unsafe"
)

// Resize says how an image is resized before the crop.
type Resize int32

// The ways to resize, with Pillow's antialiased filters.
const (
	ResizeNone    Resize = C.TX_RESIZE_NONE
	ResizeShorter Resize = C.TX_RESIZE_SHORTER // the shorter side becomes Height
	ResizeSquash  Resize = C.TX_RESIZE_SQUASH  // Height x Width
)

// ImageSpec is a tx_preset.
type ImageSpec struct {
	Resize                Resize
	Height, Width         int
	Bicubic               bool
	CropHeight, CropWidth int
	Channels              int // 3 or 1
	Mean, Std             []float32
}

// DecodeImages decodes JPEG and PNG files on up to `threads` threads and
// preprocesses them: values [N,C,H,W] in float32, normalised, and, if asked
// for, pixels [N,H,W,C] in 8 bits before that. failed[i] is the message for an
// image that could not be decoded (its rows are zero), else "".
func DecodeImages(files [][]byte, spec ImageSpec, threads int, wantPixels bool) (values, pixels *Tensor, failed []string, err error) {
	const op = "images-decode"
	if err := start(); err != nil {
		return nil, nil, nil, err
	}
	if len(spec.Mean) != spec.Channels || len(spec.Std) != spec.Channels || spec.Channels < 1 || spec.Channels > 3 {
		return nil, nil, nil, invalidf(op, "%d channels, mean of %d, std of %d: want 1 or 3 of each", spec.Channels, len(spec.Mean), len(spec.Std))
	}
	preset := C.tx_preset{
		resize: C.int32_t(spec.Resize), resize_height: C.int32_t(spec.Height), resize_width: C.int32_t(spec.Width),
		crop_height: C.int32_t(spec.CropHeight), crop_width: C.int32_t(spec.CropWidth), channels: C.int32_t(spec.Channels),
	}
	if spec.Bicubic {
		preset.interpolation = C.TX_BICUBIC
	}
	for i := range spec.Mean {
		preset.mean[i], preset.std[i] = C.float(spec.Mean[i]), C.float(spec.Std[i])
	}
	var pinner runtime.Pinner
	defer pinner.Unpin()
	pointers := make([]unsafe.Pointer, len(files))
	sizes := make([]C.size_t, len(files))
	for i, file := range files {
		if len(file) > 0 {
			p := unsafe.SliceData(file)
			pinner.Pin(p)
			pointers[i] = unsafe.Pointer(p)
		}
		sizes[i] = C.size_t(len(file))
	}
	var v, px C.tx_tensor
	var text *C.char
	out := &px
	if !wantPixels {
		out = nil
	}
	if err := failure(C.tx_images_decode(C.int64_t(len(files)), unsafe.SliceData(pointers), unsafe.SliceData(sizes), &preset,
		C.int32_t(threads), &v, out, &text)); err != nil {
		return nil, nil, nil, err
	}
	values = adopt(v)
	if wantPixels {
		pixels = adopt(px)
	}
	failed = make([]string, len(files))
	var messages []*string
	if err := json.Unmarshal(take(text), &messages); err != nil {
		return nil, nil, nil, fmt.Errorf("%s: the library's list of errors: %w", op, err)
	}
	for i, m := range messages {
		if m != nil && i < len(failed) {
			failed[i] = *m
		}
	}
	return values, pixels, failed, nil
}
