# shellcheck shell=bash
# What the tests of a whole run share: an ops.json for the scripted device, running scout_batch on it, comparing folders
# of reports, and checks. Sourced; sets EXIT, STDOUT, STDERR.
set -euo pipefail
# shellcheck source=tests/ended.sh
source "${ROOT:?}/tests/ended.sh"
passed=0 failed=0 skipped=0
: "${SCOUT:?set by tests/scout/run.sh}" "${SCRIPTED:?set by tests/scout/run.sh}" "${ROOT:?set by tests/scout/run.sh}"
# A copy of its own: what other tests run beside this one is not taken for what this one has left running.
cp -a "$SCRIPTED" scripted
SCRIPTED=$PWD/scripted
export XDG_CACHE_HOME=$PWD/cache
export CEILING_SCOUT_PATIENCE=${CEILING_SCOUT_PATIENCE:-0.1} # a candidate that hangs is ended after 2 seconds
DEVICE=(--custom-kernel "$SCRIPTED/device.so")
# shellcheck disable=SC2034 # for the tests that source this
FAULTS=(--custom-kernel "$SCRIPTED/faults.so")

write_ops() { # FILE
    cat >"$1" <<'END'
{"square": {"op": "gemm", "shape": [64, 64, 64], "dtype": "fp32"},
 "wide": {"op": "gemm", "shape": [32, 128, 48], "dtype": "fp32"},
 "deep": {"op": "gemm", "shape": [24, 40, 200], "dtype": "fp32"},
 "row": {"op": "gemm", "shape": [1, 96, 80], "dtype": "fp32"},
 "few": {"op": "gemm", "shape": [8, 64, 96], "dtype": "fp32"}}
END
}

write_few_ops() { # FILE
    cat >"$1" <<'END'
{"square": {"op": "gemm", "shape": [64, 64, 64], "dtype": "fp32"},
 "row": {"op": "gemm", "shape": [1, 96, 80], "dtype": "fp32"}}
END
}

run() {
    EXIT=0
    timeout 120 "$@" >stdout.txt 2>stderr.txt </dev/null || EXIT=$?
    STDOUT=$(<stdout.txt) STDERR=$(<stderr.txt)
}
scout() { run "$SCOUT" "${DEVICE[@]}" "$@"; }
warm_up() { scout --device "$1" --ceilings; } # so that ceilings are cached and no test waits for them

check() { # WHAT CONDITION…   the condition is a command
    local what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $what"
        echo "    exit $EXIT, stdout: ${STDOUT:0:300}"
        echo "    stderr: ${STDERR:0:600}"
    fi
}
skip() {
    skipped=$((skipped + 1))
    echo "skipped: $1"
}
exits() { ((EXIT == $1)); }
says() { [[ $STDERR == *"$1"* ]]; }
same_but_time() { python3 "$ROOT/tests/scout/reports.py" same "$@"; } # DIR DIR [NAME]…: rows of these candidates aside
row_is() { python3 "$ROOT/tests/scout/reports.py" row "$@"; }         # DIR CANDIDATE STATUS CODE[|CODE]
some_report() { compgen -G "$1/reports/*.json" >/dev/null; }
report_count() { find "$1/reports" -type f 2>/dev/null | wc -l; }
wait_for_report() { # DIR   while a run fills it
    for ((tries = 0; tries < 1000; tries++)); do
        if some_report "$1"; then return; fi
        sleep 0.01
    done
}
alone() { # PATTERN   no process has it in its command line, or soon none: a busy machine takes time to end one
    for ((tries = 0; tries < 200; tries++)); do
        if ! pgrep -f -- "$1" >/dev/null; then return; fi
        sleep 0.05
    done
    return 1
}
finish() {
    finished=1
    echo "$passed passed, $failed failed, $skipped skipped"
    ((failed == 0))
}

field() { # FILE PYTHON-EXPRESSION of r   holds
    python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' "$1" "$2"
}
