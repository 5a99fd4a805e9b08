package dataset

import (
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/assay-xai/assay/testdata"
)

// classLists are the embedded lists of class names by what they name.
var classLists = map[string]func() []string{
	"imagenet":      sync.OnceValue(func() []string { return embeddedList("imagenet-classes.txt") }),
	"cifar10":       sync.OnceValue(func() []string { return embeddedList("cifar10-classes.txt") }),
	"fashion-mnist": sync.OnceValue(func() []string { return embeddedList("fashion-mnist-classes.txt") }),
}

func embeddedList(name string) []string {
	text, err := fs.ReadFile(testdata.Embedded(), name)
	if err != nil {
		return nil
	}
	return nonComments(string(text))
}

// ClassNames names the classes of a well-known data set, class 0 first:
// "imagenet" (1000), "cifar10", "fashion-mnist"; nil for others. Sources:
// testdata/embedded/SOURCES.md. The slice is the caller's.
func ClassNames(kind string) []string {
	list, ok := classLists[kind]
	if !ok {
		return nil
	}
	return slices.Clone(list())
}

// ImageNetNames is ClassNames("imagenet").
func ImageNetNames() []string { return ClassNames("imagenet") }

// NamesFor guesses the class names of a net from the id of its preset and its
// number of classes: the presets of ImageNet with 1000 classes, those of
// CIFAR-10 and Fashion-MNIST with 10. nil where there is nothing to go by.
func NamesFor(preset string, classes int) []string {
	kind := ""
	switch {
	case (strings.HasPrefix(preset, "imagenet") || preset == "tf-lite") && classes == 1000:
		kind = "imagenet"
	case strings.HasPrefix(preset, "cifar10") && classes == 10:
		kind = "cifar10"
	case preset == "fashion-mnist" && classes == 10:
		kind = "fashion-mnist"
	}
	return ClassNames(kind)
}
