package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Scan reads the records at path one after the other, holding one in memory.
// A torn last line is passed over; any other line that is no record is an
// error naming it. An error of each ends the scan and is returned.
func Scan(path string, each func(Record) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading records: %w", err)
	}
	defer f.Close()
	_, err = scan(f, path, each)
	return err
}

// ScanLines is Scan for who copies records as they stand: each is told the bytes
// [from, to) of the file that a record takes, with the end of its line.
func ScanLines(path string, each func(rec Record, from, to int64) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading records: %w", err)
	}
	defer f.Close()
	_, err = scanLines(f, path, each)
	return err
}

// scan returns the number of bytes up to the end of the last whole record.
func scan(r io.Reader, path string, each func(Record) error) (whole int64, err error) {
	if each == nil {
		return scanLines(r, path, nil)
	}
	return scanLines(r, path, func(rec Record, _, _ int64) error { return each(rec) })
}

func scanLines(r io.Reader, path string, each func(rec Record, from, to int64) error) (whole int64, err error) {
	lines := bufio.NewReaderSize(r, 1<<16)
	var bad error // of the line before, an error unless that was the last one
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return whole, fmt.Errorf("reading %s: %w", path, err)
		}
		if len(line) == 0 {
			return whole, nil
		}
		if bad != nil {
			return whole, bad
		}
		if err != nil { // no end of line: the write was cut short
			return whole, nil
		}
		var rec Record
		if e := parse(line, &rec); e != nil {
			bad = fmt.Errorf("%s:%d: not a record (%w): the file is damaged; delete that line to have its unit run again", path, number, e)
			continue
		}
		if each != nil {
			if err := each(rec, whole, whole+int64(len(line))); err != nil {
				return whole, err
			}
		}
		whole += int64(len(line))
	}
}

func parse(line []byte, rec *Record) error {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return errors.New("an empty line")
	}
	if err := json.Unmarshal(line, rec); err != nil {
		return err
	}
	if rec.ID == "" {
		return errors.New("no id")
	}
	return nil
}
