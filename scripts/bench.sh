#!/usr/bin/env bash
# Speed and memory of this machine into docs/benchmarks.md. PYTHON names an
# interpreter with torch and torchvision, the opponent (default: python3), DATA a
# folder with cifar10.tgz, imagenet-val-100 and weights/ (default: ../shared/data).
set -euo pipefail
cd "$(dirname "$0")/.."
build/assay bench --python "${PYTHON:-python3}" --script scripts/bench_opponent.py \
  --data "${DATA:-../shared/data}" --out docs/benchmarks.md "$@"
echo "docs/benchmarks.md"
