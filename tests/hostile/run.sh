#!/usr/bin/env bash
# Hostile models: builds the program with the sanitizers, writes every case and runs them all. Then, without sanitizers,
# more random graphs, and whether time grows with a model or with its square.
# Usage: tests/hostile/run.sh [PROGRAM [NAME]…]   NAME: only the cases whose names begin so
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
program=${1:-}
if (($# > 0)); then shift; fi
if [[ -z $program ]]; then
    program=out/build/asan-clang/bin/extract_ops
    make --no-print-directory -j"$(nproc)" MODE=asan CC=clang modal >/dev/null
fi
make --no-print-directory -j"$(nproc)" bin/extract_ops bin/scout_batch >/dev/null
folder=out/hostile
export PYTHONDONTWRITEBYTECODE=1
python3 tests/hostile/make.py "$folder"
passed=0 failed=0
part() { # SCRIPT ARGUMENTS…
    local said ok bad
    said=$(python3 "$@") || true
    printf '%s\n' "$said"
    read -r ok _ bad _ <<<"${said##*$'\n'}"
    passed=$((passed + ok)) failed=$((failed + bad))
}
part tests/hostile/run_cases.py "$program" "$folder/cases.json" "$@"
part tests/hostile/run_cases.py bin/extract_ops "$folder/more.json" "$@"
part tests/hostile/growth.py bin/extract_ops "$@"
echo "$passed passed, $failed failed"
((failed == 0))
