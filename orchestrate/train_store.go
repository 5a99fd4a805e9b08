package orchestrate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/weights"
)

// Files of a training, relative to OUT, beside env.json, classes.json and the
// records, one an epoch.
const (
	TrainFile      = "train.yaml"
	LastFile       = "last.safetensors"
	BestFile       = "best.safetensors"
	CheckpointFile = "checkpoint.safetensors"
)

// Parts of a checkpoint, before the names of its tensors, and its metadata.
const (
	checkpointParameters = "parameters/"
	checkpointOptimizer  = "optimizer/"
	checkpointBest       = "best/"
	checkpointState      = "state"
)

// checkpointFacts is what a checkpoint knows beside tensors. The history is in
// it, so that one file that is replaced as a whole is all that a training
// goes on from; results.jsonl and the weights follow it.
type checkpointFacts struct {
	Training  string        `json:"training"` // id
	BestEpoch int           `json:"bestEpoch"`
	History   []EpochResult `json:"history"`
}

// folderStore keeps a training in OUT.
type folderStore struct {
	out    string
	id     string // of the training
	record record.Record
	writer *record.Writer
	// metadata goes into the weights.
	metadata map[string]string
	recorded int // epochs in results.jsonl
	best     int // epoch in best.safetensors, 0: not known
}

var _ TrainingStore = (*folderStore)(nil)

// Load reads the checkpoint and makes the other files agree with it.
func (f *folderStore) Load(context.Context) (*Checkpoint, error) {
	c, err := f.read()
	if err != nil {
		return nil, err
	}
	if c == nil {
		f.recorded = 0
		return nil, f.writer.Keep(0)
	}
	f.recorded = min(f.recorded, len(c.History))
	if err := f.writer.Keep(f.recorded); err != nil {
		return nil, err
	}
	for _, e := range c.History[f.recorded:] {
		if err := f.Record(e); err != nil {
			return nil, err
		}
	}
	return c, f.export(c)
}

func (f *folderStore) read() (*Checkpoint, error) {
	path := filepath.Join(f.out, CheckpointFile)
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return nil, nil
	}
	sd, err := weights.Open(path)
	if err != nil {
		return nil, fmt.Errorf("going on from a checkpoint: %w", err)
	}
	var facts checkpointFacts
	if err := json.Unmarshal([]byte(sd.Metadata[checkpointState]), &facts); err != nil {
		return nil, fmt.Errorf("%s: not a checkpoint (%w): delete it to begin anew", path, err)
	}
	if n := len(facts.History); facts.Training != f.id || n == 0 || facts.BestEpoch < 1 || facts.BestEpoch > n {
		return nil, fmt.Errorf("%s: a checkpoint of another training: delete it to begin anew", path)
	}
	c := &Checkpoint{History: facts.History, BestEpoch: facts.BestEpoch,
		Parameters: part(sd, checkpointParameters), Optimizer: part(sd, checkpointOptimizer), Best: part(sd, checkpointBest)}
	if len(c.Best) == 0 {
		c.Best = c.Parameters
	}
	return c, nil
}

// part returns the tensors whose names begin with prefix, without it.
func part(sd *weights.StateDict, prefix string) map[string]weights.Tensor {
	out := map[string]weights.Tensor{}
	for name, t := range sd.Tensors {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			out[rest] = t
		}
	}
	return out
}

// Save replaces the checkpoint, then the weights.
func (f *folderStore) Save(c *Checkpoint) error {
	tensors := map[string]weights.Tensor{}
	add := func(prefix string, part map[string]weights.Tensor) {
		for name, t := range part {
			tensors[prefix+name] = t
		}
	}
	add(checkpointParameters, c.Parameters)
	add(checkpointOptimizer, c.Optimizer)
	if c.BestEpoch != len(c.History) {
		add(checkpointBest, c.Best)
	}
	facts, err := json.Marshal(checkpointFacts{f.id, c.BestEpoch, c.History})
	if err != nil {
		return fmt.Errorf("writing a checkpoint: %w", err)
	}
	if err := weights.WriteSafetensors(filepath.Join(f.out, CheckpointFile), tensors, map[string]string{checkpointState: string(facts)}); err != nil {
		return fmt.Errorf("writing a checkpoint: %w", err)
	}
	return f.export(c)
}

// export writes the weights of the last and the best epoch.
func (f *folderStore) export(c *Checkpoint) error {
	last := len(c.History)
	if err := f.weights(LastFile, c.Parameters, c.History[last-1]); err != nil {
		return err
	}
	if f.best == c.BestEpoch {
		return nil
	}
	f.best = c.BestEpoch
	return f.weights(BestFile, c.Best, c.History[c.BestEpoch-1])
}

func (f *folderStore) weights(name string, state map[string]weights.Tensor, e EpochResult) error {
	metadata := maps.Clone(f.metadata)
	metadata["epoch"] = strconv.Itoa(e.Epoch)
	switch {
	case e.ValidationLoss == nil:
	case e.Imputer != "":
		metadata["validationError"] = formatScalar(*e.ValidationLoss)
	default:
		metadata["validationAccuracy"] = formatScalar(*e.ValidationAccuracy)
	}
	return weights.WriteSafetensors(filepath.Join(f.out, name), state, metadata)
}

// Record appends the figures of an epoch.
func (f *folderStore) Record(e EpochResult) error {
	r := f.record
	r.ID = unitID(canonical([]any{f.id, e.Epoch}))
	r.TrainingEpoch = &e.TrainingEpoch
	r.Cost.Seconds = e.Seconds
	if err := f.writer.Append(r); err != nil {
		return err
	}
	f.recorded++
	return nil
}

// metadataPreset is the preprocessing that weights of ours say they want.
func metadataPreset(sd *weights.StateDict) (dataset.Preset, bool) {
	var p dataset.Preset
	text, ok := sd.Metadata["preset"]
	if !ok || json.Unmarshal([]byte(text), &p) != nil || p.Validate() != nil {
		return dataset.Preset{}, false
	}
	return p, true
}
