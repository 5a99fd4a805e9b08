package buildtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// run runs a program in an empty folder with nothing but these variables.
func run(t *testing.T, environment []string, program string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{"HOME=" + t.TempDir()}, environment...)
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Run(), "%s", &out)
	return out.String()
}

// mapped asks the loader which files a program would map, by their base names.
func mapped(t *testing.T, program string, environment ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, line := range strings.Split(run(t, append(environment, "LD_TRACE_LOADED_OBJECTS=1"), program), "\n") {
		name, rest, found := strings.Cut(strings.TrimSpace(line), " => ")
		if !found {
			continue
		}
		path, _, _ := strings.Cut(rest, " (")
		require.NotEqual(t, "not found", path, line)
		files[name] = clean(t, path)
	}
	return files
}

func clean(t *testing.T, path string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	require.NoError(t, err)
	return real
}

func TestProgramRunsFromAnyFolder(t *testing.T) {
	require.Contains(t, run(t, nil, built(t, "assay"), "--help"), "assay")
}

// gotorch's init would ask libtorch for 1/2 = 0 threads and die (internal/aaenv).
func TestProgramRunsOnOneCPU(t *testing.T) {
	runtime.LockOSThread() // and never unlocked: the thread ends with this test
	var old, one unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &old))
	for cpu := 0; one.Count() == 0; cpu++ {
		if old.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	require.NoError(t, unix.SchedSetaffinity(0, &one))
	require.Contains(t, run(t, nil, built(t, "assay"), "list", "nets"), "resnet18")
}

func TestProgramMapsTheChosenLibtorchOnly(t *testing.T) {
	lib := filepath.Join(libtorch(t), "lib")
	// Another libtorch that LD_LIBRARY_PATH offers: the loader only looks at its names.
	decoy := t.TempDir()
	for _, name := range []string{"libc10.so", "libtorch_cpu.so", "libtorchx.so", "libcgotorch.so"} {
		data, err := os.ReadFile(filepath.Join(lib, "libc10.so"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(decoy, name), data, 0o755))
	}
	files := mapped(t, built(t, "assay"), "LD_LIBRARY_PATH="+decoy)
	for _, name := range []string{"libc10.so", "libtorch_cpu.so"} {
		require.Equal(t, filepath.Join(lib, name), files[name])
	}
	for _, name := range []string{"libtorchx.so", "libcgotorch.so"} {
		require.Equal(t, built(t, "lib", name), files[name])
	}
	if _, err := os.Stat(filepath.Join(lib, "libgomp.so.1")); err == nil {
		// A second libgomp would have a pool of threads of its own.
		require.Equal(t, filepath.Join(lib, "libgomp.so.1"), files["libgomp.so.1"])
	}
}

func TestInstalledLayoutRunsWhenMoved(t *testing.T) {
	first, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	run(t, []string{"PATH=" + os.Getenv("PATH")}, filepath.Join(repository(t), "scripts", "install.sh"), first)
	require.NoError(t, os.Rename(first, second))
	second = clean(t, second)
	program := filepath.Join(second, "bin", "assay")

	files := mapped(t, program)
	for _, name := range []string{"libtorchx.so", "libcgotorch.so"} {
		require.Equal(t, filepath.Join(second, "lib", name), files[name])
	}
	require.Equal(t, filepath.Join(libtorch(t), "lib", "libtorch_cpu.so"), files["libtorch_cpu.so"])
	require.Contains(t, run(t, nil, program, "list", "nets"), "resnet18")

	// A libtorch that was taken along (BUNDLE=1) goes before the one built with.
	bundle := filepath.Join(second, "lib", "libtorch", "torch", "lib")
	require.NoError(t, os.MkdirAll(bundle, 0o755))
	data, err := os.ReadFile(filepath.Join(libtorch(t), "lib", "libc10.so"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(bundle, "libc10.so"), data, 0o755))
	require.Equal(t, filepath.Join(bundle, "libc10.so"), mapped(t, program)["libc10.so"])
}
