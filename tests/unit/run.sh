#!/usr/bin/env bash
# Runs the unit test programs of a build folder side by side, with a line for each and the output of those that fail, and
# adds up. Usage: tests/unit/run.sh [--quick] FOLDER [PART]
# PART: only programs whose names it matches, a regular expression. --quick: without the slow ones of the table below.
# JOBS: how many at once.
set -euo pipefail
# shellcheck source=tests/pool.sh
source "$(dirname "${BASH_SOURCE[0]}")/../pool.sh"

# Programs that are not run like the others. alone: compares times of this machine, so no other program runs beside it.
# slow: seconds of one core; `make check` leaves it out, `make unit` and `make test` begin with it.
# numbers: slow as well, and all of its memory is that of others: under sanitizers, minutes that find nothing.
declare -A special=(
    [test_cpu]=alone            # eight times the work takes at least twice as long
    [test_others]=alone         # what else runs on the machine, counted over tenths of a second
    [test_timing_coverage]=numbers # ten thousand simulated measurements
    [test_chain_source]=numbers    # NVRTC compiles every operator in every type
    [test_compare_nights]=numbers  # thousands of simulated nights
    [test_history_nights]=slow     # hundreds of them, each kept in a database
)

quick=0
if [[ ${1:-} == --quick ]]; then
    quick=1
    shift
fi
folder=${1:?usage: tests/unit/run.sh [--quick] FOLDER [PART]} part=${2:-}
# Freed memory that the sanitizer holds back is new memory for each run: a part of the usual will do.
export ASAN_OPTIONS=${ASAN_OPTIONS:-quarantine_size_mb=16}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

run_one() { # PROGRAM   its line at once, and what it said into the scratch folder where it failed
    local name=${1##*/} code=0 output ok=0 bad=1 start=$EPOCHREALTIME
    output=$($foreground timeout 300 "$1" 2>"$scratch/$name.stderr" </dev/null) || code=$?
    # The leak checker itself ended, as it does where a thread ends beside it: it has found nothing, and is asked again.
    if grep -q 'LeakSanitizer has encountered a fatal error' "$scratch/$name.stderr"; then
        code=0
        output=$($foreground timeout 300 "$1" 2>"$scratch/$name.stderr" </dev/null) || code=$?
    fi
    if [[ $output =~ ([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        ok=${BASH_REMATCH[1]} bad=${BASH_REMATCH[2]}
        if ((code != 0 && bad == 0)); then bad=1; fi
    fi
    if ((bad > 0)); then
        printf '%s: exit %d\n%s\n' "$name" "$code" "$output" >"$scratch/$name.failure"
        tail -n 30 "$scratch/$name.stderr" >>"$scratch/$name.failure"
    fi
    printf '%-26s %4d passed %4d failed %6s s\n' "$name" "$ok" "$bad" "$(seconds_since "$start")" | tee "$scratch/$name.line"
}

alone=() slow=() usual=()
for program in "$folder"/test_*; do
    if [[ ! -x $program || -d $program || ! ${program##*/} =~ $part ]]; then continue; fi
    case ${special[${program##*/}]:-usual} in
        alone) alone+=("$program") ;;
        slow) slow+=("$program") ;;
        numbers) if [[ $folder != *asan* ]]; then slow+=("$program"); fi ;;
        *) usual+=("$program") ;;
    esac
done
if ((${#alone[@]} + ${#slow[@]} + ${#usual[@]} == 0)); then
    echo "no unit test program in $folder is called \"$part\"" >&2
    exit 2
fi
if ((quick && ${#slow[@]} > 0)); then
    echo "left out, for \`make test\` runs them: ${slow[*]##*/}"
    slow=()
fi
pool run_one "${slow[@]}" "${usual[@]}"
JOBS=1 pool run_one "${alone[@]}"
find "$scratch" -name '*.failure' -exec cat {} +
cat "$scratch"/*.line | awk '{passed += $2; failed += $4} END {printf "%d passed, %d failed\n", passed, failed; exit failed > 0}'
