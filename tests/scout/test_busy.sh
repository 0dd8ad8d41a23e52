#!/usr/bin/env bash
# What `make bench-busy` makes of the reports of its runs: made-up ones, without measuring anything.
# shellcheck source=tests/scout/lib.sh
source "$ROOT/tests/scout/lib.sh"

if ! command -v python3 >/dev/null; then
    skip "python3 is not installed: no reports to compare"
    finish
    exit
fi

report() { # LOAD REPETITION NAME MEDIAN CI
    mkdir -p "$case/out_$1_$2/model/reports"
    printf '{"name": "%s", "count": 1, "reason": null, "baseline": "b", "baseline_variant": "", "candidates": [{"name": "b", "variant": "", "time_us": {"median": %s%s}}]}' \
        "$3" "$4" "${5:+, \"rel_ci95\": $5}" >"$case/out_$1_$2/model/reports/$3.json"
}
runs() { # of ten operations: all well, and two repetitions of each load
    local load k n
    for load in 0 2 4 8; do
        for k in 1 2; do
            for n in 0 1 2 3 4 5 6 7 8 9; do report "$load" "$k" "op$n" "10$n" 0.02; done
            printf 'profile_%s_%s 40.0 0\nvalidate_%s_%s 9.0 0\n' "$load" "$k" "$load" "$k" >>"$case/runs.txt"
            echo '  keep        it is worth it' >"$case/validate_${load}_$k.txt"
        done
    done
}
compare() { run python3 -B "$ROOT/tests/bench/busy.py" "$case" 2; }
fails() { [[ $STDOUT == *"FAILED $1"$'\n'* && ${STDOUT##*$'\n'} == "5 passed, 1 failed" ]] && exits 1; }

case=well
runs
compare
check "all is well: exit 0" exits 0
check "all is well: said" test "${STDOUT##*$'\n'}" = "6 passed, 0 failed"

case=slow
runs
sed -i 's/^profile_8_2 40.0 0/profile_8_2 95.0 0/' "$case/runs.txt"
compare
check "a run that takes too long" fails runs

case=code
runs
sed -i 's/^profile_4_1 40.0 0/profile_4_1 40.0 2/' "$case/runs.txt"
compare
check "a run that fails" fails runs

case=empty
runs
sed -i 's/"time_us".*}}/"status": "ERROR"}/' "$case/out_2_1/model/reports/op3.json"
compare
check "an operation without a figure: exit 1" exits 1
check "an operation without a figure: counted" grep -qE '^ +2 .* 1  ' stdout.txt

case=quiet
runs
for n in 1 2; do report 0 2 "op$n" 105.0 0.04; done
compare
check "a quiet machine: 2 %" fails "quiet medians"

case=far
runs
for n in 1 2; do report 8 2 "op$n" 110.0 0.2; done
compare
check "beside others: 5 %" fails medians

case=apart
runs
for n in 1 2 3 4 5 6 7 8; do for load in 4 8; do report "$load" 2 "op$n" "10$n"; done; done
compare
check "an interval that is not known overlaps nothing" fails intervals

case=open
runs
echo '  undecided   one pass' >"$case/validate_2_2.txt"
compare
check "a comparison that does not decide" fails decisions
finish
