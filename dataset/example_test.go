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
