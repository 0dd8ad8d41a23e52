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

# all at once
unset CEILING_SCOUT_FAULTS
rm -rf faulty
scout "${FAULTS[@]}" ops.json -o faulty --device scripted:0
check "all at once: exit 1" exits 1
mapfile -t names < <(grep -ohE '"fault_[a-z_]+"' "$ROOT/tests/scripted/faults.c" | tr -d '"' | sort -u)
check "all at once: every other row is as without them" same_but_time clean faulty "${names[@]}"
check "nothing of it is left running" alone "$SCRIPTED/faults.so"
finish
