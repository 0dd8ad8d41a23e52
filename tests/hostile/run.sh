#!/usr/bin/env bash
# Hostile models: builds the program with the sanitizers, writes every case and runs them all. Then, without sanitizers,
# whether time grows with a model or with its square.
# Usage: tests/hostile/run.sh [PROGRAM [NAME]…]   NAME: only the cases whose names begin so
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
program=${1:-}
if (($# > 0)); then shift; fi
if [[ -z $program ]]; then
    program=out/build/asan-gcc/bin/extract_ops
    make --no-print-directory -j"$(nproc)" MODE=asan CC=gcc modal >/dev/null
fi
make --no-print-directory -j"$(nproc)" bin/extract_ops bin/scout_batch >/dev/null
folder=out/hostile
export PYTHONDONTWRITEBYTECODE=1 SCOUT=${SCOUT:-bin/scout_batch}
python3 tests/hostile/make.py "$folder"
code=0
said=$(python3 tests/hostile/run_cases.py "$program" "$folder" "$@") || code=1
grown=$(python3 tests/hostile/growth.py bin/extract_ops "$@") || code=1
printf '%s\n%s\n' "$said" "$grown"
read -r passed _ failed _ <<<"${said##*$'\n'}"
read -r more _ worse _ <<<"${grown##*$'\n'}"
echo "$((passed + more)) passed, $((failed + worse)) failed"
exit "$code"
