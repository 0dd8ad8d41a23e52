#!/usr/bin/env bash
# SIGKILL and SIGSTOP of workers at random moments: in the end everything is as if nothing had happened, and --resume
# finds nothing to do. KILLS and STOPS set how many (6 and 2).
source "$ROOT/tests/scout/lib.sh"
write_ops ops.json
warm_up scripted:0
export CEILING_SCOUT_SCRIPTED_SLOW_US=300 # so that there are moments to hit
plugin=(--custom-kernel "$SCRIPTED/custom.so")
start=$(date +%s%N)
scout ops.json -o whole --device scripted:0 --no-cache
check "undisturbed: exit 0" exits 0
whole_us=$((($(date +%s%N) - start) / 1000))
scout "${plugin[@]}" ops.json -o whole_apart --device scripted:0 --no-cache
check "undisturbed, with a plugin: exit 0" exits 0

RANDOM=20261
told() { grep -cE 'its process was (ended by signal 9|stopped from outside).*measured again' hurt.txt || true; }
# Four workers at most: what is ended five times in a row at one step, as on a busy machine the start may be, is given up.
hurt() { # SIGNAL [ARGUMENT]…
    local signal=$1 pid worker last=0 hits=0
    shift
    "$SCOUT" "${DEVICE[@]}" "$@" --device scripted:0 --no-cache >stdout.txt 2>hurt.txt </dev/null &
    pid=$!
    while kill -0 "$pid" 2>/dev/null; do
        sleep "$(printf '%d.%06d' $((RANDOM * whole_us / 32768 / 1000000)) $((RANDOM * whole_us / 32768 % 1000000)))"
        worker=$(pgrep -n -P "$pid" || true)
        if [[ $worker && $worker != "$last" ]] && ((hits < 4)) && kill "-$signal" "$worker" 2>/dev/null; then
            last=$worker hits=$((hits + 1))
        fi
    done
    EXIT=0
    wait "$pid" || EXIT=$?
    STDOUT=$(<stdout.txt) STDERR=$(<hurt.txt)
}
disturb() { # SIGNAL HOW_MANY
    local hits=0 runs=0 clean=whole
    local -a with=()
    while ((hits < $2 && runs < 3 * $2)); do
        rm -rf hurt
        hurt "$1" ops.json -o hurt "${with[@]}"
        hits=$((hits + $(told))) runs=$((runs + 1))
        check "$1: exit 0" exits 0
        check "$1: as undisturbed" same_but_time "$clean" hurt
        scout ops.json -o hurt --device scripted:0 --no-cache --resume "${with[@]}"
        check "$1, then --resume: exit 0" exits 0
        check "$1, then --resume: everything is kept" grep -qF '"kept": 5' hurt/run.json
        check "$1, then --resume: as undisturbed" same_but_time "$clean" hurt
        if ((runs % 2)); then clean=whole_apart with=("${plugin[@]}"); else clean=whole with=(); fi
    done
    echo "$hits workers hit by SIG$1 in $runs runs"
    check "$1: as often as it should" test "$hits" -ge "$2"
}
disturb KILL "${KILLS:-6}"
disturb STOP "${STOPS:-2}"
check "no worker is left" alone "--worker .*$SCRIPTED/device.so"
finish
