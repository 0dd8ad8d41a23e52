#!/usr/bin/env bash
# What is installed can be put anywhere (scripts/check_tree.sh, as `make dist` runs it), and what is not so is refused.
# Of what is built already: the libraries that `make dist` puts inside are the system's here.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL
check_tree=$ROOT/scripts/check_tree.sh make_dist=$ROOT/scripts/make_dist.sh

run make -s -C "$ROOT" "PROGRAM=$EXTRACT_OPS" "SCOUT=$SCOUT" PROGRAMS= DESTDIR= "PREFIX=$PWD/one tree" install
check "installed: exit 0" exits 0
run "$check_tree" "$PWD/one tree"
check "it runs from another folder with an empty environment" exits 0
check "and without a word" silent
doc="one tree/share/doc/ceiling-scout"
check "the documents lie as the README names them" test -s "$doc/README.md" -a -s "$doc/docs/formats.md" -a -s "$doc/docs/schema/report.schema.json"
run make -s -C "$doc/docs/examples/custom_kernel" cpu "OUT=$PWD/built"
check "the example finds the headers of the tree that it lies in" exits 0
check "the example is built" present built/skinny.so

spoiled() { # WHAT SAYS   a copy of the tree in ./bad, which was spoiled
    run "$check_tree" bad
    check "$1: exit 4" exits 4
    check "$1: why" says "$2"
    rm -rf bad
}
copy() { rm -rf bad && cp -R "one tree" bad; }
copy
rm bad/include/ceiling-scout/scout/plugin.h
spoiled "a header is missing" "plugin.h is missing"
echo 'int main(void) { return 0; }' >empty.c
copy
cc -o bad/bin/scout_batch empty.c -Wl,-rpath,"$PWD"
spoiled "a folder of the build in a program" "folder of its build"
copy
cc -o bad/bin/scout_batch empty.c
spoiled "a program that does nothing" "said nothing of"

run "$make_dist" "one tree"
check "for another machine: libraries of this one are refused" exits 4
check "for another machine: which" says "which another machine may not have"
copy
rm -f bad/lib/ceiling-scout/scout_cuda.so
run "$make_dist" bad "80 90"
check "for another machine: no device where one is promised" says "no scout_cuda.so"
finish
