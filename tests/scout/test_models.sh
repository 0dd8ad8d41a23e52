#!/usr/bin/env bash
# Whole models on this machine's CPU, end to end and in time: from the ONNX file to a report of every operation. Where
# the folder of real models (MODELS_DIR, else shared/models beside the repository) is not there, this is skipped.
source "$ROOT/tests/scout/lib.sh"
models=$(realpath -m "${MODELS_DIR:-$ROOT/../shared/models}")
for model in "resnet50_ts 60" "bert_tiny_w 20"; do
    read -r name budget <<<"$model"
    if [[ ! -e $models/$name.onnx ]]; then
        skip "$name: $models/$name.onnx is not there"
        continue
    fi
    EXIT=0
    CEILING_SCOUT_PATIENCE=1 timeout 240 python3 "$ROOT/tests/scout/models_cpu.py" "$ROOT" "$SCOUT" "$models/$name.onnx" "$budget" \
        >stdout.txt 2>stderr.txt </dev/null || EXIT=$?
    STDOUT=$(<stdout.txt) STDERR=$(<stderr.txt)
    grep -v '^FAILED' stdout.txt || true
    passed=$((passed + $(grep -c '^ok' stdout.txt || true)))
    failed=$((failed + $(grep -c '^FAILED' stdout.txt || true)))
    grep '^FAILED' stdout.txt || true
    check "$name: looked at, exit 0" exits 0
done
finish
