#!/usr/bin/env bash
# ceiling-scout, the command in front: each command starts what it should, arguments and exit codes pass through as they
# are, `profile` does what `make profile` does, and a slip is answered by one line that names the cause and what to type.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
FRONT=$(dirname "$EXTRACT_OPS")/ceiling-scout
ANALYZE=$(dirname "$EXTRACT_OPS")/analyze
front() { run "$FRONT" "$@"; }
same_as() { # WHAT COMMAND…   the last run said the same as this and ended the same way
    local what=$1 out=$STDOUT err=$STDERR code=$EXIT
    shift
    run "$@"
    check "$what: the same words" test "$out|$err" = "$STDOUT|$STDERR"
    check "$what: the same code" test "$code" = "$EXIT"
}

# ---- which program ----
front --version
check "--version" test "$STDOUT" = "ceiling-scout $(<"$ROOT/VERSION") (ceiling-scout)"
front --help
check "--help: exit 0" exits 0
cp stdout.txt help.txt
for name in profile doctor extract measure ceilings analyze explain compare dispatch validate evidence zoo help; do
    check "--help names $name" grep -q "^  ceiling-scout $name " help.txt
done
for pair in "extract|$EXTRACT_OPS" "measure|$SCOUT" "ceilings|$SCOUT" "doctor|$SCOUT" "analyze|$ANALYZE" "explain|$ANALYZE explain" \
    "compare|$ANALYZE compare" "dispatch|$ANALYZE dispatch"; do
    read -r -a words <<<"${pair#*|}"
    front "${pair%%|*}" --help
    same_as "${pair%%|*} --help" "${words[@]}" --help
    front help "${pair%%|*}"
    same_as "help ${pair%%|*}" "${words[@]}" --help
done
for name in profile validate evidence zoo; do
    front help "$name"
    check "help $name" contains stdout.txt "usage: ceiling-scout $name "
done
# What may stand behind an option has one owner; here it is only said again.
front profile --list-options
cp stdout.txt options.txt
check "profile --precision takes what extract_ops takes" same <(grep -e '^--precision' options.txt) <("$EXTRACT_OPS" --list-options | grep -e '^--precision')
check "profile --regime takes what scout_batch takes" same <(grep -e '^--regime' options.txt) <("$SCOUT" --list-options | grep -e '^--regime')
front validate --list-options
check "validate --precision takes what scout_batch takes" same <(grep -e '^--precision' stdout.txt) <("$SCOUT" --list-options | grep -e '^--precision')

# The README's daily commands are commands, and their options are theirs.
# shellcheck disable=SC2016 # the backquotes are the README's
mapfile -t daily < <(sed -n 's/^| `ceiling-scout \([^`]*\)`.*/\1/p' "$ROOT/README.md")
check "the README has daily commands" test "${#daily[@]}" -gt 8
for line in "${daily[@]}"; do
    read -r -a words <<<"$line"
    front "${words[0]}" --list-options
    cut -f 1,2 stdout.txt | tr '\t' '\n' >options.txt
    for word in "${words[@]:1}"; do
        if [[ $word == -* ]]; then check "ceiling-scout $line: $word" grep -qxF -e "$word" options.txt; fi
    done
done

# ---- arguments and codes as they are ----
hostile=$'./ -it\'s "a" $HOME; #1\nmodel.onnx'
cp "$MODEL" "$hostile"
front extract "$hostile" --dim 'batch_size=2' -o ops.json
check "extract of any name: exit 0" exits 0
check "extract of any name: written" present ops.json
front extract --bach 1
same_as "a slip behind extract" "$EXTRACT_OPS" --bach 1
front analyze nowhere
same_as "a folder that is not there" "$ANALYZE" nowhere
printf '{"a": {"op": "gemm", "shape": [8, 8, 8], "dtype": "fp32"}}' >few.json
front measure few.json -q -o made --custom-kernel "$SCRIPTED/device.so" --device scripted:0 --cache-dir "$PWD/cache"
check "measure: exit 0" exits 0
check "measure: reports" present made/run.json
front explain made "$(basename made/reports/*.json .json)"
check "explain: exit 0" exits 0
front dispatch made -o table.json
check "dispatch: a table" present table.json
ln -s "$FRONT" linked
run ./linked extract --version
check "through a link it finds its programs" exits 0
mkdir alone && cp "$FRONT" alone/
run alone/ceiling-scout extract --help
check "alone: exit 4" exits 4
check "alone: what to do" says "extract_ops is not beside this program; build it with make"
run alone/ceiling-scout profile "$MODEL"
check "alone: profile: exit 4" exits 4
check "alone: profile: what to do" says "build it with make"
mkdir -p half/bin half/lib/ceiling-scout && cp "$FRONT" half/bin/ && cp "$ROOT"/scripts/{profile,validate,zoo_fetch,collect_evidence}.sh half/lib/ceiling-scout/
for arguments in "profile $MODEL" "validate --after a --shape 8,8,8" "evidence ." zoo; do
    read -r -a words <<<"$arguments"
    run half/bin/ceiling-scout "${words[@]}"
    check "programs missing: ${words[0]}: exit 4" exits 4
    check "programs missing: ${words[0]}: one line" test "$(wc -l <stderr.txt)" = 1
done

# ---- profile: what make does, by the same script ----
export PROFILE_MODEL=none.onnx PROFILE_BATCH=77 PROFILE_DIM="a=7" # of another run; not of this one
front profile "$MODEL" --batch 1 --seq 8 -o "$PWD/the out" --device cpu --regime burst --folder
told=${STDOUT##*/the out/} untouched=$([[ -e "the out" ]] || echo yes)
front profile "$MODEL" --batch 1 --seq 8 -o "$PWD/the out" --device cpu --regime burst --budget 2s
check "profile: ended" test "$EXIT" -le 1
folder="the out/transformer_block@b1_s8_cpu_burst"
check "profile --folder: that folder was told before, and nothing was made" test "the out/$told $untouched" = "$folder yes"
for file in ops.json run.json summary.txt report.html dispatch.json; do check "profile: $file" present "$folder/$file"; done
front profile "$MODEL" --batch 1 --seq 8 -o "$PWD/the out" --device cpu --regime burst --budget 2s
check "profile again: nothing to do" test "$(grep -c 'is up to date' stdout.txt)" -ge 4
ln -s "$(dirname "$SCOUT")" programs # as make names them, by another path
run env PROFILE_SCOUT=programs/scout_batch PROFILE_ANALYZE=programs/analyze PROFILE_MODEL="$MODEL" PROFILE_BATCH=1 PROFILE_SEQ=8 \
    PROFILE_DIM='' PROFILE_OUT="$PWD/the out" PROFILE_DEVICE=cpu PROFILE_REGIME=burst PROFILE_BUDGET=2 "$ROOT/scripts/profile.sh" programs/extract_ops
check "the script by another path: nothing to do" test "$(grep -c 'is up to date' stdout.txt)" -ge 4
front profile "$MODEL" --batch 1 --seq 8 -o "$PWD/the out" --device cpu --regime burst --quick --target-ci 20% --min-time 0.01
check "profile --quick --target-ci --min-time: ended" test "$EXIT" -le 1
check "profile --quick --target-ci --min-time: as scout_batch has them" python3 -c '
import json, sys
o = json.load(open(sys.argv[1] + "/run.json"))["options"]
sys.exit(not (o["budget_s"] == 20 and o["target_ci"] == 0.2 and o["min_time_s"] == 0.01 and not o["fusions"]))' "$folder"
front profile "$MODEL" --batch 1 --seq 8 -o "$PWD/the out" --device cpu --regime burst --budget 2s
if command -v make >/dev/null; then
    run env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$ROOT" "PROGRAM=$EXTRACT_OPS" "SCOUT=$SCOUT" "ANALYZE=$ANALYZE" PROGRAMS= \
        "OUT=$PWD/the out" "MODEL=$MODEL" BATCH=1 SEQ=8 DEVICE=cpu REGIME=burst BUDGET=2 profile
    check "make profile of the same: nothing to do" test "$(grep -c 'is up to date' stdout.txt)" -ge 4
else
    skip "make is not installed"
fi
unset PROFILE_MODEL PROFILE_BATCH PROFILE_DIM

# ---- slips ----
lines() { wc -l <stderr.txt; }
slip() { # CODE CAUSE REMEDY ARGUMENT…
    local code=$1 cause=$2 remedy=$3
    shift 3
    rm -rf made
    front "$@"
    check "${*@Q}: exit $code" exits "$code"
    check "${*@Q}: the cause ($cause)" says "$cause"
    check "${*@Q}: what to type ($remedy)" says "$remedy"
    check "${*@Q}: one line" test "$(lines)" -eq 1
    check "${*@Q}: nothing is made" absent made
}
profile=(profile "$MODEL" -o made)
slip 2 "which command?" "profile MODEL.onnx"
slip 2 "no command profil" "did you mean profile" profil "$MODEL"
slip 2 "no command analyse" "did you mean analyze" analyse made
slip 2 "no command doktor" "did you mean doctor" doktor
slip 2 "no command frobnicate" "--help" frobnicate
slip 2 "no command frobnicate" "--help" help frobnicate
slip 2 "$MODEL is no command" "profile $MODEL" "$MODEL"
slip 2 "gone.onnx is no command" "profile gone.onnx" gone.onnx
slip 2 "few.json is no command" "measure few.json" few.json
slip 2 ". is no command" "analyze ." .
slip 2 "unknown option --batch" "--help" --batch 1 profile "$MODEL"
slip 2 "which command?" "profile MODEL.onnx" --
slip 2 "one command at a time" "help profile" help profile doctor
slip 2 "MODEL.onnx is missing" "profile --help" profile
slip 2 "one argument too many" "profile --help" "${profile[@]}" second.onnx
slip 3 "missing.onnx: cannot be opened" "missing.onnx" profile missing.onnx -o made
slip 3 "this is a folder" "the path of an ONNX model" profile . -o made
slip 3 "JSON" "scout_batch" profile few.json -o made
slip 2 "'x' is not a whole number" "--batch" "${profile[@]}" --batch x
slip 2 "-1 is less than 1" "--batch" "${profile[@]}" --batch -1
slip 2 "'12' is not of the form NAME=N" "--dim" "${profile[@]}" --dim 12
slip 2 "unknown option --bach" "did you mean --batch" "${profile[@]}" --bach 1
slip 2 "'soon' is not a time" "2m" "${profile[@]}" --budget soon
slip 2 "not a half width" "write 2%" "${profile[@]}" --target-ci soon
slip 2 "0s is outside" "--budget" "${profile[@]}" --budget 0s
slip 2 "'steady' is not one of" "sustained" "${profile[@]}" --regime steady
slip 2 "'fp12' is not one of" "fp16" "${profile[@]}" --precision fp12
slip 2 "--device CPU" "say cpu" "${profile[@]}" --device CPU
slip 2 "--device needs NAME" "--device" "${profile[@]}" --device
slip 2 "'-' is not a file name" "./-" profile "$MODEL" --out -
slip 2 "--after is missing" "--after ./mine.so" validate --shape 8,8,8
slip 2 "--shape is missing" "--shape 4096" validate --after ./mine.so
slip 2 "mine.so is not a path" "./mine.so" validate --after mine.so --shape 8,8,8
slip 2 "DIR or ID is missing" "explain --help" explain
front profile $'two\nlines.onnx'
check "a name of two lines: one line" test "$(lines)" -eq 1

# ---- names that look like something else ----
cp "$MODEL" ./-b.onnx
front profile -o out --device cpu --regime burst --budget 2 -- -b.onnx
check "behind --: a name with a dash" present out/-b@cpu_burst/ops.json
cp "$MODEL" made.onnx
front profile made.onnx -o "$PWD/dims" --dim 'batch size=2' --dim 'a=b=3' --device none
check "a dimension's name may hold blanks and =: until its device is refused" says "--device none"
# shellcheck disable=SC2016 # that script's own argument
printf '#!/bin/sh\nfor a; do printf "<%%s>\\n" "$a"; done >seen\nexit 3\n' >recorder
chmod +x recorder
run env PROFILE_MODEL=made.onnx PROFILE_OUT=dims "$ROOT/scripts/profile.sh" "$PWD/recorder" '--dim=batch size=2' '--dim=a=b=3'
check "a dimension's name with a blank arrives as one" contains seen '<--dim=batch size=2>'
check "a dimension's name with = arrives" contains seen '<--dim=a=b=3>'
finish
