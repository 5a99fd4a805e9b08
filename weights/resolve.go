package weights

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// CacheDir is the folder of fetched weights:
// ${XDG_CACHE_HOME:-~/.cache}/assay/weights. It need not exist.
func CacheDir() (string, error) {
	// A relative XDG_CACHE_HOME is to be ignored, says the specification.
	if dir := os.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "assay", "weights"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", usage.Errorf("weights: find the cache folder: %w: set HOME or XDG_CACHE_HOME", err)
	}
	return filepath.Join(home, ".cache", "assay", "weights"), nil
}

// Resolve is ResolveFor for a net whose number of columns does not matter.
func Resolve(net, arg string) (string, error) { return ResolveFor(net, arg, 0) }

// ResolveFor turns the argument of --weights for a net that takes so many
// columns (0: images, or not known) into what Open takes:
//   - "": the net's default published file, in the cache; where none is
//     published, the weights that the program carries for that net and number
//     of columns (see Embedded),
//   - the name of a published version ("IMAGENET1K_V1" or "V1"; case does not
//     matter) or the name of a published file: that one, in the cache,
//   - "embedded:NAME": that one, if it is the net's,
//   - anything else: a path.
//
// A published file that is not in the cache, or a path that is not there, is an
// error that says what would be right. Nothing is fetched and the file is not
// opened.
func ResolveFor(net, arg string, columns int) (string, error) {
	files := publishedFor(net)
	if arg == "" && len(files) == 0 {
		return defaultEmbedded(net, columns)
	}
	if strings.HasPrefix(arg, embeddedPrefix) {
		e, err := findEmbedded(arg)
		if err == nil && e.Net != net {
			err = usage.Errorf("weights: %s are for net %s, not %s", arg, e.Net, net)
		}
		return arg, err
	}
	for _, p := range files {
		if arg == "" || p.isVersion(arg) {
			return cached(p)
		}
	}
	_, err := os.Stat(arg)
	switch {
	case err == nil:
		return arg, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", usage.Errorf("weights: %w", err)
	}
	for _, p := range files {
		if arg == p.File {
			return cached(p)
		}
	}
	return "", absent{usage.Errorf("weights: no file %s%s", arg, orVersion(net, files))}
}

// ErrAbsent is what errors.Is finds in the error of weights that are named
// rightly, as far as one can tell, but are not on this machine.
var ErrAbsent = errors.New("not on this machine")

type absent struct{ error }

func (a absent) Unwrap() []error { return []error{a.error, ErrAbsent} }

func defaultEmbedded(net string, columns int) (string, error) {
	files := embeddedFor(net, columns)
	if len(files) == 1 {
		return files[0].Path, nil
	}
	if files = embeddedFor(net, 0); len(files) == 0 {
		return "", usage.Errorf("weights: no weights of %s are published: give a file with --weights", net)
	}
	var known []string
	for _, e := range files {
		known = append(known, fmt.Sprintf("%s (%s)", e.Path, e.Summary))
	}
	what := net
	if columns > 0 {
		what = fmt.Sprintf("%s on %d columns", net, columns)
	}
	return "", usage.Errorf("weights: no weights of %s are published: give a file with --weights, or one of %s", what, strings.Join(known, ", "))
}

func orVersion(net string, files []PublishedFile) string {
	if len(files) == 0 {
		return fmt.Sprintf(" (and no weights of %s are published)", net)
	}
	return fmt.Sprintf(": want a path, or for %s a published version: %s", net, versions(files))
}

// cached returns the path of a published file in the cache.
func cached(p PublishedFile) (string, error) {
	dir, err := CacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, p.File)
	_, err = os.Stat(path)
	if err == nil {
		return path, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", usage.Errorf("weights: %w", err)
	}
	return "", absent{usage.Errorf("weights: %s %s is not in the cache (%s): %s, or give a file with --weights", p.Net, p.Version, path, howToGet(p))}
}

// howToGet says what puts a published file into the cache.
func howToGet(p PublishedFile) string {
	if p.BaseURL == "" {
		return p.Note
	}
	name := p.Net
	if files := publishedFor(p.Net); len(files) > 0 && files[0].File != p.File {
		name = p.File // the net's name alone means its default
	}
	return "run `assay fetch " + name + "`"
}
