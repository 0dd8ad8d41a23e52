# shellcheck shell=bash
# What the command line's tests share: run the program, then check what it said. Sourced; sets EXIT, STDOUT, STDERR.
set -euo pipefail
# shellcheck source=tests/ended.sh
source "${ROOT:?}/tests/ended.sh"
passed=0 failed=0 skipped=0
: "${EXTRACT_OPS:?set by tests/cli/run.sh}" "${ROOT:?set by tests/cli/run.sh}"
# shellcheck disable=SC2034 # for the tests that source this
MODEL=$ROOT/models/transformer_block.onnx

run() {
    EXIT=0
    timeout 60 "$@" >stdout.txt 2>stderr.txt </dev/null || EXIT=$?
    STDOUT=$(<stdout.txt) STDERR=$(<stderr.txt)
}
extract() { run "$EXTRACT_OPS" "$@"; }

check() { # WHAT CONDITION…   the condition is a command
    local what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $what"
        echo "    exit $EXIT, stdout: ${STDOUT:0:300}"
        echo "    stderr: ${STDERR:0:300}"
    fi
}
skip() {
    skipped=$((skipped + 1))
    echo "skipped: $1"
}
says() { [[ $STDERR == *"$1"* ]]; }
exits() { ((EXIT == $1)); }
silent() { [[ -z $STDOUT && -z $STDERR ]]; }
one_line() { [[ -n $STDERR && $STDERR != *$'\n'* && $STDERR == "extract_ops: "* ]]; }
absent() { [[ ! -e $1 ]]; }
present() { [[ -s $1 ]]; }
contains() { grep -qF -- "$2" "$1"; }
same() { cmp -s "$1" "$2"; }

refused() { # WHAT CODE ARGUMENTS…   exits with the code, one line on stderr, nothing else, and writes no file
    local what=$1 code=$2
    shift 2
    rm -f refused.json
    extract "$@"
    check "$what: exit $code" exits "$code"
    check "$what: one line on stderr" one_line
    check "$what: nothing on stdout" test -z "$STDOUT"
    check "$what: no file" absent refused.json
}
finish() {
    finished=1
    echo "$passed passed, $failed failed, $skipped skipped"
    ((failed == 0))
}
