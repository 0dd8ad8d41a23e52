#!/usr/bin/env bash
# The crates of rust/ with every cargo that is here, offline: their own tests and examples. scout-dispatch is held against
# libscout_dispatch and a generated dispatch.h, scout-run against the header of libscout_run and what a table says.
# Usage: tests/rust/run.sh [BUILD]
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
        tail -n 40 "$scratch/said.txt" | sed 's/^/    /'
    fi
}

# Once each, though folders of programs are links to one another.
mapfile -t cargos < <(type -ap cargo | while read -r cargo; do echo "$(realpath "${cargo%/*}")/cargo"; done | sort -u)
if ((${#cargos[@]} == 0)); then
    echo "skipped: cargo is not installed"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi

make --no-print-directory -s dispatch-library runtime bin/scout_batch bin/analyze BUILD="$build" CUDA=no
python3 -B tests/bench/made_products.py "$scratch/made/reports" 10000
bin/analyze dispatch "$scratch/made" -o "$scratch/table.json" --header "$scratch/table.h" --prefix made >/dev/null
libs=$PWD/out/build/rust/lib
mkdir -p "$libs"
gcc -std=c11 -O1 -Wall -Wextra -Werror -I. "-I$scratch" -c tests/rust/shim.c -o "$scratch/shim.o"
ar rcs "$libs/libscout_dispatch_shim.a" "$scratch/shim.o"
cp "$build/lib/libscout_dispatch.a" "$libs/"
python3 -B tests/cli/made_tables.py "$scratch/plain" plain
bin/analyze dispatch "$scratch/plain" -o "$scratch/plain.json" >/dev/null

# What the header says of its structures, as the crate tells its own; and a table of this processor, whose entry runs
# packed whatever was measured, as do others beside it.
python3 -B tests/rust/layout.py runtime/scout_run.h rust/scout-run/src/ffi.rs >"$scratch/layout.c"
gcc -std=c11 -I. -o "$scratch/layout" "$scratch/layout.c"
SCOUT_RUN_LAYOUT=$("$scratch/layout")
bin/scout_batch --op gemm --shape 64,256,512 --set layout=nt --precision fp32 --device cpu --budget 2 -o "$scratch/measured" >/dev/null 2>&1 || true
bin/analyze dispatch "$scratch/measured" -o "$scratch/run.json" >/dev/null
python3 -B - "$scratch/run.json" <<'CODE'
import json, sys
table = json.load(open(sys.argv[1]))
(entry,) = table["entries"]
library = next(l for l in table["device"]["libraries"] if l["name"] == "onednn")
entry.update(choice="tuned", implementation="onednn", variant="weight=packed", library=library, expected_us=1.0, default_us=2.0)
table["entries"] += [dict(entry, key=entry["key"].replace("=64,", f"={m},"), operation=f"of {m}") for m in range(65, 83)]
json.dump(table, open(sys.argv[1], "w"))
CODE
export SCOUT_RUN_LAYOUT SCOUT_RUN_TABLE=$scratch/run.json SCOUT_RUN_LIB_DIR=$PWD/$build/lib LD_LIBRARY_PATH=$PWD/$build/lib
export SCOUT_TABLE=$scratch/table.json CARGO_NET_OFFLINE=true CARGO_BUILD_JOBS=1
if [[ -d out/fuzz/dispatch/corpus ]]; then export SCOUT_CORPUS=$PWD/out/fuzz/dispatch/corpus; fi
quiet() { "$@" && [[ ! -s $scratch/said.txt ]]; }
example() { # DRIVER M…
    env DEVICE="Test GPU" CUBLASLT=13.1.0 DRIVER="$1" "$CARGO_TARGET_DIR/debug/examples/lookup" "$scratch/plain.json" "${@:2}"
}
says() { grep -qF -- "$1" <<<"$told"; }
for cargo in "${cargos[@]}"; do
    folder=${cargo%/*}
    # the rustc beside it
    with() { PATH=$folder:$PATH "$cargo" "$1" --quiet --offline --locked --manifest-path "rust/$crate/Cargo.toml" "${@:2}"; }
    crate=scout-dispatch
    version=$("$cargo" --version)
    export CARGO_TARGET_DIR=$PWD/out/build/rust/${version//[^0-9A-Za-z.]/_}
    export RUSTFLAGS="-D warnings" RUSTDOCFLAGS="-D warnings"
    check "$version: its own tests" with test --release
    check "$version: its documentation" with doc
    check "$version: the example builds" quiet with build --examples
    told=$(example 580.1 64 96 256 3000 2>&1) || true
    check "$version: proven" says "   64 rows: lib algo=7, 90.00 us instead of 100.00; 64 bytes for cublasLtMatmulAlgoCheck; its weight is transposed"
    check "$version: between" says "   96 rows: not measured, but between two that agree on lib: 90.00 to 91.00 us"
    check "$version: default" says "  256 rows: lib as it is by default, 100.00 us: nothing was proven to be faster"
    check "$version: unknown" says " 3000 rows: not measured: the default"
    code=0
    told=$(example 570.1 64 2>&1) || code=$?
    check "$version: another branch of the driver is refused" test "$code" = 3
    check "$version: both are named" says "driver 580.1, here it is 570.1: it is not used"
    RUSTFLAGS="-D warnings -L native=$libs"
    check "$version: the same as C" with test --release --features against-c --test against_c -- --nocapture
    grep -E ' (between two|bad tables)' "$scratch/said.txt" || true
    crate=scout-run RUSTFLAGS="-D warnings"
    check "$version: scout-run: its own tests" with test --release
    check "$version: scout-run: its documentation" with doc
    check "$version: scout-run: the example builds" quiet with build --examples
    told=$("$CARGO_TARGET_DIR/debug/examples/layer" "$SCOUT_RUN_TABLE" 512 256 64 2>&1) || true
    check "$version: scout-run: the example launches" says "   64 rows: the default, onednn"
    check "$version: scout-run: and says why" says "gemm;shape=64,256,512;layout=nn;type=fp32;weight=fp32;weight_side=b"
    missing() { ! env -u SCOUT_RUN_LIB_DIR PKG_CONFIG=false CARGO_TARGET_DIR="$scratch/target" PATH="$folder:$PATH" "$cargo" build --offline \
        --manifest-path rust/scout-run/Cargo.toml && grep -q 'then set PKG_CONFIG_PATH' "$scratch/said.txt"; }
    check "$version: scout-run: without the library it says what to install" missing
done
echo "$passed passed, $failed failed"
((failed == 0))
