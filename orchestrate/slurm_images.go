package orchestrate

import (
	"context"
	"errors"

	"github.com/assay-xai/assay/dataset"
)

// CountImages counts the images (rows of tables) that a plan's data has here, so that
// it can be told how many shards are too many. known is false where data is not on this
// machine: then the count is of the rest. Data that is there and cannot be read is an
// error.
func CountImages(ctx context.Context, plan *Plan) (images int, known bool, err error) {
	known = true
	for _, d := range plan.Data {
		path, err := locate(d.Path)
		if errors.Is(err, errAbsent) {
			known = false
			continue
		}
		if err != nil {
			return 0, false, err
		}
		set, err := dataset.Open(ctx, path, dataset.Options{Split: d.Split, Labels: d.Labels, Limit: d.Limit})
		if err != nil {
			return 0, false, err
		}
		images += set.Len()
		if err := set.Close(); err != nil {
			return 0, false, err
		}
	}
	return images, known, nil
}
