#!/usr/bin/env bash
# Candidates that fail, each in its own way: each gets its status, and every other row is as it is without them.
source "$ROOT/tests/scout/lib.sh"
write_few_ops ops.json
warm_up scripted:0
scout ops.json -o clean --device scripted:0
check "a run without faults: exit 0" exits 0

faulty() { # WHAT STATUS CODE   for one fault alone
    rm -rf faulty
    export CEILING_SCOUT_FAULTS=$1
    scout "${FAULTS[@]}" ops.json -o faulty --device scripted:0
    check "$1: exit 1" exits 1
    check "$1: it is $2 $3" row_is faulty "fault_$1" "$2" "$3"
    check "$1: every other row is as without it" same_but_time clean faulty "fault_$1"
}
faulty crash CRASHED signal
check "the last words of a crash are in the reason" grep -rqF "about to write to nowhere" faulty/reports
faulty hang TIMEOUT deadline
faulty wrong WRONG samples
faulty canary WRONG canary
faulty bounds CRASHED poisoned
faulty input WRONG input_changed
faulty memory ERROR memory
faulty hog ERROR memory
faulty exit CRASHED exit
faulty frames CRASHED exit
# right while they are checked alone, and not when they are timed beside the others
faulty late_crash CRASHED signal
faulty late_hang TIMEOUT deadline
faulty late_bounds CRASHED poisoned
# right while it is checked alone; then a thread of it writes into an input that the library is given too. A check takes
# long enough to be hit
rm -rf faulty
CEILING_SCOUT_SCRIPTED_SLOW_US=1000 CEILING_SCOUT_FAULTS=writer scout "${FAULTS[@]}" ops.json -o faulty --device scripted:0
check "writer: exit 1" exits 1
check "writer: it is WRONG" row_is faulty fault_writer WRONG "input_changed|samples"
check "writer: every other row is as without it" same_but_time clean faulty fault_writer

# what a plugin has started is gone with the run, also what left its session; what was there before is not touched
rm -rf faulty
CEILING_SCOUT_FAULTS=parent run bash -c 'sleep 100 & echo $! >sleeper; exec "$@"' - \
    "$SCOUT" "${DEVICE[@]}" "${FAULTS[@]}" ops.json -o faulty --device scripted:0
check "parent: exit 0" exits 0
check "parent: its child does not outlive the run" alone "$SCRIPTED/faults.so"
check "parent: a child of others does" kill "$(<sleeper)"

# a device whose timer or clock says what is no time
for broken in TIMER=nan:1 TIMER=inf:9 TIMER=-1:30 CLOCK=nan:1 CLOCK=inf:9; do
    rm -rf faulty
    run env "CEILING_SCOUT_SCRIPTED_$broken" "$SCOUT" "${DEVICE[@]}" ops.json -o faulty --device scripted:0 --no-cache
    check "$broken: exit 1" exits 1
    check "$broken: nothing crashes, and no memory is missing" test "$(cat stdout.txt stderr.txt | grep -cE 'CRASHED|memory')" = 0
    check "$broken: it is said what was no time" grep -rqE "says that it (took|is) (nan|inf|-1) s" stderr.txt faulty
done

# all at once
unset CEILING_SCOUT_FAULTS
rm -rf faulty
scout "${FAULTS[@]}" ops.json -o faulty --device scripted:0
check "all at once: exit 1" exits 1
mapfile -t names < <(grep -ohE '"fault_[a-z_]+"' "$ROOT/tests/fakes/scripted/faults.c" | tr -d '"' | sort -u)
check "all at once: every other row is as without them" same_but_time clean faulty "${names[@]}"
check "nothing of it is left running" alone "$SCRIPTED/faults.so"
finish
