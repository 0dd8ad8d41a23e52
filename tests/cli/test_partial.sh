#!/usr/bin/env bash
# What was interrupted, or measured in part, says PARTIAL and how much on top of every format, and nothing is said of what
# has no figure.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
source "$ROOT/tests/cli/analyze.sh"
STORED=$ROOT/tests/golden/reports/bert_base@b8_s128

run python3 -B "$ROOT/tests/cli/partial.py" "$ANALYZE" "$STORED" "$PWD" 20
check "stopped at 20 moments: all formats say so, and nothing else" exits 0
analyze stopped_1 --format json
cp stdout.txt stopped.json
check "json: fits" fits_schema stopped.json

analyze "$STORED"
check "whole: exit 0" exits 0
check "whole: not a word of it" test "$(grep -c PARTIAL stdout.txt)" = 0
for format in json md csv junit html; do
    "$ANALYZE" "$STORED" --format $format >whole.$format
    check "whole: not a word of it in $format" test "$(grep -c 'PARTIAL: ' whole.$format)" = 0
done

state() { sed -i "s/\"state\": \"[a-z]*\"/\"state\": \"$2\"/" "$1/run.json"; }
cp -r "$STORED" late
state late interrupted
rm late/fusions/gemm_bias_*
analyze late
check "in its fusions: all operations are there" prints "PARTIAL: 17 of 17 operations have a figure (the run was interrupted, 1 fusion not reached)"
cp -r "$STORED" killed
state killed running
rm killed/reports/gemm_1024x768x768_*
analyze killed
check "killed" prints "PARTIAL: 16 of 17 operations have a figure (the run has not ended, 1 not reached)"
cp -r "$STORED" parts
rm parts/reports/*_part.json
analyze parts
check "without parts: it is whole" test "$(grep -c PARTIAL stdout.txt)" = 0
analyze parts killed
check "two folders: what both lack" prints "PARTIAL: 17 of 18 operations have a figure (the run has not ended, 1 not reached)"
python3 "$MADE" plain
analyze plain
STDOUT=$(tr -s '\n ' ' ' <stdout.txt)
check "without a baseline: how much of the time by estimate" prints \
    "PARTIAL: 8 of 10 operations have a figure, 95.3 % of the estimated time (1 skipped for want of time, 1 without a valid baseline)"
check "without a baseline: it has no time in the table" test "$(grep -c '^no baseline  *2$' stdout.txt)" = 1
analyze "$ROOT/tests/golden/reports/mlp_sparse"
check "--only: what it left out" prints "PARTIAL: 4 of 5 operations have a figure (1 left out by --only)"
rm killed/run.json
analyze killed
check "without run.json: nothing is known of it" test "$(grep -c PARTIAL stdout.txt)" = 0
finish
