# shellcheck shell=bash
# Sourced by the runners. JOBS: how many processes a runner keeps going at once (default: as many as there are cores).
: "${JOBS:=$(nproc)}"

# pool FUNCTION WORD…: calls the function with each word, JOBS of them at once, and returns when all have ended.
pool() {
    local function=$1 running=0 word
    shift
    for word; do
        if ((running == JOBS)); then
            wait -n || true
        else
            running=$((running + 1))
        fi
        "$function" "$word" &
    done
    wait
}

# seconds_since START, which was $EPOCHREALTIME then: with one decimal.
seconds_since() {
    local tenths=$(((${EPOCHREALTIME/[.,]/} - ${1/[.,]/}) / 100000))
    echo "$((tenths / 10)).$((tenths % 10))"
}

# What a shell starts in the background ignores Ctrl-C, and what that starts, too. A test is to see it as on a terminal.
# shellcheck disable=SC2034 # for the runners
foreground="env --default-signal=INT,QUIT"

# Tests call python3 thousands of times, for what comes with it alone. It may be a script that looks for the interpreter
# each time (pyenv's takes 0.1 s of CPU), and setting up a site's packages may take as long again.
if [[ -z ${TESTS_PYTHON:-} ]] && command -v python3 >/dev/null; then
    TESTS_PYTHON=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/out/test/bin
    mkdir -p "$TESTS_PYTHON"
    # shellcheck disable=SC2016 # for the script
    printf '#!/bin/sh\nexec "%s" -S "$@"\n' "$(python3 -c 'import sys; print(sys.executable)')" >"$TESTS_PYTHON/python3.$$"
    chmod +x "$TESTS_PYTHON/python3.$$"
    mv "$TESTS_PYTHON/python3.$$" "$TESTS_PYTHON/python3"
    export TESTS_PYTHON PATH=$TESTS_PYTHON:$PATH
fi
