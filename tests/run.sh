#!/usr/bin/env bash
# The one test runner: every step of `make test`, one after the other, and the totals. A step's script ends with a line
# "N passed, N failed[, N skipped]", which is added up; a step without such a line counts as one.
# Usage: tests/run.sh [STEP]…  (all steps when none is named). FUZZ_SECONDS sets how long each fuzzer runs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
unset MAKEFLAGS MFLAGS MAKELEVEL MODE CC BUILD

logs=out/test
jobs=$(nproc)
passed=0 failed=0 skipped=0
mkdir -p "$logs"

build() { make --no-print-directory -j"$jobs" "$@"; }
skip() {
    echo "$1"
    echo "0 passed, 0 failed, 1 skipped"
}

# Each step_NAME is one step, in the order of the list below.
steps=(gcc clang asan unit unit_clang unit_asan unit_tsan unit_avx2 cli scout page dispatch golden golden_reports hostile fuzz oracle rooms format shell tidy)
step_gcc() { build all units scripted; } # and the CUDA device, where the toolkit is
step_clang() { build CC=clang modal units BUILD=out/build/release-clang-test; }
step_asan() { build MODE=asan modal units; }
step_unit() { build unit; }
step_unit_clang() { build CC=clang BUILD=out/build/release-clang-test unit; }
step_unit_asan() { build MODE=asan unit; }
# What several threads of a worker share.
step_unit_tsan() {
    build MODE=tsan out/build/tsan-gcc/unit/test_ahead
    tests/unit/run.sh out/build/tsan-gcc/unit ahead
}
# What calls oneDNN, held to what processors without AVX-512 have of it.
step_unit_avx2() { ONEDNN_MAX_CPU_ISA=AVX2 tests/unit/run.sh out/build/release-gcc/unit cpu; }
step_cli() { build cli; }
step_scout() { build scout-test; }
step_page() { build page; }
step_dispatch() { tests/dispatch/run.sh; }
step_golden() { tests/golden/run.sh bin/extract_ops; }
step_golden_reports() { tests/golden/analyze.sh bin/analyze; }
step_hostile() { tests/hostile/run.sh; }
step_fuzz() { tests/fuzz/run.sh "${FUZZ_SECONDS:-60}"; }
step_oracle() { tests/oracle/run.sh; }
step_rooms() { tests/rooms/run.sh; }
step_format() { build format-check; }
step_tidy() { build -k tidy; }
step_shell() {
    if ! command -v shellcheck >/dev/null; then
        skip "shellcheck is not installed"
        return
    fi
    git ls-files --cached --others --exclude-standard '*.sh' .ci/run | xargs shellcheck
}

run_step() {
    local name=$1 log="$logs/$1.log" code=0 start=$SECONDS ok=0 bad=0 left=0 last
    # A program of its own: inside a function whose status is looked at, `set -e` would not end it at a failure.
    bash "${BASH_SOURCE[0]}" --step "$name" >"$log" 2>&1 </dev/null || code=$?
    last=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1) || true # make may have the last word
    if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
        ok=${BASH_REMATCH[1]} bad=${BASH_REMATCH[2]} left=${BASH_REMATCH[4]:-0}
        if ((code != 0 && bad == 0)); then bad=1; fi
    elif ((code == 0)); then
        ok=1
    else
        bad=1
    fi
    printf '%-12s %5d passed %5d failed %5d skipped %5d s\n' "$name" "$ok" "$bad" "$left" $((SECONDS - start))
    if ((bad > 0)); then
        tail -n 40 "$log" | cut -c 1-240 | sed 's/^/    | /'
        echo "    everything it said: $log"
    elif ((left > 0)); then
        grep -iE 'skip|not there|not installed' "$log" | head -n 5 | cut -c 1-240 | sed 's/^/    | /' || true
    fi
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + left))
}

if [[ ${1:-} == --step ]]; then
    "step_$2"
    exit
fi
wanted=("$@")
if ((${#wanted[@]} == 0)); then wanted=("${steps[@]}"); fi
for name in "${wanted[@]}"; do
    if ! declare -F "step_$name" >/dev/null; then
        echo "no step is called $name; there are: ${steps[*]}" >&2
        exit 2
    fi
done
for name in "${wanted[@]}"; do run_step "$name"; done
if ((skipped > 0)); then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
((failed == 0))
