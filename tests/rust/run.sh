#!/usr/bin/env bash
# rust/scout-dispatch with every cargo that is here, offline: its own tests and example, and held against libscout_dispatch
# and a generated dispatch.h. Usage: tests/rust/run.sh [BUILD]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${1:-out/build/release-gcc}
crate=rust/scout-dispatch
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

make --no-print-directory -s dispatch-library bin/analyze BUILD="$build"
python3 -B tests/bench/made_products.py "$scratch/made/reports" 10000
bin/analyze dispatch "$scratch/made" -o "$scratch/table.json" --header "$scratch/table.h" --prefix made >/dev/null
libs=$PWD/out/build/rust/lib
mkdir -p "$libs"
gcc -std=c11 -O1 -Wall -Wextra -Werror -I. "-I$scratch" -c tests/rust/shim.c -o "$scratch/shim.o"
ar rcs "$libs/libscout_dispatch_shim.a" "$scratch/shim.o"
cp "$build/lib/libscout_dispatch.a" "$libs/"
python3 -B tests/cli/made_tables.py "$scratch/plain" plain
bin/analyze dispatch "$scratch/plain" -o "$scratch/plain.json" >/dev/null

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
    with() { PATH=$folder:$PATH "$cargo" "$1" --quiet --offline --locked --manifest-path "$crate/Cargo.toml" "${@:2}"; }
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
done
echo "$passed passed, $failed failed"
((failed == 0))
