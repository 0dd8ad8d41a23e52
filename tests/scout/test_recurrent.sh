#!/usr/bin/env bash
# A model of recurrent layers, from its file to the reports of this machine's CPU: every layer has a baseline that the
# reference agrees with. How steady its times are is no matter here.
source "$ROOT/tests/scout/lib.sh"
model=${MODELS_DIR:-$ROOT/../shared/models}/lstm_ts.onnx
extract=$(dirname "$SCOUT")/extract_ops
if [[ ! -f $model || ! -x $extract ]]; then
    skip "no lstm_ts.onnx in MODELS_DIR, or no extract_ops beside scout_batch"
    finish
    exit
fi
export CEILING_SCOUT_PATIENCE=10 # real measurements on a machine that others use
run "$extract" "$model" -o ops.json --dim batch=1 --dim seq=16
check "extract_ops: exit 0" exits 0
run "$SCOUT" ops.json --device cpu:0 --only recurrent -o out --budget 20
check "two layers are measured" test "$(grep -l '"status": "OK"' out/reports/recurrent*.json | wc -l)" = 2
check "their baseline is a library's or ours" test "$(grep -lE '"baseline": "(onednn_recurrent|cpu_recurrent_steps)"' \
    out/reports/recurrent*.json | wc -l)" = 2
check "nothing is wrong" test "$(grep -lE '"(WRONG|CRASHED|ERROR|TIMEOUT)"' out/reports/recurrent*.json | wc -l)" = 0
check "ours was verified too" test "$(grep -l cpu_recurrent_steps out/reports/recurrent*.json | wc -l)" = 2
finish
