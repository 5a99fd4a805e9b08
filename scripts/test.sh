#!/usr/bin/env bash
# Runs all tests of Go and C++ and closes with a line that counts them.
# Called by `make test`, after the build.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOMP_SPINCOUNT="${GOMP_SPINCOUNT:-4000}" # as the program sets it: other busy processes matter less
counts=build/test-counts
: >"$counts"
status=0

# Packages that must work without cgo, and with it without libtorch.
pure=()
for folder in trace metrics scores orchestrate dataset weights report \
  internal/record internal/rng internal/usage internal/aaenv; do
  if compgen -G "$folder/*.go" >/dev/null; then pure+=("./$folder/..."); fi
done
mapfile -t pure < <(CGO_ENABLED=0 go list -e "${pure[@]}")
mapfile -t rest < <(go list -e ./... | grep -vxF "$(printf '%s\n' "${pure[@]}")")

echo "== Go, without cgo"
CGO_ENABLED=0 go test -json "${pure[@]}" | go run ./internal/testcount "$counts" || status=1

# -count=1: Go's cache does not see that a shared library has changed.
echo "== Go, with libtorch"
go test -json -count=1 -timeout 30m "${rest[@]}" | go run ./internal/testcount "$counts" || status=1

echo "== C++"
if [[ -x build/bin/torchx_test ]]; then
  if ! ctest --test-dir build --verbose --no-tests=error >build/ctest.log 2>&1; then
    status=1
    grep -vE '\[ RUN|\[       OK|\[-----' build/ctest.log || true
  fi
  awk -v file="$counts" '
    /\[  PASSED  \] [0-9]+ test/ { passed = number($0, "PASSED  ] ") }
    /\[  FAILED  \] [0-9]+ test/ { failed = number($0, "FAILED  ] ") }
    /\[  SKIPPED \] [0-9]+ test/ { skipped = number($0, "SKIPPED ] ") }
    function number(line, after) { return substr(line, index(line, after) + length(after)) + 0 }
    END { if (passed + failed == 0) failed = 1; print passed + 0, failed + 0, skipped + 0 >>file }' build/ctest.log
  tail -n 1 "$counts" | { read -r p f s && echo "torchx_test: $p passed, $f failed, $s skipped"; }
else
  echo "SKIP: GoogleTest was not there when the C++ side was built"
fi

awk '{ p += $1; f += $2; s += $3 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' "$counts"
exit "$status"
