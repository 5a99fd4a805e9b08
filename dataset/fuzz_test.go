package dataset

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/assay-xai/assay/internal/usage"
)

// FuzzTable: any text is a table of consistent size or the user's mistake.
func FuzzTable(f *testing.F) {
	for _, seed := range []string{
		"a,b,y\n1,2,0\n3,4,1\n", "1,2,x\n3,4,y\n", "2,1,no,yes\n1,0\n2,1\n", "a;b;y\n1;2;0\n",
		"\xef\xbb\xbf\"q\"\"q\",y\n1,0\n", ",a,y\n0,1,1\n", "", "\n\n", "\"", "0,1,2\n5,6,1\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		table, err := parseTable(context.Background(), "t.csv", bytes.NewReader(text), TableSchema{})
		if err != nil {
			if !errors.Is(err, usage.Err) {
				t.Fatalf("not marked as bad input: %v", err)
			}
			return
		}
		rows := len(table.lines)
		if rows == 0 || len(table.values) != rows*len(table.columns) || len(table.classes) != rows {
			t.Fatalf("%d rows, %d columns, %d values, %d classes", rows, len(table.columns), len(table.values), len(table.classes))
		}
		for _, c := range table.classes {
			if c < 0 || table.names != nil && c >= len(table.names) {
				t.Fatalf("class %d of names %q", c, table.names)
			}
		}
	})
}

// FuzzArchive: any bytes are an archive with unique ids inside it, whose items
// are read within the limits, or the user's mistake.
func FuzzArchive(f *testing.F) {
	members := append(images("cat/1.jpg", "dog/1.jpg", "../x.jpg"), member{name: "labels.txt", content: "cat/1.jpg 0\ndog/1.jpg 1\n"})
	for _, n := range []int{2, 3, 4} {
		f.Add(tarBytes(f, members[:n]))
		f.Add(gzipBytes(f, tarBytes(f, members[:n])))
		f.Add(zipBytes(f, members[:n]))
	}
	f.Add(gzipBytes(f, tarBytes(f, members))[:60])
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		for _, name := range []string{"a.tar", "a.tgz", "a.zip"} {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			opt := Options{MaxItemBytes: 1000, MaxBytes: 1500, MaxEntries: 100}
			set, err := Open(context.Background(), path, opt)
			if err != nil {
				if !errors.Is(err, usage.Err) {
					t.Fatalf("not marked as bad input: %v", err)
				}
				continue
			}
			seen := map[string]bool{}
			for i, item := range set.Items() {
				if seen[item.ID] || !filepath.IsLocal(item.ID) {
					t.Fatalf("id %q", item.ID)
				}
				seen[item.ID] = true
				b, err := set.Read(context.Background(), i)
				if err != nil && !errors.Is(err, usage.Err) {
					t.Fatalf("not marked as bad input: %v", err)
				}
				if len(b) > 1000 {
					t.Fatalf("%d bytes of %s", len(b), item.ID)
				}
			}
			if err := set.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzNpy: any bytes are an array that can be read or the user's mistake.
func FuzzNpy(f *testing.F) {
	f.Add(npyBytes("<f4", "(1, 2)", "12345678"))
	f.Add(npyBytes(">i8", "(1, 1)", "12345678"))
	f.Add(npyBytes("|u1", "(2, 2, 2)", "12345678"))
	f.Add([]byte("\x93NUMPY\x02\x00\x01\x00\x00\x00\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		a, err := readNpyHeader("a.npy", bytes.NewReader(content), int64(len(content)))
		if err == nil {
			_, err = a.inputShape()
		}
		if err == nil {
			_, _, err = a.row(a.shape[0] - 1)
			if err != nil {
				t.Fatalf("the last row of shape %v: %v", a.shape, err)
			}
			return
		}
		if !errors.Is(err, usage.Err) {
			t.Fatalf("not marked as bad input: %v", err)
		}
	})
}
