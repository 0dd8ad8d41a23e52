#!/usr/bin/env bash
# What is written, and where: files whole and identical run by run, a table only when asked for.
source "${ROOT:?}/tests/cli/lib.sh"

extract "$MODEL" -o a.json --tensors t.json --batch 2 --seq 16 --quiet
check "a good model: exit 0" exits 0
check "--quiet says nothing" silent
check "ops.json is there" present a.json
check "tensors.json is there" present t.json
check "ops.json has its schema" contains a.json '"ceiling-scout/ops/'
check "tensors.json has its schema" contains t.json '"ceiling-scout/tensors/'
extract "$MODEL" -o b.json --tensors u.json --batch 2 --seq 16 --quiet
check "ops.json is the same again" same a.json b.json
check "tensors.json is the same again" same t.json u.json
check "only the files asked for" test "$(find . -type f | sort | tr '\n' ' ')" = \
    "./a.json ./b.json ./stderr.txt ./stdout.txt ./t.json ./u.json "

extract "$MODEL" -o b.json --batch 2 --seq 16
check "a table" test -n "$STDOUT"
check "no colour where no terminal is" test "${STDOUT/$'\e'/}" = "$STDOUT"
check "the table changes no file" same a.json b.json
extract "$MODEL" --batch 2 --seq 16
check "only a table: exit 0" exits 0
check "only a table: it is there" test -n "$STDOUT"

extract "$MODEL" -o missing/folder/a.json --batch 2 --seq 16 --quiet
check "a folder that is not there: exit 4" exits 4
check "a folder that is not there: one line" one_line
if [[ -w /dev/full ]]; then
    EXIT=0 STDERR=
    "$EXTRACT_OPS" "$MODEL" --batch 2 --seq 16 >/dev/full 2>stderr.txt || EXIT=$?
    STDERR=$(<stderr.txt)
    check "a full disk under stdout: exit 4" exits 4
    check "a full disk under stdout: one line" one_line
fi
extract "$MODEL" -o . --batch 2 --seq 16 --quiet
check "output is a folder: exit 4" exits 4
mkdir target && echo old >target/real.json && ln -s target/real.json link.json
extract "$MODEL" -o link.json --batch 2 --seq 16 --quiet
check "output through a link: exit 0" exits 0
check "output through a link: written" same link.json a.json
ln -s target/new.json dangling.json
extract "$MODEL" -o dangling.json --batch 2 --seq 16 --quiet
check "output through a link to nothing: written there" same target/new.json a.json
check "output through a link to nothing: the link stays" test -L dangling.json
refused "output -" 2 "$MODEL" -o -
check "output -: says what to name" says /dev/stdout
refused "tensors -" 2 "$MODEL" --tensors=-
check "output -: no file of that name" absent ./-
extract "$MODEL" -o /dev/stdout --batch 2 --seq 16 --quiet
check "output /dev/stdout, a file: all of it" same stdout.txt a.json
"$EXTRACT_OPS" "$MODEL" -o /dev/stdout --batch 2 --seq 16 --quiet | cat >piped.json
check "output /dev/stdout, a pipe: all of it" same piped.json a.json
echo before >appended.txt
"$EXTRACT_OPS" "$MODEL" -o /dev/stdout --batch 2 --seq 16 --quiet >>appended.txt
check "output /dev/stdout: what stood there stays" same <(echo before && cat a.json) appended.txt

if command -v python3 >/dev/null; then
    run python3 -B "$ROOT/tests/cli/terminal.py" "$EXTRACT_OPS" "$MODEL" --batch 2 --seq 16
    check "on a terminal: coloured and within its width" exits 0
    NO_COLOR=1 run python3 -B "$ROOT/tests/cli/terminal.py" "$EXTRACT_OPS" "$MODEL" --batch 2 --seq 16
    check "NO_COLOR on a terminal: within its width, no colour" exits 0
else
    skip "python3 is not installed: no terminal to try"
fi
if [[ -x $ROOT/out/venv/bin/python ]]; then
    run "$ROOT/out/venv/bin/python" "$ROOT/tests/cli/schema.py" "$ROOT/docs/schema" a.json t.json
    check "both files satisfy their JSON Schemas" exits 0
else
    skip "jsonschema is not installed (scripts/setup.sh)"
fi
finish
