package dataset

import (
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// labelParser turns the words of a label column into classes. Numbers are
// classes from 0; words are numbered in name order, or by the list of names.
type labelParser struct {
	path  string
	names []string
	// words has every distinct word with its number in order of appearance and
	// the line where it stood first.
	words map[string]int
	list  []string
	first []int
	seen  []int32 // a word's number per row
}

// maxClasses bounds the distinct labels of a table: more are no classes.
const maxClasses = 100_000

func newLabelParser(path string, names []string) *labelParser {
	return &labelParser{path: path, names: names, words: map[string]int{}}
}

// take adds the label of a row.
func (p *labelParser) take(word string, line, column int, name string) error {
	number, ok := p.words[word]
	if !ok {
		if word == "" {
			return usage.Errorf("dataset: %s:%d: column %d (%s): no label: want a class", p.path, line, column, name)
		}
		if len(p.list) >= maxClasses {
			return usage.Errorf("dataset: %s:%d: column %d (%s) has more than %d different values: it holds no classes; name the label in a schema, or \"label: none\"", p.path, line, column, name, maxClasses)
		}
		number = len(p.list)
		word = strings.Clone(word)
		p.words[word] = number
		p.list, p.first = append(p.list, word), append(p.first, line)
	}
	p.seen = append(p.seen, int32(number))
	return nil
}

// finish returns the class of every row and the names, nil for mere numbers.
func (p *labelParser) finish(column string) (classes []int, names []string, err error) {
	bad := func(i int, want string) error {
		return usage.Errorf("dataset: %s:%d: label %q (column %s): want %s; a schema beside the file can name another label column, or \"label: none\"", p.path, p.first[i], p.list[i], column, want)
	}
	number := make([]int, len(p.list))
	allNumbers := true
	for i, word := range p.list {
		v, err := strconv.ParseFloat(word, 64)
		if err != nil {
			allNumbers, number[i] = false, -1
			continue
		}
		if v != math.Trunc(v) || v < 0 || v > math.MaxInt32 {
			return nil, nil, bad(i, "a whole number from 0, or a name")
		}
		number[i] = int(v)
	}
	names = p.names
	switch {
	case names != nil:
		for i, word := range p.list {
			if at := slices.Index(names, word); at >= 0 {
				number[i] = at
			} else if number[i] < 0 || number[i] >= len(names) {
				return nil, nil, bad(i, "one of "+strings.Join(names, ", ")+", or 0.."+strconv.Itoa(len(names)-1))
			}
		}
	case !allNumbers:
		for i := range p.list {
			if number[i] >= 0 {
				return nil, nil, bad(i, "a name like the other labels")
			}
		}
		names = slices.Clone(p.list)
		sort.Strings(names)
		for i, word := range p.list {
			number[i], _ = slices.BinarySearch(names, word)
		}
	}
	classes = make([]int, len(p.seen))
	for row, w := range p.seen {
		classes[row] = number[w]
	}
	return classes, names, nil
}
