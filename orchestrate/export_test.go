package orchestrate

import "context"

// Units lets tests see the order of a plan's units.
func (r *Resolved) Units(ctx context.Context) ([]Unit, error) { return r.units(ctx) }
