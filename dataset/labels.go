package dataset

import (
	"bufio"
	"bytes"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// fileLabel is a line of a label file.
type fileLabel struct {
	class, line int
}

// parseLabels reads "file class" lines. The class is what follows the last
// blank, a number from 0 or a WordNet id of ImageNet's; empty lines, a byte
// order mark and carriage returns are nothing. classes > 0 bounds the class.
func parseLabels(from string, text []byte, classes int) (map[string]fileLabel, error) {
	labels := map[string]fileLabel{}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<16)
	number := 0
	for lines.Scan() {
		number++
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		cut := strings.LastIndexAny(line, " \t")
		if cut < 0 {
			return nil, usage.Errorf("dataset: %s:%d: %q: want \"file class\"", from, number, line)
		}
		name, word := strings.TrimSpace(line[:cut]), line[cut+1:]
		class, ok := wnidClass(word)
		if !ok {
			n, err := strconv.Atoi(word)
			if err != nil {
				return nil, usage.Errorf("dataset: %s:%d: class %q of %s: want a number from 0", from, number, word, name)
			}
			class = n
		}
		if class < 0 {
			return nil, usage.Errorf("dataset: %s:%d: class %d of %s: want a number from 0", from, number, class, name)
		}
		if classes > 0 && class >= classes {
			return nil, usage.Errorf("dataset: %s:%d: class %d of %s: want 0..%d", from, number, class, name, classes-1)
		}
		name = path.Clean(name)
		if before, twice := labels[name]; twice && before.class != class {
			return nil, usage.Errorf("dataset: %s:%d: %s has class %d here and %d in line %d", from, number, name, class, before.class, before.line)
		}
		labels[name] = fileLabel{class, number}
	}
	if err := lines.Err(); err != nil {
		return nil, usage.Errorf("dataset: %s: after line %d: %w", from, number, err)
	}
	return labels, nil
}

// applyLabels gives every id the class that a label file has for it, or for it
// with the split's folder before it. Lines about other files are only a
// warning (a subset keeps its label file); an id without line is an error,
// since an accuracy over some of the images is easily taken for one over all.
func applyLabels(set *Set, ids []string, text []byte, from string, classes int) ([]int, error) {
	labels, err := parseLabels(from, text, classes)
	if err != nil {
		return nil, err
	}
	missing, first := 0, ""
	found := make([]int, len(ids))
	for i, id := range ids {
		l, ok := labels[id]
		if !ok && set.Split != "" {
			l, ok = labels[set.Split+"/"+id]
		}
		if !ok {
			if missing == 0 {
				first = id
			}
			missing++
		}
		found[i] = l.class
	}
	if missing > 0 {
		return nil, usage.Errorf("dataset: %s: no label for %d of %d items (first: %s): want a line \"%s CLASS\"", from, missing, len(ids), first, first)
	}
	if set.Split == "" && len(ids) < len(labels) {
		set.Warnings = append(set.Warnings, fmt.Sprintf("%s: %d of %d labels are for files that %s does not have", from, len(labels)-len(ids), len(labels), set.Path))
	}
	set.HasLabels = true
	return found, nil
}
