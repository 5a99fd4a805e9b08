package weights

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"

	"github.com/assay-xai/assay/internal/usage"
)

// FetchOptions says what to fetch and where to.
type FetchOptions struct {
	// Name is the id of a net or the name of a published file.
	Name string
	// Version is a published version of the net; "" for the default.
	Version string
	// Cache is the folder to put it in; "" for CacheDir().
	Cache string
	// BaseURL replaces the publisher's folder (a mirror); "" for the list's.
	BaseURL string
	// Progress is told the bytes that are there and in all (-1: unknown), many
	// times, from the fetching goroutine; nil for nobody.
	Progress func(done, total int64)
	// Client does the requests; nil for one without an overall time limit.
	Client *http.Client
	// Retries is how often a broken connection is taken up again within the
	// call: 0 for 4, negative for never. Attempts that brought data do not count.
	Retries int
	// RetryWait is the pause before that; 0 for two seconds.
	RetryWait time.Duration
	// StallTimeout is how long a connection may bring nothing; 0 for a minute.
	StallTimeout time.Duration

	// wrap stands between the data and the part file in tests of a full disk.
	wrap func(io.Writer) io.Writer
}

// Fetch gets a published file into the cache and returns its path. A file that
// is there and has the right hash is left as it is.
//
// The data go to NAME.part; a later call goes on where an earlier one was cut
// off, provided that the server's file is still the same (If-Range with the
// ETag or date kept in NAME.part.validator), else it begins anew. The SHA-256
// has to begin with the digits in the file's name; then the file is synced and
// renamed. On a wrong hash or a full disk the part is removed. Two processes
// do not fetch one file at one time.
//
// Errors: unknown names satisfy usage.Err; others say what the server or the
// disk said. ctx cancels, leaving the part for the next call.
func Fetch(ctx context.Context, o FetchOptions) (string, error) {
	p, ok := findPublished(o.Name, o.Version)
	if !ok {
		return "", unknownPublished(o)
	}
	return fetchFile(ctx, p, o)
}

// fetchFile is Fetch for a file of any list.
func fetchFile(ctx context.Context, p PublishedFile, o FetchOptions) (string, error) {
	if o.Cache == "" {
		dir, err := CacheDir()
		if err != nil {
			return "", err
		}
		o.Cache = dir
	}
	path := filepath.Join(o.Cache, p.File)
	if sum, err := fileHash(path); err == nil && strings.HasPrefix(sum, p.hash()) {
		return path, nil
	}
	if o.BaseURL == "" {
		o.BaseURL = p.BaseURL
	}
	if o.BaseURL == "" {
		return "", usage.Errorf("weights: fetch %s: not fetched over the network: %s", p.File, p.Note)
	}
	d := newDownload(o, p, path)
	if err := d.run(ctx); err != nil {
		return "", fmt.Errorf("weights: fetch %s: %w", d.url, err)
	}
	return path, nil
}

func unknownPublished(o FetchOptions) error {
	if files := publishedFor(o.Name); len(files) > 0 {
		return usage.Errorf("weights: fetch %s: no version %s: want one of %s", o.Name, o.Version, versions(files))
	}
	seen := map[string]bool{}
	var names []string
	for _, p := range Published() {
		if !seen[p.Net] {
			seen[p.Net] = true
			names = append(names, p.Net)
		}
	}
	sort.Strings(names)
	return usage.Errorf("weights: fetch %s: nothing of that name is published: want one of %s", o.Name, strings.Join(names, ", "))
}

// download is one file on its way into the cache.
type download struct {
	FetchOptions
	published PublishedFile
	url       string
	path      string
	file      *os.File // NAME.part, locked
	done      int64    // bytes in it
}

func newDownload(o FetchOptions, p PublishedFile, path string) *download {
	if o.Client == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.ResponseHeaderTimeout = 30 * time.Second
		o.Client = &http.Client{Transport: t}
	}
	if o.Retries == 0 {
		o.Retries = 4
	}
	if o.RetryWait == 0 {
		o.RetryWait = 2 * time.Second
	}
	if o.StallTimeout == 0 {
		o.StallTimeout = time.Minute
	}
	return &download{FetchOptions: o, published: p, path: path, url: strings.TrimSuffix(o.BaseURL, "/") + "/" + p.File}
}

func (d *download) part() string      { return d.path + ".part" }
func (d *download) validator() string { return d.path + ".part.validator" }

func (d *download) run(ctx context.Context) error {
	if err := os.MkdirAll(d.Cache, 0o755); err != nil {
		return err
	}
	if err := d.lock(); err != nil {
		return err
	}
	defer func() { _ = d.file.Close() }()
	if err := d.receive(ctx); err != nil {
		return d.explain(err)
	}
	if err := d.verify(); err != nil {
		return err
	}
	if err := d.file.Sync(); err != nil {
		return d.explain(err)
	}
	if err := os.Rename(d.part(), d.path); err != nil {
		return err
	}
	_ = os.Remove(d.validator())
	return syncFolder(d.Cache)
}

// lock opens the part file for this process alone.
func (d *download) lock() error {
	f, err := os.OpenFile(d.part(), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("another process is fetching it (%s is locked): wait for it", d.part())
		}
		return fmt.Errorf("lock %s: %w", d.part(), err)
	}
	// The holder before us may have renamed the file that we opened.
	opened, err1 := f.Stat()
	there, err2 := os.Stat(d.part())
	if err := errors.Join(err1, err2); err != nil || !os.SameFile(opened, there) {
		_ = f.Close()
		return fmt.Errorf("another process has just fetched it or removed %s: run this again", d.part())
	}
	d.file = f
	return nil
}

// stopError is an answer that another attempt would not change.
type stopError struct{ error }

func (e stopError) Unwrap() error { return e.error }

// receive asks until all is there.
func (d *download) receive(ctx context.Context) error {
	for failures := 0; ; {
		before := d.done
		err := d.attempt(ctx)
		if err == nil {
			return nil
		}
		var stop stopError
		if errors.As(err, &stop) || errors.Is(err, syscall.ENOSPC) || ctx.Err() != nil {
			return err
		}
		if failures++; d.done > before {
			failures = 1
		}
		if failures > d.Retries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(d.RetryWait):
		}
	}
}

// attempt does one request from where the part file ends.
func (d *download) attempt(ctx context.Context) error {
	info, err := d.file.Stat()
	if err != nil {
		return stopError{err}
	}
	d.done = info.Size()
	known, err := os.ReadFile(d.validator())
	if err != nil || len(known) == 0 {
		d.done = 0 // nothing says what the part is a part of
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return stopError{err}
	}
	if d.done > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.done))
		request.Header.Set("If-Range", string(known))
	}
	stalled := fmt.Errorf("nothing came for %v", d.StallTimeout)
	watch := time.AfterFunc(d.StallTimeout, func() { cancel(stalled) })
	defer watch.Stop()
	response, err := d.Client.Do(request)
	if err != nil {
		return d.cause(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	total, err := d.accept(response)
	if err != nil || total == d.done {
		return err
	}
	return d.cause(ctx, d.copy(response.Body, total, func() { watch.Reset(d.StallTimeout) }))
}

// cause replaces the error of a cancelled request by the reason.
func (d *download) cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// accept looks at the answer's head, sets the part file to where its body
// begins and returns the size of the whole file (-1: unknown).
func (d *download) accept(r *http.Response) (int64, error) {
	switch r.StatusCode {
	case http.StatusPartialContent:
		var from, to, total int64
		if _, err := fmt.Sscanf(r.Header.Get("Content-Range"), "bytes %d-%d/%d", &from, &to, &total); err != nil || from != d.done || to != total-1 {
			_ = os.Remove(d.validator()) // the next attempt asks for everything
			return 0, fmt.Errorf("asked for bytes from %d on, the server sent %q", d.done, r.Header.Get("Content-Range"))
		}
		return total, d.place(total)
	case http.StatusOK:
		d.done = 0
		// First the old validator goes, then the data, then the new one comes: a
		// crash between never leaves data with another file's validator.
		if err := os.Remove(d.validator()); err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0, stopError{err}
		}
		if err := d.place(r.ContentLength); err != nil {
			return 0, err
		}
		if v := strongValidator(r.Header); v != "" {
			if err := os.WriteFile(d.validator(), []byte(v), 0o644); err != nil {
				return 0, err
			}
		}
		return r.ContentLength, nil
	case http.StatusRequestedRangeNotSatisfiable:
		var total int64
		if _, err := fmt.Sscanf(r.Header.Get("Content-Range"), "bytes */%d", &total); err == nil && total == d.done {
			return total, nil // it was all there; the hash decides
		}
		_ = os.Remove(d.validator())
		return 0, fmt.Errorf("the server has no bytes from %d on: beginning anew", d.done)
	}
	err := fmt.Errorf("the server says %s", r.Status)
	switch {
	case r.StatusCode == http.StatusNotFound || r.StatusCode == http.StatusGone:
		return 0, stopError{fmt.Errorf("%w: want the published file there, or another address of it", err)}
	case r.StatusCode >= 500 || r.StatusCode == http.StatusTooManyRequests || r.StatusCode == http.StatusRequestTimeout:
		return 0, err
	}
	return 0, stopError{err}
}

// strongValidator returns what If-Range may carry: a strong ETag, or a date.
func strongValidator(h http.Header) string {
	if tag := h.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		return tag
	}
	return h.Get("Last-Modified")
}

// place cuts the part file at d.done and looks whether the rest has room.
func (d *download) place(total int64) error {
	if err := d.file.Truncate(d.done); err != nil {
		return stopError{err}
	}
	if _, err := d.file.Seek(d.done, io.SeekStart); err != nil {
		return stopError{err}
	}
	var fs syscall.Statfs_t
	if total < 0 || syscall.Statfs(d.Cache, &fs) != nil {
		return nil
	}
	if free := int64(fs.Bavail) * int64(fs.Bsize); free < total-d.done {
		return noSpaceError{need: total - d.done, free: free}
	}
	return nil
}

// noSpaceError is a full disk that was seen before writing.
type noSpaceError struct{ need, free int64 }

func (e noSpaceError) Error() string {
	return fmt.Sprintf("%d more bytes are needed and %d are free", e.need, e.free)
}

func (noSpaceError) Is(target error) bool { return target == syscall.ENOSPC }

// copy appends the body to the part file.
func (d *download) copy(body io.Reader, total int64, alive func()) error {
	var to io.Writer = d.file
	if d.wrap != nil {
		to = d.wrap(d.file)
	}
	buffer := make([]byte, 1<<17)
	for {
		n, readErr := body.Read(buffer)
		if n > 0 {
			alive()
			if _, err := to.Write(buffer[:n]); err != nil {
				return stopError{err}
			}
			d.done += int64(n)
			if d.Progress != nil {
				d.Progress(d.done, total)
			}
		}
		if readErr == io.EOF {
			if total >= 0 && d.done != total {
				return fmt.Errorf("%w: %d of %d bytes came", io.ErrUnexpectedEOF, d.done, total)
			}
			return nil
		}
		if readErr != nil {
			return fmt.Errorf("after %d bytes: %w", d.done, readErr)
		}
	}
}

// explain adds to an error of the transfer what the user can do about it.
func (d *download) explain(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		d.discard()
		return fmt.Errorf("no space left in %s: %w: make room or set XDG_CACHE_HOME to another disk (nothing is left behind)", d.Cache, err)
	}
	if d.done == 0 {
		d.discard()
		return err
	}
	return fmt.Errorf("%w: %s is kept, run this again to go on from there", err, d.part())
}

// verify compares the hash.
func (d *download) verify() error {
	want := d.published.hash()
	sum, err := fileHash(d.part())
	if err != nil {
		return err
	}
	if strings.HasPrefix(sum, want) {
		return nil
	}
	d.discard()
	return fmt.Errorf("its SHA-256 begins with %s: want %s (damaged on the way, or another file under that name); it is removed, run this again",
		sum[:min(len(want), len(sum))], want)
}

func (d *download) discard() {
	_ = os.Remove(d.part())
	_ = os.Remove(d.validator())
}

func fileHash(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// syncFolder makes a rename last through a power cut.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return f.Sync()
}
