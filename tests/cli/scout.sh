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
# The programs in a house of their own, house/bin, where scout_batch has the scripted device, and does COMMANDS first.
make_house() { # [COMMANDS]
    mkdir -p house/bin house/lib/ceiling-scout
    cp "$(dirname "$EXTRACT_OPS")"/{ceiling-scout,extract_ops,analyze} house/bin/
    cp "$ROOT"/scripts/{profile,zoo_fetch}.sh house/lib/ceiling-scout/
    printf '#!/usr/bin/env bash\n%s\nexec %q --custom-kernel %q "$@"\n' "${1:-}" "$SCOUT" "$SCRIPTED/device.so" >house/bin/scout_batch
    chmod +x house/bin/scout_batch
}
# While there is a file `hold`, this model's measuring waits, and a file `held` says so.
holding_at() { # MODEL
    # shellcheck disable=SC2016 # it is the text of a script
    printf 'while [[ $1 == */%s@*/ops.json && -e %q/hold ]]; do touch %q/held; sleep 0.05; done' "$1" "$PWD" "$PWD"
}
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
