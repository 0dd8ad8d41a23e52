#!/usr/bin/env bash
# Passes: what a budget is worth, what goes on where an earlier run ended, what a disturbed device says; and what a run
# believes of an earlier one.
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

# ---- passes ----
passes() { python3 "$ROOT/tests/scout/reports.py" passes "$@"; } # DIR LEAST MOST: of every operation
went_on() { python3 "$ROOT/tests/scout/reports.py" went_on "$@"; } # DIR DIR: first passes are those of the other one
scout --device scripted:2 --ceilings --cache-dir theirs
export CEILING_SCOUT_SCRIPTED_SLOW_US=20000
scout ops.json -o once --device scripted:2 --cache-dir theirs --budget 7 # half of it is for a loaded machine
check "a budget that ends early: every operation has a figure" passes once 1 4
check "a budget that ends early: exit 0" exits 0
python3 - >one_heavy.json <<'END'
import json
shapes = {f"op{k}": [16, 16 + k, 16] for k in range(10)} | {"heavy": [64, 256, 64]}
print(json.dumps({name: {"op": "gemm", "shape": shape, "dtype": "fp32"} for name, shape in shapes.items()}))
END
CEILING_SCOUT_SCRIPTED_SLOW_US=12000 scout one_heavy.json -o one_heavy --device scripted:2 --no-cache --cache-dir theirs \
    --budget 8
check "a budget that ends early: what is heavy is looked at first" \
    python3 "$ROOT/tests/scout/reports.py" heavy_first one_heavy heavy
cp -r once kept
scout ops.json -o cached --device scripted:2 --cache-dir theirs --budget 30
check "more budget: more passes" passes cached 2 13
check "more budget: on from those in the cache" went_on once cached
check "more budget: nothing is open" test "$(grep -c '"undecided": \[\]' cached/reports/square.json)" = 1
check "more budget: exit 0" exits 0
unset CEILING_SCOUT_SCRIPTED_SLOW_US
scout ops.json -o kept --device scripted:2 --no-cache --resume --budget 30
check "--resume with more budget: on from those of the reports" went_on once kept
check "--resume with more budget: more passes" passes kept 2 13
scout ops.json -o anew --device scripted:2 --no-cache
check "without a budget: what decides something is decided" passes anew 4 13

# ---- a disturbed device: wide intervals, and no row without a figure ----
touch noise
export CEILING_SCOUT_SCRIPTED_DISTURBED=$PWD/noise
scout ops.json -o restless --device scripted:2 --no-cache
check "a restless machine: exit 0" exits 0
check "a restless machine: every operation has a figure" passes restless 1 26
check "a restless machine: nothing is UNSTABLE" test "$(grep -rl UNSTABLE restless | wc -l)" = 0
check "a restless machine: what is wide says so" grep -qE '"quality": "(wide|drifting)"' restless/reports/square.json
check "a restless machine: the time is open" grep -qF '"time"' <(grep -A3 undecided restless/reports/square.json)
scout ops.json -o restless --device scripted:2 --no-cache --strict
check "a restless machine: --strict ends with 1" exits 1
rm noise
unset CEILING_SCOUT_SCRIPTED_DISTURBED

# ---- many small operations: each is worth little, and together they are the model ----
python3 - >many.json <<'END'
import json
print(json.dumps({f"op{k}": {"op": "gemm", "shape": [16, 16 + k, 16], "dtype": "fp32"} for k in range(100)}))
END
# A budget, because passes without one end after 14 s, which a loaded machine needs for the first of them.
CEILING_SCOUT_SCRIPTED_ADDRESSES=0.12 scout many.json -o many --device scripted:2 --no-cache --budget 100
check "many small ones: exit 0" exits 0
check "many small ones: most of the model's time is known as wanted" \
    python3 "$ROOT/tests/scout/reports.py" known many 0.01 0.05 26

python3 - >few_heavy.json <<'END'
import json
shapes = {f"op{k}": [16, 16 + k, 16] for k in range(60)} | {"heavy": [64, 64, 16], "heavier": [64, 66, 16]}
print(json.dumps({name: {"op": "gemm", "shape": shape, "dtype": "fp32"} for name, shape in shapes.items()}))
END
CEILING_SCOUT_SCRIPTED_ADDRESSES=0.2 scout few_heavy.json -o few_heavy --device scripted:2 --no-cache --budget 100
check "some are never known: all others that are wide go on to the end" \
    python3 "$ROOT/tests/scout/reports.py" known few_heavy 0.01 0.005 26

# ---- what turns out to be far heavier than its size lets expect: its search goes on ----
python3 - >unexpected.json <<'END'
import json
shapes = {f"op{k}": [16, 64 + k, 64] for k in range(8)} | {"heavy": [3, 64, 64]}
print(json.dumps({name: {"op": "gemm", "shape": shape, "dtype": "fp32"} for name, shape in shapes.items()}))
END
searched() { python3 "$ROOT/tests/scout/reports.py" searched "$@"; } # DIR NAME: no candidate was left out for want of time
CEILING_SCOUT_SCRIPTED_HEAVY=3 scout unexpected.json -o unexpected --device scripted:2 --no-cache
check "unexpectedly heavy: every candidate has its turn" searched unexpected heavy
check "unexpectedly heavy: searched twice" test "$(grep -cE '^scout_batch: heavy ' stderr.txt)" = 2
check "unexpectedly heavy: every operation has a figure" passes unexpected 1 26
sed 's/\[3, 64, 64\]/&, "count": 2/' unexpected.json >before_others.json
CEILING_SCOUT_SCRIPTED_HEAVY=3 CEILING_SCOUT_SCRIPTED_FULL=$PWD/full CEILING_SCOUT_SCRIPTED_SLOW_US=3000 \
    "$SCOUT" "${DEVICE[@]}" before_others.json -o filled --device scripted:2 --no-cache >filled.txt 2>&1 </dev/null &
pid=$!
for ((tries = 0; tries < 4000; tries++)); do
    if grep -q '^scout_batch: heavy ' filled.txt; then break; fi
    sleep 0.005
done
: >full # its second search finds no room
wait "$pid" || true
rm full
check "unexpectedly heavy, and no room the second time: searched twice" \
    test "$(grep -cE '^scout_batch: heavy ' filled.txt)" = 2
check "unexpectedly heavy, and no room the second time: its figure stays" \
    python3 -c 'import json, sys; sys.exit(not json.load(open("filled/reports/heavy.json"))["baseline_time_us"] > 0)'
CEILING_SCOUT_SCRIPTED_HEAVY=3 scout unexpected.json -o hurried --device scripted:2 --cache-dir theirs --budget 3
check "unexpectedly heavy, no time: the first search stands" test "$(grep -cE '^scout_batch: heavy ' stderr.txt)" = 1
check "unexpectedly heavy, no time: an own kernel that takes next to none has its turn" \
    test "$(grep -A2 '"name": "scripted_stream"' hurried/reports/heavy.json | grep -c '"status": "OK"')" = 1
check "unexpectedly heavy, no time: what was left out is said" test "$(searched hurried heavy >/dev/null && echo all)" != all

# what is faster than the baseline, but never twice alike
CEILING_SCOUT_FAULTS=restless scout "${FAULTS[@]}" ops.json -o winner --device scripted:2 --no-cache
check "a restless winner: it has a figure" test "$(grep -c '"name": "fault_restless"' winner/reports/square.json)" -ge 1
check "a restless winner: as all the others" passes winner 4 26
check "a restless winner: exit 0" exits 0

# ---- other candidates ----
export CEILING_SCOUT_FAULTS=wrong
scout "${FAULTS[@]}" ops.json -o short --device scripted:0 --resume
check "--resume with one more candidate: it is measured" row_is short fault_wrong WRONG samples
scout "${FAULTS[@]}" ops.json -o short --device scripted:0 --resume --no-cache
check "--resume with the same ones: everything is kept" grep -qF '"kept": 5' short/run.json

# ---- what hangs or crashes twice ----
scout ops.json -o usual_rows --device scripted:0 --no-cache
for fault in "hang TIMEOUT deadline hung" "late_crash CRASHED signal crashed"; do
    read -r name status code did <<<"$fault"
    export CEILING_SCOUT_FAULTS=$name
    rm -rf twice
    scout "${FAULTS[@]}" ops.json -o twice --device scripted:0 --no-cache
    check "$name: every row says so" row_is twice "fault_$name" "$status" "$code"
    check "$name: after two operations it is left out" test "$(grep -lE "left out: it $did in [a-z]+ and [a-z]+" twice/reports/*.json | wc -l)" = 3
    check "$name: that is said" says "left out from now on"
    if [[ $name == hang ]]; then
        check "hang: it is waited for twice in each of two" test "$(grep -c "fault_hang:.*no heartbeat" stderr.txt)" = 4
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
raise SystemExit(not (t["missing"] == 1 and t["missing_us"] > 1e5 and t["model_us"] == t["missing_us"] + t["baseline_us"]))'
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
