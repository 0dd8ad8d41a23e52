#!/usr/bin/env bash
# history.csv as Apache Otava reads it: with its own reader and its own analysis, a change is found in the night in which it came.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
source "$ROOT/tests/cli/analyze.sh"

python=$ROOT/out/venv/bin/python
if ! "$python" -c 'import dateparser, otava, scipy' 2>/dev/null; then
    skip "apache-otava is not installed in out/venv"
    finish
    exit
fi
# Thirty nights: op_0004 takes 5 % more from the 19th on, op_0002 6 % less from the 12th on, and the machine's clock moves in one.
for ((n = 1; n <= 30; n++)); do
    changes=()
    if ((n >= 19)); then changes+=(op_0004=1.05); fi
    if ((n >= 12)); then changes+=(op_0002=0.94); fi
    if ((n == 25)); then changes+=(machine=1.2 ceilings=1.2); fi
    python3 -B "$ROOT/tests/cli/made_runs.py" "night_$n/bert" 6 "$n" "taken=2026-01-$(printf %02d "$n")T01:00:00Z" "${changes[@]}"
    run "$ANALYZE" history h.db "night_$n/bert"
done
read_by_otava() { # OPERATION COLUMN…
    "$ANALYZE" history h.db --only "$1" --format csv -o "$1.csv" >/dev/null
    run "$python" -B "$ROOT/tests/cli/otava_reads.py" "$1.csv" "${@:2}"
}
read_by_otava op_0004 us over_ceiling
check "a step up: each night is a point" test "$(grep -c ' 30 ' stdout.txt)" = 2
check "a step up: of the share of the ceiling, in its night" test "$(sed -n 's/^over_ceiling 30 //p' stdout.txt)" = 19
read_by_otava op_0002 over_ceiling
check "a step down, in its night" test "$STDOUT" = "over_ceiling 30 12"
read_by_otava op_0003 over_ceiling
check "no step: none" test "$STDOUT" = "over_ceiling 30"
check "the recipe in the docs names these columns" grep -q '^time,night,.*,over_ceiling,.*,driver,libraries,' op_0003.csv
finish
