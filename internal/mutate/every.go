package mutate

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// Reader is a reader of files under test.
type Reader struct {
	// Ending of the files' names, with its dot.
	Ending string
	// Name is the whole name for readers that go by it; "": "damaged" and Ending.
	Name string
	// Read reads the file at path and everything in it. It returns nil where
	// the damage does not show.
	Read func(path string) error
	// Fixed is what Read may allocate whatever the size of the file: buffers of
	// fixed size, in bytes. 0: DefaultFixed.
	Fixed uint64
}

const (
	// Factor bounds what a reader allocates, beside Fixed: that many times the
	// bytes of the file. All allocations of a call count, freed ones too.
	Factor = 10
	// DefaultFixed is Reader.Fixed where nothing else is said.
	DefaultFixed = 4 << 20
	// deadline is for a reader that hangs: a case takes about a millisecond.
	deadline     = 30 * time.Second
	defaultCases = 2000
	// maxMessage bounds an error, the folder of the file left out.
	maxMessage = 320
)

// count is the number of cases: ASSAY_MUTATIONS, else the format's, else 2000.
func (f Format) count(tb testing.TB) int {
	text := os.Getenv("ASSAY_MUTATIONS")
	switch {
	case text == "" && f.Cases > 0:
		return f.Cases
	case text == "":
		return defaultCases
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		tb.Fatalf("ASSAY_MUTATIONS=%s: want a number of cases from 1", text)
	}
	return n
}

// Every runs the reader over the cases of the format. Each must end without
// a panic and within half a minute, allocate at most Factor times the file and
// Fixed, and answer with nil or an error that OneLine accepts. Failing cases
// are kept in the test's artifacts (go test -artifacts). The seeds themselves
// must be read without an error: else the cases would test little.
func Every(t *testing.T, f Format, reader Reader) {
	t.Helper()
	name := reader.Name
	if name == "" {
		name = "damaged" + reader.Ending
	}
	path := filepath.Join(t.TempDir(), name)
	write := func(b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, b := range f.Seeds {
		write(b)
		if err := reader.Read(path); err != nil {
			t.Fatalf("seed %s: %v", name, err)
		}
	}
	failed, refused, count := 0, 0, f.count(t)
	slowest, slow := time.Duration(0), ""
	for n := range count {
		b, seed := f.Case(n)
		write(b)
		what := fmt.Sprintf("%s case %d (of %s, %d bytes)", f.Name, n, seed, len(b))
		began := time.Now()
		problem, err := reader.call(path, uint64(len(b)), what)
		if took := time.Since(began); took > slowest {
			slowest, slow = took, what
		}
		if err != nil {
			refused++
		}
		if problem == "" {
			continue
		}
		kept := filepath.Join(t.ArtifactDir(), fmt.Sprintf("%s-%d%s", f.Name, n, reader.Ending))
		if err := os.WriteFile(kept, b, 0o600); err != nil {
			t.Error(err)
		}
		t.Errorf("%s: %s", what, problem)
		if failed++; failed == 20 {
			t.Fatal("and more")
		}
	}
	if refused < count/4 {
		t.Errorf("%s: %d of %d cases were refused: the damage does not reach the reader", f.Name, refused, count)
	}
	t.Logf("%s: %d cases, %d refused; the slowest took %v: %s", f.Name, count, refused, slowest.Round(time.Millisecond), slow)
}

// Call reads one file and says which of the promises of Every was broken, ""
// if none.
func (reader Reader) Call(path string) (problem string) {
	info, err := os.Stat(path)
	if err != nil {
		return err.Error()
	}
	problem, _ = reader.call(path, uint64(info.Size()), path)
	return problem
}

// call reads one file. problem says which promise was broken, "" if none.
func (reader Reader) call(path string, size uint64, what string) (problem string, err error) {
	if reader.Fixed == 0 {
		reader.Fixed = DefaultFixed
	}
	// A reader that hangs cannot be stopped; the panic names the case.
	alarm := time.AfterFunc(deadline, func() { panic(what + ": no answer for " + deadline.String()) })
	defer alarm.Stop()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	func() {
		defer func() {
			if p := recover(); p != nil {
				problem = fmt.Sprintf("panic: %v", p)
			}
		}()
		err = reader.Read(path)
	}()
	runtime.ReadMemStats(&after)
	if problem != "" {
		return problem, err
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > Factor*size+reader.Fixed {
		return fmt.Sprintf("%d bytes were allocated: want at most %d times the file and %d (error: %v)", used, Factor, reader.Fixed, err), err
	}
	if err != nil {
		if fault := OneLine(err, filepath.Base(path)); fault != "" {
			return fmt.Sprintf("error %q: %s", err, fault), err
		}
	}
	return "", err
}

var address = regexp.MustCompile(`0xc[0-9a-f]{9}`)

// OneLine says what keeps an error from being one clear line about a file:
// line breaks and control characters, too much text, no name of the file, or
// words from inside Go. "" if nothing does.
func OneLine(err error, file string) string {
	text := err.Error()
	if i := strings.Index(text, file); i < 0 {
		return "does not name the file"
	}
	// The folder is the test's, and of any length.
	bare := text
	for _, word := range strings.Fields(text) {
		if strings.HasPrefix(word, "/") && strings.Contains(word, file) {
			bare = strings.ReplaceAll(bare, word[:strings.Index(word, file)], "")
		}
	}
	switch {
	case strings.TrimSpace(text) != text || text == "":
		return "empty or with blanks around it"
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }):
		return "holds line breaks or characters that are not printed"
	case len(bare) > maxMessage:
		return fmt.Sprintf("has %d bytes: want at most %d", len(bare), maxMessage)
	}
	if address.MatchString(bare) {
		return "holds an address"
	}
	for _, word := range []string{
		"goroutine", "runtime error", "&{", "map[", "%!", "interface {", "[]interface", "*types.", "types.", "struct field", "Go struct", "Go value", "reflect.", "orchestrate.", "dataset.Options", "usage.", "weights.Tensor", "(MISSING)", "panic",
	} {
		if strings.Contains(bare, word) {
			return "speaks of Go's insides: " + word
		}
	}
	return ""
}
