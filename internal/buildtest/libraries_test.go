package buildtest

import (
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// repository is the root of the repository, build its build folder.
func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	return root
}

func built(t *testing.T, parts ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{repository(t), "build"}, parts...)...)
	_, err := os.Stat(path)
	require.NoError(t, err, "run make build")
	return path
}

// libtorch is the torch folder that was built with.
func libtorch(t *testing.T) string {
	t.Helper()
	folder, err := filepath.EvalSymlinks(built(t, "libtorch"))
	require.NoError(t, err)
	return folder
}

func dynamic(t *testing.T, path string, tag elf.DynTag) []string {
	t.Helper()
	file, err := elf.Open(path)
	require.NoError(t, err)
	defer file.Close() //nolint:errcheck // read only
	values, err := file.DynString(tag)
	require.NoError(t, err)
	return values
}

// RUNPATH would let a user's LD_LIBRARY_PATH to another libtorch win, and an
// empty entry would be the current folder.
func TestLibrariesFindTheChosenLibtorchByRpath(t *testing.T) {
	for _, name := range []string{"libtorchx.so", "libcgotorch.so"} {
		t.Run(name, func(t *testing.T) {
			path := built(t, "lib", name)
			require.Empty(t, dynamic(t, path, elf.DT_RUNPATH))
			rpath := dynamic(t, path, elf.DT_RPATH)
			require.Len(t, rpath, 1)
			require.Equal(t, []string{"$ORIGIN", "$ORIGIN/libtorch/torch/lib", filepath.Join(libtorch(t), "lib")},
				strings.Split(rpath[0], ":"))
		})
	}
}

// libtorch.so and the CUDA half would not load on a machine without a driver:
// they are opened at run time.
func TestLibrariesNeedTheCPUHalfOnly(t *testing.T) {
	for _, name := range []string{"libtorchx.so", "libcgotorch.so"} {
		needed := dynamic(t, built(t, "lib", name), elf.DT_NEEDED)
		require.Contains(t, needed, "libtorch_cpu.so", name)
		require.Contains(t, needed, "libc10.so", name)
		for _, library := range needed {
			require.NotEqual(t, "libtorch.so", library, name)
			require.NotContains(t, library, "cuda", name)
		}
	}
}

// One Go program serves every libtorch: only our two libraries know it.
func TestProgramNeedsNoLibtorch(t *testing.T) {
	program := built(t, "assay")
	needed := dynamic(t, program, elf.DT_NEEDED)
	require.Subset(t, needed, []string{"libtorchx.so", "libcgotorch.so"})
	for _, library := range needed {
		require.False(t, strings.HasPrefix(library, "libtorch.") || strings.HasPrefix(library, "libtorch_") ||
			strings.HasPrefix(library, "libc10"), "build/assay asks for %s: are the scripts in build/lib/link empty?", library)
	}
	require.Empty(t, dynamic(t, program, elf.DT_RUNPATH))
}

// Linker scripts of one comment satisfy gotorch's -ltorch -ltorch_cpu -lc10.
func TestLinkerScriptsAreEmpty(t *testing.T) {
	for _, name := range []string{"libtorch.so", "libtorch_cpu.so", "libc10.so"} {
		text, err := os.ReadFile(built(t, "lib", "link", name))
		require.NoError(t, err)
		line := strings.TrimSpace(string(text))
		require.True(t, strings.HasPrefix(line, "/*") && strings.HasSuffix(line, "*/") &&
			strings.Count(line, "*/") == 1, "%s is %q", name, line)
	}
}
