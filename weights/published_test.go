package weights_test

import (
	"encoding/json"
	"os"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/weights"
)

// What torchvision itself says, written by scripts/published_weights.py.
func TestPublishedAsTorchvisionSays(t *testing.T) {
	text, err := os.ReadFile("testdata/published.json")
	require.NoError(t, err)
	var golden struct {
		Files []struct {
			Net, Version, URL, Interpolation string
			Licence                          string // null: torchvision names none
			MiB                              float64
			Top1                             *float64
			Resize, Crop                     int
			Mean, Std                        []float64
		}
	}
	require.NoError(t, json.Unmarshal(text, &golden))
	left := map[string]bool{
		"vgg16 IMAGENET1K_FEATURES":         true, // no classifier
		"vit-b-16 IMAGENET1K_SWAG_E2E_V1":   true, // another net: 384 pixels
		"efficientnet-lite0 IMAGENET1K_TF":  true,
		"cifar-resnet20 CIFAR10_AKAMASTER":  true,
		"cifar-resnet32 CIFAR10_AKAMASTER":  true,
		"cifar-resnet44 CIFAR10_AKAMASTER":  true,
		"cifar-resnet56 CIFAR10_AKAMASTER":  true,
		"cifar-resnet110 CIFAR10_AKAMASTER": true,
	}
	ours := map[string]weights.PublishedFile{}
	for _, p := range weights.Published() {
		ours[p.Net+" "+p.Version] = p
	}
	for _, want := range golden.Files {
		key := want.Net + " " + want.Version
		p, ok := ours[key]
		delete(ours, key)
		if left[key] {
			require.False(t, ok, key)
			continue
		}
		require.True(t, ok, key)
		require.Equal(t, path.Base(want.URL), p.File, key)
		require.Equal(t, want.URL, p.BaseURL+"/"+p.File, key)
		require.Equal(t, want.MiB, p.MiB, key)
		require.Equal(t, *want.Top1, p.Top1, key)
		if want.Licence == "" {
			want.Licence = "BSD-3-Clause (torchvision)"
		}
		require.Contains(t, p.Licence, want.Licence, key)
		preset, err := dataset.PresetByID(p.Preset)
		require.NoError(t, err, key)
		require.Equal(t, dataset.ResizeShorter, preset.Resize, key)
		require.Equal(t, []int{want.Resize, want.Crop, want.Crop}, []int{preset.Height, preset.CropHeight, preset.CropWidth}, key)
		require.Equal(t, want.Interpolation, preset.Interpolation, key)
		require.Equal(t, want.Mean, preset.Mean, key)
		require.Equal(t, want.Std, preset.Std, key)
	}
	for key := range ours {
		require.True(t, left[key], key)
	}
}
