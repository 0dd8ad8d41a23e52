#!/usr/bin/env bash
# The one test runner: the steps of `make test` and of `make check`, and the totals. A step's script ends with a line
# "N passed, N failed[, N skipped]", which is added up; a step without such a line counts as one.
# Usage: tests/run.sh [check | one | STEP…]  (all steps of `make test` when none is named). one: the unit test that CHECK_TEST
# names, alone. FUZZ_SECONDS: how long the fuzzers run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
unset MAKEFLAGS MFLAGS MAKELEVEL MODE CC BUILD
source tests/pool.sh
export JOBS
export KERNELS=quick # nothing here launches one: they are compiled and linked

logs=out/test times=out/test/times release=out/build/release-gcc
mkdir -p "$logs"

build() { make --no-print-directory -j"$JOBS" "$@"; }
skip() {
    echo "$1"
    echo "0 passed, 0 failed, 1 skipped"
}

# How a step runs. first: before all others and one by one, for it uses every core and what it builds is used by the others.
# beside: on one core, beside others. below: beside those on every core and at the lowest priority, so that it takes the time
# that they leave. alone: it measures times, so it comes last and nothing runs beside it.
# Steps begin in this order; of those beside others the longest come first.
declare -A how=()
steps=()
while read -r name when; do
    steps+=("$name") how[$name]=$when
done <<'END'
gcc         first
asan        first
tsan        first
fuzzers     first
tidy        below
unit_asan   beside
scout       beside
cli         beside
hostile     beside
unit        beside
oracle      beside
fuzz        beside
page        beside
unit_avx2   beside
rust        beside
export      beside
python      beside
golden_reports beside
rooms       beside
words       beside
format      beside
shell       beside
golden      beside
unit_tsan   beside
scout_cpu   alone
dispatch    alone
runtime     beside
END
# `make check`: without the CUDA device, slow unit tests and all that needs a second build.
check_steps=(programs unit_quick cli_quick golden_reports rooms format golden)
how+=([programs]=first [unit_quick]=first [cli_quick]=beside)

step_gcc() { build all units scripted manual; } # and the CUDA device, where the toolkit is
# By the other compiler: its warnings and its sanitizers in one build.
step_asan() { build MODE=asan CC=clang modal units; }
step_tsan() { build MODE=tsan out/build/tsan-gcc/unit/test_ahead out/build/tsan-gcc/unit/test_run_threads; }
step_fuzzers() { build MODE=fuzz CC=clang fuzzers; }
step_programs() { build bin/extract_ops bin/scout_batch bin/analyze units scripted; }
step_unit() { tests/unit/run.sh $release/unit; }
step_unit_quick() { tests/unit/run.sh --quick $release/unit; }
step_unit_asan() { tests/unit/run.sh out/build/asan-clang/unit; }
# What several threads of a worker, or of a program that launches, share.
step_unit_tsan() { tests/unit/run.sh out/build/tsan-gcc/unit; }
# What calls oneDNN, also by libscout_run, held to what processors without AVX-512 have of it.
step_unit_avx2() { ONEDNN_MAX_CPU_ISA=AVX2 tests/unit/run.sh $release/unit '_cpu|_run'; }
cli_tests() { SCOUT=$PWD/bin/scout_batch SCRIPTED=$PWD/$release/scripted tests/cli/run.sh bin/extract_ops "$@"; }
step_cli() { cli_tests; }
# A command line's test of each program, each done in a few seconds.
step_cli_quick() { cli_tests usage input dims analyze scout_usage scout_fail; }
# What measures this machine's CPU, or sees what else runs on it, is scout_cpu.
on_cpu=(models beside)
# The others wait most of their time.
step_scout() { JOBS=$((JOBS * 2)) tests/scout/run.sh bin/scout_batch $release/scripted "${on_cpu[@]/#/-}"; }
step_scout_cpu() { JOBS=1 tests/scout/run.sh bin/scout_batch $release/scripted "${on_cpu[@]}"; }
step_page() { tests/page/run.sh bin/analyze; }
step_dispatch() { tests/dispatch/run.sh; }
step_runtime() { tests/runtime/run.sh; }
step_rust() { tests/rust/run.sh; }
step_export() { tests/export/run.sh bin/analyze; }
step_python() { tests/python/run.sh; }
step_golden() { tests/golden/run.sh bin/extract_ops; }
step_golden_reports() { tests/golden/analyze.sh bin/analyze; }
step_hostile() { tests/hostile/run.sh; }
step_fuzz() { tests/fuzz/run.sh "${FUZZ_SECONDS:-60}"; }
step_oracle() { tests/oracle/run.sh; }
step_rooms() { tests/rooms/run.sh; }
step_words() { tests/words/run.sh; }
step_format() { build format-check; }
step_tidy() { build -k tidy; }
step_shell() {
    if ! command -v shellcheck >/dev/null; then
        skip "shellcheck is not installed"
        return
    fi
    git ls-files --cached --others --exclude-standard '*.sh' .ci/run | xargs shellcheck
    # A reader that leaves early ends the writer before it by SIGPIPE, now and then, and with it a script under pipefail.
    if git grep -nE '[^|][|] *(head -n|grep -[a-zA-Z]*q)' -- '*.sh'; then
        echo "error: sed -n 1p and grep >/dev/null read to the end"
        return 1
    fi
}

last_time() { awk -v step="$1" '$1 == step {print $2}' "$times" 2>/dev/null || true; } # of a step, in seconds
keep_time() { # NAME SECONDS
    { awk -v step="$1" '$1 != step' "$times" 2>/dev/null || true; } >"$times.new"
    echo "$1 $2" >>"$times.new"
    mv "$times.new" "$times"
}

run_step() {
    local name=$1 log="$logs/$1.log" code=0 start=$SECONDS ok=0 bad=0 left=0 last took cpu priority=()
    local TIMEFORMAT='%U %S'
    # A program of its own: inside a function whose status is looked at, `set -e` would not end it at a failure.
    case ${how[$name]} in
        beside) local -x JOBS=1 ;;
        below) priority=(nice -n 19) ;;
    esac
    cpu=$({ time $foreground "${priority[@]}" bash "${BASH_SOURCE[0]}" --step "$name" >"$log" 2>&1 </dev/null; } 2>&1) || code=$?
    cpu=$(awk '{printf "%.0f", $1 + $2}' <<<"$cpu")
    took=$((SECONDS - start))
    last=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1) || true # make may have the last word
    if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
        ok=${BASH_REMATCH[1]} bad=${BASH_REMATCH[2]} left=${BASH_REMATCH[4]:-0}
        if ((code != 0 && bad == 0)); then bad=1; fi
    elif ((code == 0)); then
        ok=1
    else
        bad=1
    fi
    echo "$ok $bad $left $took" >"$results/$name"
    local done=("$results"/*) count=${#wanted[@]}
    printf '[%*d/%d] %-14s %5d passed %5d failed %5d skipped %5d s %5d s of CPU\n' ${#count} ${#done[@]} ${#wanted[@]} \
        "$name" "$ok" "$bad" "$left" "$took" "$cpu"
    if ((bad > 0)); then
        tail -n 40 "$log" | cut -c 1-240 | sed 's/^/    | /'
        echo "    everything it said: $log"
    elif ((left > 0)); then
        grep -iE 'skip|not there|not installed' "$log" | sed -n 1,5p | cut -c 1-240 | sed 's/^/    | /' || true
    fi
}

if [[ ${1:-} == --step ]]; then
    "step_$2"
    exit
fi
if [[ ${1:-} == one ]]; then
    sources=(tests/unit/*/"test_$CHECK_TEST.c")
    if [[ ! -e ${sources[0]} ]]; then
        echo "no unit test is called $CHECK_TEST: there is no tests/unit/*/test_$CHECK_TEST.c" >&2
        exit 2
    fi
    build -s "$release/unit/test_$CHECK_TEST"
    TIMEFORMAT='%R s'
    time "$release/unit/test_$CHECK_TEST"
    exit
fi
wanted=("$@") group=
case $* in
    '') wanted=("${steps[@]}") group=test ;;
    check) wanted=("${check_steps[@]}") group=check ;;
esac
said=() first=() beside=() below=() alone=()
for name in "${wanted[@]}"; do
    if [[ -z ${how[$name]:-} ]]; then
        echo "no step is called $name; there are: ${steps[*]}" >&2
        exit 2
    fi
    before=$(last_time "$name")
    said+=("$name${before:+ $before s}")
    declare -n list=${how[$name]}
    list+=("$name")
done
total=$(last_time "$group")
printf '%d steps on %d cores%s: ' ${#wanted[@]} "$JOBS" "${total:+, $total s the last time}"
printf '%s, ' "${said[@]}" | sed 's/, $/\n/' | fold -s -w 110 | sed '2,$s/^/    /'

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
begun=$SECONDS
for name in "${first[@]}"; do run_step "$name"; done
for name in "${below[@]}"; do run_step "$name"; done &
(pool run_step "${beside[@]}") # apart from what runs below, which takes no place in it
wait
for name in "${alone[@]}"; do run_step "$name"; done

for name in "${wanted[@]}"; do
    read -r _ _ _ took <"$results/$name"
    keep_time "$name" "$took"
done
if [[ -n $group ]]; then keep_time "$group" $((SECONDS - begun)); fi
# What failed once more, at the end: a long log is often cut at its front.
for name in "${wanted[@]}"; do
    read -r _ bad _ <"$results/$name"
    if ((bad > 0)); then
        echo "$name failed:"
        # What failed by its words, then how it ended: a script that ends without its counts says no such word.
        {
            grep -iE 'fail|error|warning|expected' "$logs/$name.log" | grep -v ', 0 failed' | tail -n 12 || true
            tail -n 12 "$logs/$name.log"
        } | awk '!told[$0]++' | cut -c 1-240 | sed 's/^/    | /'
    fi
done
echo "$((SECONDS - begun)) s in all; what each step said is in $logs"
cat "$results"/* | awk '{p += $1; f += $2; s += $3}
    END {printf "%d passed, %d failed%s\n", p, f, s ? ", " s " skipped" : ""; exit f > 0}'
