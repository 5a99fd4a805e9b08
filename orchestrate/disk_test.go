package orchestrate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A disk that is full at any moment leaves whole lines and whole files, and
// with more room the run goes on to the same result.
func TestFullDisk(t *testing.T) {
	w := newWorld(t, 40)
	disk := mkdir(t, w.path("disk"))
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=12k"); err != nil {
		t.Skip("SKIP: a small file system needs the right to mount:", err)
	}
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	p := w.plan("trace", searchGrid)
	_, err := w.run(p, "whole")
	require.NoError(t, err)
	for _, size := range []string{"12k", "24k", "48k", "96k", "160k", "200k", "240k", "280k"} {
		require.NoError(t, unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, "size="+size))
		_, err := w.run(p, "disk/out")
		w.closed()
		if err == nil {
			require.NotEqual(t, "12k", size)
			break
		}
		require.ErrorIs(t, err, unix.ENOSPC, size)
		require.NotContains(t, err.Error(), "\n")
		files, _ := filepath.Glob(w.path("disk/out/*"))
		for _, f := range files {
			text, _ := os.ReadFile(f)
			if strings.HasSuffix(f, ".jsonl") && len(text) > 0 {
				require.Equal(t, byte('\n'), text[len(text)-1])
			}
			if strings.HasSuffix(f, ".json") || strings.HasSuffix(f, ".yaml") || strings.HasSuffix(f, ".csv") {
				require.NotEmpty(t, text, f)
			}
		}
	}
	require.NoError(t, unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, "size=16m"))
	_, err = w.run(p, "disk/out")
	require.NoError(t, err)
	require.Equal(t, w.records("whole"), w.records("disk/out"))
	require.Equal(t, w.read("whole/summary.csv"), w.read("disk/out/summary.csv"))
}
