package dataset

import (
	"context"
	"os"

	"github.com/assay-xai/assay/internal/usage"
)

// Open opens the data at path: a directory, an archive (.tar, .tar.gz, .tgz,
// .zip), an array (.npy, .npz), a table (.csv, .csv.gz), or embedded data
// ("embedded:photos"). Archives are never unpacked to disk. Errors that the
// user can mend satisfy errors.Is(err, usage.Err).
func Open(ctx context.Context, path string, opt Options) (*Set, error) {
	opt = opt.withDefaults()
	info, err := os.Stat(path)
	if err != nil {
		return nil, usage.Errorf("dataset: %w", err)
	}
	if info.IsDir() {
		src, err := openDir(ctx, path, opt)
		if err != nil {
			return nil, err
		}
		return openImages(ctx, path, "", src, opt)
	}
	return nil, usage.Errorf("dataset: %s: want a directory", path)
}
