#!/usr/bin/env bash
# The rooms of docs/architecture.md hold, and the check tells each sort of breach. Usage: tests/rooms/run.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
passed=0 failed=0
count() { # STATUS WHAT
    if (($1 == 0)); then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAILED $2"; fi
}
code=0
python3 -B tests/rooms/check.py || code=$?
count $code "the tree"

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
# A change of a copy of the tree is told, in these words.
told() { # WORDS COMMAND…   run inside the copy
    local words=$1 code=0 said
    shift
    rm -rf "${copy:?}"/*
    tar -c common dispatch extract scout kernels analyze docs/architecture.md | tar -x -C "$copy"
    (cd "$copy" && "$@")
    said=$(python3 -B tests/rooms/check.py "$copy") && code=1
    grep -qF -- "$words" <<<"$said" || code=1
    count $code "$words"
}
fill() { # FOLDER
    local k
    for ((k = 0; k < 41; k++)); do touch "$1/more_$k.c"; done
}
add() { printf '%s\n' "$2" >>"$1"; } # FILE LINE
told "common/map.c:" add common/map.c '#include "scout/run/run.h"'
told "scout/cpu/kernels may not include scout/cuda/device/cuda_device.h" \
    add scout/cpu/kernels/cpu_rows.c '  #  include "scout/cuda/device/cuda_device.h"'
told "scout/terms may not include scout/run/run.h" add scout/terms/reason.c '#include <scout/run/run.h>'
told "../run/run_internal.h is no file of the product" add scout/terms/reason.c '#include "../run/run_internal.h"'
told "extract/read may not include analyze/study/study.h" add extract/read/read.h '#include "analyze/study/study.h"'
told "scout/attic: has no line in the table" bash -c 'mkdir scout/attic && touch scout/attic/a.c'
told "scout/terms: may include scout/run, which does not stand above it" \
    sed -i "s/^\(| .scout\/terms. .*\) |\$/\1 \x60scout\/run\x60 |/" docs/architecture.md
told "common: may include dispatch, and does not" sed -i "s/^\(| .common. .*\)|\$/\1\x60dispatch\x60 |/" docs/architecture.md
told "files; a room has at most 40" fill common
told "common/run.c and scout/run/run.c: one name for two files" touch common/run.c
told "scout/op: stands in the table and has no file" rm -r scout/op
echo "$passed passed, $failed failed"
((failed == 0))
