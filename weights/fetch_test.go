package weights

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/assay-xai/assay/internal/usage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server serves one file the way the table of a test says.
type server struct {
	*httptest.Server
	content  []byte
	etag     string
	noRanges bool
	// cutAfter lists, request by request, after how many bytes the connection
	// is cut; -1: not.
	cutAfter []int
	status   int
	stall    bool
	// chunked leaves the length out.
	chunked bool

	mu       sync.Mutex
	requests []http.Header
}

func newServer(t *testing.T, content []byte) *server {
	s := &server{content: content, etag: `"v1"`}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Header.Clone())
	cut := -1
	if n := len(s.requests) - 1; n < len(s.cutAfter) {
		cut = s.cutAfter[n]
	}
	s.mu.Unlock()
	if s.status != 0 {
		w.WriteHeader(s.status)
		return
	}
	w.Header().Set("ETag", s.etag)
	body := s.content
	if from := r.Header.Get("Range"); from != "" && !s.noRanges && r.Header.Get("If-Range") == s.etag {
		n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(from, "bytes="), "-"))
		if err != nil || n >= len(body) {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", len(body)))
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", n, len(body)-1, len(body)))
		w.Header().Set("Content-Length", strconv.Itoa(len(body)-n))
		w.WriteHeader(http.StatusPartialContent)
		body = body[n:]
	} else if !s.chunked {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	if cut >= 0 && cut < len(body) {
		_, _ = w.Write(body[:cut])
		w.(http.Flusher).Flush()
		if s.stall {
			<-r.Context().Done()
		}
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(body)
}

func (s *server) seen() []http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]http.Header(nil), s.requests...)
}

// ranges returns the Range header of each request.
func (s *server) ranges() []string {
	var out []string
	for _, h := range s.seen() {
		out = append(out, h.Get("Range"))
	}
	return out
}

type fetchCase struct {
	*server
	published PublishedFile
	options   FetchOptions
	path      string
}

func newFetchCase(t *testing.T) *fetchCase {
	content := []byte(strings.Repeat("weights of a net. ", 20000))
	sum := sha256.Sum256(content)
	s := newServer(t, content)
	p := PublishedFile{Net: "n", Version: "V", File: "n-" + hex.EncodeToString(sum[:4]) + ".pth", BaseURL: s.URL + "/models"}
	cache := filepath.Join(t.TempDir(), "cache")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return &fetchCase{
		server: s, published: p, path: filepath.Join(cache, p.File),
		options: FetchOptions{Cache: cache, Client: client, Retries: -1, RetryWait: time.Millisecond},
	}
}

func (c *fetchCase) fetch() (string, error) {
	return fetchFile(context.Background(), c.published, c.options)
}

// complete checks that the file, and only the file, is there.
func (c *fetchCase) complete(t *testing.T) {
	b, err := os.ReadFile(c.path)
	require.NoError(t, err)
	require.Equal(t, c.content, b)
	c.leaves(t, filepath.Base(c.path))
}

func (c *fetchCase) leaves(t *testing.T, want ...string) {
	entries, err := os.ReadDir(c.options.Cache)
	require.NoError(t, err)
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.ElementsMatch(t, want, names)
}

func TestFetch(t *testing.T) {
	c := newFetchCase(t)
	var last, total int64
	c.options.Progress = func(d, n int64) { last, total = d, n }
	path, err := c.fetch()
	require.NoError(t, err)
	require.Equal(t, c.path, path)
	c.complete(t)
	require.Equal(t, int64(len(c.content)), last)
	require.Equal(t, last, total)

	// There already: no request.
	_, err = c.fetch()
	require.NoError(t, err)
	require.Len(t, c.seen(), 1)

	// There, but damaged: anew.
	require.NoError(t, os.WriteFile(c.path, []byte("damaged"), 0o644))
	_, err = c.fetch()
	require.NoError(t, err)
	c.complete(t)
}

func TestFetchGoesOnWhereItWasCut(t *testing.T) {
	c := newFetchCase(t)
	c.cutAfter = []int{1000, 5000, -1}
	_, err := c.fetch()
	require.ErrorContains(t, err, c.published.File)
	require.ErrorContains(t, err, "run this again to go on from there")
	require.NoFileExists(t, c.path)
	c.leaves(t, filepath.Base(c.path)+".part", filepath.Base(c.path)+".part.validator")

	c.options.Retries = 0 // within the call now
	_, err = c.fetch()
	require.NoError(t, err)
	c.complete(t)
	require.Equal(t, []string{"", "bytes=1000-", "bytes=6000-"}, c.ranges())
}

func TestFetchBeginsAnewWhereTheFileChanged(t *testing.T) {
	c := newFetchCase(t)
	c.cutAfter = []int{1000}
	good := c.content
	c.content = []byte(strings.Repeat("x", 5000))
	_, err := c.fetch()
	require.Error(t, err)
	c.content, c.etag = good, `"v2"`
	_, err = c.fetch()
	require.NoError(t, err)
	c.complete(t)
	require.Equal(t, `"v1"`, c.seen()[1].Get("If-Range"))
}

func TestFetchFromAServerWithoutRanges(t *testing.T) {
	c := newFetchCase(t)
	c.noRanges, c.cutAfter, c.options.Retries = true, []int{1000, 2000}, 3
	_, err := c.fetch()
	require.NoError(t, err)
	c.complete(t)
}

func TestFetchWithoutValidatorBeginsAnew(t *testing.T) {
	c := newFetchCase(t)
	require.NoError(t, os.MkdirAll(c.options.Cache, 0o755))
	require.NoError(t, os.WriteFile(c.path+".part", []byte("of who knows what"), 0o644))
	_, err := c.fetch()
	require.NoError(t, err)
	c.complete(t)
	require.Equal(t, []string{""}, c.ranges())
}

func TestFetchOfACompletePart(t *testing.T) {
	c := newFetchCase(t)
	require.NoError(t, os.MkdirAll(c.options.Cache, 0o755))
	require.NoError(t, os.WriteFile(c.path+".part", c.content, 0o644))
	require.NoError(t, os.WriteFile(c.path+".part.validator", []byte(c.etag), 0o644))
	_, err := c.fetch()
	require.NoError(t, err)
	c.complete(t)

	// Longer than the file: anew.
	require.NoError(t, os.Remove(c.path))
	require.NoError(t, os.WriteFile(c.path+".part", append([]byte("more"), c.content...), 0o644))
	require.NoError(t, os.WriteFile(c.path+".part.validator", []byte(c.etag), 0o644))
	c.options.Retries = 1
	_, err = c.fetch()
	require.NoError(t, err)
	c.complete(t)
}

func TestFetchWrongHash(t *testing.T) {
	c := newFetchCase(t)
	c.content = append([]byte("X"), c.content[1:]...)
	_, err := c.fetch()
	sum := sha256.Sum256(c.content)
	require.ErrorContains(t, err, "its SHA-256 begins with "+hex.EncodeToString(sum[:4])+": want "+c.published.hash())
	c.leaves(t)
}

func TestFetchStatus(t *testing.T) {
	c := newFetchCase(t)
	c.status, c.options.Retries = http.StatusNotFound, 3
	_, err := c.fetch()
	require.ErrorContains(t, err, "404 Not Found")
	require.ErrorContains(t, err, c.URL+"/models/"+c.published.File)
	require.Len(t, c.seen(), 1) // asking again would not help
	c.leaves(t)

	c.status = http.StatusServiceUnavailable
	_, err = c.fetch()
	require.ErrorContains(t, err, "503")
	require.Len(t, c.seen(), 1+4)
	c.leaves(t)
}

func TestFetchCancelled(t *testing.T) {
	c := newFetchCase(t)
	c.cutAfter, c.stall = []int{1000}, true
	ctx, cancel := context.WithCancel(context.Background())
	c.options.Progress = func(int64, int64) { cancel() }
	c.options.Retries = 3
	_, err := fetchFile(ctx, c.published, c.options)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, c.seen(), 1)

	c.options.Progress = nil
	_, err = c.fetch()
	require.NoError(t, err)
	c.complete(t)
	require.Equal(t, []string{"", "bytes=1000-"}, c.ranges())
}

func TestFetchFromAServerThatStalls(t *testing.T) {
	c := newFetchCase(t)
	c.cutAfter, c.stall, c.options.StallTimeout = []int{1000}, true, 20*time.Millisecond
	_, err := c.fetch()
	require.ErrorContains(t, err, "nothing came for 20ms")
}

func TestFetchNames(t *testing.T) {
	ctx := context.Background()
	for _, o := range []struct {
		FetchOptions
		want string
	}{
		{FetchOptions{Name: "resnet19"}, "want one of alexnet, cifar-resnet110, cifar-resnet20,"},
		{FetchOptions{Name: "resnet18", Version: "V7"}, "no version V7: want one of IMAGENET1K_V1"},
		{FetchOptions{Name: "vit-b-16", Version: "V2"}, "no version V2: want one of IMAGENET1K_V1, IMAGENET1K_SWAG_LINEAR_V1"},
		{FetchOptions{Name: "efficientnet-lite0", Cache: t.TempDir()}, "scripts/setup.sh puts it there"},
	} {
		_, err := Fetch(ctx, o.FetchOptions)
		require.ErrorIs(t, err, usage.Err)
		require.ErrorContains(t, err, o.want)
	}

	// The address of a published file, and the hash that refuses another one.
	s := newServer(t, []byte("not resnet50"))
	cache := t.TempDir()
	for _, version := range []string{"imagenet1k_v2", "V2", "v2"} {
		_, err := Fetch(ctx, FetchOptions{Name: "resnet50", Version: version, Cache: cache, BaseURL: s.URL})
		require.ErrorContains(t, err, s.URL+"/resnet50-11ad3fa6.pth: its SHA-256 begins with")
		require.ErrorContains(t, err, "want 11ad3fa6")
	}
}
