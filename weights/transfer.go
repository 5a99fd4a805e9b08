package weights

// The HTTP half of Fetch: requests from where the part file ends, and what the
// answers mean for it.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

// stopError is an answer that another attempt would not change.
type stopError struct{ error }

func (e stopError) Unwrap() error { return e.error }

// receive asks until all is there. It ends: what counts as progress is more
// than ever before, and accept and copy bound that.
func (d *download) receive(ctx context.Context) error {
	for failures := 0; ; {
		err := d.attempt(ctx)
		if err == nil {
			return nil
		}
		var stop stopError
		if errors.As(err, &stop) || isFull(err) || ctx.Err() != nil {
			return err
		}
		failures++
		if d.done > d.most {
			failures, d.most = 1, d.done
		}
		if failures > d.Retries {
			return err
		}
		d.Note(fmt.Sprintf("%v: trying again", err))
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
	d.most = max(d.most, d.done)

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return stopError{err}
	}
	// Of a compressed answer neither length nor ranges are the file's.
	request.Header.Set("Accept-Encoding", "identity")
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

// cause replaces the error of a cancelled request by the reason, and takes the
// address off, which the caller says.
func (d *download) cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// checkRedirect follows a few redirects, but not out of encryption: eight
// digits of a hash do not stop somebody on the way.
func checkRedirect(next *http.Request, before []*http.Request) error {
	if len(before) >= 10 {
		return stopError{errors.New("more than 10 redirects")}
	}
	if next.URL.Scheme != "https" && before[len(before)-1].URL.Scheme == "https" {
		return stopError{fmt.Errorf("the server redirects to %s: want https", next.URL.Redacted())}
	}
	return nil
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

// unknownBytes is the most that is taken of a file of unknown size.
const unknownBytes = 4 << 30

// mostBytes is how many bytes the file may have: as many as the server
// announced, else a little more than the published size.
func (d *download) mostBytes(announced int64) int64 {
	switch {
	case announced >= 0:
		return announced
	case d.published.MiB > 0:
		return int64((d.published.MiB + 1) * (1 << 20))
	}
	return unknownBytes
}

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
			if most := d.mostBytes(total); d.done+int64(n) > most {
				d.done = 0 // it is no part of the file
				return stopError{fmt.Errorf("the server sends more than the %d bytes that the file has: want the published file", most)}
			}
			written, err := to.Write(buffer[:n])
			d.done += int64(written) // a full disk takes a part
			if err != nil {
				return stopError{err}
			}
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
