package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"sort"
	"sync"

	"github.com/assay-xai/assay/internal/usage"
)

// Kind says what the items of a set are.
type Kind string

// The kinds of sets.
const (
	// Images are encoded image files: Set.Read gives their bytes.
	Images Kind = "images"
	// Arrays are numbers of shape [C,H,W] or [F]: Set.Values gives them.
	Arrays Kind = "arrays"
	// Table is rows of named columns, [F]: Set.Values gives them.
	Table Kind = "table"
)

// Options say which part of the data a set is. The zero value is everything
// that the data offers by default.
type Options struct {
	// Split names a split; "" is test, else val, else everything.
	Split string
	// Labels is a file that overrides the labels found beside the data:
	// "file class" a line, or an .npy of integers for arrays, or the ground
	// truth of ImageNet's development kit with its meta.mat beside it.
	Labels string
	// Limit keeps that many items: round-robin over the classes in name order,
	// in each by id; without labels the first ids. A smaller limit is always a
	// part of a larger one. 0 is no limit.
	Limit int
	// Classes is the number of classes that the net knows; a label outside
	// 0..Classes-1 is an error. 0: unknown. With a number other than 1000,
	// folders named by WordNet ids are numbered in name order.
	Classes int
	// Coarse takes the 20 coarse labels of CIFAR-100 for the 100 fine ones;
	// other data has no such choice.
	Coarse bool
	// MaxBytes is how much of a gzipped tar is held in memory; 0: 512 MiB.
	MaxBytes int64
	// MaxItemBytes is the largest file accepted; 0: 256 MiB.
	MaxItemBytes int64
	// MaxEntries is the largest number of entries in an archive; 0: 5 million.
	MaxEntries int
}

const (
	defaultMaxBytes     = 512 << 20
	defaultMaxItemBytes = 256 << 20
	defaultMaxEntries   = 5_000_000
)

func (o Options) withDefaults() Options {
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	if o.MaxItemBytes <= 0 {
		o.MaxItemBytes = defaultMaxItemBytes
	}
	if o.MaxEntries <= 0 {
		o.MaxEntries = defaultMaxEntries
	}
	return o
}

// Item is one input.
type Item struct {
	// ID is the image id, see the package's head.
	ID string
	// Class is the label from 0, -1 where the data has none.
	Class int
	// Size is the number of bytes of an image file, 0 for rows.
	Size int64
}

// Set is an opened part of a data set. All methods but Close may be called
// from several goroutines at once.
type Set struct {
	// Path is what Open was given.
	Path string
	Kind Kind
	// Split is the split that is read, "" for everything; Splits are those
	// that the data has, in name order.
	Split  string
	Splits []string
	// HasLabels says that every item has a class.
	HasLabels bool
	// ClassNames names the classes 0..len-1; nil where they are unknown.
	ClassNames []string
	// Schema describes the columns of a table; nil for other kinds.
	Schema *Schema
	// Warnings are what the user should know but need not mend.
	Warnings []string

	items  []Item
	store  store
	mu     sync.Mutex
	hashes [][sha256.Size]byte
	known  []bool
}

// store reads the items of a set by their place in Set.Items.
type store interface {
	// bytes gives an image's file, nil and errNoBytes for rows.
	bytes(ctx context.Context, i int) ([]byte, error)
	// values gives a row and its shape, errNoValues for images.
	values(i int) ([]float32, []int, error)
	io.Closer
}

// Items lists the items; the caller must not change the list.
func (s *Set) Items() []Item { return s.items }

// Len is the number of items.
func (s *Set) Len() int { return len(s.items) }

// Read returns the encoded file of image i; the caller owns it. Arrays and
// tables have none: there it is an error.
func (s *Set) Read(ctx context.Context, i int) ([]byte, error) {
	if err := s.check(ctx, i); err != nil {
		return nil, err
	}
	if s.Kind != Images {
		return nil, fmt.Errorf("dataset: %s: item %d has no file: the data is %s", s.Path, i, s.Kind)
	}
	b, err := s.store.bytes(ctx, i)
	if err != nil {
		return nil, usage.Line(fmt.Errorf("dataset: reading %s of %s: %w", s.items[i].ID, s.Path, err), s.Path)
	}
	s.remember(i, sha256.Sum256(b))
	return b, nil
}

// Values returns row i as it stands in the data, before Preset.Normalise, and
// its shape, [C,H,W] or [F]; the caller owns both. For images it is an error.
func (s *Set) Values(i int) (values []float32, shape []int, err error) {
	if err := s.check(context.Background(), i); err != nil {
		return nil, nil, err
	}
	if s.Kind == Images {
		return nil, nil, fmt.Errorf("dataset: %s: item %d has no values: the data is images", s.Path, i)
	}
	values, shape, err = s.store.values(i)
	if err != nil {
		return nil, nil, usage.Line(fmt.Errorf("dataset: reading row %s of %s: %w", s.items[i].ID, s.Path, err), s.Path)
	}
	return values, shape, nil
}

// ItemHash is the SHA-256, in hex, of what item i holds: the bytes of an image
// file, or the values of a row (float32, little endian) after its shape.
// Neither id nor class is in it. An image that was Read is not read again.
func (s *Set) ItemHash(ctx context.Context, i int) (string, error) {
	h, err := s.itemHash(ctx, i)
	return hex.EncodeToString(h[:]), err
}

func (s *Set) itemHash(ctx context.Context, i int) (sum [sha256.Size]byte, err error) {
	if err := s.check(ctx, i); err != nil {
		return sum, err
	}
	s.mu.Lock()
	sum, known := s.hashes[i], s.known[i]
	s.mu.Unlock()
	if known {
		return sum, nil
	}
	if s.Kind == Images {
		b, err := s.Read(ctx, i)
		if err != nil {
			return sum, err
		}
		return sha256.Sum256(b), nil
	}
	values, shape, err := s.Values(i)
	if err != nil {
		return sum, err
	}
	var b []byte
	for _, n := range shape {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	sum = sha256.Sum256(b)
	s.remember(i, sum)
	return sum, nil
}

// ContentHash is the SHA-256, in hex, of the set: ids, classes and contents of
// its items, whatever their order and wherever they lie. It reads what was not
// read before.
func (s *Set) ContentHash(ctx context.Context) (string, error) {
	order := make([]int, len(s.items))
	for i := range order {
		order[i] = i
	}
	sums := make([][sha256.Size]byte, len(s.items))
	for i := range s.items { // in the order that reads an archive once
		sum, err := s.itemHash(ctx, i)
		if err != nil {
			return "", err
		}
		sums[i] = sum
	}
	sort.Slice(order, func(a, b int) bool { return s.items[order[a]].ID < s.items[order[b]].ID })
	h := sha256.New()
	var word [8]byte
	for _, i := range order {
		binary.LittleEndian.PutUint64(word[:], uint64(len(s.items[i].ID)))
		h.Write(word[:])
		h.Write([]byte(s.items[i].ID))
		binary.LittleEndian.PutUint64(word[:], uint64(int64(s.items[i].Class)))
		h.Write(word[:])
		h.Write(sums[i][:])
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// CheckClasses says whether every label is within 0..classes-1; the error
// names the first item that is not. Items without label pass.
func (s *Set) CheckClasses(classes int) error {
	for _, item := range s.items {
		if item.Class >= classes {
			return usage.Errorf("dataset: %s: class %d of %s: the net knows classes 0..%d", s.Path, item.Class, item.ID, classes-1)
		}
	}
	return nil
}

// ClassName is the name of a class, "" where it is not known.
func (s *Set) ClassName(class int) string {
	if class < 0 || class >= len(s.ClassNames) {
		return ""
	}
	return s.ClassNames[class]
}

// Close lets go of files. Further reads are errors.
func (s *Set) Close() error {
	if s.store == nil {
		return nil
	}
	return s.store.Close()
}

func (s *Set) check(ctx context.Context, i int) error {
	if i < 0 || i >= len(s.items) {
		return fmt.Errorf("dataset: %s: item %d: want 0..%d", s.Path, i, len(s.items)-1)
	}
	return ctx.Err()
}

func (s *Set) remember(i int, sum [sha256.Size]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hashes[i], s.known[i] = sum, true
}
