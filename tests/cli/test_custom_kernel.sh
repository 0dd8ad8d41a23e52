#!/usr/bin/env bash
# The example of a custom kernel: built against what is installed and nothing else, right on awkward shapes, and
# `make validate` with each way in which a comparison ends.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL

run make -s -C "$ROOT" "PROGRAM=$EXTRACT_OPS" "SCOUT=$SCOUT" PROGRAMS= "DESTDIR=$PWD/staged" PREFIX=/usr install
check "make install: exit 0" exits 0
include=$PWD/staged/usr/include/ceiling-scout
for header in "$include"/scout/*.h "$include"/scout/op/*.h; do
    printf '#include "%s"\nint nothing;\n' "${header#"$include/"}" >alone.c
    run cc -std=c11 -D_GNU_SOURCE "-I$include" -c -o alone.o alone.c
    check "${header##*/} needs nothing that is not installed" exits 0
done
cp -r "$ROOT/docs/examples/custom_kernel" mine
rm -rf mine/build
run make -s -C mine cpu "SCOUT_INCLUDE=$include"
check "the example builds out of tree" exits 0
check "the example builds without a word" silent

# It brings the library of the CPU device's threads: these must be as without it, pinned where they can be.
scout --list-devices
without=$STDOUT
scout --list-devices --custom-kernel ./mine/build/skinny.so
check "the example leaves the device as it is" test "$STDOUT" = "$without"

# What it takes here and now does not matter: a busy machine may call it unstable. It must be right.
right() { # SHAPE
    rm -f r.json
    scout --op gemm --shape "$1" --precision fp32 --device cpu --budget 6 --regime burst --custom-kernel ./mine/build/skinny.so --compare \
        -o r.json
    check "example, $1: it decides" test "$EXIT" = 0 -o "$EXIT" = 1 -o "$EXIT" = 5
    check "example, $1: all variants are right" test "$(field r.json 'len([c for c in r["candidates"] if c["name"] == "example_skinny" and
        c["status"] in ("OK", "UNSTABLE", "SKIPPED") and c["error"]["worst"] <= c["error"]["tolerance"]])')" = 3
}
right 1,1,1
right 3,1023,65
right 4,2050,129
check "example: the report fits its schema" fits_schema r.json
scout --op gemm --shape 5,64,64 --precision fp32 --device cpu --budget 10 --regime burst --custom-kernel ./mine/build/skinny.so --compare
check "example, too many rows: nothing to keep" exits 1
check "example, too many rows: why" prints "up to 4 rows"

if command -v nvcc >/dev/null || [[ -x /usr/local/cuda/bin/nvcc ]]; then
    run make -s -C mine cuda "SCOUT_INCLUDE=$include"
    check "the CUDA example builds" exits 0
    scout --list-candidates --custom-kernel ./mine/build/skinny_cuda.so
    check "the CUDA example can be loaded" exits 0
else
    skip "no nvcc: the CUDA example is not built"
fi

# ---- make validate, on the scripted device ----
export CEILING_SCOUT_PATIENCE=0.1 # a candidate that hangs is ended after 2 seconds
printf '#!/bin/sh\nexec "%s" --custom-kernel "%s" "$@"\n' "$SCOUT" "$SCRIPTED/device.so" >program
chmod +x program
validate() { # VARIABLES…
    run make -s -C "$ROOT" "SCOUT=$PWD/program" PROGRAMS= SHAPE=64,64,64 DEVICE=scripted:0 PRECISION=fp32 "$@" validate
}
validate "AFTER=$SCRIPTED/custom.so"
check "make validate: keep" prints "  keep "
check "make validate: keep ends well" exits 0
validate BEFORE=scripted_blas AFTER=scripted_stream SHAPE=8,64,64
check "make validate: two candidates by name" prints "  keep "
validate BEFORE=scriptlib "AFTER=$SCRIPTED/faults.so"
check "make validate: revert" prints "  revert "
check "make validate: revert is told to make" says "Error 5"
validate AFTER=custom.so
check "make validate: a bare name is refused" says "is not a path; give ./custom.so"
validate
check "make validate: without anything it says how" says "Say: make validate BEFORE=cublas AFTER=./mine.so"
finish
