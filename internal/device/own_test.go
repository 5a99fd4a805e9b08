package device_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/device"
	"github.com/assay-xai/assay/internal/fill"
	"github.com/assay-xai/assay/internal/record"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

const ownModels = "../../testdata/own_models"

// npy writes rows of float32 in NumPy's format.
func npy(t *testing.T, path string, shape []int64, values []float32) {
	t.Helper()
	dims := strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", ", "), "[]")
	header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", dims)
	header += strings.Repeat(" ", 63-(len(header)+10)%64) + "\n"
	var b bytes.Buffer
	b.WriteString("\x93NUMPY\x01\x00")
	require.NoError(t, binary.Write(&b, binary.LittleEndian, uint16(len(header))))
	b.WriteString(header)
	require.NoError(t, binary.Write(&b, binary.LittleEndian, values))
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o666))
}

// probabilities evaluates a net file on the input that the golden logits are of.
func probabilities(t *testing.T, net string, input []int64) []record.Prediction {
	t.Helper()
	dir := t.TempDir()
	shape := append([]int64{2}, input...)
	npy(t, filepath.Join(dir, "input.npy"), shape, fill.Input(shape))
	preset := dataset.Preset{ID: "as-it-is", Resize: dataset.ResizeNone, Scale: 1, Mean: []float64{0}, Std: []float64{1}}
	if len(input) == 3 {
		preset.Resize, preset.Height, preset.Width = dataset.ResizeSquash, int(input[1]), int(input[2])
		preset.Channels = int(input[0])
	}
	plan := &orchestrate.Plan{Version: orchestrate.PlanVersion, Study: "eval", Device: "cpu", Batch: 2,
		Nets: []orchestrate.NetPlan{{Net: net, Preset: orchestrate.PresetChoice{Preset: &preset}}},
		Data: []orchestrate.DataPlan{{Path: filepath.Join(dir, "input.npy")}}}
	out := filepath.Join(dir, "out")
	_, err := orchestrate.Run(context.Background(), orchestrate.Job{Plan: plan, Out: out, Open: device.Open})
	require.NoError(t, err)
	rows := make([]record.Prediction, 2)
	require.NoError(t, record.Scan(filepath.Join(out, record.FileName), func(r record.Record) error {
		var row int
		_, err := fmt.Sscanf(r.Image, "%d", &row)
		rows[row] = *r.Prediction
		return err
	}))
	return rows
}

// same says that a prediction holds the largest probabilities of the logits.
func same(t *testing.T, logits []float64, got record.Prediction) {
	t.Helper()
	want := softmax(logits)
	for i, class := range got.Classes {
		require.InDelta(t, want[class], got.Probabilities[i], 1e-5)
	}
	slices.Sort(want)
	require.InDelta(t, want[len(want)-1], got.Probabilities[0], 1e-5)
}

func softmax(logits []float64) []float64 {
	sum := 0.0
	out := make([]float64, len(logits))
	for i, v := range logits {
		out[i] = math.Exp(v)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

// The whole way of a user's own model: exported by scripts/export_torch.py, its
// weights in safetensors beside it, evaluated as a plan says; against PyTorch.
func TestOwnModelsGiveWhatPyTorchGave(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(ownModels, "logits.json"))
	require.NoError(t, err)
	var golden struct {
		Models []struct {
			Model  string
			Input  []int64
			Logits [][]float64
		}
	}
	require.NoError(t, json.Unmarshal(text, &golden))
	require.Len(t, golden.Models, 5)
	for _, m := range golden.Models {
		t.Run(m.Model, func(t *testing.T) {
			got := probabilities(t, filepath.Join(ownModels, m.Model+".json"), m.Input)
			for row, logits := range m.Logits {
				same(t, logits, got[row])
			}
		})
	}
}

func TestTorchScriptGivesWhatPyTorchGave(t *testing.T) {
	const folder = "../../testdata/torchscript"
	text, err := os.ReadFile(filepath.Join(folder, "golden.json"))
	require.NoError(t, err)
	var golden struct {
		Cases []struct {
			Name   string
			Input  []int64
			Logits [][]float64
		}
	}
	require.NoError(t, json.Unmarshal(text, &golden))
	for _, c := range golden.Cases {
		t.Run(c.Name, func(t *testing.T) {
			got := probabilities(t, filepath.Join(folder, c.Name+".pt"), c.Input)
			for row, logits := range c.Logits {
				same(t, logits, got[row])
			}
		})
	}
}

func TestWhatIsNoNetIsRefusedByName(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "own.pt")
	require.NoError(t, os.WriteFile(archive, []byte("PK\x03\x04 not an archive after all"), 0o666))
	net := filepath.Join(dir, "own.json")
	require.NoError(t, os.WriteFile(net, []byte(`{"format": "assay-net", "version": 1, "name": "x", "weights": "w.safetensors"}`), 0o666))
	b := backend(t)
	for path, want := range map[string]string{archive: "own.pt: a damaged file (its archive cannot be read)", net: "own.json"} {
		_, err := orchestrate.DescribeNet(context.Background(), b, path)
		require.ErrorIs(t, err, usage.Err)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
}
