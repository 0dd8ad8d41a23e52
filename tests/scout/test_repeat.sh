#!/usr/bin/env bash
# What `make bench-repeat` makes of the reports of several runs: made-up ones, without measuring anything.
# shellcheck source=tests/scout/lib.sh
source "$ROOT/tests/scout/lib.sh"

if ! command -v python3 >/dev/null; then
    skip "python3 is not installed: no reports to compare"
    finish
    exit
fi

report() { # RUN NAME EFFICIENCY PRIORITY APPROACH BORDERLINE
    mkdir -p "$case/run_$1/reports"
    printf '{"name": "%s", "status": "OK", "baseline_time_us": 10, "efficiency": %s, "priority": "%s", "approach": "%s", "borderline": %s}' \
        "$2" "$3" "$4" "$5" "$6" >"$case/run_$1/reports/$2.json"
}
wide() { # RUN NAME
    mkdir -p "$case/run_$1/reports"
    printf '{"name": "%s", "status": "OK", "baseline": "b", "baseline_time_us": 10, "efficiency": 0.5, "candidates": [{"name": "b", "status": "OK", "quality": "wide"}]}' "$2" >"$case/run_$1/reports/$2.json"
}
compare() { run python3 -B "$ROOT/tests/bench/repeat_cpu.py" "$case" 2; }
prints() { [[ $STDOUT == *"$1"* ]]; }
last_line() { [[ ${STDOUT##*$'\n'} == "$1" ]]; }

case=same
report 1 a 0.80 HIGH CUSTOM_KERNEL false
report 2 a 0.81 HIGH CUSTOM_KERNEL false
compare
check "the same verdict: exit 0" exits 0
check "the same verdict: counted" prints "verdicts: 1 compared, 0 of them changed; 0 borderline, 0 that were known well less than twice"
check "the same verdict: passed" last_line "1 passed, 0 failed, 0 skipped"

case=changed
report 1 a 0.80 HIGH CUSTOM_KERNEL false
report 2 a 0.81 HIGH LIBRARY_TUNE false
compare
check "another verdict: exit 1" exits 1
check "another verdict: both are named" prints "verdict changed: HIGH/CUSTOM_KERNEL, HIGH/LIBRARY_TUNE"
check "another verdict: failed" last_line "0 passed, 1 failed, 0 skipped"

case=priority
report 1 a 0.80 HIGH CUSTOM_KERNEL false
report 2 a 0.81 MEDIUM CUSTOM_KERNEL false
compare
check "another priority: exit 1" exits 1

case=borderline
report 1 a 0.80 HIGH CUSTOM_KERNEL false
report 2 a 0.81 HIGH LIBRARY_TUNE true
report 1 b 0.80 HIGH CUSTOM_KERNEL false
report 2 b 0.81 HIGH CUSTOM_KERNEL false
compare
check "borderline in one run: exit 0" exits 0
check "borderline in one run: not compared" prints "verdicts: 1 compared, 0 of them changed; 1 borderline"
check "borderline in one run: skipped" last_line "1 passed, 0 failed, 1 skipped"

case=far
report 1 a 0.80 HIGH CUSTOM_KERNEL true
report 2 a 0.84 HIGH CUSTOM_KERNEL true
compare
check "efficiencies that differ: exit 1, borderline or not" exits 1

case=wide
report 1 a 0.80 HIGH CUSTOM_KERNEL false
wide 2 a
compare
check "known once: exit 0" exits 0
check "known once: nothing to compare" prints "0 compared, 0 of them changed; 0 borderline, 1 that were known well less than twice"

case=missing
report 1 a 0.80 HIGH CUSTOM_KERNEL false
compare
check "a report that is missing: exit 1" exits 1

case=nothing
compare
check "no reports: exit 1" exits 1
finish
