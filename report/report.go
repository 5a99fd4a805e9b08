package report

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/assay-xai/assay/internal/usage"
)

// FileName is the name of the page in OUT.
const FileName = "report.html"

// PlotsDir is the folder of the plots in OUT.
const PlotsDir = "plots"

// Options says what a report shows; the zero value is a good report.
type Options struct {
	// Title stands above the page; "": the plan's title, or one made from the plan.
	Title string
	// Images is how many images are shown one by one; 0: what the plan says, or
	// 24; less than 0: none. Curves and tables are of all images always.
	Images int
	// Alpha is the exponent of heat maps (rank/t)^alpha; 0: the plan's, or 2.
	Alpha float64
	// ClassName names a class of a net, by the net's name in the records; ""
	// where it has none. nil: classes are numbers.
	ClassName func(net string, class int) string
	// FeatureName names a column of a table; "" where it has none. nil: columns
	// are numbers.
	FeatureName func(net string, feature int) string
	// Plots asks for OUT/plots with mean-curves.svg, .png and .csv as well, and
	// the charts that the plan asks for, figure-1-1 and so on.
	Plots bool
	// Unfinished says how far a run is that has not ended, for the top of the page; "": it
	// has, or has no summary, which the page says by itself.
	Unfinished string
	// Summary is the folder of the files of a summary (summary.csv and so on) of an
	// unfinished run; "": that of the run.
	Summary string
}

const (
	defaultImages = 24
	defaultAlpha  = 2
)

// Write makes OUT/report.html from what the run in the folder out has left so
// far and returns its path. The page appears whole or not at all. A folder
// without a run is a usage error; missing or unreadable parts other than the
// records (views, environment, plan) are named on the page.
func Write(ctx context.Context, out string, opt Options) (path string, err error) {
	if math.IsNaN(opt.Alpha) || math.IsInf(opt.Alpha, 0) || opt.Alpha < 0 {
		return "", usage.Errorf("report: alpha %v: want a number above 0", opt.Alpha)
	}
	r, err := load(ctx, out, opt)
	if err != nil {
		return "", err
	}
	p, err := r.page(ctx)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := pageTemplate.ExecuteTemplate(&b, "page.html", p); err != nil {
		return "", fmt.Errorf("report: filling the page: %w", err)
	}
	if opt.Plots {
		if err := r.writePlots(ctx); err != nil {
			return "", err
		}
		if err := r.writeCharts(ctx); err != nil {
			return "", err
		}
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	path = filepath.Join(out, FileName)
	if err := writeFile(path, b.Bytes()); err != nil {
		return "", err
	}
	return path, nil
}

func writeFile(path string, content []byte) error {
	if err := renameio.WriteFile(path, content, 0o644, renameio.WithTempDir(filepath.Dir(path))); err != nil {
		return fmt.Errorf("report: writing %s: %w", path, err)
	}
	return nil
}

// isDir says whether path is a folder.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
