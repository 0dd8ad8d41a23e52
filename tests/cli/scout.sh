# shellcheck shell=bash
# What the tests of scout_batch's command line share: a scripted device whose figures are the same every time, and a
# cache of their own. Sourced after lib.sh.
: "${SCOUT:=$(dirname "$EXTRACT_OPS")/scout_batch}"
if [[ -z ${SCRIPTED:-} ]]; then
    SCRIPTED=$(dirname "$EXTRACT_OPS")/../scripted
    if [[ ! -e $SCRIPTED/device.so ]]; then
        SCRIPTED=$ROOT/out/build/release-gcc/scripted
        (unset MAKEFLAGS MFLAGS MAKELEVEL MODE CC BUILD && make -s -C "$ROOT" scripted) >scripted.txt 2>&1 || cat scripted.txt
    fi
fi
export XDG_CACHE_HOME=$PWD/cache
PYTHON=$ROOT/out/venv/bin/python

scout() { run "$SCOUT" "$@"; }
scripted() { scout --custom-kernel "$SCRIPTED/device.so" --device scripted:0 "$@"; } # ARGUMENTS…: on the scripted device
one_line() { [[ -n $STDERR && $STDERR != *$'\n'* && $STDERR == "scout_batch: "* ]]; }
scout_refused() { # WHAT CODE ARGUMENTS…   exits with the code, one line on stderr, nothing else, and writes nothing
    local what=$1 code=$2
    shift 2
    rm -rf refused refused.json
    scout "$@"
    check "$what: exit $code" exits "$code"
    check "$what: one line on stderr" one_line
    check "$what: nothing on stdout" test -z "$STDOUT"
    check "$what: no report" absent refused.json
    check "$what: no reports" test -z "$(find refused -name '*.json' 2>/dev/null)"
}
prints() { [[ $STDOUT == *"$1"* ]]; }
field() { # FILE PYTHON-EXPRESSION of r   prints it
    python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"
}
# Without the module that knows schemas nothing was checked: the check that calls this counts as skipped, not as passed.
fits_schema() {
    if [[ ! -x $PYTHON ]]; then
        skip "schemas: $PYTHON is not there"
        passed=$((passed - 1))
        return 0
    fi
    "$PYTHON" -B "$ROOT/tests/cli/schema.py" "$ROOT/docs/schema" "$@"
}
# A report without what differs from run to run: when it was measured, how long that took, and what the time went to.
timeless() { sed -E '/^  "spent_s": \{$/,/^  \}/d; /^  "(taken|seconds)":/d' "$@"; }
