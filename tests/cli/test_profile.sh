#!/usr/bin/env bash
# The daily command: runs once, then only when the model, an option or the program has changed; installs.
source "${ROOT:?}/tests/cli/lib.sh"
profile() { run "$ROOT/scripts/profile.sh" "$@"; }
wrote() { [[ $STDOUT == *"wrote $1/ops.json"* ]]; }
idle() { [[ $STDOUT == *"$1/ops.json is up to date"* ]]; }

cp "$MODEL" m.onnx
cp "$EXTRACT_OPS" program
profile ./program m.onnx o --batch 2 --seq 8 --quiet
check "first run: exit 0" exits 0
check "first run: writes" wrote o
profile ./program m.onnx o --batch 2 --seq 8 --quiet
check "second run: nothing to do" idle o
profile ./program m.onnx o --batch 2 --seq 9 --quiet
check "another option: runs" wrote o
touch -d '2001-01-01' m.onnx
profile ./program m.onnx o --batch 2 --seq 9 --quiet
check "another model: runs" wrote o
touch program
profile ./program m.onnx o --batch 2 --seq 9 --quiet
check "the same program, only touched: nothing to do" idle o
printf '\0' >>program
profile ./program m.onnx o --batch 2 --seq 9 --quiet
check "another program: runs" wrote o
rm o/ops.json
profile ./program m.onnx o --batch 2 --seq 9 --quiet
check "result gone: runs" wrote o
echo "no model" >m.onnx
profile ./program m.onnx o --batch 2 --seq 9 --quiet
check "a bad model: exit 3" exits 3
# shellcheck disable=SC2016 # that script's own argument
printf '#!/bin/sh\necho "{}" > "$3"\nexit 1\n' >incomplete
chmod +x incomplete
profile ./incomplete m.onnx i
check "incomplete: ends with 1" exits 1
check "incomplete: is written" wrote i
profile ./incomplete m.onnx i
check "incomplete and up to date: still ends with 1" exits 1

if command -v make >/dev/null; then
    cp "$MODEL" m.onnx
    unset MAKEFLAGS MFLAGS MAKELEVEL
    make_profile() { run make -s -C "$ROOT" "PROGRAM=$EXTRACT_OPS" PROGRAMS= "OUT=$PWD/out" "MODEL=$PWD/m.onnx" "$@"; }
    make_profile BATCH=2 SEQ=8 PRECISION=fp16 profile
    check "make profile names the folder by the options" present out/m@b2_s8_fp16/ops.json
    make_profile "DIM=batch_size=2 sequence_length=3" profile
    check "make profile hands DIM on" present out/m@batch_size2_sequence_length3/ops.json
    run make -s -C "$ROOT" "PROGRAM=$EXTRACT_OPS" PROGRAMS= "DESTDIR=$PWD/root" PREFIX=/usr install
    check "make install" test -x root/usr/bin/extract_ops
    run make -s -C "$ROOT" help
    check "make help" contains stdout.txt bench-extract
fi
finish
