package main

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/weights"
)

// tuning remembers measured batch sizes in the cache folder, a machine's apart
// from another's. It is a convenience: where it cannot be read or written,
// sizes are measured anew.
type tuning struct{ path, host string }

func newTuning() orchestrate.Tuning {
	dir, err := weights.CacheDir()
	if err != nil {
		return nil
	}
	host, _ := os.Hostname()
	return tuning{filepath.Join(filepath.Dir(dir), "tuning.json"), host}
}

func (t tuning) read() map[string]int {
	sizes := map[string]int{}
	text, err := os.ReadFile(t.path)
	if err != nil || json.Unmarshal(text, &sizes) != nil {
		return map[string]int{}
	}
	return sizes
}

func (t tuning) Get(key string) (int, bool) {
	batch, ok := t.read()[t.host+"/"+key]
	return batch, ok
}

func (t tuning) Put(key string, batch int) {
	sizes := t.read()
	sizes[t.host+"/"+key] = batch
	text, err := json.MarshalIndent(sizes, "", "  ")
	if err != nil || os.MkdirAll(filepath.Dir(t.path), 0o777) != nil {
		return
	}
	_ = renameio.WriteFile(t.path, append(text, '\n'), 0o666, renameio.WithTempDir(filepath.Dir(t.path)))
}
