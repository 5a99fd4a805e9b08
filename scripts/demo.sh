#!/usr/bin/env bash
# The demonstration: for three photographs, searches the order of deleting
# patches that a trained network minds least and most. Made anew each time.
# Called by `make demo`, after the build.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=build/demo
rm -rf "$out"
# The repository schedule's cooling (T0 .05 to 1e-3) in 150 iterations instead of 2000.
build/assay trace --net efficientnet-lite0 --preset tf-lite --data embedded:photos --edge 7 \
  --solver sa --schedule repository --iterations "${ITERATIONS:-150}" --eta 0.9737 --out "$out"
[[ -s $out/report.html ]] || build/assay report "$out"
echo "report: $PWD/$out/report.html"
