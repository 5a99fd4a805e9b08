package fake

import (
	"context"
	"errors"

	"github.com/assay-xai/assay/orchestrate"
)

// Remove is not there yet.
func (n *net) Remove(context.Context, orchestrate.Images, orchestrate.RemovalSpec) (orchestrate.Removal, error) {
	return orchestrate.Removal{}, errors.New("fake: remove: not there yet")
}

// Remove is not there yet.
func (n *softmaxRegression) Remove(context.Context, orchestrate.Images, orchestrate.RemovalSpec) (orchestrate.Removal, error) {
	return orchestrate.Removal{}, errors.New("fake: remove: not there yet")
}
