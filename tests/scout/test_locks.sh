#!/usr/bin/env bash
# Several runs at once: into one folder and onto one device they come one after another, each says for which it waits, a
# killed one is waited for no longer, and --no-wait refuses. And what a run says of its end while it goes on.
# shellcheck source=tests/scout/lib.sh
source "$ROOT/tests/scout/lib.sh"

write_few_ops ops.json
measure=("$SCOUT" "${DEVICE[@]}" ops.json)
locks() { find "$XDG_CACHE_HOME/ceiling-scout/.locks" -type f 2>/dev/null | wc -l; }

EXIT=0 STDOUT='' STDERR=''
start() { # NAME DEVICE ARGUMENT…
    local name=$1 device=$2
    shift 2
    (
        code=0
        "${measure[@]}" --device "$device" "$@" 2>&1 >"$name.txt" </dev/null || code=$?
        echo "$code" >"$name.code"
    ) | while IFS= read -r line; do printf '%s %s\n' "$EPOCHREALTIME" "$line"; done >"$name.err" &
}
# Between its first result and its last one a run has the device. How many begin before another one's end?
overlaps() { # FILE…
    local file
    for file; do awk '/ us  .* of the ceiling$/ { if (!first) first = $1; last = $1 } END { print first, last }' "$file"; done |
        sort -n | awk '{ if ($1 <= end || !$1) n++; if ($2 > end) end = $2 } END { print n + 0 }'
}
codes() { sort -u -- "$@"; }

# ---- eight into one folder ----

for k in 1 2 3 4 5 6 7 8; do start "same_$k" scripted:0 -o same --no-cache; done
wait
check "eight into one folder: all end well" test "$(codes same_*.code)" = 0
check "eight into one folder: those that waited say for which" test "$(grep -lE ' scout_batch: same: waiting for process [0-9]+ \(ops.json, since 20[0-9T:Z-]+\), which is writing there \(--no-wait refuses\)$' same_*.err | wc -l)" -ge 1
check "eight into one folder: it is whole" grep -q '^  "state": "complete",$' same/run.json
check "eight into one folder: no lock is left" test ! -e same/.scout_lock

# ---- eight onto one device ----

for k in 1 2 3 4 5 6 7 8; do CEILING_SCOUT_SCRIPTED_SLOW_US=500 start "each_$k" scripted:0 -o "each_$k" --no-cache; done
wait
check "eight onto one device: all end well" test "$(codes each_*.code)" = 0
check "eight onto one device: those that waited say for which" test "$(grep -lE ' scout_batch: scripted:0: waiting for process [0-9]+ \(ops.json, since 20[0-9T:Z-]+\), which is measuring on it' each_*.err | wc -l)" -ge 6
check "eight onto one device: none measures beside another one" test "$(overlaps each_*.err)" = 0
# Two caches, two locks: the second begins and ends while the first one is held behind its first result.
XDG_CACHE_HOME=$PWD/cache_1 CEILING_SCOUT_PATIENCE=60 CEILING_SCOUT_SCRIPTED_SLOW_US=20000 start beside_1 scripted:0 -o beside_1 --no-cache
for ((k = 0; k < 3000; k++)); do
    if grep -q ' of the ceiling$' beside_1.err; then break; fi
    sleep 0.02
done
pkill -STOP -f -- "$SCRIPTED/device.so .*-o beside_1 "
XDG_CACHE_HOME=$PWD/cache_2 start beside_2 scripted:0 -o beside_2 --no-cache
for ((k = 0; k < 3000; k++)); do
    if [[ -s beside_2.code ]]; then break; fi
    sleep 0.02
done
pkill -CONT -f -- "$SCRIPTED/device.so .*-o beside_1 "
wait
check "this test tells what measures beside another one" test "$(overlaps beside_*.err)" = 1
check "eight onto one device: no lock is left" test "$(locks)" = 0

# ---- the second finds what the first has measured ----

start first scripted:0 -o first
start second scripted:0 -o second
wait
check "two that want the same: both end well" test "$(codes first.code second.code)" = 0
check "two that want the same: it is measured once" test "$(cat first/run.json second/run.json | grep -cE '^ *"(cached|measured)": 2,?$')" = 2

# ---- a holder that is killed, and one that hangs ----

CEILING_SCOUT_PATIENCE=60 CEILING_SCOUT_FAULTS=hang "${measure[@]}" "${FAULTS[@]}" --device scripted:0 -o held --no-cache -q >/dev/null 2>&1 &
holder=$!
for ((k = 0; k < 600; k++)); do
    if [[ -e held/run.json ]]; then break; fi
    sleep 0.05
done
run "${measure[@]}" --device scripted:0 -o held --no-wait
check "--no-wait, the same folder: exit 4" exits 4
check "--no-wait, the same folder: says which, and what to do" test "$STDERR" = "scout_batch: held: process $holder ($(sed -n 's/^process [0-9]* (\(.*\))$/\1/p' held/.scout_lock)) is writing there; leave out --no-wait to wait for it, or name another folder"
run "${measure[@]}" --device scripted:0 -o other --no-cache --no-wait
check "--no-wait, the same device: exit 4" exits 4
check "--no-wait, the same device: says which, and what to do" test "$(grep -cE "^scout_batch: scripted:0: process $holder \(ops.json, since [^)]*\) is measuring on it; leave out --no-wait to wait for it, or name another device$" stderr.txt)" = 1
check "--no-wait, the same device: nothing is written" test ! -e other/run.json
run "$SCOUT" "${DEVICE[@]}" --device scripted:0 --ceilings --precision fp32 --no-cache --no-wait
check "--no-wait, ceilings: exit 4" exits 4
run "${measure[@]}" --device scripted:1 -o other --no-cache --no-wait
check "--no-wait, another device: measured" test "$EXIT" -le 1
run timeout --preserve-status -s INT 3 "${measure[@]}" --device scripted:0 -o held
check "Ctrl-C while it waits: exit 1" exits 1
check "Ctrl-C while it waits: says so" says "stopped while it waited for held: process $holder"
start waits scripted:0 -o held --no-cache
sleep 0.5
check "a run that waits: has not ended" test ! -e waits.code
kill -9 "$holder"
wait "$holder" 2>/dev/null || EXIT=$?
for ((k = 0; k < 200; k++)); do
    if [[ -s waits.code ]]; then break; fi
    sleep 0.05
done
check "a killed one's lock is free at once" test "$(<waits.code)" = 0
run "${measure[@]}" --device scripted:0 -o held --no-cache --no-wait
check "after it: exit 0" exits 0

# ---- where no lock can be kept ----

run env XDG_CACHE_HOME=/dev/null "${measure[@]}" --device scripted:0 -o nowhere
check "no cache: it has its lock elsewhere, and measures" test "$EXIT" -le 1
check "no cache: it does not speak of locks" test "$(grep -c lock stderr.txt)" = 0
mkdir -p taken/reports taken/.scout_lock
run "${measure[@]}" --device scripted:0 -o taken
check "something else in a lock's place: exit 4" exits 4
check "something else in a lock's place: is named" says "taken/.scout_lock: "
rmdir taken/.scout_lock && ln -s "$PWD/ops.json" taken/.scout_lock
run "${measure[@]}" --device scripted:0 -o taken
check "a link in a lock's place: exit 4" exits 4
rm taken/.scout_lock && echo mine >mine.txt && ln mine.txt taken/.scout_lock
run "${measure[@]}" --device scripted:0 -o taken
check "another name of a file in a lock's place: exit 4" exits 4
check "another name of a file in a lock's place: it stays" test "$(<mine.txt)" = mine

# ---- ceiling-scout profile ----

bin=$(dirname "$SCOUT")
profile=("$bin/ceiling-scout" profile "$ROOT/models/small_conv.onnx" --device cpu --quick --budget 4)
profile_start() { # NAME
    (
        code=0
        "${profile[@]}" >"$1.txt" 2>"$1.err" </dev/null || code=$?
        echo "$code" >"$1.code"
    ) 2>/dev/null & # the shell says that it was killed
}
profile_start profile_1
for ((k = 0; k < 200; k++)); do
    if [[ -s out/small_conv@cpu/.profile_lock ]]; then break; fi
    sleep 0.02
done
run "${profile[@]}" --no-wait
check "profile --no-wait, the same folder: exit 4" exits 4
check "profile --no-wait, the same folder: says which, and what to do" test "$(grep -cE '^out/small_conv@cpu: process [0-9]+ \(.*/small_conv.onnx, since 20[0-9T:Z-]+\) is writing there; leave out --no-wait to wait for it, or name another folder \(--out\)$' stderr.txt)" = 1
profile_start profile_2
profile_start profile_3
wait
check "three profiles of one model: all end well" test "$(cat profile_[123].code | sort -n | tail -n 1)" -le 1
check "three profiles of one model: two waited, and say for which" test "$(grep -lE '^out/small_conv@cpu: waiting for process [0-9]+ ' profile_[23].err | wc -l)" = 2
check "three profiles of one model: it is measured once" test "$(grep -l 'reports is up to date' profile_[23].txt | wc -l)" = 2
check "three profiles of one model: no lock is left" test -z "$(find out -name '.*lock')"
profile_start profile_4
for ((k = 0; k < 200; k++)); do
    if [[ -s out/small_conv@cpu/.profile_lock ]]; then break; fi
    sleep 0.01
done
kill -9 "$(sed -n 's/^process \([0-9]*\) .*/\1/p' out/small_conv@cpu/.profile_lock)" || EXIT=$?
wait
# What it had just started, $(date) or a program, may end a moment after it: so this one waits, but not for ever.
run timeout 120 "${profile[@]}"
check "after a profile that was killed: another one gets the lock" test "$EXIT" -le 1
run "${profile[@]}" --no-wait
check "after a profile that was killed: no lock holds" test "$EXIT" -le 1

# ---- when it will end ----

if command -v python3 >/dev/null; then
    run python3 -B "$ROOT/tests/scout/eta.py" "$SCOUT" ops.json --device cpu -o eta --budget 6 --cache-dir "$PWD/eta_cache"
    check "the end, with a budget: is told" exits 0
    check "the end, with a budget: phases by name" test "$STDOUT" = "ceilings operations refined"
    run python3 -B "$ROOT/tests/scout/eta.py" "$SCOUT" ops.json --device cpu -o eta_2 --no-cache
    check "the end: is told" exits 0
    check "the end, not on a terminal: the final table alone" test "$("${measure[@]}" --device scripted:0 -o log 2>&1 | grep -c estimates)" = 0
else
    skip "python3 is not installed: no terminal"
fi
finish
