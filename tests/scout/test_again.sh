#!/usr/bin/env bash
# What a run believes of an earlier one, what it learns while it lasts, and what it does with little time.
source "$ROOT/tests/scout/lib.sh"
write_ops ops.json
said_from() { grep -qF "\"ceilings_from\": \"$2\"" "$1/run.json"; }

# ---- a budget ----
scout ops.json -o short --device scripted:0 --budget 6
check "a budget: ceilings are measured" said_from short "this run"
scout --op gemm --shape 16,16,16 --precision fp32 -o longer --device scripted:0 --budget 15
check "a longer budget: ceilings of a shorter one are good enough" said_from longer cache
scout --op gemm --shape 16,16,24 --precision fp32 -o usual --device scripted:0
check "no budget: ceilings of a budget are not" said_from usual "this run"
scout --op gemm --shape 16,16,32 --precision fp32 -o usual --device scripted:0
check "no budget: those of none are" said_from usual cache
CEILING_SCOUT_PATIENCE=1 run "$SCOUT" --device cpu --op gemm --shape 64,256,256 --precision fp32 --budget 6 -o cpu \
    --cache-dir cpu-cache
check "6 s with nothing cached: ceilings leave time for the operation" test "$(grep -c '"measured": 1' cpu/run.json)" = 1

# ---- a disturbed device ----
touch noise
export CEILING_SCOUT_SCRIPTED_DISTURBED=$PWD/noise
scout --ceilings --device scripted:1 --precision fp32 -o disturbed.json
check "disturbed ceilings are marked" grep -qF '"disturbed": true' disturbed.json
check "disturbed ceilings are shown so" grep -qF DISTURBED stdout.txt
check "disturbed ceilings: measured for the first time" grep -qF 'measuring its ceilings (once, then cached)' stderr.txt
check "disturbed ceilings: said when they are measured" grep -qF 'warning: scripted:1: its fp32 peak was disturbed while it was measured' stderr.txt
rm noise
scout --op gemm --shape 16,16,16 --precision fp32 -o quiet --device scripted:1
check "disturbed ceilings are measured again by the next run" said_from quiet "this run"
check "disturbed ceilings: why they are measured again" grep -qF 'measuring its ceilings (the last ones were disturbed: once more)' stderr.txt
check "disturbed ceilings: nothing to warn of in peace" test "$(grep -c 'was disturbed while' stderr.txt)" = 0
check "disturbed ceilings: what is measured in peace is not" test "$(grep -c disturbed quiet/run.json)" = 0
scout --op gemm --shape 16,16,24 --precision fp32 -o quiet --device scripted:1
check "disturbed ceilings: and it serves" said_from quiet cache

# ---- who would not settle ----
unstable() { grep -l '"status": "UNSTABLE"' "$1"/reports/*.json | wc -l; }
said_unstable() { grep -cE '^scout_batch: [a-z]+  UNSTABLE' stderr.txt; }
touch noise
scout ops.json -o restless --device scripted:0 --no-cache
check "a restless machine: without a budget nobody is measured once more" test "$(said_unstable)" = 5
scout ops.json -o restless --device scripted:0 --no-cache --budget 60
check "a restless machine: with one everybody is, once" test "$(said_unstable)" = 10
check "a restless machine: and says so" test "$(unstable restless)" = 5
export CEILING_SCOUT_SCRIPTED_SLOW_US=2000
(
    wait_for_report calm
    rm noise
) &
scout ops.json -o calm --device scripted:0 --no-cache --budget 60
wait
check "a machine that comes to rest: who would not settle is measured once more" test "$(said_unstable)" -ge 1
check "a machine that comes to rest: and does settle then" test "$(unstable calm)" = 0
touch noise
export CEILING_SCOUT_SCRIPTED_REFUSES=$PWD/refuses
(
    for ((tries = 0; tries < 6000; tries++)); do
        if (($(report_count kept) == 5)); then break; fi
        sleep 0.01
    done
    touch refuses
) &
scout ops.json -o kept --device scripted:0 --no-cache --budget 60
wait
same_twice=$(grep -E '^scout_batch: [a-z]+  UNSTABLE' stderr.txt | sort | uniq -d | wc -l)
check "a second measurement without figures: the first one's are said again" test "$same_twice" -ge 1
check "a second measurement without figures: the first one is kept" test "$(unstable kept)" = 5
rm noise refuses
unset CEILING_SCOUT_SCRIPTED_REFUSES CEILING_SCOUT_SCRIPTED_SLOW_US CEILING_SCOUT_SCRIPTED_DISTURBED

# what is faster than the baseline, but never twice alike: what a budget has left is for this, too
CEILING_SCOUT_FAULTS=restless scout "${FAULTS[@]}" ops.json -o winner --device scripted:0 --no-cache
had_figures() { grep -cE '^scout_batch: [a-z]+  [0-9.]+ us' stderr.txt; }
check "a winner that would not settle: the baseline did" test "$(had_figures)" = 5
check "a winner that would not settle: it says so" test "$(unstable winner)" = 5
CEILING_SCOUT_FAULTS=restless scout "${FAULTS[@]}" ops.json -o winner --device scripted:0 --no-cache --budget 60
check "a winner that would not settle: with a budget it is measured once more" \
    test "$(had_figures)" = 10

# ---- other candidates ----
export CEILING_SCOUT_FAULTS=wrong
scout "${FAULTS[@]}" ops.json -o short --device scripted:0 --resume
check "--resume with one more candidate: it is measured" row_is short fault_wrong WRONG samples
scout "${FAULTS[@]}" ops.json -o short --device scripted:0 --resume --no-cache
check "--resume with the same ones: everything is kept" grep -qF '"kept": 5' short/run.json

# ---- who hangs or crashes twice ----
scout ops.json -o usual_rows --device scripted:0 --no-cache
for fault in "hang TIMEOUT deadline hung" "late_crash CRASHED signal crashed"; do
    read -r name status code did <<<"$fault"
    export CEILING_SCOUT_FAULTS=$name
    rm -rf twice
    scout "${FAULTS[@]}" ops.json -o twice --device scripted:0 --no-cache
    check "$name: every row says so" row_is twice "fault_$name" "$status" "$code"
    check "$name: after two operations it is left out" test "$(grep -lE "left out: it $did in [a-z]+ and [a-z]+" twice/reports/*.json | wc -l)" = 3
    check "$name: that is said" says "left out from here on"
    if [[ $name == hang ]]; then
        check "hang: it is waited for twice" test "$(grep -c "fault_hang:.*no sign of life" stderr.txt)" = 2
    fi
    check "$name: every other row is as without it" same_but_time usual_rows twice "fault_$name"
done
unset CEILING_SCOUT_FAULTS

# ---- what has no time ----
cat >heavy.json <<'END'
{"square": {"op": "gemm", "shape": [64, 64, 64], "dtype": "fp32"},
 "norm": {"op": "layernorm", "shape": [65536, 4096], "dtype": "fp32"}}
END
scout heavy.json -o heavy --device scripted:0
check "no baseline: the table says what is missing" grep -qE '^missing in it: 1 operation .*at the ceilings' stdout.txt
check "no baseline: run.json counts it" python3 -c '
import json
t = json.load(open("heavy/run.json"))["totals"]
exit(not (t["missing"] == 1 and t["missing_us"] > 1e5 and t["model_us"] == t["missing_us"] + t["baseline_us"]))'
check "no baseline: the others' shares are of all of it" grep -qF '"priority": "LOW"' heavy/reports/square.json

# ---- something else in a report's place ----
mkdir -p pipes/reports
mkfifo pipes/reports/square.json
scout heavy.json -o pipes --device scripted:0
check "a pipe in a report's place: exit 4, not waited for" exits 4
check "a pipe in a report's place: it is named" says "square.json: is not a file"
rm pipes/reports/square.json
mkfifo pipes/reports/other.json
scout heavy.json -o pipes --device scripted:0
check "a pipe beside the reports: left alone" test -p pipes/reports/other.json
check "a pipe beside the reports: exit 1" exits 1
scout ops.json -o none --device gpu
check "a device that no machine has: exit 2" exits 2
finish
