package dataset

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLayouts(t *testing.T) {
	for _, c := range []struct {
		name    string
		members []member
		opt     Options
		split   string
		splits  []string
		ids     []string
		classes []int
		names   []string
	}{
		{
			name:    "class folders in name order, empty ones counted",
			members: append(images("dog/1.jpg", "cat/b.PNG", "cat/a.jpeg", "cat/deep/c.jpg"), member{name: "bird/"}),
			ids:     []string{"cat/a.jpeg", "cat/b.PNG", "cat/deep/c.jpg", "dog/1.jpg"},
			classes: []int{1, 1, 1, 2},
			names:   []string{"bird", "cat", "dog"},
		},
		{
			name:    "flat without labels",
			members: images("b.jpg", "a.jpg"),
			ids:     []string{"a.jpg", "b.jpg"},
			classes: []int{-1, -1},
		},
		{
			name:    "flat with labels.txt: carriage returns, empty lines, blanks in names, lines about other files",
			members: append(images("b.jpg", "a b.jpg"), member{name: "labels.txt", content: "\xef\xbb\xbfb.jpg 7\r\n\r\na b.jpg\t3\r\ngone.jpg 9\n"}),
			ids:     []string{"a b.jpg", "b.jpg"},
			classes: []int{3, 7},
		},
		{
			name:    "labels by WordNet id",
			members: append(images("a.jpg", "b.jpg"), member{name: "labels.txt", content: "a.jpg n01443537\nb.jpg n15075141\n"}),
			ids:     []string{"a.jpg", "b.jpg"},
			classes: []int{1, 999},
		},
		{
			name:    "splits: test is the default",
			members: images("train/cat/1.jpg", "train/dog/1.jpg", "val/dog/3.jpg", "test/dog/2.jpg"),
			split:   "test", splits: []string{"test", "train", "val"},
			ids: []string{"dog/2.jpg"}, classes: []int{1}, names: []string{"cat", "dog"},
		},
		{
			name:    "splits: val without test",
			members: images("train/cat/1.jpg", "val/cat/1.jpg"),
			split:   "val", splits: []string{"train", "val"},
			ids: []string{"cat/1.jpg"}, classes: []int{0}, names: []string{"cat"},
		},
		{
			name:    "splits: named",
			members: images("train/cat/1.jpg", "train/dog/1.jpg", "test/dog/2.jpg"),
			opt:     Options{Split: "train"},
			split:   "train", splits: []string{"test", "train"},
			ids: []string{"cat/1.jpg", "dog/1.jpg"}, classes: []int{0, 1}, names: []string{"cat", "dog"},
		},
		{
			name:    "a split alone",
			members: images("val/cat/1.jpg", "val/dog/1.jpg"),
			split:   "val", splits: []string{"val"},
			ids: []string{"cat/1.jpg", "dog/1.jpg"}, classes: []int{0, 1}, names: []string{"cat", "dog"},
		},
		{
			name:    "test beside other folders and no train is a class",
			members: images("test/1.jpg", "exam/1.jpg"),
			ids:     []string{"exam/1.jpg", "test/1.jpg"}, classes: []int{0, 1}, names: []string{"exam", "test"},
		},
		{
			name: "flat splits with labels in each",
			members: append(images("train/1.jpg", "test/1.jpg"),
				member{name: "train/labels.txt", content: "1.jpg 4"}, member{name: "test/labels.txt", content: "1.jpg 5"}),
			split: "test", splits: []string{"test", "train"},
			ids: []string{"1.jpg"}, classes: []int{5},
		},
		{
			name:    "flat splits with labels in the root",
			members: append(images("train/1.jpg", "test/1.jpg"), member{name: "labels.txt", content: "train/1.jpg 4\ntest/1.jpg 5"}),
			opt:     Options{Split: "train"},
			split:   "train", splits: []string{"test", "train"},
			ids: []string{"1.jpg"}, classes: []int{4},
		},
		{
			name:    "some folders of ImageNet get ImageNet's numbers",
			members: images("n15075141/a.jpg", "n01443537/a.jpg"),
			ids:     []string{"n01443537/a.jpg", "n15075141/a.jpg"}, classes: []int{1, 999}, names: ImageNetNames(),
		},
		{
			name:    "but not for a net of ten classes",
			members: images("n15075141/a.jpg", "n01443537/a.jpg"), opt: Options{Classes: 10},
			ids: []string{"n01443537/a.jpg", "n15075141/a.jpg"}, classes: []int{0, 1}, names: []string{"n01443537", "n15075141"},
		},
		{
			name: "junk and other files are nothing",
			members: append(images("cat/1.jpg", "cat/._1.jpg", "__MACOSX/cat/1.jpg", ".hidden/x.jpg"),
				member{name: "README.md"}, member{name: "cat/notes.txt"}, member{name: ".DS_Store"}),
			ids: []string{"cat/1.jpg"}, classes: []int{0}, names: []string{"cat"},
		},
		{
			name:    "limit: a class in turn",
			members: images("a/1.jpg", "a/2.jpg", "a/3.jpg", "b/1.jpg", "c/1.jpg", "c/2.jpg"),
			opt:     Options{Limit: 5},
			ids:     []string{"a/1.jpg", "a/2.jpg", "b/1.jpg", "c/1.jpg", "c/2.jpg"}, classes: []int{0, 0, 1, 2, 2}, names: []string{"a", "b", "c"},
		},
		{
			name:    "limit without labels: the first",
			members: images("3.jpg", "1.jpg", "2.jpg"), opt: Options{Limit: 2},
			ids: []string{"1.jpg", "2.jpg"}, classes: []int{-1, -1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			hash := ""
			for kind, path := range layouts(t, c.members) {
				if kind != "folder" && (len(c.names) == 1 && c.splits == nil) {
					continue // one folder alone is the root of an archive, see TestCommonTop
				}
				set := open(t, path, c.opt)
				require.Equal(t, Images, set.Kind, kind)
				require.Equal(t, c.split, set.Split, kind)
				require.Equal(t, c.splits, set.Splits, kind)
				require.Equal(t, c.ids, ids(set), kind)
				require.Equal(t, c.classes, classes(set), kind)
				require.Equal(t, c.names, set.ClassNames, kind)
				require.Equal(t, c.classes[0] >= 0, set.HasLabels, kind)
				for i, item := range set.Items() {
					b, err := set.Read(context.Background(), i)
					require.NoError(t, err, kind)
					name := item.ID
					if c.split != "" {
						name = c.split + "/" + name
					}
					require.Equal(t, "content of "+name, string(b), kind)
					require.EqualValues(t, len(b), item.Size, kind)
				}
				got, err := set.ContentHash(context.Background())
				require.NoError(t, err)
				if hash != "" {
					require.Equal(t, hash, got, "the hash depends on how the data is packed: %s", kind)
				}
				hash = got
			}
		})
	}
}

func TestCommonTop(t *testing.T) {
	for _, c := range []struct {
		name    string
		members []member
		ids     []string
		classes []int
	}{
		{"photographs in a folder", images("photos/b.jpg", "photos/a.jpg"), []string{"a.jpg", "b.jpg"}, []int{-1, -1}},
		{"classes in a folder", images("pets/cat/1.jpg", "pets/dog/1.jpg"), []string{"cat/1.jpg", "dog/1.jpg"}, []int{0, 1}},
		{"splits in a folder", images("pets/train/cat/1.jpg", "pets/test/cat/2.jpg"), []string{"cat/2.jpg"}, []int{0}},
		{"labels in a folder", append(images("p/1.jpg"), member{name: "p/labels.txt", content: "1.jpg 2"}), []string{"1.jpg"}, []int{2}},
		{"a class of ImageNet", images("n01443537/1.jpg"), []string{"n01443537/1.jpg"}, []int{1}},
		{"only once", images("a/b/1.jpg"), []string{"b/1.jpg"}, []int{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for kind, path := range layouts(t, c.members) {
				if kind == "folder" {
					continue // a folder is what the user says it is
				}
				set := open(t, path, Options{})
				require.Equal(t, c.ids, ids(set), kind)
				require.Equal(t, c.classes, classes(set), kind)
			}
		})
	}
}

func TestLayoutErrors(t *testing.T) {
	labelled := func(text string) []member {
		return append(images("a.jpg", "b.jpg"), member{name: "labels.txt", content: text})
	}
	for _, c := range []struct {
		name    string
		members []member
		opt     Options
		want    []string
	}{
		{"no images", []member{{name: "x.txt"}}, Options{}, []string{"holds no images", ".png", "arrays"}},
		{"unknown split", images("train/a/1.jpg", "val/a/1.jpg"), Options{Split: "test"}, []string{`"test"`, "train, val"}},
		{"split of data without", images("a/1.jpg", "b/1.jpg"), Options{Split: "test"}, []string{"no splits"}},
		{"images beside class folders", images("1.jpg", "a/1.jpg"), Options{}, []string{"1.jpg", "labels.txt"}},
		{"more folders than classes", images("a/1.jpg", "b/1.jpg", "c/1.jpg"), Options{Classes: 2}, []string{"3 class folders", "0..1"}},
		{"label out of range", labelled("a.jpg 0\nb.jpg 1000\n"), Options{Classes: 1000}, []string{"labels.txt:2", "1000", "b.jpg", "0..999"}},
		{"negative label", labelled("a.jpg -1\nb.jpg 1\n"), Options{}, []string{"labels.txt:1", "-1"}},
		{"label that is no number", labelled("a.jpg 0\n\nb.jpg cat\n"), Options{}, []string{"labels.txt:3", `"cat"`}},
		{"no label in a line", labelled("a.jpg\n"), Options{}, []string{"labels.txt:1", "file class"}},
		{"two labels for a file", labelled("a.jpg 0\nb.jpg 1\na.jpg 2\n"), Options{}, []string{"labels.txt:3", "a.jpg", "line 1"}},
		{"a file without label", labelled("a.jpg 0\n"), Options{}, []string{"1 of 2", "b.jpg"}},
		{"negative limit", images("a.jpg"), Options{Limit: -1}, []string{"limit -1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, path := range layouts(t, c.members) {
				_, err := Open(context.Background(), path, c.opt)
				requireUsage(t, err, c.want...)
			}
		})
	}
	_, err := Open(context.Background(), filepath.Join(t.TempDir(), "none"), Options{})
	requireUsage(t, err, "none")
	odd := writeFile(t, filepath.Join(t.TempDir(), "odd.dat"), []byte("hello"))
	_, err = Open(context.Background(), odd, Options{})
	requireUsage(t, err, "odd.dat", ".tgz", ".csv")
}

func TestLabelsOverride(t *testing.T) {
	members := append(images("a/1.jpg", "b/1.jpg"), member{name: "labels.txt", content: "a/1.jpg 1\nb/1.jpg 1\n"})
	for kind, path := range layouts(t, members) {
		require.Equal(t, []int{1, 1}, classes(open(t, path, Options{})), kind)
		labels := writeFile(t, filepath.Join(t.TempDir(), "mine"), []byte("./a/1.jpg 8\nb/1.jpg 9\nc/1.jpg 9\n"))
		set := open(t, path, Options{Labels: labels})
		require.Equal(t, []int{8, 9}, classes(set), kind)
		require.Len(t, set.Warnings, 1)
		require.Contains(t, set.Warnings[0], "1 of 3")
		_, err := Open(context.Background(), path, Options{Labels: labels + "x"})
		requireUsage(t, err, "minex")
		require.NoError(t, set.CheckClasses(10))
		requireUsage(t, set.CheckClasses(9), "b/1.jpg", "0..8")
	}
}

func TestFoldersThroughLinks(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "store", "x.jpg"), []byte("x"))
	root := filepath.Join(dir, "root")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "cat"), 0o755))
	require.NoError(t, os.Symlink(filepath.Join(dir, "store", "x.jpg"), filepath.Join(root, "cat", "1.jpg")))
	require.NoError(t, os.Symlink(filepath.Join(dir, "store"), filepath.Join(root, "dog")))
	set := open(t, root, Options{})
	require.Equal(t, []string{"cat/1.jpg", "dog/x.jpg"}, ids(set))

	require.NoError(t, os.Symlink(root, filepath.Join(root, "cat", "again")))
	_, err := Open(context.Background(), root, Options{})
	requireUsage(t, err, "link")

	require.NoError(t, os.Remove(filepath.Join(root, "cat", "again")))
	require.NoError(t, os.Symlink(filepath.Join(dir, "gone.jpg"), filepath.Join(root, "cat", "2.jpg")))
	_, err = Open(context.Background(), root, Options{})
	requireUsage(t, err, "2.jpg")
}

func TestMixedWordNetFoldersWarn(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []string{"n01443537", "n99999999"} {
		writeFile(t, filepath.Join(dir, f, "1.jpg"), []byte("x"))
	}
	set := open(t, dir, Options{})
	require.Equal(t, []int{0, 1}, classes(set))
	require.Len(t, set.Warnings, 1)
	require.Contains(t, set.Warnings[0], "n99999999")
}

// The hashes change with what they stand for and with nothing else.
func TestHashes(t *testing.T) {
	ctx := context.Background()
	hash := func(members []member) string {
		h, err := open(t, layouts(t, members)["tgz"], Options{}).ContentHash(ctx)
		require.NoError(t, err)
		return h
	}
	base := images("a/1.jpg", "b/1.jpg")
	same := hash(base)
	require.Equal(t, same, hash([]member{base[1], base[0]}), "order in the archive")
	require.NotEqual(t, same, hash(images("a/1.jpg", "b/2.jpg")), "id")
	require.NotEqual(t, same, hash([]member{base[0], {name: "b/1.jpg", content: "other"}}), "content")
	require.NotEqual(t, same, hash(append(base, member{name: "labels.txt", content: "a/1.jpg 0\nb/1.jpg 0"})), "class")

	set := open(t, layouts(t, []member{{name: "abc.jpg", content: "abc"}})["folder"], Options{})
	h, err := set.ItemHash(ctx, 0)
	require.NoError(t, err)
	// FIPS 180-4's example for SHA-256 of "abc".
	require.Equal(t, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", h)
	_, err = set.ItemHash(ctx, 1)
	require.ErrorContains(t, err, "item 1")
	_, _, err = set.Values(0)
	require.ErrorContains(t, err, "images")
}
