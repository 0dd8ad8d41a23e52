#!/usr/bin/env bash
# Hostile models: builds the program with the sanitizers, writes every case and runs them all.
# Usage: tests/hostile/run.sh [PROGRAM [NAME]…]   NAME: only the cases whose names begin so
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
program=${1:-}
if (($# > 0)); then shift; fi
if [[ -z $program ]]; then
    program=out/build/asan-gcc/bin/extract_ops
    make --no-print-directory -j"$(nproc)" MODE=asan CC=gcc modal >/dev/null
fi
folder=out/hostile
PYTHONDONTWRITEBYTECODE=1 python3 tests/hostile/make.py "$folder"
PYTHONDONTWRITEBYTECODE=1 python3 tests/hostile/run_cases.py "$program" "$folder" "$@"
