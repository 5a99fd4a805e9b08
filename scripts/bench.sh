#!/usr/bin/env bash
# Speed and memory of this machine into docs/benchmarks.md. PYTHON names an
# interpreter with torch and torchvision, the opponent (default: python3).
set -euo pipefail
cd "$(dirname "$0")/.."
build/assay bench --python "${PYTHON:-python3}" --script scripts/bench_opponent.py --out docs/benchmarks.md "$@"
echo "docs/benchmarks.md"
