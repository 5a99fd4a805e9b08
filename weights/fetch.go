package weights

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	stdnet "net"
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
	// Version is a published version of the net, with or without what comes
	// before its first "_" ("IMAGENET1K_V2" or "V2"); "" for the default.
	Version string
	// Cache is the folder to put it in; "" for CacheDir().
	Cache string
	// BaseURL replaces the publisher's folder (a mirror); "" for the list's.
	BaseURL string
	// Progress is told the bytes that are there and in all (-1: unknown), many
	// times, from the fetching goroutine; nil for nobody.
	Progress func(done, total int64)
	// Note is told in one line why it takes longer: a connection broke and is
	// taken up again, another process has the file; nil for nobody.
	Note func(line string)
	// Client does the requests; nil for one without an overall time limit that
	// follows redirects, but none from https to http.
	Client *http.Client
	// Retries is how often a broken connection is taken up again within the
	// call: 0 for 4, negative for never. After an attempt that brought more than
	// any before it the count begins again.
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
// renamed. On a full disk what is there is kept for a later call; where the
// room is too small from the start, nothing is left. On a wrong hash, or when
// more comes than the server announced, the part is removed. While another
// process (or goroutine) fetches the same file the call waits for it and then
// takes its file.
//
// Errors are one line; unknown names satisfy usage.Err, others say what the
// server or the disk said (errors.Is(err, syscall.ENOSPC) for a full one). ctx
// cancels, leaving the part for the next call.
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
	if isThere(p, path) {
		return path, nil
	}
	if o.BaseURL == "" {
		o.BaseURL = p.BaseURL
	}
	if o.BaseURL == "" {
		return "", usage.Errorf("weights: fetch %s: not fetched over the network: %s", p.File, p.Note)
	}
	d := newDownload(o, p, path)
	if o.Client == nil {
		defer d.Client.CloseIdleConnections()
	}
	if err := d.run(ctx); err != nil {
		var dial *stdnet.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			return "", fmt.Errorf("weights: fetch %s: %w: try --mirror URL, or put the file into %s by other means", d.url, err, o.Cache)
		}
		return "", fmt.Errorf("weights: fetch %s: %w", d.url, err)
	}
	return path, nil
}

// isThere says that the cache has the file, undamaged.
func isThere(p PublishedFile, path string) bool {
	sum, err := fileHash(path)
	return err == nil && strings.HasPrefix(sum, p.hash())
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
	most      int64    // the largest done of any attempt
}

func newDownload(o FetchOptions, p PublishedFile, path string) *download {
	if o.Client == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.ResponseHeaderTimeout = 30 * time.Second
		o.Client = &http.Client{Transport: t, CheckRedirect: checkRedirect}
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
	if o.Note == nil {
		o.Note = func(string) {}
	}
	return &download{FetchOptions: o, published: p, path: path, url: strings.TrimSuffix(o.BaseURL, "/") + "/" + p.File}
}

func (d *download) part() string      { return d.path + ".part" }
func (d *download) validator() string { return d.path + ".part.validator" }

func (d *download) run(ctx context.Context) error {
	if err := os.MkdirAll(d.Cache, 0o755); err != nil {
		return err
	}
	if err := d.lock(ctx); err != nil {
		return err
	}
	defer func() { _ = d.file.Close() }()
	if isThere(d.published, d.path) { // another process had it until now
		d.discard()
		return nil
	}
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

// lockPoll is how often a download that another process has is looked at.
const lockPoll = 100 * time.Millisecond

// lock opens the part file for this call alone, waiting for whoever has it.
func (d *download) lock(ctx context.Context) error {
	for waited := false; ; waited = true {
		f, err := tryLock(d.part())
		if err != nil {
			return err
		}
		if f != nil {
			d.file = f
			return nil
		}
		if !waited {
			d.Note("another process is fetching " + d.published.File + ": waiting for it")
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the process that has locked %s: %w", d.part(), ctx.Err())
		case <-time.After(lockPoll):
		}
	}
}

// tryLock opens and locks a file; nil while another has it.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	// The holder before us may have renamed or removed the file that we opened.
	opened, err1 := f.Stat()
	there, err2 := os.Stat(path)
	if err1 != nil || err2 != nil || !os.SameFile(opened, there) {
		_ = f.Close()
		return nil, nil
	}
	return f, nil
}

// explain adds to an error of the transfer what the user can do about it.
func (d *download) explain(err error) error {
	advice := ", run this again to go on from there"
	if isFull(err) {
		err = fmt.Errorf("the disk of %s is full: %w (XDG_CACHE_HOME chooses another)", d.Cache, err)
		advice = ""
	}
	if d.done == 0 {
		d.discard()
		return err
	}
	if _, e := os.Stat(d.validator()); e != nil {
		d.discard() // it could not be gone on with
		return err
	}
	return fmt.Errorf("%w: %s is kept%s", err, d.part(), advice)
}

// isFull says that the disk, or the user's part of it, is full.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
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
