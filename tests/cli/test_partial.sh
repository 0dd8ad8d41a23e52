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
check "without a baseline: of how many" prints "already optimal: 1 of the 8 measured operations, "
analyze plain
proven=$(sed -n 's/^proven to be recoverable: .* (\(.*\) of the estimated time of all)$/\1/p' stdout.txt)
check "without a baseline: the head and the table have one denominator" test -n "$proven" -a "$proven" = \
    "$(sed -n 's/^together  *[0-9]*  *[0-9.]*  *[0-9.]*  *\([0-9.]* %\).*/\1/p' stdout.txt)"
check "without a baseline: it has no time in the table" test "$(grep -c '^no baseline  *2$' stdout.txt)" = 1
analyze plain --format json
check "without a baseline: JSON has no gains and no shares of it" python3 -c '
import json
gains = {"weight_us", "share", "proven_share", "potential_us", "potential_share", "proven_gain_us", "potential_gain_us"}
(group,) = json.load(open("stdout.txt"))["groups"]
kinds = {row["outcome"] == "missing": gains & set(row) for row in group["operations"]}
assert kinds == {True: set(), False: gains}, kinds'
cp stdout.txt plain.json
check "without a baseline: JSON fits" fits_schema plain.json
cp -r "$STORED" torn
for file in torn/reports/gemm_1024x768x768_*; do echo '{"schema": ' >"$file"; done
analyze torn
check "a report that cannot be read: it was reached" prints "PARTIAL: 16 of 17 operations have a figure (1 with a report that cannot be read)"
check "a report that cannot be read: what to do about it" prints "--resume"
cp -r "$STORED" none
state none interrupted
rm none/reports/* none/fusions/*
analyze "$STORED" none
check "a folder without a report beside another one: what it lacks" \
    grep -qE '^PARTIAL: 17 of 34 operations have a figure \(the run was interrupted, 17 not reached, [0-9]+ fusions not reached\)' <<<"$(tr -s '\n ' ' ' <stdout.txt)"
sed -i 's/"regime": "[a-z-]*"/"regime": "burst-hot-direct"/' none/run.json
analyze "$STORED" none
check "a folder without a report, of another regime: no part of it" test "$(grep -c PARTIAL stdout.txt)" = 0

# Without the heaviest ones the others have larger shares of the model's time: nothing got worse by that.
cp -r "$STORED" light
python3 - <<'END'
import glob, json, os
def weight(path):
    report = json.load(open(path))
    return report.get("baseline_time_us", 0) * report["count"]
for path in sorted(glob.glob("light/reports/*.json"), key=weight)[-3:]:
    os.remove(path)
END
analyze compare "$STORED" light
check "compare of a part: shares make nothing worse" grep -qE '^verdicts +0 worse, 0 better, [1-9]' stdout.txt
analyze compare light "$STORED"
check "compare with a part: shares make nothing better" grep -qE '^verdicts +0 worse, 0 better, [1-9]' stdout.txt
analyze "$ROOT/tests/golden/reports/mlp_sparse"
check "--only: what it left out" prints "PARTIAL: 4 of 5 operations have a figure (1 left out by --only)"
rm killed/run.json
analyze killed
check "without run.json: nothing is known of it" test "$(grep -c PARTIAL stdout.txt)" = 0
finish
