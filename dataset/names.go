package dataset

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"
)

//go:embed wnids.txt
var wnidText string

var wnids = sync.OnceValue(func() []string { return nonComments(wnidText) })

var wnidIndex = sync.OnceValue(func() map[string]int {
	index := make(map[string]int, len(wnids()))
	for i, id := range wnids() {
		index[id] = i
	}
	return index
})

// wnidForm is how WordNet ids of nouns look.
var wnidForm = regexp.MustCompile(`^n[0-9]{8}$`)

func isWNID(s string) bool { return wnidForm.MatchString(s) }

// wnidClass is the class of one of ImageNet's 1000 WordNet ids.
func wnidClass(id string) (int, bool) {
	class, ok := wnidIndex()[id]
	return class, ok
}

// wnidNumbers numbers folders as ImageNet does if all of them are of its 1000.
// Where all look like WordNet ids and some are of the 1000 and some are not,
// unknown is the first that is not.
func wnidNumbers(folders []string) (number map[string]int, unknown string) {
	number = make(map[string]int, len(folders))
	for _, folder := range folders {
		if !isWNID(folder) {
			return nil, ""
		}
		if class, ok := wnidClass(folder); ok {
			number[folder] = class
		} else if unknown == "" {
			unknown = folder
		}
	}
	switch {
	case unknown == "":
		return number, ""
	case len(number) == 0:
		return nil, "" // another vocabulary altogether
	}
	return nil, unknown
}

// nonComments splits a list, one entry a line, "#" lines being comments.
func nonComments(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") {
			list = append(list, line)
		}
	}
	return list
}
