package weights

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/assay-xai/assay/internal/usage"
)

// format is a kind of file, recognised by its first bytes.
type format struct {
	// is looks at the first headBytes of the file (or all of it).
	is func(head []byte) bool
	// read is nil for formats that are recognised only to be named.
	read func(r io.ReaderAt, size int64) (*StateDict, error)
	// what names a format that is not read, with what to do.
	what string
}

const headBytes = 1 << 12

func starts(prefixes ...string) func([]byte) bool {
	return func(head []byte) bool {
		for _, p := range prefixes {
			if bytes.HasPrefix(head, []byte(p)) {
				return true
			}
		}
		return false
	}
}

// formats in the order in which they are tried.
func formats() []format {
	return []format{
		{is: starts("PK\x03\x04", "PK\x05\x06"), read: readZip},
		{is: isSafetensors, read: readSafetensors},
		{is: starts("\x89HDF"), what: "an HDF5 (Keras) file"},
		{is: starts("\x1f\x8b"), what: "a gzip archive: unpack it first"},
		{is: starts("\x93NUMPY"), what: "a NumPy array"},
		{is: starts("version https://git-lfs"), what: "a Git LFS pointer, not the file itself: run git lfs pull"},
		{is: func(h []byte) bool { return starts("<!doctype", "<html")(bytes.ToLower(h)) },
			what: "an HTML page, perhaps a server's error page saved as the file"},
		{is: func(h []byte) bool { return len(h) > 262 && string(h[257:262]) == "ustar" },
			what: "a tar archive (or a torch file from before 0.1.10): unpack it, or save it again with a later PyTorch"},
		{is: isPickle, read: readLegacy},
		{is: func(h []byte) bool { return utf8.Valid(h) && !bytes.ContainsRune(h, 0) }, what: "a text file"},
	}
}

const wantFormats = "want a PyTorch state dict (.pth, .pt, .th) or safetensors"

// Open reads a weights file: torch's zip or legacy layout or safetensors,
// recognised by content, or one that the program carries ("embedded:NAME"). A checkpoint's state dict is taken out of its wrapper
// (state_dict, model_state_dict, model, net); a "module." before every name is
// dropped.
//
// Nothing in the file is executed and what it claims is checked against its
// size before memory is taken. Tensors are contiguous whatever their strides in
// the file; tensors that share a storage get a copy each. Errors name the file
// and what was wrong with it and satisfy errors.Is(err, usage.Err), but for
// failures of the disk.
func Open(path string) (*StateDict, error) {
	sd, err := open(path)
	if err == nil {
		return sd, nil
	}
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = fmt.Errorf("weights: %w", err)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil, usage.Mark(err)
		}
		return nil, err
	}
	return nil, usage.Errorf("weights: %s: %w", path, usage.Line(err, ""))
}

func open(path string) (*StateDict, error) {
	if strings.HasPrefix(path, embeddedPrefix) {
		b, err := readEmbedded(path)
		if err != nil {
			return nil, err
		}
		return read(bytes.NewReader(b), int64(len(b)))
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("a directory: %s", wantFormats)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("not a regular file: %s", wantFormats)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return read(f, info.Size())
}

// read is Open for the bytes of a file. A panic on any path is turned into an
// error: the input is a stranger's.
func read(r io.ReaderAt, size int64) (sd *StateDict, err error) {
	defer func() {
		if recover() != nil {
			sd, err = nil, errors.New("damaged: what it says of itself does not fit together (get the file again)")
		}
	}()
	if size == 0 {
		return nil, fmt.Errorf("an empty file: %s", wantFormats)
	}
	head := make([]byte, min(size, headBytes))
	if err := readFull(r, head, 0); err != nil {
		return nil, err
	}
	sd, err = readAs(r, size, head)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(r, 0, size)); err != nil {
		return nil, fmt.Errorf("read it for its hash: %w", err)
	}
	sd.Hash = hex.EncodeToString(h.Sum(nil))
	return sd, nil
}

func readAs(r io.ReaderAt, size int64, head []byte) (*StateDict, error) {
	for _, f := range formats() {
		if !f.is(head) {
			continue
		}
		if f.read == nil {
			return nil, fmt.Errorf("%s: %s", f.what, wantFormats)
		}
		return f.read(r, size)
	}
	return nil, fmt.Errorf("begins with % x, which no known weights file does: %s", head[:min(8, len(head))], wantFormats)
}
