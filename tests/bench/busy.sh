#!/usr/bin/env bash
# What figures are worth on a CPU that others use as well: a small model is profiled with nothing, two, four and eight
# busy loops beside it, in turns, each time with an empty cache, and the example of a custom kernel is validated. Prints
# what each run took and ended with, how far medians lie apart, and how many intervals overlap.
# Usage: tests/bench/busy.sh MAKE [REPETITIONS] (3), from the root of the repository, where all is built
# Ends with 1 where a run failed or the line that CPU figures are held to is not reached.
set -euo pipefail
make=${1:?usage: tests/bench/busy.sh MAKE [REPETITIONS]}
repetitions=${2:-3}
work=$(mktemp -d)
loops=()
end_loops() {
    ((${#loops[@]} == 0)) || kill "${loops[@]}" 2>/dev/null || true
    ((${#loops[@]} == 0)) || wait "${loops[@]}" 2>/dev/null || true
    loops=()
}
trap 'end_loops; rm -rf "$work"' EXIT
begin_loops() { # COUNT
    local k
    for ((k = 0; k < $1; k++)); do
        (while :; do :; done) &
        loops+=($!)
    done
}
timed() { # NAME COMMAND…   appends "NAME SECONDS CODE" to runs.txt
    local name=$1 code=0 began=$EPOCHREALTIME
    shift
    "$@" >"$work/$name.txt" 2>&1 </dev/null || code=$?
    awk -v n="$name" -v a="$began" -v b="$EPOCHREALTIME" -v c="$code" 'BEGIN { printf "%s %.1f %d\n", n, b - a, c }' >>"$work/runs.txt"
}

"$make" -s -C docs/examples/custom_kernel cpu OUT="$work/kernel"
for ((k = 1; k <= repetitions; k++)); do
    for busy in 0 2 4 8; do
        begin_loops "$busy"
        export XDG_CACHE_HOME=$work/cache_${busy}_$k
        timed "profile_${busy}_$k" "$make" --no-print-directory MODEL=models/transformer_block.onnx BATCH=1 SEQ=128 \
            DEVICE=cpu OUT="$work/out_${busy}_$k" profile
        timed "validate_${busy}_$k" "$make" --no-print-directory BEFORE=onednn AFTER="$work/kernel/skinny.so" \
            SHAPE=1,4096,4096 DEVICE=cpu validate
        end_loops
        echo "$busy busy loops, repetition $k of $repetitions: done" >&2
    done
done
if [[ -n ${KEEP:-} ]]; then cp -r "$work/." "$KEEP"; fi # to look at what it says
python3 -B "$(dirname "${BASH_SOURCE[0]}")/busy.py" "$work" "$repetitions"
