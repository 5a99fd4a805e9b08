package record

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/assay-xai/assay/internal/usage"
)

// Hold opens the records' file at path and keeps writers away from it until it is
// closed; any number may hold a file at once. Nothing is written, not even where a
// torn line is. A file that a Writer has is ErrLocked.
func Hold(path string) (io.Closer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening records: %w", err)
	}
	if err := lock(f, unix.LOCK_SH); err != nil {
		return nil, err
	}
	return f, nil
}

// Lock makes the file at path, if it is not there, and takes it for this process
// alone. A file that another has is ErrLocked.
func Lock(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	if err := lock(f, unix.LOCK_EX); err != nil {
		return nil, err
	}
	// Who had the lock may have moved or removed the file meanwhile.
	mine, err := f.Stat()
	if err == nil {
		var there os.FileInfo
		if there, err = os.Stat(path); err == nil && os.SameFile(mine, there) {
			return f, nil
		}
	}
	f.Close()
	return nil, usage.Errorf("%s: %w: give the same command again", path, ErrLocked)
}

// lock takes a lock of a kind without waiting, or closes the file.
func lock(f *os.File, kind int) error {
	err := unix.Flock(int(f.Fd()), kind|unix.LOCK_NB)
	if err == nil {
		return nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return usage.Errorf("%s: %w: wait for it, or choose another folder", f.Name(), ErrLocked)
	}
	return fmt.Errorf("locking %s: %w", f.Name(), err)
}
