package weights

// What goes wrong between a server and a disk.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	network "net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// requireLine checks that an error is one line with all of these in it.
func requireLine(t *testing.T, err error, want ...string) {
	t.Helper()
	require.Error(t, err)
	require.NotContains(t, err.Error(), "\n")
	for _, w := range want {
		require.ErrorContains(t, err, w)
	}
}

func TestFetchSaysWhyItTriesAgain(t *testing.T) {
	c := newFetchCase(t)
	c.cutAfter, c.options.Retries = []int{1000, 0, 5000}, 2
	var notes []string
	c.options.Note = func(line string) { notes = append(notes, line) }
	_, err := c.fetch()
	require.NoError(t, err)
	c.complete(t)
	require.Equal(t, []string{"", "bytes=1000-", "bytes=1000-", "bytes=6000-"}, c.ranges())
	require.Len(t, notes, 3)
	for _, n := range notes {
		require.Contains(t, n, ": trying again")
	}
	for _, h := range c.seen() {
		require.Equal(t, "identity", h.Get("Accept-Encoding"))
	}
}

// A server that cuts at the same place for ever is given up, although data come
// with every attempt.
func TestFetchEndsWithoutProgress(t *testing.T) {
	c := newFetchCase(t)
	c.noRanges, c.options.Retries = true, 3
	for i := range 100 {
		c.cutAfter = append(c.cutAfter, []int{2000, 1000}[i%2])
	}
	_, err := c.fetch()
	requireLine(t, err, c.published.File, "run this again")
	require.Len(t, c.seen(), 4)
}

func TestFetchOfUnknownLength(t *testing.T) {
	c := newFetchCase(t)
	c.chunked = true
	var total int64
	c.options.Progress = func(_, n int64) { total = n }
	_, err := c.fetch()
	require.NoError(t, err)
	c.complete(t)
	require.Equal(t, int64(-1), total)
}

// rawServer answers every request with these bytes and closes.
func rawServer(t *testing.T, answer func(request *http.Request) string) string {
	l, err := network.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			connection, err := l.Accept()
			if err != nil {
				return
			}
			if request, err := http.ReadRequest(bufio.NewReader(connection)); err == nil {
				_, _ = io.WriteString(connection, answer(request))
			}
			_ = connection.Close()
		}
	})
	t.Cleanup(func() { _ = l.Close(); serving.Wait() })
	return "http://" + l.Addr().String()
}

func TestFetchMoreThanAnnounced(t *testing.T) {
	// Behind the announced length: never read.
	c := newFetchCase(t)
	c.options.BaseURL = rawServer(t, func(*http.Request) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s and more", len(c.content), c.content)
	})
	_, err := c.fetch()
	require.NoError(t, err)
	c.complete(t)

	// Behind the announced end of the range.
	c = newFetchCase(t)
	c.cutAfter = []int{1000}
	_, err = c.fetch()
	require.Error(t, err)
	c.options.BaseURL = rawServer(t, func(r *http.Request) string {
		require.Equal(t, "bytes=1000-", r.Header.Get("Range"))
		return fmt.Sprintf("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 1000-%d/%d\r\n\r\n%s and more",
			len(c.content)-1, len(c.content), c.content[1000:])
	})
	_, err = c.fetch()
	requireLine(t, err, "the server sends more than the "+strconv.Itoa(len(c.content))+" bytes that the file has")
	c.leaves(t)

	// Of unknown length, and longer than the published file.
	c = newFetchCase(t)
	c.chunked, c.published.MiB = true, .001
	c.content = make([]byte, 2<<20)
	_, err = c.fetch()
	requireLine(t, err, "the server sends more than the 1049624 bytes") // 1.001 MiB
	c.leaves(t)
	require.Len(t, c.seen(), 1)
}

func TestFetchLessThanAnnounced(t *testing.T) {
	c := newFetchCase(t)
	c.options.BaseURL = rawServer(t, func(*http.Request) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: %d\r\n\r\n%s", len(c.content), c.content[:1000])
	})
	_, err := c.fetch()
	requireLine(t, err, "unexpected EOF", "run this again to go on from there")
	c.options.BaseURL = ""
	_, err = c.fetch()
	require.NoError(t, err)
	c.complete(t)
	require.Equal(t, []string{"bytes=1000-"}, c.ranges())
}

// A range that was not asked for is not put into the file.
func TestFetchOfAnotherRange(t *testing.T) {
	c := newFetchCase(t)
	c.cutAfter = []int{1000}
	_, err := c.fetch()
	require.Error(t, err)
	c.options.BaseURL = rawServer(t, func(*http.Request) string {
		return fmt.Sprintf("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 500-%d/%d\r\n\r\n%s", len(c.content)-1, len(c.content), c.content[500:])
	})
	_, err = c.fetch()
	requireLine(t, err, "asked for bytes from 1000 on", `the server sent "bytes 500-`)
	c.options.BaseURL = ""
	_, err = c.fetch()
	require.NoError(t, err)
	c.complete(t)
}

func TestFetchRedirected(t *testing.T) {
	c := newFetchCase(t)
	c.cutAfter = []int{1000}
	front := httptest.NewServer(http.RedirectHandler(c.URL+"/elsewhere", http.StatusFound))
	defer front.Close()
	c.options.BaseURL, c.options.Client = front.URL, nil
	_, err := c.fetch()
	require.Error(t, err)
	_, err = c.fetch() // goes on behind the redirect
	require.NoError(t, err)
	c.complete(t)
	require.Equal(t, []string{"", "bytes=1000-"}, c.ranges())

	c = newFetchCase(t)
	var loop *httptest.Server
	loop = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, loop.URL, http.StatusFound)
	}))
	defer loop.Close()
	c.options.BaseURL, c.options.Client, c.options.Retries = loop.URL, nil, 3
	_, err = c.fetch()
	requireLine(t, err, loop.URL+"/"+c.published.File+": more than 10 redirects")
	c.leaves(t)

	safe := httptest.NewTLSServer(http.RedirectHandler(c.URL+"/elsewhere", http.StatusFound))
	defer safe.Close()
	c.options.BaseURL, c.options.Client = safe.URL, safe.Client()
	c.options.Client.CheckRedirect = checkRedirect
	_, err = c.fetch()
	requireLine(t, err, "the server redirects to "+c.URL+"/elsewhere: want https")
	require.Empty(t, c.seen())
}

func TestFetchFromNowhere(t *testing.T) {
	c := newFetchCase(t)
	c.Close()
	var notes int
	c.options.Note, c.options.Retries = func(string) { notes++ }, 2
	_, err := c.fetch()
	requireLine(t, err, "weights: fetch "+c.URL+"/models/"+c.published.File+": dial tcp", "connection refused", "--mirror")
	require.Equal(t, 1, strings.Count(err.Error(), c.published.File))
	require.Equal(t, 2, notes)
	c.leaves(t)
}

// A server that accepts and never answers.
func TestFetchFromASilentServer(t *testing.T) {
	c := newFetchCase(t)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	c.options.BaseURL, c.options.StallTimeout = silent.URL, 20*time.Millisecond
	_, err := c.fetch()
	requireLine(t, err, "nothing came for 20ms")
	c.leaves(t)
}

type fullDisk struct {
	io.Writer
	room int
}

func (f *fullDisk) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, &os.PathError{Op: "write", Path: "part", Err: syscall.ENOSPC}
	}
	return f.Writer.Write(b)
}

func TestFetchToAFullDisk(t *testing.T) {
	c := newFetchCase(t)
	c.options.Retries = 3
	c.options.wrap = func(w io.Writer) io.Writer { return &fullDisk{w, 150000} }
	_, err := c.fetch()
	requireLine(t, err, "the disk of "+c.options.Cache+" is full: ", "XDG_CACHE_HOME", ".part is kept")
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Len(t, c.seen(), 1)
	require.NoFileExists(t, c.path)

	c.options.wrap = nil // room was made
	_, err = c.fetch()
	require.NoError(t, err)
	c.complete(t)
	require.NotEmpty(t, c.ranges()[1])

	// What could not be gone on with is not left on a full disk.
	c = newFetchCase(t)
	c.etag = ""
	c.options.wrap = func(w io.Writer) io.Writer { return &fullDisk{w, 150000} }
	_, err = c.fetch()
	require.ErrorIs(t, err, syscall.ENOSPC)
	c.leaves(t)

	require.True(t, errors.Is(noSpaceError{1, 0}, syscall.ENOSPC))
	require.EqualError(t, noSpaceError{need: 9, free: 4}, "9 more bytes are needed and 4 are free")
	require.True(t, isFull(fmt.Errorf("quota: %w", syscall.EDQUOT)))
}

// onSmallDisk runs f with a file system of so many bytes at dir, which nobody
// but its thread sees and which ends with it.
func onSmallDisk(t *testing.T, dir string, size int, f func()) {
	mounted := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Never unlocked: the thread, and its view of the file systems, end here.
		runtime.LockOSThread()
		err := errors.Join(unix.Unshare(unix.CLONE_FS|unix.CLONE_NEWNS),
			unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)))
		if mounted <- err; err == nil {
			f()
		}
	}()
	<-done
	if err := <-mounted; err != nil {
		t.Skipf("SKIP: a small disk cannot be mounted here: %v", err)
	}
}

func TestFetchToASmallDisk(t *testing.T) {
	c := newFetchCase(t)
	require.NoError(t, os.MkdirAll(c.options.Cache, 0o755))
	var early, late error
	var left []os.DirEntry
	onSmallDisk(t, c.options.Cache, 128<<10, func() {
		_, early = c.fetch() // the length says that it does not fit
		left, _ = os.ReadDir(c.options.Cache)
		c.chunked = true
		_, late = c.fetch() // it shows while writing
	})
	require.ErrorIs(t, early, syscall.ENOSPC)
	requireLine(t, early, "360000 more bytes are needed and 131072 are free")
	require.Empty(t, left)
	require.ErrorIs(t, late, syscall.ENOSPC)
	requireLine(t, late, "no space left on device", ".part is kept")
}

func TestFetchWhileAnotherDoes(t *testing.T) {
	c := newFetchCase(t)
	require.NoError(t, os.MkdirAll(c.options.Cache, 0o755))
	f, err := os.Create(c.path + ".part")
	require.NoError(t, err)
	require.NoError(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))

	ctx, cancel := context.WithCancel(context.Background())
	var note string
	c.options.Note = func(line string) { note = line; cancel() }
	_, err = fetchFile(ctx, c.published, c.options)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "another process is fetching "+c.published.File+": waiting for it", note)
	require.Empty(t, c.seen())

	// The other process is killed: the lock is gone, its part is there.
	c.options.Note = func(string) { _ = f.Close() }
	_, err = c.fetch()
	require.NoError(t, err)
	c.complete(t)
}

func TestFetchManyTimesAtOnce(t *testing.T) {
	c := newFetchCase(t)
	var fetching sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		fetching.Go(func() { _, errs[i] = c.fetch() })
	}
	fetching.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Len(t, c.seen(), 1)
	c.complete(t)
}

func TestFetchIntoAFileInTheWay(t *testing.T) {
	c := newFetchCase(t)
	require.NoError(t, os.WriteFile(filepath.Dir(c.options.Cache)+"/file", nil, 0o644))
	c.options.Cache = filepath.Dir(c.options.Cache) + "/file/cache"
	_, err := c.fetch()
	requireLine(t, err, "file")
	require.ErrorIs(t, err, syscall.ENOTDIR)
}
