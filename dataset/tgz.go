package dataset

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/assay-xai/assay/internal/usage"
)

// tgzSource reads a gzipped tar, which has no random access. One pass indexes
// it and checks its sums; on the way it keeps the images as long as all of
// them fit a part of Options.MaxBytes. If they did not, the first read loads
// the chosen ones, or, where these are more than MaxBytes, reads go along a
// cursor: what it passes over is kept for readers that are a little behind,
// the oldest dropped first, and a reader behind all that starts a new pass.
type tgzSource struct {
	*archiveIndex
	mu     sync.Mutex
	closed bool
	cache  map[int64][]byte // by place in the archive
	// loaded: cache holds all that may be asked for.
	loaded bool
	chosen map[int64]entry
	bytes  int64 // of the chosen
	cursor *tgzCursor
	// passed lists what the cursor left in cache, oldest first.
	passed      []int64
	passedBytes int64
	// passes counts walks over the archive, for tests.
	passes int
}

// tgzCursor is a walk over the archive; next is the place of its next image.
type tgzCursor struct {
	file    *os.File
	archive *tar.Reader
	index   *archiveIndex // judges names as the first pass did
	next    int64
}

// indexCacheBytes is the most that indexing keeps on speculation.
const indexCacheBytes = 128 << 20

func openTgz(ctx context.Context, name string, size int64, opt Options) (*tgzSource, error) {
	t := &tgzSource{archiveIndex: newIndex(name, size, opt)}
	f, zipped, err := openGzip(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// Encoded images hardly shrink: what unpacks to much more is not kept.
	room := min(opt.MaxBytes, indexCacheBytes, 4*size+1<<20)
	t.cache, t.passes = map[int64][]byte{}, 1
	place := int64(0)
	err = indexTar(ctx, t.archiveIndex, zipped, func(clean string, size int64, content io.Reader) error {
		t.keep(clean, size, place)
		if room -= size; room < 0 {
			t.cache = nil
		}
		if t.cache != nil {
			b, err := readAtMost(content, size, size)
			if err != nil {
				return err
			}
			t.cache[place] = b
		}
		place++
		return nil
	})
	if err != nil {
		return nil, err
	}
	// What follows the end mark of a tar is padding; gzip's sum comes after it.
	if _, err := io.Copy(io.Discard, io.LimitReader(zipped, 1<<20)); err != nil {
		return nil, t.damaged(ctx, err, "its last file")
	}
	return t, nil
}

func openGzip(name string) (*os.File, *gzip.Reader, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, usage.Errorf("dataset: %w", err)
	}
	zipped, err := gzip.NewReader(bufio.NewReaderSize(f, 1<<18))
	if err != nil {
		f.Close()
		return nil, nil, usage.Errorf("dataset: %s: no gzip file, or one cut off: %w", name, err)
	}
	return f, zipped, nil
}

func (t *tgzSource) choose(chosen []entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget()
	t.chosen = make(map[int64]entry, len(chosen))
	for _, e := range chosen {
		t.chosen[e.loc] = e
		t.bytes += e.size
	}
	if t.cache != nil {
		for place := range t.cache {
			if _, ok := t.chosen[place]; !ok {
				delete(t.cache, place)
			}
		}
		t.loaded = true
	}
	return !t.loaded && t.bytes > t.opt.MaxBytes
}

func (t *tgzSource) read(ctx context.Context, e entry) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errClosed
	}
	if !t.loaded && t.bytes <= t.opt.MaxBytes {
		if err := t.load(ctx); err != nil {
			return nil, err
		}
	}
	if b, ok := t.cache[e.loc]; ok {
		return append(make([]byte, 0, len(b)), b...), nil
	}
	if t.loaded {
		return nil, errors.New("not among the chosen files")
	}
	return t.seek(ctx, e.loc)
}

// load reads the chosen files into memory.
func (t *tgzSource) load(ctx context.Context) error {
	if err := t.rewind(); err != nil {
		return err
	}
	defer t.stop()
	cache := make(map[int64][]byte, len(t.chosen))
	for len(cache) < len(t.chosen) {
		place, b, err := t.advance(ctx)
		if err != nil {
			return err
		}
		cache[place] = b
	}
	t.cache, t.loaded = cache, true
	return nil
}

// seek moves the cursor to the file at place and returns it.
func (t *tgzSource) seek(ctx context.Context, place int64) ([]byte, error) {
	if t.cursor == nil || t.cursor.next > place {
		if err := t.rewind(); err != nil {
			return nil, err
		}
	}
	for {
		at, b, err := t.advance(ctx)
		if err != nil {
			t.stop()
			return nil, err
		}
		if at == place {
			return b, nil
		}
		if _, there := t.cache[at]; there {
			continue
		}
		if t.cache == nil {
			t.cache = map[int64][]byte{}
		}
		t.cache[at] = b
		t.passed = append(t.passed, at)
		t.passedBytes += int64(len(b))
		for t.passedBytes > t.opt.MaxBytes {
			oldest := t.passed[0]
			t.passed = t.passed[1:]
			t.passedBytes -= int64(len(t.cache[oldest]))
			delete(t.cache, oldest)
		}
	}
}

func (t *tgzSource) rewind() error {
	t.stop()
	f, zipped, err := openGzip(t.name)
	if err != nil {
		return err
	}
	t.passes++
	t.cursor = &tgzCursor{file: f, archive: tar.NewReader(zipped), index: newIndex(t.name, t.compressed, t.opt)}
	return nil
}

func (t *tgzSource) stop() {
	if t.cursor != nil {
		t.cursor.file.Close()
		t.cursor = nil
	}
}

// advance goes to the next chosen image and reads it.
func (t *tgzSource) advance(ctx context.Context) (place int64, content []byte, err error) {
	c := t.cursor
	for {
		if err := ctx.Err(); err != nil {
			return 0, nil, err
		}
		header, err := c.archive.Next()
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return 0, nil, usage.Errorf("%s has changed since it was opened: %w", t.name, err)
		}
		clean, what, err := c.index.add(header.Name, tarKind(header), header.Size)
		if err != nil {
			return 0, nil, err
		}
		if what != wantImage {
			continue
		}
		place = c.next
		c.next++
		want, ok := t.chosen[place]
		if !ok {
			continue
		}
		if clean != want.path || header.Size != want.size {
			return 0, nil, usage.Errorf("%s has changed since it was opened: %s is where %s was", t.name, clean, want.path)
		}
		content, err = readAtMost(c.archive, header.Size, header.Size)
		return place, content, err
	}
}

// Close drops the cache.
func (t *tgzSource) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop()
	t.closed, t.cache, t.passed = true, nil, nil
	return nil
}
