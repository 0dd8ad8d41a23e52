#!/usr/bin/env bash
# Repeatability on this machine's CPU: the same products in fresh processes without cache. A shared machine swings by a
# quarter, so: rows that are known well agree within 3 points of efficiency, and in their verdict where no run says
# borderline; all others have a wide interval. How many there were of each is printed.
# Usage: tests/bench/repeat_cpu.sh SCOUT_BATCH [RUNS] (RUNS: 5)
# Ceilings are measured once, by the first run, and shared; the scale of an efficiency is the probe among its own blocks.
set -euo pipefail
scout=${1:?usage: tests/bench/repeat_cpu.sh SCOUT_BATCH [RUNS]}
runs=${2:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/ops.json" <<'JSON'
{
  "cube_512": {"op": "gemm", "shape": [512, 512, 512]},
  "cube_1024": {"op": "gemm", "shape": [1024, 1024, 1024]},
  "rows_256": {"op": "gemm", "shape": [256, 1024, 1024]},
  "rows_16": {"op": "gemm", "shape": [16, 1024, 1024]},
  "rows_1": {"op": "gemm", "shape": [1, 1024, 1024]}
}
JSON
for ((run = 1; run <= runs; run++)); do
    code=0
    "$scout" "$work/ops.json" --device cpu --precision fp32 --cache cold --no-cache --cache-dir "$work/cache" \
        -o "$work/run_$run" >"$work/run_$run.txt" 2>&1 </dev/null || code=$?
    if ((code > 1)); then
        cat "$work/run_$run.txt" >&2
        echo "run $run ended with $code"
        echo "0 passed, 1 failed"
        exit 1
    fi
    echo "run $run of $runs done"
done
python3 "$(dirname "${BASH_SOURCE[0]}")/repeat_cpu.py" "$work" "$runs"
