package orchestrate

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/weights"
)

// extraFormat is a format that maps are written in beside .npz.
type extraFormat struct {
	id string
	// suffix of the file of a chunk.
	suffix string
	// write makes the file of the maps of ids, in this order, one in memory at a time.
	write func(path string, from *dataset.Maps, ids []string) error
}

func extraFormats() []extraFormat {
	return []extraFormat{
		{"npy", ".npy", writeNpyMaps},
		{"safetensors", ".safetensors", writeSafetensorsMaps},
	}
}

// idsSuffix ends the name of the file, a JSON array, that says whose the rows of an
// .npy are.
const idsSuffix = ".ids.json"

// writeNpyMaps writes [N,C,H,W] or [N,F] with the ids beside it.
func writeNpyMaps(path string, from *dataset.Maps, ids []string) error {
	_, shape, err := from.Raw(ids[0])
	if err != nil {
		return err
	}
	err = writeStream(path, func(w io.Writer) error {
		if _, err := w.Write(dataset.Float32Header(append([]int{len(ids)}, shape...))); err != nil {
			return err
		}
		for _, id := range ids {
			values, own, err := from.Raw(id)
			if err != nil {
				return err
			}
			if !slices.Equal(own, shape) {
				return usage.Errorf("the map of %s is %v, that of %s %v: an .npy wants one shape: take safetensors", id, own, ids[0], shape)
			}
			if _, err := w.Write(dataset.FloatBytes(values)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(ids, "", " ")
	if err != nil {
		return fmt.Errorf("writing ids: %w", err)
	}
	return writeFile(path[:len(path)-len(".npy")]+idsSuffix, append(text, '\n'))
}

// writeSafetensorsMaps writes a tensor an image, called as its id.
func writeSafetensorsMaps(path string, from *dataset.Maps, ids []string) error {
	tensors := make(map[string]weights.Tensor, len(ids))
	for _, id := range ids {
		_, shape, err := from.Raw(id)
		if err != nil {
			return err
		}
		t := weights.Tensor{DType: "f32"}
		for _, n := range shape {
			t.Shape = append(t.Shape, int64(n))
		}
		tensors[id] = t
	}
	return weights.StreamSafetensors(path, tensors, nil, func(id string) ([]byte, error) {
		values, _, err := from.Raw(id)
		return dataset.FloatBytes(values), err
	})
}

// writeStream is writeFile for what is written bit by bit.
func writeStream(path string, write func(io.Writer) error) error {
	f, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o666), renameio.WithTempDir(filepath.Dir(path)))
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() { _ = f.Cleanup() }()
	b := bufio.NewWriterSize(f, 1<<20)
	if err := write(b); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// syncFolder makes renames within a folder last.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("syncing %s: %w", path, err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("syncing %s: %w", path, err)
	}
	return nil
}
