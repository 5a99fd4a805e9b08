package dataset_test

import (
	"context"
	"fmt"

	"github.com/assay-xai/assay/dataset"
)

// A set is opened, listed and read; here one that the program carries.
func Example() {
	ctx := context.Background()
	set, err := dataset.Open(ctx, "embedded:photos", dataset.Options{Limit: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close()
	for i, item := range set.Items() {
		file, err := set.Read(ctx, i)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.ID, item.Class, len(file))
	}
	// Output:
	// chelsea.png -1 240512
	// coffee.png -1 466706
}

// Rows come as they stand in the data; a preset makes the net's input of them.
func ExamplePreset_Normalise() {
	set, err := dataset.Open(context.Background(), "embedded:digits", dataset.Options{Limit: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close()
	preset, err := dataset.PresetByID("digits")
	if err != nil {
		fmt.Println(err)
		return
	}
	values, shape, err := set.Values(0)
	if err != nil {
		fmt.Println(err)
		return
	}
	raw := values[4]
	if err := preset.Normalise(values, shape); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(set.Items()[0], shape, raw, values[4])
	// Output: {000030 0 0} [1 8 8] 11 0.6875
}

// Made-up images know where their object is, and rows of bytes come as bytes.
func ExampleSet_Foreground() {
	set, err := dataset.Open(context.Background(), "synthetic:groups?n=4000&ratios=999:1:1:999", dataset.Options{Split: "train"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close()
	counts := make([]int, 4)
	for i := range set.Items() {
		group, _ := set.Group(i)
		counts[group]++
	}
	mask, err := set.Foreground(0)
	if err != nil {
		fmt.Println(err)
		return
	}
	pixels, shape, _, err := set.Pixels(0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(set.GroupNames(), counts)
	fmt.Println(len(mask), len(pixels), shape)
	// Output:
	// [triangle on land triangle on water circle on land circle on water] [1998 2 2 1998]
	// 1024 3072 [3 32 32]
}
