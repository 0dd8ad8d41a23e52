#!/usr/bin/env bash
# The daily command: runs once, then only when the model, its data, an option or the program has changed; whose folder it
# is; which names it takes.
source "${ROOT:?}/tests/cli/lib.sh"
profile() { run env -u PROFILE_BATCH PROFILE_MODEL=m.onnx PROFILE_OUT=o "$@"; } # [NAME=VALUE…] SCRIPT PROGRAM [OPTION…]
script=$ROOT/scripts/profile.sh
wrote() { [[ $STDOUT == *"wrote $1/ops.json"* ]]; }
idle() { [[ $STDOUT == *"$1/ops.json is up to date"* ]]; }

# ---- what is done again ----

cp "$MODEL" m.onnx
cp "$EXTRACT_OPS" program
profile "$script" ./program --quiet
check "first run: exit 0" exits 0
check "first run: writes" wrote o/m
profile "$script" ./program --quiet
check "second run: nothing to do" idle o/m
profile "$script" ./program --quiet --batch 2
check "another option: runs" wrote o/m
touch -d '2001-01-01' m.onnx
profile "$script" ./program --quiet
check "another model: runs" wrote o/m
touch program
profile "$script" ./program --quiet
check "the same program, only touched: nothing to do" idle o/m
printf '\0' >>program
profile "$script" ./program --quiet
check "another program: runs" wrote o/m
rm o/m/ops.json
profile "$script" ./program --quiet
check "result gone: runs" wrote o/m
# shellcheck disable=SC2016 # that script's own argument
printf '#!/bin/sh\necho "{}" > "$3"\nexit 1\n' >incomplete
chmod +x incomplete
profile PROFILE_OUT=i "$script" ./incomplete
check "incomplete: ends with 1" exits 1
check "incomplete: is written" wrote i/m
profile PROFILE_OUT=i "$script" ./incomplete
check "incomplete and up to date: still ends with 1" exits 1

# ---- external data: comes later, changes, goes; also what only shapes are read from ----

if command -v python3 >/dev/null; then
    python3 -B "$ROOT/tests/cli/external_model.py" e.onnx 'it'\''s "w".bin' shape.bin
    external() { profile PROFILE_MODEL=e.onnx "$script" "$EXTRACT_OPS" --quiet; }
    external
    check "data missing: writes" wrote o/e
    check "data missing: is said" contains o/e/ops.json "is missing"
    external
    check "data still missing: nothing to do" idle o/e
    head -c 48 /dev/zero >'it'\''s "w".bin'
    external
    check "weights have come: runs" wrote o/e
    external
    check "weights are there: nothing to do" idle o/e
    printf '\4\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0' >shape.bin
    external
    check "shapes have come: runs" wrote o/e
    check "shapes have come: nothing is missing" test "$(grep -c "is missing" o/e/ops.json)" = 0
    touch -d '2001-01-01' shape.bin
    external
    check "data has changed: runs" wrote o/e
    touch bystander.bin
    external
    check "a file that the model does not name: nothing to do" idle o/e
    mkdir hub && ln -s ../e.onnx hub/e.onnx
    profile PROFILE_MODEL=hub/e.onnx PROFILE_OUT=h "$script" "$EXTRACT_OPS" --quiet
    check "a linked model: writes" wrote h/e
    rm 'it'\''s "w".bin'
    profile PROFILE_MODEL=hub/e.onnx PROFILE_OUT=h "$script" "$EXTRACT_OPS" --quiet
    check "data beside the linked model has gone: runs" wrote h/e
    external
    check "data has gone: runs" wrote o/e
else
    skip "python3 is not installed: no model with external data"
fi

# ---- whose folder ----

mkdir a b && cp m.onnx a/x.onnx && cp m.onnx b/x.onnx
profile PROFILE_MODEL=a/x.onnx "$script" "$EXTRACT_OPS" --quiet
cp o/x/ops.json first.json
profile PROFILE_MODEL=b/x.onnx "$script" "$EXTRACT_OPS" --quiet
check "another model of that name: exit 2" exits 2
check "another model of that name: says what to do" says "OUT="
check "another model of that name: the first one's result stays" same o/x/ops.json first.json
profile PROFILE_MODEL="$PWD/a/x.onnx" "$script" "$EXTRACT_OPS" --quiet
check "the same model by another path: runs" wrote o/x
mv a c
profile PROFILE_MODEL=c/x.onnx "$script" "$EXTRACT_OPS" --quiet
check "a model that was moved: runs" wrote o/x

# ---- failures ----

echo "no model" >broken.onnx
profile PROFILE_MODEL=broken.onnx PROFILE_OUT=fresh "$script" "$EXTRACT_OPS"
check "a bad model: exit 3" exits 3
check "a bad model: no folder" absent fresh
profile PROFILE_BATCH=x "$script" "$EXTRACT_OPS"
check "a bad option: exit 2" exits 2
check "a bad option: no folder" absent o/m@bx
check "a bad option: the others' folders stay" present o/x/ops.json
echo "no model" >c/x.onnx
profile PROFILE_MODEL=c/x.onnx "$script" "$EXTRACT_OPS"
check "a model that went bad: neither result nor folder" absent o/x
profile PROFILE_MODEL= "$script" "$EXTRACT_OPS"
check "no model: exit 2" exits 2
profile PROFILE_MODEL=.. "$script" "$EXTRACT_OPS"
check "a folder: exit 3" exits 3
check "a folder: nothing else is lost" present o/m/ops.json

# ---- make ----

if command -v make >/dev/null; then
    unset MAKEFLAGS MFLAGS MAKELEVEL
    make_profile() { run make -s -C "$ROOT" "PROGRAM=$EXTRACT_OPS" PROGRAMS= MEASURE=no "OUT=$PWD/out" "MODEL=$PWD/m.onnx" "$@" profile; }
    make_profile BATCH=2 SEQ=8 PRECISION=fp16
    check "make profile names the folder by the options" present out/m@b2_s8_fp16/ops.json
    make_profile "DIM=batch_size=2 sequence_length=3"
    check "make profile hands DIM on" present out/m@batch_size=2,sequence_length=3/ops.json
    make_profile BATCH=2 "DIM=N=12"
    check "DIM N=12 has a folder" present out/m@b2,N=12/ops.json
    make_profile BATCH=2 "DIM=N1=2"
    check "DIM N1=2 has another" present out/m@b2,N1=2/ops.json
    make_profile "DIM=a/b=1 a,b=1 a%2Cb=1"
    check "names of any kind have one" present "out/m@a%2Fb=1,a%2Cb=1,a%252Cb=1/ops.json"
    name="it's a \"model\" of \$HOME; #1, (x).onnx"
    mkdir -p "two words" && cp m.onnx "two words/$name"
    make_profile "MODEL=$PWD/two words/$name" BATCH=1 "DIM=it's=2" "OUT=$PWD/the out"
    check "a name with blanks and quotes: exit 0" exits 0
    check "a name with blanks and quotes: its folder" present "the out/${name%.onnx}@b1,it's=2/ops.json"
    make_profile "MODEL=it's missing.onnx"
    check "a missing file with a quote: its name is said" says "it's missing.onnx: "
    make_profile MODEL=
    check "make profile without a model: says how" says "Which model?"
    run make -s -C "$ROOT" "PROGRAM=$EXTRACT_OPS" "SCOUT=$(dirname "$EXTRACT_OPS")/scout_batch" \
        "ANALYZE=$(dirname "$EXTRACT_OPS")/analyze" PROGRAMS= "DESTDIR=$PWD/root" PREFIX=/usr install
    check "make install: exit 0" exits 0
    for program in extract_ops scout_batch analyze ceiling-scout; do check "make install: $program" test -x "root/usr/bin/$program"; done
    check "make install: the interface for plugins" present root/usr/include/ceiling-scout/scout/plugin.h
    run make -s -C "$ROOT" help
    check "make help" contains stdout.txt bench-extract
    check "make help says whose a folder is" contains stdout.txt "OUT of its own"
fi
finish
