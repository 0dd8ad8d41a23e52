#!/usr/bin/env bash
# SIGKILL of the supervisor at random moments, then a run to the end, with --resume and (every other time) without: in
# the end everything is as if nothing had happened.
# KILLS sets how many.
source "$ROOT/tests/scout/lib.sh"
# A loaded machine may take the share of a search for preparing away, or the patience: neither is what is tested here.
export CEILING_SCOUT_PATIENCE=1
EACH=(--device scripted:0 --no-cache --exhaustive)
write_ops ops.json
warm_up scripted:0
export CEILING_SCOUT_SCRIPTED_SLOW_US=300 # so that there are moments to hit
kills=${KILLS:-200}
start=$(date +%s%N)
scout ops.json -o whole "${EACH[@]}"
check "an uninterrupted run: exit 0" exits 0
whole_us=$((($(date +%s%N) - start) / 1000))

RANDOM=20260
killed=0 late=0 rounds=0
while ((killed < kills && late < 3 * kills)); do
    rm -rf cut
    # one folder: killed again and again, until it is done or there were enough
    for ((round = 0; round < 8 && killed < kills; round++)); do
        "$SCOUT" "${DEVICE[@]}" ops.json -o cut "${EACH[@]}" --resume >cut.txt 2>&1 </dev/null &
        pid=$!
        sleep "$(printf '0.%06d' $(((RANDOM * 32768 + RANDOM) % whole_us * 8 / 10 % 1000000)))"
        code=0
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || code=$?
        if ((code != 137)); then break; fi
        killed=$((killed + 1))
    done
    if ((round < 8 && killed < kills)); then late=$((late + 1)); fi
    resume=(--resume)
    if ((rounds % 2)); then resume=(); fi
    scout ops.json -o cut "${EACH[@]}" "${resume[@]}"
    check "to the end ${resume[*]}: exit 0" exits 0
    check "to the end ${resume[*]}: as uninterrupted" same_but_time whole cut
    check "no half-written file is left" test -z "$(find cut -name '.*' -type f)"
    rounds=$((rounds + 1))
done
echo "$killed kills in $rounds folders, $late came too late"
check "there were as many kills as there should be" test "$killed" = "$kills"
# stopped while figures are refined: it is said, and the cache does not take the figures for finished ones
export CEILING_SCOUT_SCRIPTED_SLOW_US=20000
: >stopped_err.txt # there for the first look, however late the program begins
"$SCOUT" "${DEVICE[@]}" ops.json -o stopped --device scripted:0 --cache-dir "$PWD/stopped_cache" >stopped.txt 2>stopped_err.txt </dev/null &
pid=$!
for ((k = 0; k < 600; k++)); do
    if (($(grep -c 'of the ceiling' stopped_err.txt) == 5)); then break; fi
    sleep 0.1
done
kill -TERM "$pid" # a shell that works in the background has SIGINT ignored
code=0
wait "$pid" || code=$?
EXIT=$code STDOUT=$(<stopped.txt) STDERR=$(<stopped_err.txt)
check "stopped in a later pass: exit 1" exits 1
check "stopped in a later pass: says so" says "stopped while figures were refined"
check "stopped in a later pass: run.json says so" grep -q '"stopped": true' stopped/run.json
export CEILING_SCOUT_SCRIPTED_SLOW_US=0
scout ops.json -o after --device scripted:0 --cache-dir "$PWD/stopped_cache"
check "its figures serve no run that wants whole ones" grep -q '"cached": 0' after/run.json
check "and none of them says that it was stopped" test "$(grep -c '"stopped"' after/run.json)" = 0
scout ops.json -o after2 --device scripted:0 --cache-dir "$PWD/stopped_cache"
check "whole ones do" grep -q '"cached": 5' after2/run.json

check "no worker has outlived its supervisor" alone "--worker .*$SCRIPTED/device.so"
finish
