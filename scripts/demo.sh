#!/usr/bin/env bash
# The demonstration: for three photographs, searches the order of deleting
# patches that a trained network minds least and most. Made anew each time.
# Called by `make demo`, after the build.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=build/demo
rm -rf "$out"
# The repository schedule's cooling (T0 .05 to 1e-3) in 120 iterations instead of 2000.
build/assay trace --net efficientnet-lite0 --preset tf-lite --data embedded:photos --edge 7 \
  --solver sa --schedule repository --iterations "${ITERATIONS:-120}" --eta 0.967 --out "$out"
