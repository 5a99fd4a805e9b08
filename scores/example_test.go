package scores_test

import (
	"context"
	"fmt"

	"github.com/assay-xai/assay/scores"
)

// Two maps, of which one holds its values in few pixels.
func Example() {
	score, err := scores.ByID("sparseness")
	if err != nil {
		panic(err)
	}
	results, err := score.Compute(context.Background(), scores.Group{Images: []scores.Image{
		{ID: "cat.png", Map: scores.Map{Shape: []int{1, 2, 2}, Values: []float32{0, 4, 0, 0}}},
		{ID: "dog.png", Map: scores.Map{Shape: []int{1, 2, 2}, Values: []float32{1, -1, 1, 1}}},
		{ID: "sky.png", Map: scores.Map{Shape: []int{1, 2, 2}, Values: make([]float32, 4)}},
	}}, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(score.Summary+":", score.Direction)
	for _, r := range results {
		if r.Undefined != "" {
			fmt.Println(r.Undefined)
			continue
		}
		fmt.Printf("%.2f\n", r.Value)
	}
	// Output:
	// Gini index of the absolute values: how few pixels hold the map: higher is better
	// 0.75
	// 0.00
	// zero map
}
