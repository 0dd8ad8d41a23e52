# shellcheck shell=bash
# What the tests of analyze's command line share. Sourced after lib.sh.
: "${ANALYZE:=$(dirname "$EXTRACT_OPS")/analyze}"
# shellcheck disable=SC2034 # for the tests that source this
MADE=$ROOT/tests/cli/made_reports.py

analyze() { run "$ANALYZE" "$@"; }
one_line() { [[ -n $STDERR && $STDERR != *$'\n'* && $STDERR == "analyze: "* ]]; }
analyze_refused() { # WHAT CODE ARGUMENTS…   exits with the code, one line on stderr, nothing else
    local what=$1 code=$2
    shift 2
    analyze "$@"
    check "$what: exit $code" exits "$code"
    check "$what: one line on stderr" one_line
    check "$what: nothing on stdout" test -z "$STDOUT"
}
prints() { [[ $STDOUT == *"$1"* ]]; }
