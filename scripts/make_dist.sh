#!/usr/bin/env bash
# Makes an installed tree one for other machines: checks that it needs nothing that a machine with the NVIDIA driver and
# the CUDA libraries would not have, and writes into it what was never run. Usage: scripts/make_dist.sh TREE [ARCHS]
#   ARCHS: "80 89 90 100", what its scout_cuda.so holds code for; none: it has no such device
set -euo pipefail
tree=${1:?usage: scripts/make_dist.sh TREE [ARCHS]} archs=${2:-}
tested=90 # the only one whose code was run: docs/results

die() {
    printf 'make_dist: %s\n' "$*" >&2
    exit 4
}

# Only these may be named as needed: the C library's own, and what opens others at run time.
allowed='^(libc|libm|libdl|librt|libpthread|libgcc_s|ld-linux-[a-z0-9-]+)\.so\.[0-9]+$'
needs_little() {
    local name
    while read -r name; do
        [[ $name =~ $allowed ]] || die "$1 needs $name, which another machine may not have"
    done < <(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
}

untested() {
    local arch glibc
    glibc=$(readelf -W --version-info "${files[@]}" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
    echo "The programs need ${glibc/GLIBC_/glibc } or newer. Without an NVIDIA driver they run on the CPU."
    if [[ -z $archs ]]; then
        echo "There is no CUDA device: no toolkit was there to build it."
        return
    fi
    echo
    echo "lib/ceiling-scout/scout_cuda.so has code for"
    for arch in $archs; do
        if [[ $arch == "$tested" ]]; then echo "  sm_$arch  run on an NVIDIA H200"; else echo "  sm_$arch  UNTESTED: it was built, never run"; fi
    done
    echo "  newer than sm_${archs##* }  UNTESTED: PTX that the driver translates at the first start"
    echo "It needs the NVIDIA driver 580 or newer and libcublasLt.so.13, looked for in: --library-path,"
    echo "\$CEILING_SCOUT_LIBRARY_PATH, this bin/, this lib/ceiling-scout/, the system's loader, the CUDA toolkit's folders."
}

[[ -z $archs || -e $tree/lib/ceiling-scout/scout_cuda.so ]] || die "$tree has no scout_cuda.so"
shopt -s nullglob
files=("$tree"/bin/* "$tree"/lib/ceiling-scout/*.so "$tree"/lib/*.so)
for file in "${files[@]}"; do needs_little "$file"; done
untested >"$tree/UNTESTED.txt"
"$(dirname "${BASH_SOURCE[0]}")/check_tree.sh" "$tree"
