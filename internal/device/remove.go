package device

import (
	"context"
	"errors"

	"github.com/assay-xai/assay/orchestrate"
)

// Remove is not there yet.
func (n *net) Remove(context.Context, orchestrate.Images, orchestrate.RemovalSpec) (orchestrate.Removal, error) {
	return orchestrate.Removal{}, errors.New("remove: not there yet")
}
