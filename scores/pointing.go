package scores

// Region is what is to be found in an image: the pixels in any of the boxes or in
// the mask.
type Region struct {
	Boxes []Box
	Mask  []bool // an entry a pixel, row-major; nil: none
}

// Box has pixels x0 <= x < x1, y0 <= y < y1 of the image that the net sees.
type Box struct{ X0, Y0, X1, Y1 int }
