package dataset

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Hashes in this file are sha256sum's of what tar unpacks.

func TestCIFAR10(t *testing.T) {
	path := sharedData(t, "cifar10.tgz")
	for _, c := range []struct {
		opt         Options
		split       string
		perClass    int
		id, content string
	}{
		{Options{}, "test", 1000, "airplane/0000.jpg", "7384b0cd617564582eafb1b9337e7acd86861cd600d2099472cf81b6a3462a38"},
		{Options{Split: "train", MaxBytes: 4 << 20, Classes: 10}, "train", 5000, "truck/4999.jpg", "0891d8481acb2889e36b9d09e4c6c992a5eebd52b5a71e08d9ddce7dd6497203"},
	} {
		set := open(t, path, c.opt)
		require.Equal(t, c.split, set.Split)
		require.Equal(t, ClassNames("cifar10"), set.ClassNames)
		require.Equal(t, 10*c.perClass, set.Len())
		counts := make([]int, 10)
		for i, item := range set.Items() {
			require.Equal(t, fmt.Sprintf("%s/%04d.jpg", set.ClassNames[item.Class], counts[item.Class]), item.ID, "the archive is in name order")
			counts[item.Class]++
			if item.ID == c.id {
				h, err := set.ItemHash(context.Background(), i)
				require.NoError(t, err)
				require.Equal(t, c.content, h)
			}
		}
	}
	small := ids(open(t, path, Options{Limit: 1}))
	large := ids(open(t, path, Options{Limit: 12}))
	require.Equal(t, []string{"airplane/0000.jpg"}, small)
	require.Len(t, large, 12)
	require.Subset(t, large, append(small, "automobile/0001.jpg", "truck/0000.jpg"))
	_, err := Open(context.Background(), path, Options{Classes: 9})
	requireUsage(t, err, "10 class folders", "0..8")
}

func TestImageNetVal100(t *testing.T) {
	set := open(t, sharedData(t, "imagenet-val-100"), Options{Classes: 1000})
	require.Equal(t, 100, set.Len())
	require.True(t, set.HasLabels)
	require.Empty(t, set.Warnings)
	// The first lines of its labels.txt.
	require.Equal(t, []int{65, 970, 230}, classes(set)[:3])
	require.Equal(t, "ILSVRC2012_val_00000100.JPEG", set.Items()[99].ID)
	h, err := set.ItemHash(context.Background(), 99)
	require.NoError(t, err)
	require.Equal(t, "db36f4d619edb835a1857ca174062589f00ab7fe22d59e63187388aaaf03213f", h)
	_, err = Open(context.Background(), sharedData(t, "imagenet-val-100"), Options{Classes: 900})
	requireUsage(t, err, "labels.txt:2", "970", "0..899")
}
