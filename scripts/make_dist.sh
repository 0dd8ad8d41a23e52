#!/usr/bin/env bash
# Puts what was built into a tree that can be copied anywhere, and checks that it needs nothing that a machine with the
# NVIDIA driver and the CUDA libraries would not have. Usage: scripts/make_dist.sh BIN TREE [ARCHS]
#   BIN    folder with extract_ops, scout_batch and, where ARCHS are given, scout_cuda.so
#   PLUGIN_HEADERS, in the environment: what a plugin may include, as mk/install.mk lists it
#   TREE   is written anew; ARCHS: "80 89 90a 100", what scout_cuda.so holds code for
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=${1:?usage: scripts/make_dist.sh BIN TREE [ARCHS]} tree=${2:?usage: scripts/make_dist.sh BIN TREE [ARCHS]} archs=${3:-}
tested=90a # the only one whose code was run: docs/results

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
    local arch
    echo "Built for, and run on:"
    for arch in $archs; do
        if [[ $arch == "$tested" ]]; then echo "  sm_$arch  run on an NVIDIA H200"; else echo "  sm_$arch  UNTESTED: it was built, never run"; fi
    done
    echo "  newer than sm_${archs##* }  UNTESTED: PTX that the driver translates at the first start"
    echo
    echo "Needs the NVIDIA driver 580 or newer and libcublasLt.so.13, looked for in: --library-path,"
    echo "\$CEILING_SCOUT_LIBRARY_PATH, this bin/, this lib/ceiling-scout/, the system's loader, the CUDA toolkit's folders."
    echo "Without a driver the programs run all the same, on the CPU."
}

rm -rf "$tree.new"
mkdir -p "$tree.new/bin" "$tree.new/lib/ceiling-scout" "$tree.new/include/ceiling-scout/scout"
for program in extract_ops scout_batch; do
    needs_little "$bin/$program"
    install -m 755 "$bin/$program" "$tree.new/bin/$program"
done
read -r -a headers <<<"${PLUGIN_HEADERS:?what a plugin may include: \`make dist\` says it}"
install -m 644 "${headers[@]}" "$tree.new/include/ceiling-scout/scout/"
install -m 644 README.md "$tree.new/README.md"
if [[ -n $archs ]]; then
    needs_little "$bin/scout_cuda.so"
    install -m 755 "$bin/scout_cuda.so" "$tree.new/lib/ceiling-scout/scout_cuda.so"
    untested >"$tree.new/UNTESTED.txt"
fi
rm -rf "$tree"
mv "$tree.new" "$tree"
echo "$tree: $(du -sh "$tree" | cut -f 1)"
