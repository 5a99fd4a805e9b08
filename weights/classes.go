package weights

import (
	"regexp"
	"strconv"
	"strings"
)

// headNames are what the last layer is called, in the order of trying; the
// number in a Sequential varies and the largest one is the last.
var headNames = []string{
	"fc.weight", "_fc.weight", "linear.weight", "classifier.weight", "head.weight", "heads.head.weight", "output.weight",
}

var classifierLayer = regexp.MustCompile(`^classifier\.(\d+)\.weight$`)

// HeadClasses returns the number of classes of the first of the named weights
// that the file has: the first size of [classes,F] (linear) or [classes,F,1,1]
// (a 1x1 convolution as head). false: none of them is there with such a shape.
func HeadClasses(sd *StateDict, headNames []string) (int, bool) {
	for _, name := range headNames {
		if t, ok := sd.Tensors[name]; ok {
			if n, ok := headSize(t); ok {
				return n, true
			}
		}
	}
	return 0, false
}

func headSize(t Tensor) (int, bool) {
	linear := len(t.Shape) == 2
	convolution := len(t.Shape) == 4 && t.Shape[2] == 1 && t.Shape[3] == 1
	if !linear && !convolution || t.Shape[0] < 1 || t.Shape[0] > 1<<30 {
		return 0, false
	}
	return int(t.Shape[0]), true
}

// Classes guesses the number of classes from the head's shape: the usual names
// of last layers, else the last linear weight in the file's order. A caller who
// knows the net asks [HeadClasses] with the net's own name.
func Classes(sd *StateDict) (int, bool) {
	if n, ok := HeadClasses(sd, headNames); ok {
		return n, true
	}
	last, name := -1, ""
	for _, candidate := range sd.Names {
		m := classifierLayer.FindStringSubmatch(candidate)
		if m == nil {
			continue
		}
		if i, err := strconv.Atoi(m[1]); err == nil && i > last {
			if _, ok := headSize(sd.Tensors[candidate]); ok {
				last, name = i, candidate
			}
		}
	}
	if last >= 0 {
		return headSize(sd.Tensors[name])
	}
	for i := len(sd.Names) - 1; i >= 0; i-- {
		t := sd.Tensors[sd.Names[i]]
		if strings.HasSuffix(sd.Names[i], "weight") && len(t.Shape) == 2 {
			return headSize(t)
		}
	}
	return 0, false
}
