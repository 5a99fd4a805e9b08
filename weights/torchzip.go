package weights

import (
	"archive/zip"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"strings"
)

// zipSource is a torch zip file (PyTorch 1.6 and later): NAME/data.pkl,
// NAME/data/KEY for each storage, NAME/byteorder. torch stores records
// uncompressed, so a storage's bytes are read where they lie.
type zipSource struct {
	r         io.ReaderAt
	records   map[string]*zip.File
	folder    string
	bigEndian bool
}

func readZip(r io.ReaderAt, size int64) (*StateDict, error) {
	archive, err := zip.NewReader(r, size)
	if errors.Is(err, zip.ErrFormat) {
		return nil, fmt.Errorf("truncated or damaged: a zip file without the table of contents that belongs at its end (get the file again)")
	}
	if err != nil {
		return nil, fmt.Errorf("damaged zip file: %w", err)
	}
	z := &zipSource{r: r, records: make(map[string]*zip.File, len(archive.File))}
	var found *zip.File
	for _, f := range archive.File {
		if _, again := z.records[f.Name]; !again {
			z.records[f.Name] = f
		}
		// The folder has any name (torch takes the file's); the shallowest wins.
		if path.Base(f.Name) == "data.pkl" && (found == nil || strings.Count(f.Name, "/") < strings.Count(found.Name, "/")) {
			found = f
		}
	}
	if found == nil {
		return nil, fmt.Errorf("a zip file without data.pkl: want one that torch.save wrote")
	}
	z.folder = strings.TrimSuffix(found.Name, "data.pkl")
	for name := range z.records {
		if strings.HasPrefix(name, z.folder+"code/") {
			return nil, fmt.Errorf("a TorchScript program, not a state dict: want what torch.save(model.state_dict(), ...) writes")
		}
	}
	if found.UncompressedSize64 > maxPickleBytes {
		return nil, fmt.Errorf("its data.pkl has %d bytes: want a dict of tensors and little else", found.UncompressedSize64)
	}
	b, err := z.small(found)
	if err != nil {
		return nil, err
	}
	if f, ok := z.records[z.folder+"byteorder"]; ok {
		if f.UncompressedSize64 > 16 {
			return nil, fmt.Errorf("its byteorder record has %d bytes: want little or big", f.UncompressedSize64)
		}
		order, err := z.small(f)
		if err != nil {
			return nil, err
		}
		switch string(order) {
		case "little":
		case "big":
			z.bigEndian = true
		default:
			return nil, fmt.Errorf("byte order %q: want little or big", order)
		}
	}
	scan, err := scanPickle(b)
	if err != nil {
		return nil, fmt.Errorf("its data.pkl: %w", err)
	}
	if err := checkPickleMemory(scan.Memory, size); err != nil {
		return nil, err
	}
	root, err := unpickle(b, scan, func(id any) (any, error) { return loadStorage(id) })
	if err != nil {
		return nil, err
	}
	return unwrap(root, "pth-zip", newLoader(z, size))
}

// small reads a whole record whose size has been checked.
func (z *zipSource) small(f *zip.File) ([]byte, error) {
	b := make([]byte, f.UncompressedSize64)
	return b, z.readRecord(f, b, 0)
}

func (z *zipSource) read(s *storage, p []byte, offset int64) error {
	f, ok := z.records[z.folder+"data/"+s.key]
	if !ok {
		return fmt.Errorf("no record %sdata/%s in the file", z.folder, s.key)
	}
	return z.readRecord(f, p, offset)
}

// readRecord fills p from a record's byte offset on.
func (z *zipSource) readRecord(f *zip.File, p []byte, offset int64) error {
	if f.Method != zip.Store {
		return fmt.Errorf("its record %s is compressed: want the file as torch.save wrote it", f.Name)
	}
	if end := uint64(offset) + uint64(len(p)); end > f.UncompressedSize64 {
		return fmt.Errorf("its record %s has %d bytes: want at least %d", f.Name, f.UncompressedSize64, end)
	}
	start, err := f.DataOffset()
	if err != nil {
		return fmt.Errorf("find its record %s: %w", f.Name, err)
	}
	if err := readFull(z.r, p, start+offset); err != nil {
		return err
	}
	// The checksum is of the whole record; 0 where torch was told to leave it out.
	if uint64(len(p)) == f.UncompressedSize64 && f.CRC32 != 0 && crc32.ChecksumIEEE(p) != f.CRC32 {
		return fmt.Errorf("its record %s is damaged: the checksum differs (get the file again)", f.Name)
	}
	return nil
}

func (z *zipSource) swapped() bool { return z.bigEndian }
