#!/usr/bin/env bash
# Runs the test scripts of a folder (FOLDER/test_*.sh) side by side, each in a process and a scratch folder of its own,
# and adds up; what failing ones say comes last. What scripts need is in the environment, set by the folder's own run.sh.
# Usage: tests/scripts.sh FOLDER [NAME | -NAME]…   NAME: only FOLDER/test_NAME.sh; -NAME: all but it. JOBS: how many at once.
# LONG: names of those that take longest; they begin first, so that none of them runs on alone.
set -euo pipefail
# shellcheck source=tests/pool.sh
source "$(dirname "${BASH_SOURCE[0]}")/pool.sh"
folder=$(realpath "${1:?usage: tests/scripts.sh FOLDER [NAME | -NAME]...}")
shift
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

run_one() { # SCRIPT   what it said in one piece, or into the folder of results where it failed; its counts
    local name=${1##*/test_} scratch code=0 output ok=0 bad=0 left=0 start=$EPOCHREALTIME
    name=${name%.sh}
    scratch=$(mktemp -d)
    output=$(cd "$scratch" && $foreground bash "$1" 2>&1 </dev/null) || code=$?
    rm -rf "$scratch"
    if [[ ${output##*$'\n'} =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
        ok=${BASH_REMATCH[1]} bad=${BASH_REMATCH[2]} left=${BASH_REMATCH[4]:-0}
        if ((code != 0 && bad == 0)); then bad=1; fi
    else
        bad=1
    fi
    echo "$ok $bad $left" >"$results/$name.counts"
    output="$output, $(seconds_since "$start") s"
    output="$name: ${output//$'\n'/$'\n'"$name: "}"
    if ((bad > 0)); then
        echo "$output" >"$results/$name.failure"
        output="$name: $bad failed, see below"
    fi
    printf '%s\n' "$output"
}

read -r -a long <<<"${LONG:-}"
wanted=() spared=() begin=() scripts=()
for name; do
    if [[ $name == -* ]]; then spared+=("${name#-}"); else wanted+=("$name"); fi
done
for script in "$folder"/test_*.sh; do
    name=${script##*/test_} name=${name%.sh}
    if ((${#wanted[@]} > 0)) && [[ " ${wanted[*]} " != *" $name "* ]]; then continue; fi
    if [[ " ${spared[*]} " == *" $name "* ]]; then continue; fi
    if [[ " ${long[*]} " == *" $name "* ]]; then begin+=("$script"); else scripts+=("$script"); fi
done
for name in "${wanted[@]}" "${spared[@]}" "${long[@]}"; do
    if [[ ! -e $folder/test_$name.sh ]]; then
        echo "no test is called $name: $folder/test_$name.sh is not there" >&2
        exit 2
    fi
done
pool run_one "${begin[@]}" "${scripts[@]}"
find "$results" -name '*.failure' -exec cat {} +
cat "$results"/*.counts | awk '{p += $1; f += $2; s += $3} END {printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0}'
