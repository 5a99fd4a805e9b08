package torchx

import "github.com/assay-xai/assay/internal/aaenv"

// gotorch's init has run by now, since this package imports it: processes that
// are started later must not inherit the placeholder that kept it quiet.
func init() { aaenv.Restore() }
