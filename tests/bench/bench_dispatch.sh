#!/usr/bin/env bash
# How long a lookup takes: makes reports, makes a table and a header of them, and runs bench_dispatch.c.
# Usage: tests/bench/bench_dispatch.sh ANALYZE LIB [ENTRIES [--at-most NS]]   LIB: the folder of libscout_dispatch.a
set -euo pipefail
analyze=$(realpath "${1:?usage: tests/bench/bench_dispatch.sh ANALYZE LIB [ENTRIES [--at-most NS]]}")
lib=$(realpath "${2:?usage: tests/bench/bench_dispatch.sh ANALYZE LIB [ENTRIES [--at-most NS]]}")
entries=${3:-10000}
shift $(($# < 3 ? $# : 3))
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

python3 -B tests/bench/made_products.py "$scratch/made/reports" "$entries"
"$analyze" dispatch "$scratch/made" -o "$scratch/table.json" --header "$scratch/table.h" --prefix bench >"$scratch/said.txt"
"${CC:-cc}" -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -I. "-I$scratch" -o "$scratch/bench" \
    tests/bench/bench_dispatch.c "$lib/libscout_dispatch.a" -lpthread
"$scratch/bench" "$scratch/table.json" "$@"
