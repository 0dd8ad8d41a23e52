#!/usr/bin/env bash
# The daily command with measuring: extraction, then reports, then a dispatch table and a summary of them; again only where
# something has changed; goes on after a stop.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
source "$ROOT/tests/cli/analyze.sh"
cp "$MODEL" m.onnx
printf '#!/bin/sh\nexec "%s" --custom-kernel "%s" "$@"\n' "$SCOUT" "$SCRIPTED/device.so" >program
chmod +x program
profile() { # [NAME=VALUE…]
    run env PROFILE_MODEL=m.onnx PROFILE_OUT=o PROFILE_SCOUT=./program PROFILE_ANALYZE="$ANALYZE" PROFILE_DEVICE=scripted:0 "$@" \
        "$ROOT/scripts/profile.sh" "$EXTRACT_OPS" --quiet
}
folder=o/m@scripted:0
profile
check "first run: exit 1, for some kinds have no candidates" exits 1
check "first run: writes" prints "wrote $folder/reports"
check "first run: ops.json" present "$folder/ops.json"
check "first run: a report for each operation" test "$(grep -c '^      "id"' "$folder/ops.json")" = "$(find "$folder/reports" -name '*.json' | wc -l)"
check "first run: ends with the summary" prints " a run ("
check "first run: the memory of a run" prints "activations at most "
check "first run: and that of its reports is kept" contains "$folder/summary.json" '"activation_bytes": '
check "first run: it is kept" present "$folder/summary.json"
check "first run: a page, and where it is" prints "the whole report: $folder/report.html"
check "first run: a dispatch table" prints "$folder/dispatch.json: 5 operations"
check "first run: fits" fits_schema "$folder"/reports/*.json "$folder/run.json" "$folder/summary.json" "$folder/dispatch.json"
run cc -std=c11 -Wall -Wextra -Werror -fsyntax-only -x c "$folder/dispatch.h"
check "first run: the table as a header compiles" exits 0
run "$ANALYZE" dispatch "$folder" -o table.json --header table.h
check "first run: the table is that of analyze dispatch" same table.json "$folder/dispatch.json"
check "first run: and so is the header" same table.h "$folder/dispatch.h"
profile
check "second run: exit 1 still" exits 1
check "second run: nothing to do" prints "$folder/reports is up to date"
check "second run: nothing is measured" test -z "$STDERR"
check "second run: nothing is summed up" prints "$folder/summary.txt is up to date"
check "second run: nor tabulated" prints "$folder/dispatch.json is up to date"
check "second run: the summary all the same" prints " a run ("
rm "$folder/summary.txt"
profile
check "summary gone: it is made again" present "$folder/summary.txt"
check "summary gone: nothing is measured" prints "$folder/reports is up to date"
check "summary gone: the table stays" prints "$folder/dispatch.json is up to date"
check "summary gone: exit 1 still" exits 1
rm "$folder/dispatch.h"
profile
check "header gone: it is made again" present "$folder/dispatch.h"
check "header gone: nothing is measured" prints "$folder/reports is up to date"
check "header gone: the summary stays" prints "$folder/summary.txt is up to date"
touch -d '2001-01-01' "$folder/run.json"
profile
check "other ceilings: the summary is another one" test "$STDOUT" = "${STDOUT/summary.txt is up to date/}"
check "other ceilings: the table is not" prints "$folder/dispatch.json is up to date"
# shellcheck disable=SC2016 # that script's own argument
printf '#!/bin/sh\n[ "$1" != dispatch ] || { echo "no table today" >&2; exit 3; }\nexec "%s" "$@"\n' "$ANALYZE" >no_table
chmod +x no_table
profile PROFILE_ANALYZE=./no_table
check "no table can be made: its code" exits 3
check "no table can be made: is said" says "no table today"
check "no table can be made: none of an earlier run stays" absent "$folder/dispatch.json"
check "no table can be made: nor its header" absent "$folder/dispatch.h"
check "no table can be made: the summary all the same" prints " a run ("
profile
check "a table can be made again: it is" present "$folder/dispatch.json"
profile PROFILE_BUDGET=5
check "another budget: runs" prints "wrote $folder/reports"
check "another budget: on from what is known" test "$(field "$folder/run.json" 'r["sources"]["cached"] > 0')" = True
profile PROFILE_REGIME=burst
check "another regime: a folder of its own" present "$folder""_burst/run.json"
rm "$folder"/reports/gemm_*_fp32_*.json
profile PROFILE_BUDGET=5
check "reports gone: runs" prints "wrote $folder/reports"
touch -d '2001-01-01' m.onnx
profile PROFILE_BUDGET=5
check "the model is only touched: its operations are read again" prints "wrote $folder/ops.json"
check "the model is only touched: the same operations are not measured again" prints "$folder/reports is up to date"
python3 -c 'import json
weight = next(w for op in json.load(open("'"$folder"'/ops.json"))["ops"] for w in op.get("weights", []) if w["length"] >= 4096)
data = bytearray(open("m.onnx", "rb").read())
data[weight["offset"]:weight["offset"] + weight["length"]] = bytes(weight["length"])
open("m.onnx", "wb").write(data)'
profile PROFILE_BUDGET=5
check "other weights in the same operations: runs" prints "wrote $folder/reports"
echo "# another program" >>program
profile PROFILE_BUDGET=5
check "another program: runs" prints "wrote $folder/reports"

rm -rf o cache
run timeout --preserve-status -s INT 2 env CEILING_SCOUT_SCRIPTED_SLOW_US=100000 PROFILE_MODEL=m.onnx PROFILE_OUT=o PROFILE_SCOUT=./program \
    PROFILE_DEVICE=scripted:0 "$ROOT/scripts/profile.sh" "$EXTRACT_OPS" --quiet
check "stopped: no stamp" absent "$folder/.measure"
profile
check "stopped, then again: goes on" contains "$folder/run.json" '"resume": true'
check "stopped, then again: whole" contains "$folder/run.json" '"complete"'
rm -rf o cache
run timeout --preserve-status -s INT 2 env CUDA_VISIBLE_DEVICES=0 CEILING_SCOUT_SCRIPTED_SLOW_US=100000 PROFILE_MODEL=m.onnx PROFILE_OUT=o \
    PROFILE_SCOUT=./program PROFILE_DEVICE=scripted:0 "$ROOT/scripts/profile.sh" "$EXTRACT_OPS" --quiet
check "stopped on one GPU: it would go on" present "$folder/.measuring"
profile CUDA_VISIBLE_DEVICES=1
check "stopped on one GPU, then on another one: begins anew" contains "$folder/run.json" '"resume": false'
profile PROFILE_DEVICE=nothing:0
check "no such device: worse than 1" test "$EXIT" -gt 1
check "no such device: nothing is made" absent "o/m@nothing:0"

if command -v make >/dev/null; then
    unset MAKEFLAGS MFLAGS MAKELEVEL
    run make -s -C "$ROOT" "PROGRAM=$EXTRACT_OPS" "SCOUT=$PWD/program" "ANALYZE=$ANALYZE" PROGRAMS= "OUT=$PWD/made" "MODEL=$PWD/m.onnx" BATCH=2 \
        DEVICE=scripted:1 REGIME=burst profile
    check "make profile ends with the summary" prints " a run ("
    check "make profile tabulates" present "made/m@b2_scripted:1_burst/dispatch.h"
    check "make profile measures" present "made/m@b2_scripted:1_burst/run.json"
    check "make profile hands the device on" contains "made/m@b2_scripted:1_burst/run.json" '"name": "scripted:1"'
    run make -s -C "$ROOT" "PROGRAM=$EXTRACT_OPS" "SCOUT=$PWD/program" "ANALYZE=$ANALYZE" PROGRAMS= "OUT=$PWD/made" "MODEL=$PWD/m.onnx" MEASURE=no profile
    check "MEASURE=no only extracts" present made/m/ops.json
    check "MEASURE=no: exit 0" exits 0
    check "MEASURE=no: no reports" absent made/m/reports
fi
finish
