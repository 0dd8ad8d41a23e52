#!/usr/bin/env bash
# Proves that an installed tree can be put anywhere: copied elsewhere and started from / with an empty environment, its
# programs run, measure on the CPU and find what lies beside them. Usage: scripts/check_tree.sh TREE
set -euo pipefail
tree=${1:?usage: scripts/check_tree.sh TREE}
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

die() {
    printf 'check_tree: %s\n' "$*" >&2
    exit 4
}

shopt -s nullglob
for file in "$tree"/bin/* "$tree"/lib/ceiling-scout/*.so "$tree"/lib/*.so; do
    said=$(readelf -d "$file") || die "$file is no program and no library"
    [[ $said != *"(RPATH)"* && $said != *"(RUNPATH)"* ]] || die "$file looks for its libraries in a folder of its build"
done
for place in bin/{extract_ops,scout_batch,analyze,ceiling-scout} lib/ceiling-scout/{profile,validate}.sh share/man/man1/analyze.1 include/ceiling-scout/scout/plugin.h share/doc/ceiling-scout/{README.md,LICENSE}; do
    [[ -s $tree/$place ]] || die "$tree/$place is missing"
done

cp -R "$tree/." "$copy/moved tree"
cd /
runs() { # WHAT-IT-SAYS PROGRAM ARGUMENTS…   from / and with nothing in the environment
    local says=$1 program=$2 said code=0
    shift 2
    said=$(env -i "$copy/moved tree/bin/$program" "$@" 2>&1) || code=$?
    ((code < 2)) || die "$program $*: exit $code: $said"
    grep -q -- "$says" <<<"$said" || die "$program $*: said nothing of $says: $said"
}
for program in "$copy/moved tree"/bin/*; do runs ceiling-scout "${program##*/}" --version; done
runs '^cpu ' scout_batch --list-devices
runs '^ok  *device  *cpu: ' ceiling-scout doctor --device cpu -o "$copy" --cache-dir "$copy/cache"
said=$(env -i "$copy/moved tree/bin/ceiling-scout" profile "$copy" --out "$copy/none" 2>&1) || true
[[ $said == "extract_ops: $copy: this is a folder"* ]] || die "ceiling-scout profile of a folder: said $said"
if [[ -e $tree/lib/ceiling-scout/scout_cuda.so ]]; then runs '^cuda' scout_batch --list-devices; fi
runs '^gemm 16 x 16 x 16' scout_batch --op gemm --shape 16,16,16 --precision fp32 --device cpu --regime burst --budget 1 \
    --cache-dir "$copy/cache" -o "$copy/out"
[[ -s $copy/out/run.json ]] || die "scout_batch wrote no run.json"
