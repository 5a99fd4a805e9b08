package weights_test

import (
	"fmt"

	"github.com/assay-xai/assay/weights"
)

// A checkpoint of a training script: the state dict is found under its wrapper,
// DataParallel's prefix is gone, and the net takes what it asks for.
func Example() {
	sd, err := weights.Open("testdata/checkpoint.pth")
	if err != nil {
		fmt.Println(err)
		return
	}
	classes, _ := weights.Classes(sd)
	fmt.Println(sd.Format, sd.Names[0], classes)

	_, _, err = weights.Match(sd, []weights.Parameter{{Name: "conv1.weight", Shape: []int64{64, 3, 7, 7}}})
	fmt.Println(err)

	_, err = weights.Open("testdata/malicious-legacy.pth")
	fmt.Println(err)
	// Output:
	// pth-zip 0.weight 2
	// the weights are not this net's: 1 of the net's 1 missing (conv1.weight); 8 of the file's 9 not in the net (0.weight, 0.bias, 1.weight, ...): want a state dict of this net
	// weights: testdata/malicious-legacy.pth: a pickle that asks to run posix.system: refused; only tensors are read (where you trust the file: load it in PyTorch and save model.state_dict() alone)
}
