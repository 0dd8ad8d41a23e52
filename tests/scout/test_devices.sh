#!/usr/bin/env bash
# Two devices share one queue; one of them is lost in the middle; all are; Ctrl-C.
source "$ROOT/tests/scout/lib.sh"
write_ops ops.json
warm_up scripted:0
warm_up scripted:1
scout ops.json -o one --device scripted:0 --no-cache
check "one device: exit 0" exits 0

export CEILING_SCOUT_SCRIPTED_SLOW_US=1000
scout ops.json -o two --device scripted:0,1 --no-cache
check "two devices: exit 0" exits 0
used() { grep -oh '"scripted:[0-9]"' "$1"/reports/*.json | sort -u | wc -l; }
check "two devices: both had work" test "$(used two)" = 2
check "two devices: as many reports" test "$(report_count two)" = "$(report_count one)"

# ---- lost in the middle ----
export CEILING_SCOUT_SCRIPTED_LOST=$PWD/lost
lose() { # ORDINALS DIR ARGUMENTS…   once the first report is there
    local which=$1 folder=$2
    shift 2
    rm -f lost
    (
        wait_for_report "$folder"
        echo "$which" >lost
    ) &
    scout "$@" -o "$folder" --no-cache
    wait
}
lose 1 half ops.json --device scripted:0,1
check "one of two lost: the other does the rest, exit 0" exits 0
check "one of two lost: all reports" test "$(report_count half)" = "$(report_count one)"
check "one of two lost: it is said" says "scripted"
lose 0 none ops.json --device scripted:0
check "the only one lost: exit 4" exits 4
check "the only one lost: what is finished is kept" some_report none
check "the only one lost: it is said" says "lost"
rm -f lost
unset CEILING_SCOUT_SCRIPTED_LOST
scout ops.json -o none --device scripted:0 --no-cache --resume
check "back again: resumed, exit 0" exits 0
check "back again: as uninterrupted" same_but_time one none

# ---- Ctrl-C ----
for _ in 1 2 3 4 5 6 7 8 9 10; do # on a busy machine the run may be over before the signal comes
    rm -rf stopped
    set -m # a group of its own, whose signals are not ignored: as on a terminal
    CEILING_SCOUT_SCRIPTED_SLOW_US=30000 "$SCOUT" "${DEVICE[@]}" ops.json -o stopped --device scripted:0 --no-cache \
        >stdout.txt 2>stderr.txt </dev/null &
    pid=$!
    set +m
    wait_for_report stopped
    kill -INT -- "-$pid" || true
    kill -INT -- "-$pid" || true # at once, as where a process and its group are signalled
    EXIT=0
    wait "$pid" || EXIT=$?
    if ((EXIT != 0)); then break; fi
done
STDOUT=$(<stdout.txt) STDERR=$(<stderr.txt)
check "Ctrl-C: exit 1" exits 1
check "Ctrl-C: every finished report is there" some_report stopped
check "Ctrl-C: it came in the middle" test "$(report_count stopped)" -lt "$(report_count one)"
check "Ctrl-C: no worker is left" alone "--worker .*$SCRIPTED/device.so"
scout ops.json -o stopped --device scripted:0 --no-cache --resume
check "Ctrl-C, resumed: exit 0" exits 0
check "Ctrl-C, resumed: as uninterrupted" same_but_time one stopped

# ---- Ctrl-C while ceilings are measured: each part is kept when it ends ----
asked() { cat kept/*/* 2>/dev/null | grep -o '"asked":\[[^]]*\]' || true; }
set -m
CEILING_SCOUT_SCRIPTED_SLOW_US=80000 "$SCOUT" "${DEVICE[@]}" --ceilings --precision fp32 --device scripted:0 --cache-dir kept -o kept.json \
    >stdout.txt 2>stderr.txt </dev/null &
pid=$!
set +m
for ((k = 0; k < 600; k++)); do
    if [[ -n $(asked) ]]; then break; fi
    sleep 0.05
done
kill -INT -- "-$pid" || true
EXIT=0
wait "$pid" || EXIT=$?
STDOUT=$(<stdout.txt) STDERR=$(<stderr.txt)
check "Ctrl-C in ceilings: exit 1" exits 1
check "Ctrl-C in ceilings: says what is kept" says "the parts that were done are kept"
check "Ctrl-C in ceilings: no file of a part of them" test ! -e kept.json
check "Ctrl-C in ceilings: what was done" test "$(asked)" = '"asked":["bandwidth"]'
scout --ceilings --precision fp32 --device scripted:0 --cache-dir kept -o kept.json
check "Ctrl-C in ceilings, again: exit 0" exits 0
check "Ctrl-C in ceilings, again: all of them" test "$(asked)" = '"asked":["fp32","bandwidth"]'
check "Ctrl-C in ceilings, again: in the file" grep -qF '"precision": "fp32"' kept.json

# ---- a folder that holds a model's reports ----
scout --op gemm --shape 16,16,16 --precision fp32 -o stopped --device scripted:0
check "one operation into a model's folder: exit 0" exits 0
check "one operation into a model's folder: the model's reports stay" test "$(report_count stopped)" = $(($(report_count one) + 1))

# ---- started with nothing open ----
run bash -c 'exec "$@" <&- >&- 2>&-' - "$SCOUT" "${DEVICE[@]}" ops.json -o closed --device scripted:0
check "no standard input, output and error: exit 0" exits 0
check "no standard input, output and error: as with them" same_but_time one closed

# ---- names ----
scout ops.json -o names --device scripted:9
check "no such device: exit 4" exits 4
check "no such device: said" says "scripted:9"
for word in scripted:x : 0 cpu,scripted:0 scripted:0,0 scripted:0,,1 nosuch:; do
    scout ops.json -o names --device "$word"
    check "--device $word: exit 2" exits 2
done
run "$SCOUT" --custom-kernel /nonexistent.so --list-devices
check "a plugin that is not there: exit 3" exits 3
run "$SCOUT" --custom-kernel "$SCOUT" --list-devices
check "a plugin that is none: exit 3" exits 3
finish
