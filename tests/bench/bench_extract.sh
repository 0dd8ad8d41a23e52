#!/usr/bin/env bash
# Speed and memory of extract_ops beside python onnx, on the same files, in one run. Ends with 1 when a target is missed.
# Usage: tests/bench/bench_extract.sh EXTRACT_OPS [--runs N] [--only TEXT] [--models FOLDER]
set -euo pipefail
extract=$(realpath "${1:?usage: tests/bench/bench_extract.sh EXTRACT_OPS [--runs N] [--only TEXT] [--models FOLDER]}")
shift
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if [[ ! -x out/venv/bin/python ]]; then
    echo "bench: python onnx is not installed; run scripts/setup.sh first" >&2
    exit 4
fi
exec out/venv/bin/python tests/bench/bench_extract.py "$extract" "$@"
