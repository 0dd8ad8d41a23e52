#!/usr/bin/env bash
# What programs and scripts print never drives a terminal, whatever the names in it, and a run.json that cannot be read is told.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
source "$ROOT/tests/cli/analyze.sh"

# Neither controls nor what turns the direction of text around; lines and tabs may be, and CSV's ends of lines.
plain() { ! LC_ALL=C.UTF-8 grep -aqP '(?!\t|\r$)\p{Cc}|[\x{61c}\x{200e}\x{200f}\x{2028}-\x{202e}\x{2066}-\x{2069}\x{feff}]' "$@"; }
prints_plain() { # WHAT MOST COMMAND…   ends with that at most
    run "${@:3}"
    check "$1: runs" test "$EXIT" -le "$2"
    check "$1: prints" test -s stdout.txt -o -s stderr.txt
    check "$1: plain" plain stdout.txt stderr.txt
}
nasty=$'a\e[31m\xc2\x9b31m\xe2\x80\xaetxet\xe2\x81\xa6\xd8\x9c\xef\xbb\xbf\x7f'
printf '%s' "$nasty" >nasty.txt
check "this test tells what is not plain" test "$(plain nasty.txt; echo $?)" = 1

# ---- analyze ----

python3 "$MADE" made hostile
cp -r made "$nasty"
for format in text json md csv junit html; do
    prints_plain "analyze --format $format" 1 "$ANALYZE" made --format "$format"
    prints_plain "analyze --format $format of a folder's name" 1 "$ANALYZE" "$nasty" --format "$format"
done
for format in text json md csv junit; do
    prints_plain "analyze compare --format $format" 5 "$ANALYZE" compare made "$nasty" --allow-device --format "$format"
done
for end in 14 '!14' '?14'; do
    prints_plain "analyze explain …$end" 1 "$ANALYZE" explain "$nasty" $'\x01\x02\e[31mred\x7f\xc2\x85\xe2\x80\xaetxet'"$end"
done
run "$ANALYZE" dispatch "$nasty" -o dispatch.json --header dispatch.h
check "analyze dispatch: plain" plain stdout.txt stderr.txt dispatch.json dispatch.h

# ---- scripts/profile.sh ----

cp "$MODEL" "$nasty.onnx"
profile=(env PROFILE_OUT=out "PROFILE_MODEL=$nasty.onnx" PROFILE_BATCH=1 "$ROOT/scripts/profile.sh" "$EXTRACT_OPS")
prints_plain "profile.sh" 1 "${profile[@]}"
prints_plain "profile.sh, up to date" 1 "${profile[@]}"
mkdir other && cp "$MODEL" "other/$nasty.onnx"
prints_plain "profile.sh, a folder of another's" 2 env "${profile[@]/"=$nasty"/"=other/$nasty"}"
prints_plain "profile.sh, no such model" 4 env "${profile[@]/"=$nasty"/"=$nasty$nasty"}"
prints_plain "profile.sh, measuring" 1 env "PROFILE_SCOUT=$SCOUT" "PROFILE_ANALYZE=$ANALYZE" PROFILE_BUDGET=1 "${profile[@]}"

# ---- a run.json that cannot be read ----

for text in '' '{' '[]' '{"schema": "ceiling-scout/report/1"}' $'{"schema": "ceiling-scout/run/1", "\e[31m'; do
    printf '%s' "$text" >made/run.json
    analyze made
    check "run.json ${text@Q}: is told" prints "left out"
    check "run.json ${text@Q}: by its name" prints "made: run.json: "
    check "run.json ${text@Q}: plain" plain stdout.txt stderr.txt
done
ln -sf "$PWD/nasty.txt" made/run.json
analyze made
check "run.json, a link: is told" prints "made: run.json: is a link"
rm made/run.json && mkfifo made/run.json
analyze made
check "run.json, a pipe: is told" prints "made: run.json: is not a regular file"
finish
