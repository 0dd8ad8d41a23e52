#!/usr/bin/env bash
# Whether the end that a bar tells comes when it says: ten runs on this machine's CPU, five models with a budget and
# without, each with ceilings to measure first. Ends with 1 where one was told wrong: from the middle of a run on beyond
# 30 % and 10 s more than once in ten, or a bar that stood still for 5 s.
# Usage: tests/bench/eta.sh, from the root of the repository, where all is built
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wrong=0
for model in transformer_block small_resnet decoder_step quantised_mlp small_conv; do
    bin/extract_ops "models/$model.onnx" -q --batch 1 -o "$work/$model.json" 2>"$work/said" || {
        cat "$work/said" >&2
        exit 1
    }
    for budget in 30s none; do
        how=()
        if [[ $budget != none ]]; then how=(--budget "$budget"); fi
        printf '%-18s budget %-4s ' "$model" "$budget"
        python3 -B tests/scout/eta.py --figures bin/scout_batch "$work/$model.json" --device cpu \
            --cache-dir "$work/$model$budget" -o "$work/out_$model$budget" "${how[@]}" || wrong=$((wrong + 1))
    done
done
echo "$wrong of 10 were told wrong"
((wrong == 0))
