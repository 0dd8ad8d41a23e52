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
