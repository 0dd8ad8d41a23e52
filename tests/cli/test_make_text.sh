#!/usr/bin/env bash
# What a variable of make holds is text: nothing in it runs, and it arrives as it was typed. Each variable with each kind
# of text that make or a shell would take for its own, by the command line and by the environment.
source "${ROOT:?}/tests/cli/lib.sh"
if ! command -v make >/dev/null; then
    skip "make is not installed"
    finish
    exit
fi
unset MAKEFLAGS MFLAGS MAKELEVEL

# A tree with nothing to build, in which what runs would leave PWNED; in the programs' place one that keeps its environment.
mkdir -p tree recorded/scripts
ln -s "$ROOT"/{Makefile,mk,scripts} tree/
ln -s "$ROOT"/{Makefile,mk} recorded/
cat >recorder <<SCRIPT
#!/usr/bin/env bash
env -0 | grep -z '^[A-Z]*_[A-Z]*=' >${PWD@Q}/seen
exit 3
SCRIPT
chmod +x recorder

# Both kinds of quotes, newlines, a blank at the end (make takes one at the beginning away), and what a shell would run.
runs=$'it\'s "b" `touch PWNED` $(touch PWNED) $$(touch PWNED) ${shell touch PWNED} $(shell touch PWNED)\n\ttouch PWNED\n; touch PWNED # \\ \n '
# shellcheck disable=SC2016 # none of it is for this shell
texts=("$runs" '$(error x)' '$(eval $(error x))' '$(shell touch PWNED).onnx' '`touch PWNED`' $'x\nall: ; touch PWNED\n' '-n' '--version' '-f/dev/null'
    "';touch PWNED;'" '";touch PWNED;"' '%' '$')

ended() { ((EXIT != 0)); } # the recorder's 3, or a refusal
nothing_ran() { [[ -z $(find . "$ROOT" -maxdepth 2 -name PWNED -print -delete) ]]; }
arrived() {
    local line
    while IFS= read -r -d '' line; do if [[ $line == "$1" ]]; then return; fi; done <seen
    return 1
}
profile=(MODEL OUT BATCH SEQ DIM PRECISION DEVICE REGIME BUDGET)
validate=(BEFORE AFTER SHAPE OP PRECISION DEVICE REGIME BUDGET)
# shellcheck disable=SC2034 # by its name, as the others
zoo=(ZOO ONLY BUDGET OUT)

# All at once: each arrives, so none has kept another from it.
for goal in profile validate; do ln -s "$PWD/recorder" "recorded/scripts/$goal.sh"; done
declare -n variables
for text in "${texts[@]}"; do
    for variables in profile validate zoo; do
        goal=${!variables}
        given=("${variables[@]/%/"=$text"}")
        for way in typed environment; do
            rm -f seen
            case $way in
            typed) run make -s -C recorded PROGRAMS= "FRONT=$PWD/recorder" "MEASURE=$text" "PROFILE=$text" "GPUS=$text" "${given[@]}" "$goal" ;;
            environment) run env "MEASURE=$text" "PROFILE=$text" "GPUS=$text" "${given[@]}" make -s -C recorded PROGRAMS= "FRONT=$PWD/recorder" "$goal" ;;
            esac
            check "$goal, $way, ${text@Q}: nothing ran" nothing_ran
            check "$goal, $way, ${text@Q}: the script's end" exits 2
            for variable in "${variables[@]}"; do
                check "$variable, $way, ${text@Q}: as typed" arrived "${goal^^}_$variable=$text"
            done
        done
    done
done

mkdir -p deployed/m && touch deployed/m/dispatch.json
rm -f seen
run make -s -C recorded PROGRAMS= PROFILE=top3 MODEL=m.onnx profile
check "PROFILE=top3: how many" arrived PROFILE_COUNTERS=3
for text in "${texts[@]}"; do
    rm -f seen
    run make -s -C recorded PROGRAMS= "FRONT=$PWD/recorder" "GPUS=$text" zoo
    check "GPUS, typed, ${text@Q}: as typed" arrived "ZOO_GPUS=$text"
    check "GPUS, typed, ${text@Q}: nothing ran" nothing_ran
    rm -f seen
    run make -s -C recorded PROGRAMS= "ANALYZE=$PWD/recorder" "OUT=$PWD/deployed" "SIGN=$text" dispatch
    check "SIGN, typed, ${text@Q}: as typed" arrived "ZOO_SIGN=$text"
    check "SIGN, typed, ${text@Q}: nothing ran" nothing_ran
done
rm -f seen
run env GPUS=8 PROFILE=x make -s -C recorded PROGRAMS= "FRONT=$PWD/recorder" zoo
check "GPUS and PROFILE of the environment are of other tools" test "$(grep -cz 'GPUS=8\|COUNTERS=x' seen)" = 0

# A night is one of the history, unless it is told otherwise.
for goal in zoo: zoo:AGAIN=yes nightly: nightly:AGAIN=no; do
    rm -f seen
    run make -s -C recorded PROGRAMS= "FRONT=$PWD/recorder" "${goal%:*}" ${goal#*:}
    again=
    if [[ $goal == zoo:AGAIN=yes || $goal == nightly: ]]; then again=yes; fi
    check "$goal: all of it anew, or what has changed" arrived "ZOO_AGAIN=$again"
done

# Each by itself, and what the scripts do with it: in the programs' place is the recorder.
try() { # GOAL VARIABLE GIVEN…
    run make -s -C tree "PROGRAM=$PWD/recorder" "SCOUT=$PWD/recorder" PROGRAMS= "${@:3}" "$2=$runs" "$1"
    check "$2, $1: nothing ran" nothing_ran
    check "$2, $1: the script's end" ended
}
for variable in "${profile[@]}" MEASURE; do try profile "$variable" MODEL=m.onnx MEASURE=no; done
for variable in "${validate[@]}"; do try validate "$variable" AFTER=a SHAPE=1,1,1; done
# shellcheck disable=SC2016 # nor is this
for text in "$runs" '$(error x)' %; do
    run make -s -C tree "MODE=$text" info
    check "MODE ${text@Q}: nothing ran" nothing_ran
    check "MODE ${text@Q}: is refused" says "is none of"
    for variable in V STATIC; do
        run make -s -C tree "$variable=$text" help
        check "$variable ${text@Q}: nothing ran" nothing_ran
        check "$variable ${text@Q}: is text" exits 0
    done
    for goal in TEST:check NIGHTS:bench-compare HITS:bench-cache DIST:dist PREFIX:install DESTDIR:install; do
        run make -n -C "$ROOT" PROGRAMS= "${goal%:*}=$text" "${goal#*:}"
        check "${goal%:*} ${text@Q}: nothing ran" nothing_ran
        check "${goal%:*} ${text@Q}: no command holds it" test "$STDOUT" = "${STDOUT/PWNED/}"
        check "${goal%:*} ${text@Q}: is text" exits 0
    done
done

# What recipes do with a place: it is one, whatever its name.
run make -s -C "$ROOT" "PROGRAM=$EXTRACT_OPS" "SCOUT=$(dirname "$EXTRACT_OPS")/scout_batch" \
    "ANALYZE=$(dirname "$EXTRACT_OPS")/analyze" PROGRAMS= "DESTDIR=$PWD/$runs" PREFIX=/usr install
check "make install, any DESTDIR: exit 0" exits 0
check "make install, any DESTDIR: nothing ran" nothing_ran
check "make install, any DESTDIR: it is the place" test -x "$runs/usr/bin/analyze"
check "make install, any DESTDIR: documents too" present "$runs/usr/share/doc/ceiling-scout/README.md"
finish
