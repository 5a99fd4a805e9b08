package buildtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// setup is a copy of what setup.sh needs, with an empty cache and a PATH of
// programs that the test chooses.
type setup struct {
	root, cache, bin string
	environment      []string
}

// newSetup offers the machine's programs but for the hidden ones. pip is a
// stand-in: it writes its arguments to root/pip.log, and every download fails
// as if the index had no such package.
func newSetup(t *testing.T, hidden ...string) *setup {
	t.Helper()
	s := &setup{root: t.TempDir(), cache: t.TempDir(), bin: t.TempDir()}
	for _, name := range []string{"scripts/setup.sh", "scripts/wheels.py", "go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(repository(t), name))
		require.NoError(t, err)
		path := filepath.Join(s.root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, data, 0o755))
	}
	programs := strings.Fields(`bash cat chmod cmake cut df dirname du env flock g++ as ld grep head id ldd ln ls make
		mkdir mktemp mv ninja printf readelf readlink rm sed sha256sum sleep sort tail taskset tr uname xargs apt-get`)
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil && !contains(hidden, name) {
			require.NoError(t, os.Symlink(path, filepath.Join(s.bin, name)))
		}
	}
	s.script(t, "python3", `case "$*" in *--version*) ;; *) echo "$@" >>"`+s.root+`/pip.log"
echo "ERROR: No matching distribution found" >&2; exit 1;; esac`)
	s.script(t, "go", `case "$*" in "env GOVERSION") echo go1.26.8;; esac`)
	s.environment = []string{"PATH=" + s.bin, "HOME=" + t.TempDir(), "XDG_CACHE_HOME=" + s.cache, "ASSAY_INSTALL=0"}
	return s
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

// script puts a program of one line into the PATH.
func (s *setup) script(t *testing.T, name, body string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(s.bin, name), []byte("#!/bin/bash\n"+body+"\n"), 0o755))
}

// fails runs setup.sh, demands exit code 1, and returns what it said.
func (s *setup) fails(t *testing.T, environment ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), filepath.Join(s.root, "scripts", "setup.sh"))
	cmd.Env = append(s.environment, environment...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	require.True(t, errors.As(err, &exit), "%v: %s", err, &out)
	require.Equal(t, 1, exit.ExitCode(), "%s", &out)
	return out.String()
}

func TestSetupNamesMissingPackages(t *testing.T) {
	s := newSetup(t, "ninja", "cmake")
	require.Contains(t, s.fails(t), "missing: cmake ninja-build; run: apt-get install cmake ninja-build")
	left, err := os.ReadDir(s.cache)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestSetupRefusesAnOldGo(t *testing.T) {
	s := newSetup(t)
	s.script(t, "go", `echo go1.19.8`)
	require.Contains(t, s.fails(t), "go1.19.8 is too old: want Go >= 1.21")
}

func TestSetupRefusesWhatIsNoLibtorch(t *testing.T) {
	s := newSetup(t)
	empty := t.TempDir()
	require.Contains(t, s.fails(t, "LIBTORCH="+empty), "LIBTORCH="+empty+": has no lib/libtorch_cpu.so; want an unzipped libtorch")
	require.Contains(t, s.fails(t, "LIBTORCH=/no/such"), "LIBTORCH=/no/such: no such folder")
}

// The versions are those whose wheels have the CUDA major version of the driver:
// torch's requirements name cuda-toolkit 13.2 (2.15.0) and CUDA 12.8 (2.10.0).
func TestSetupChoosesTorchByTheDriver(t *testing.T) {
	tests := []struct{ driver, torch, says string }{
		{"13.2", "2.15.0", "NVIDIA driver for CUDA 13.2: libtorch 2.15.0"},
		{"13.0", "2.15.0", "NVIDIA driver for CUDA 13.0: libtorch 2.15.0"},
		{"12.4", "2.10.0", "NVIDIA driver for CUDA 12.4: libtorch 2.10.0"},
		{"11.8", "2.15.0", "supports CUDA 11.8 only"},
	}
	for _, test := range tests {
		t.Run(test.driver, func(t *testing.T) {
			s := newSetup(t)
			s.script(t, "nvidia-smi",
				fmt.Sprintf(`echo "| NVIDIA-SMI 1.2.3    Driver Version: 1.2.3    CUDA Version: %s     |"`, test.driver))
			said := s.fails(t)
			require.Contains(t, said, test.says)
			require.Contains(t, said, "pip could not download torch=="+test.torch)
			require.NotContains(t, said, "trying again", "the index said no")
			log, err := os.ReadFile(filepath.Join(s.root, "pip.log"))
			require.NoError(t, err)
			require.Contains(t, string(log), "torch=="+test.torch)

			// Nothing half done is left.
			left, err := filepath.Glob(filepath.Join(s.cache, "assay", "*"))
			require.NoError(t, err)
			require.Equal(t, []string{filepath.Join(s.cache, "assay", ".setup.lock")}, left)
		})
	}
}

func TestSetupTriesAgainAfterAHiccup(t *testing.T) {
	s := newSetup(t)
	s.script(t, "sleep", "")
	s.script(t, "python3", `case "$*" in *--version*) ;; *) echo "ReadTimeoutError: timed out" >&2; exit 1;; esac`)
	require.Equal(t, 2, strings.Count(s.fails(t), "trying again"))
}

// A set-up that was killed while it downloaded: its folder goes at the next
// call, and no libtorch is taken for a whole one.
func TestKilledSetupLeavesNothingHalfDone(t *testing.T) {
	s := newSetup(t)
	works := workFolders(t, s)
	s.script(t, "python3", `case "$*" in *--version*) ;; *) kill -9 $PPID;; esac`)
	cmd := exec.CommandContext(t.Context(), filepath.Join(s.root, "scripts", "setup.sh"))
	cmd.Env = s.environment
	require.ErrorContains(t, cmd.Run(), "signal: killed")
	require.Len(t, works(), 1)

	s.script(t, "python3", `case "$*" in *--version*) ;; *) echo "No matching distribution" >&2; exit 1;; esac`)
	s.fails(t)
	require.Empty(t, works())
	whole, err := filepath.Glob(filepath.Join(s.cache, "assay", "libtorch-*"))
	require.NoError(t, err)
	require.Empty(t, whole)
}

// workFolders lists the folders that set-ups work in.
func workFolders(t *testing.T, s *setup) func() []string {
	return func() []string {
		all, err := filepath.Glob(filepath.Join(s.cache, "assay", ".setup-*"))
		require.NoError(t, err)
		return all
	}
}
