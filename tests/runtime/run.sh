#!/usr/bin/env bash
# libscout_run as a program that links it gets it: what it exports and needs, from C and C++, shared and static, installed; and the
# example with a table that was measured here. Usage: tests/runtime/run.sh [BUILD]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${1:-out/build/release-gcc}
passed=0 failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

check() { # WHAT COMMAND…
    local what=$1
    shift
    if "$@" >"$scratch/said.txt" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $what"
        head -n 30 "$scratch/said.txt" | sed 's/^/    /'
    fi
}
says() { grep -qE -- "$1" "$scratch/launched.txt"; }

make --no-print-directory -s runtime bin/scout_batch bin/analyze BUILD="$build" CUDA=no

# ---- what it exports and needs ----
library=$build/lib/libscout_run
versioned() {
    ! nm -D --defined-only "$library.so" | grep -v ' A SCOUT_RUN_1$' | grep -vE ' T scout_(run|pack_weight)[a-z_]*@@SCOUT_RUN_1$'
}
needs() { ! readelf -d "$library.so" | grep NEEDED | grep -vE '\[lib(c|m|dl|pthread|jansson|xxhash)\.so|\[ld-linux'; }
hidden() { ! nm -g --defined-only "$library.a" | grep -E ' [A-Z] ' | grep -vE ' T scout_(run|pack_weight)'; }
all_exported() { # every function of the header
    local name names=0
    while read -r name; do
        names=$((names + 1))
        nm -D --defined-only "$library.so" | grep " $name@@" >/dev/null || return 1
    done < <(sed -n 's/^SCOUT_RUN_API.*[ *]\(scout_[a-z_]*\)(.*/\1/p' runtime/scout_run.h)
    ((names > 20))
}
check "only scout_run_* and scout_pack_weight* leave the shared library, with a version" versioned
check "nothing else has a name in the static one" hidden
check "it needs jansson and xxHash, and the C library" needs
check "its soname has its version" grep -qF "libscout_run.so.1]" <(readelf -d "$library.so")
check "all that the header declares is there" all_exported

# ---- installed ----
check "make install" make --no-print-directory -s BUILD="$build" CUDA=no DESTDIR="$scratch/staged" PREFIX=/usr install-runtime
export PKG_CONFIG_PATH=$scratch/staged/usr/lib/pkgconfig LD_LIBRARY_PATH=$scratch/staged/usr/lib
read -r -a flags <<<"$(pkg-config --cflags --libs scout_run)"
read -r -a static <<<"$(pkg-config --cflags --libs --static scout_run)"
printf '#include <runtime/scout_run.h>\nint main(void) { scout_run *run; return scout_run_open(&run, 0, 0) != SCOUT_RUN_OK; }\n' \
    >"$scratch/alone.c"
cp "$scratch/alone.c" "$scratch/alone.cc"
check "C" gcc -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Werror -o "$scratch/alone" "$scratch/alone.c" "${flags[@]}"
check "C runs" "$scratch/alone"
check "C++" g++ -std=c++17 -Wall -Wextra -Wpedantic -Wold-style-cast -Werror -o "$scratch/alone" "$scratch/alone.cc" "${flags[@]}"
check "C++ runs" "$scratch/alone"
rm "$scratch"/staged/usr/lib/libscout_run.so* "$scratch"/staged/usr/lib/libscout_dispatch.so*
check "the static one" gcc -std=c11 -o "$scratch/alone" "$scratch/alone.c" "${static[@]}"
check "the static one runs" "$scratch/alone"
check "make install again" make --no-print-directory -s BUILD="$build" CUDA=no DESTDIR="$scratch/staged" PREFIX=/usr install-runtime

# ---- the example, with a table that was measured here ----
cp -r docs/examples/runtime "$scratch/example"
rm -rf "$scratch/example/build"
check "the example builds out of tree" make -s -C "$scratch/example"
measured() {
    bin/scout_batch --op gemm --shape 64,256,512 --precision fp32 --device cpu --budget 5s -o "$scratch/product" --no-cache &&
        bin/analyze dispatch "$scratch/product" -o "$scratch/table.json"
}
check "a product is measured" measured
launch() { "$scratch/example/build/launch" "$scratch/table.json" "$1" >"$scratch/launched.txt" 2>&1; }
check "it is launched" launch 64
check "as the table says" says '^launches: 1 as listed, 0 not listed, 0 refused, 0 on a plain weight$'
check "another one is launched" launch 65
check "by the default" says '^launches: 0 as listed, 1 not listed, 0 refused, 0 on a plain weight$'
check "which is said" says 'gemm;shape=65,256,512;.*: the table does not have it: the default runs'

echo "$passed passed, $failed failed"
((failed == 0))
