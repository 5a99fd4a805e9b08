package mutate

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
)

// unpackLimit bounds what a mutator unpacks.
const unpackLimit = 4 << 20

// Names that no archive of data has any business with.
func badNames() []string {
	return []string{
		"", ".", "..", "../x.jpg", "/etc/x.jpg", "a/../../x.jpg", `..\x.jpg`, "C:x.jpg", "a\x00.jpg", "a\n.jpg", "\xff\xfe.jpg", "a//b.jpg", "./a.jpg", "a/",
		strings.Repeat("a/", 100) + "x.jpg", strings.Repeat("n", 5000) + ".jpg", "labels.txt", "train/labels.txt", ".hidden.jpg", "__MACOSX/x.jpg", "a/x.jpg", "x.npy", "y.npy", "x",
		"archive/data.pkl", "archive/byteorder", "archive/code/x.py", "data.pkl", "\x1b[31m.jpg",
	}
}

// Zip damages the records of a zip file: fields of the end record, of the
// directory and of local headers, whole records twice or gone, members renamed.
func Zip(r *rand.Rand, b []byte) []byte {
	end := bytes.LastIndex(b, []byte("PK\x05\x06"))
	if end < 0 || len(b)-end < 22 {
		return b
	}
	signature := func(s string) []int {
		var found []int
		for at := 0; ; at++ {
			i := bytes.Index(b[at:], []byte(s))
			if i < 0 {
				return found
			}
			at += i
			found = append(found, at)
		}
	}
	central, local := signature("PK\x01\x02"), signature("PK\x03\x04")
	field := func(at int, fields [][2]int) {
		f := pick(r, fields)
		if at+f[0]+f[1] <= len(b) {
			setField(r, b[at+f[0]:][:f[1]], false)
		}
	}
	switch kind := r.IntN(6); {
	case kind == 0:
		field(end, [][2]int{{4, 2}, {6, 2}, {8, 2}, {10, 2}, {12, 4}, {16, 4}, {20, 2}})
	case kind <= 2 && len(central) > 0:
		field(pick(r, central), [][2]int{{4, 2}, {6, 2}, {8, 2}, {10, 2}, {16, 4}, {20, 4}, {24, 4}, {28, 2}, {30, 2}, {32, 2}, {34, 2}, {36, 2}, {38, 4}, {42, 4}})
	case kind == 3 && len(local) > 0:
		field(pick(r, local), [][2]int{{4, 2}, {6, 2}, {8, 2}, {14, 4}, {18, 4}, {22, 4}, {26, 2}, {28, 2}})
	case kind == 4 && len(central) > 0:
		return repeatEntry(r, b, pick(r, central), end)
	default:
		return rewriteZip(r, b, nil, "")
	}
	return b
}

// repeatEntry puts a directory record there again, up to a thousand times, and
// mostly corrects the end record.
func repeatEntry(r *rand.Rand, b []byte, at, end int) []byte {
	if at+46 > len(b) {
		return b
	}
	size := 46 + int(binary.LittleEndian.Uint16(b[at+28:])) + int(binary.LittleEndian.Uint16(b[at+30:])) + int(binary.LittleEndian.Uint16(b[at+32:]))
	if at+size > end {
		return b
	}
	times := pick(r, []int{1, 2, 1000})
	more := bytes.Repeat(b[at:at+size], times)
	b = slices.Insert(b, at, more...)
	if r.IntN(4) != 0 {
		tail := b[end+len(more):]
		for _, field := range []int{8, 10} {
			binary.LittleEndian.PutUint16(tail[field:], binary.LittleEndian.Uint16(tail[field:])+uint16(times))
		}
		binary.LittleEndian.PutUint32(tail[12:], binary.LittleEndian.Uint32(tail[12:])+uint32(len(more)))
	}
	return b
}

// ZipMember damages the content of a member whose name ends in suffix by inner
// and writes the archive anew, so that sizes and checksums are right.
func ZipMember(suffix string, inner Mutator) Mutator {
	return func(r *rand.Rand, b []byte) []byte { return rewriteZip(r, b, inner, suffix) }
}

// rewriteZip writes a zip anew: one member damaged by inner, or, without inner,
// one renamed, left out, written twice, deflated or blown up.
func rewriteZip(r *rand.Rand, b []byte, inner Mutator, suffix string) []byte {
	archive, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil && archive == nil || len(archive.File) == 0 || len(archive.File) > 1000 {
		return b
	}
	var candidates []int
	for i, f := range archive.File {
		if strings.HasSuffix(f.Name, suffix) {
			candidates = append(candidates, i)
		}
	}
	if len(candidates) == 0 {
		return b
	}
	chosen := pick(r, candidates)
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(to io.Writer) (io.WriteCloser, error) { return flate.NewWriter(to, flate.BestSpeed) })
	for i, f := range archive.File {
		content, err := readMember(f)
		if err != nil {
			return b
		}
		name, method, times := f.Name, f.Method, 1
		if i == chosen && inner != nil {
			content = inner(r, content)
		} else if i == chosen {
			switch r.IntN(5) {
			case 0:
				name = pick(r, badNames())
			case 1:
				times = 0
			case 2:
				times = 2
			case 3:
				method = zip.Deflate
			case 4:
				method, content = zip.Deflate, append(content, make([]byte, 1<<20)...)
			}
		}
		for range times {
			if writeMember(w, name, method, content) != nil {
				return b
			}
		}
	}
	if w.Close() != nil {
		return b
	}
	return out.Bytes()
}

func readMember(f *zip.File) ([]byte, error) {
	m, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer m.Close()
	return io.ReadAll(io.LimitReader(m, unpackLimit))
}

func writeMember(w *zip.Writer, name string, method uint16, content []byte) error {
	h := &zip.FileHeader{Name: name, Method: method}
	if method == zip.Store { // sizes before the content, as torch and numpy write
		h.CRC32 = crc32.ChecksumIEEE(content)
		h.CompressedSize64, h.UncompressedSize64 = uint64(len(content)), uint64(len(content))
		m, err := w.CreateRaw(h)
		if err == nil {
			_, err = m.Write(content)
		}
		return err
	}
	m, err := w.CreateHeader(h)
	if err == nil {
		_, err = m.Write(content)
	}
	return err
}

// tarFields are offset and length of the fields of a tar header.
func tarFields() [][2]int {
	return [][2]int{{0, 100}, {100, 8}, {108, 8}, {116, 8}, {124, 12}, {124, 12}, {124, 12}, {136, 12}, {148, 8}, {156, 1}, {156, 1}, {157, 100}, {257, 8}, {345, 155}}
}

// Tar damages a header of a tar archive, mostly with its checksum made right
// again; or repeats or leaves out blocks, or puts in a header of its own.
func Tar(r *rand.Rand, b []byte) []byte {
	const block = 512
	var headers []int
	for at := 0; at+block <= len(b); at += block {
		if string(b[at+257:at+262]) == "ustar" {
			headers = append(headers, at)
		}
	}
	if len(headers) == 0 {
		return b
	}
	at := pick(r, headers)
	switch r.IntN(6) {
	case 0:
		n := min(1+r.IntN(4), (len(b)-at)/block)
		return slices.Insert(b, at, bytes.Repeat(b[at:at+n*block], pick(r, []int{1, 2, 100}))...)
	case 1:
		return slices.Delete(b, at, at+block)
	case 2:
		return slices.Insert(b, at, extended(r)...)
	}
	h := b[at : at+block]
	f := pick(r, tarFields())
	field := h[f[0]:][:f[1]]
	for i := range field {
		field[i] = 0
	}
	switch {
	case f[1] >= 100:
		copy(field, pick(r, badNames()))
	case f[1] == 1:
		field[0] = pick(r, []byte("0123456789xgLKSVMNADI\x00\xff"))
	case r.IntN(2) == 0: // base 256
		field[0] = 0x80
		binary.BigEndian.PutUint64(field[len(field)-8:], number(r, 100))
		field[0] |= 0x80
	default:
		copy(field, pick(r, []string{"77777777777", "00000000000", "00000000001", "00000177777", "-0000000001", "7777777", "9", "  1 ", "x", "37777777777"}))
	}
	if r.IntN(8) != 0 {
		checksum(h)
	}
	return b
}

// checksum writes the sum of a tar header into it.
func checksum(h []byte) {
	copy(h[148:156], "        ")
	sum := 0
	for _, c := range h[:512] {
		sum += int(c)
	}
	copy(h[148:156], fmt.Sprintf("%06o\x00 ", sum))
}

// extended is an extension header with its content: PAX records, GNU long
// names, sparse files.
func extended(r *rand.Rand) []byte {
	record := func(key, value string) string {
		line := " " + key + "=" + value + "\n"
		n := len(line) + 1
		for len(fmt.Sprint(n))+len(line) != n {
			n++
		}
		return fmt.Sprint(n) + line
	}
	content := pick(r, []string{
		record("path", pick(r, badNames())), record("size", pick(r, decimals())), record("GNU.sparse.major", "1") + record("GNU.sparse.minor", "0"),
		record("GNU.sparse.size", "9223372036854775807") + record("GNU.sparse.map", "0,1"), record("linkpath", "../x"), "99999999 path=x\n", "x", "5 a=\n", "0 a=b\n",
		record("comment", strings.Repeat("c", 5000)), record("mtime", pick(r, decimals())), strings.Repeat(record("path", "a.jpg"), 500), record("uid", "99999999999999999999"),
		pick(r, badNames()) + "\x00",
	})
	h := make([]byte, 512)
	copy(h, "extension")
	copy(h[100:], "0000644\x00")
	size := uint64(len(content))
	if r.IntN(4) == 0 {
		size = number(r, size)
	}
	copy(h[124:136], fmt.Sprintf("%011o\x00", size&(1<<33-1)))
	copy(h[136:148], "00000000000\x00")
	h[156] = pick(r, []byte("xxxgLLKS"))
	copy(h[257:], "ustar\x0000")
	checksum(h)
	h = append(h, content...)
	for len(h)%512 != 0 {
		h = append(h, 0)
	}
	return h
}

// Gzip unpacks, lets inner damage the content, and packs again; sometimes it
// damages the frame or adds a megabyte that packs well.
func Gzip(inner Mutator) Mutator {
	return func(r *rand.Rand, b []byte) []byte {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return b
		}
		content, err := io.ReadAll(io.LimitReader(z, unpackLimit))
		if err != nil {
			return b
		}
		if r.IntN(12) == 0 {
			content = slices.Insert(content, len(content)/2/512*512, make([]byte, 1<<20)...)
		} else {
			content = inner(r, content)
		}
		var out bytes.Buffer
		w, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed) // a level that there is
		if r.IntN(16) == 0 {
			w.Name, w.Comment = strings.Repeat("n", 600), "c"
		}
		if _, err := w.Write(content); err != nil || w.Close() != nil {
			return b
		}
		packed := out.Bytes()
		if r.IntN(8) == 0 {
			packed = slices.Concat(packed, packed)
		}
		return packed
	}
}
