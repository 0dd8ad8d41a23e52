#!/usr/bin/env bash
# Models as a whole on this machine's processor, beside onnxruntime on the same files and as many threads: profiles each and
# prints ratios of turns.
# Usage: tests/bench/peers_cpu.sh CEILING_SCOUT SCOUT_BATCH PYTHON MODEL…   BATCH (1), SEQ (128), BUDGET (60s), TURNS (5)
# PYTHON has numpy, onnx and onnxruntime; scripts/setup.sh makes one (out/venv).
set -euo pipefail
front=$1 scout=$2 python=$3
shift 3
work=out/peers folders=()
for model; do
    options=(--device cpu --budget "${BUDGET:-60s}" -o "$work" --batch "${BATCH:-1}" --seq "${SEQ:-128}")
    "$front" profile "$model" "${options[@]}" >/dev/null || (($? == 1))
    folders+=("$("$front" profile "$model" "${options[@]}" --folder)")
done
"$python" -B "$(dirname "${BASH_SOURCE[0]}")/peers_cpu.py" "$scout" --turns "${TURNS:-5}" "${folders[@]}"
