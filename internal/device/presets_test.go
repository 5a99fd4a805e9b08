package device_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/weights"
)

// A photograph becomes, bit for bit, what the transforms of torchvision's
// weights make of it (scripts/published_weights.py).
func TestPresetsOfPublishedWeights(t *testing.T) {
	text, err := os.ReadFile("../../weights/testdata/published.json")
	require.NoError(t, err)
	var golden struct {
		Photograph string
		Files      []struct{ Net, Version, Values string }
	}
	require.NoError(t, json.Unmarshal(text, &golden))
	file, err := os.ReadFile("../../" + golden.Photograph)
	require.NoError(t, err)
	want := map[string]string{}
	for _, f := range golden.Files {
		want[f.Net+" "+f.Version] = f.Values
	}

	b := backend(t)
	seen := map[string]string{} // what a preset gives
	for _, p := range weights.Published() {
		values, ok := want[p.Net+" "+p.Version]
		if !ok {
			continue
		}
		if seen[p.Preset] == "" {
			images, failed, err := b.Images(context.Background(), [][]byte{file}, preset(t, p.Preset), false)
			require.NoError(t, err)
			require.NoError(t, failed[0])
			row, err := images.Values(0)
			require.NoError(t, err)
			require.NoError(t, images.Close())
			var raw []byte
			for _, v := range row {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
			}
			sum := sha256.Sum256(raw)
			seen[p.Preset] = hex.EncodeToString(sum[:])
		}
		require.Equal(t, values, seen[p.Preset], "%s %s: %s", p.Net, p.Version, p.Preset)
	}
	require.Len(t, seen, 6) // imagenet, -v2, -bicubic, -236, -299, -swag
}
