package dataset

import (
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/assay-xai/assay/internal/usage"
)

// archiveIndex gathers what an archive holds and refuses what no honest
// archive of images holds: paths outside it, links, absurd sizes and numbers.
// Nothing is ever written to disk, so a hostile path does no harm here; it is
// refused because such an archive should not be trusted at all.
type archiveIndex struct {
	name    string
	opt     Options
	list    []entry
	dirs    map[string]bool
	texts   map[string][]byte
	entries int
	// total is the sum of declared sizes, compressed the archive's own size.
	total, compressed int64
}

// An archive that would unpack to more than bombBytes and more than bombRatio
// times its own size is taken for a bomb: encoded images hardly shrink.
const (
	bombBytes = 1 << 30
	bombRatio = 100
	// maxTextBytes bounds a labels.txt: 5 million lines fit.
	maxTextBytes = 512 << 20
)

func newIndex(name string, compressed int64, opt Options) *archiveIndex {
	return &archiveIndex{name: name, opt: opt, compressed: compressed, dirs: map[string]bool{}, texts: map[string][]byte{}}
}

// entryKind is what an archive's format says of an entry.
type entryKind int

const (
	regularEntry entryKind = iota
	folderEntry
	linkEntry
	specialEntry // devices, pipes, sparse files
)

// wanted is what the index makes of an entry.
type wanted int

const (
	ignored wanted = iota
	wantImage
	wantText
)

// add looks at an entry. For wantImage it is in the list (loc to be set by
// keep), for wantText the caller reads it into texts under clean.
func (x *archiveIndex) add(name string, kind entryKind, size int64) (clean string, what wanted, err error) {
	x.entries++
	if x.entries > x.opt.MaxEntries {
		return "", ignored, usage.Errorf("dataset: %s has more than %d entries", x.name, x.opt.MaxEntries)
	}
	clean, err = x.clean(name)
	if err != nil {
		return "", ignored, err
	}
	if kind == regularEntry && isImage(clean) {
		if err := x.opt.checkSize(x.name, clean, size); err != nil {
			return "", ignored, err
		}
	}
	if kind == regularEntry {
		if size < 0 {
			return "", ignored, usage.Errorf("dataset: %s: %s has a size of %d bytes", x.name, clean, size)
		}
		x.total += size
		if x.total < 0 || x.total > bombBytes && x.total/bombRatio > x.compressed {
			return "", ignored, usage.Errorf("dataset: %s has %d bytes but unpacks to more than %d times as many (at %s): no archive of images does", x.name, x.compressed, bombRatio, clean)
		}
	}
	if clean == "." || isJunk(clean) {
		return clean, ignored, nil
	}
	switch kind {
	case folderEntry:
		for dir := clean; dir != "."; dir = path.Dir(dir) {
			x.dirs[dir] = true
		}
		return clean, ignored, nil
	case linkEntry:
		return "", ignored, usage.Errorf("dataset: %s: %s is a link: archives must hold the files themselves", x.name, clean)
	case specialEntry:
		return "", ignored, usage.Errorf("dataset: %s: %s is neither a file nor a folder", x.name, clean)
	}
	switch {
	case isImage(clean):
		return clean, wantImage, nil
	case isText(path.Base(clean)):
		if limit := textLimit(path.Base(clean)); size > limit {
			return "", ignored, usage.Errorf("dataset: %s: %s has %d bytes: want at most %d", x.name, clean, size, limit)
		}
		return clean, wantText, nil
	}
	return clean, ignored, nil
}

// keep lists an image; loc ascends in the archive's order.
func (x *archiveIndex) keep(clean string, size, loc int64) {
	x.list = append(x.list, entry{path: clean, size: size, loc: loc})
}

// clean checks an entry's name and returns it "/"-separated, without "./".
func (x *archiveIndex) clean(name string) (string, error) {
	outside := func() (string, error) {
		return "", usage.Errorf("dataset: %s: the path %q leads out of the archive", x.name, name)
	}
	slashed := strings.ReplaceAll(name, `\`, "/")
	if strings.HasPrefix(slashed, "/") || len(slashed) > 1 && slashed[1] == ':' {
		return outside()
	}
	if slices.Contains(strings.Split(slashed, "/"), "..") {
		return outside()
	}
	if name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
		return "", usage.Errorf("dataset: %s: the path %q is not a name of a file in UTF-8", x.name, name)
	}
	return path.Clean(slashed), nil
}

// folders lists the folders seen, in name order.
func (x *archiveIndex) folders() []string {
	dirs := make([]string, 0, len(x.dirs))
	for d := range x.dirs {
		dirs = append(dirs, d)
	}
	sort.Strings(dirs)
	return dirs
}

func (x *archiveIndex) files() []entry { return x.list }

func (x *archiveIndex) text(name string) ([]byte, error) {
	if b, ok := x.texts[name]; ok {
		return b, nil
	}
	return nil, fs.ErrNotExist
}

// forget drops what is not needed once the items are chosen.
func (x *archiveIndex) forget() { x.list, x.dirs, x.texts = nil, map[string]bool{}, nil }
