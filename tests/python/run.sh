#!/usr/bin/env bash
# The Python package as its wheel gives it: installed into an empty environment, where the first example of its README runs;
# then its tests, with NumPy. With PyTorch too where SCOUT_TORCH names a Python that has it.
# Usage: tests/python/run.sh [BUILD]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${1:-out/build/release-gcc}
passed=0 failed=0 skipped=0
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
skip() {
    skipped=$((skipped + 1))
    echo "skipped: $1"
}

# ---- the wheel, of what is built: the same tree gives the same bytes ----
make --no-print-directory -s PROGRAMS= BUILD="$build" DESTDIR= PREFIX="$scratch/tree" install >/dev/null
wheel() { python3 -B python/make_wheel.py "$scratch/tree" "$1"; }
check "a wheel" wheel "$scratch/wheel"
check "a second wheel" wheel "$scratch/again"
check "both have the same bytes" cmp "$scratch"/wheel/*.whl "$scratch"/again/*.whl
if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    echo "skipped: Python has no venv"
    echo "$passed passed, $failed failed, 1 skipped"
    exit $((failed > 0))
fi

# ---- an empty environment ----
python3 -m venv "$scratch/empty"
check "pip installs it without a network" "$scratch/empty/bin/pip" --disable-pip-version-check install --no-index "$scratch"/wheel/*.whl
alone() { env -i "PATH=/usr/bin:/bin" "XDG_CACHE_HOME=$scratch/cache" "$@"; } # as a user that has nothing else of it
examples=$scratch/examples
mkdir "$examples"
awk -v to="$examples" '/^```python$/ { file = sprintf("%s/%02d.py", to, ++n); next } /^```$/ { file = ""; next } file { print > file }' \
    python/README.md
first() { (cd "$scratch" && alone "$scratch/empty/bin/python" "$examples/01.py"); }
check "the first example of the README runs there" first
check "no NumPy was there" test ! -e "$(echo "$scratch"/empty/lib/python3*/site-packages)/numpy"
check "and so does the command" alone "$scratch/empty/bin/ceiling-scout" --version
lost() { # a wheel of another platform: the package without what is built
    cp -R python/ceiling_scout "$scratch/bare"
    (cd "$scratch" && mkdir -p lone && mv bare lone/ceiling_scout &&
        alone python3 -B -c 'import sys; sys.path.insert(0, "lone")
import ceiling_scout
try:
    ceiling_scout.load("table.json")
except ceiling_scout.LibraryMissing as why:
    print(why)
else:
    sys.exit("no exception")') && grep -q "install the wheel of this platform" "$scratch/said.txt"
}
check "without its shared library it says what to install" lost

# ---- its tests ----
site=$(echo "$scratch"/empty/lib/python3*/site-packages)
make --no-print-directory -s scripted BUILD="$build"
python3 -B tests/bench/made_products.py "$scratch/made/reports" 10000
bin/analyze dispatch "$scratch/made" -o "$scratch/table.json" --header "$scratch/table.h" --prefix made >/dev/null
gcc -std=c11 -O1 -Wall -Wextra -Werror -fPIC -shared -I. "-I$scratch" -o "$scratch/shim.so" tests/rust/shim.c
export SCOUT_TABLE=$scratch/table.json SCOUT_SHIM=$scratch/shim.so SCOUT_SCRIPTED=$PWD/$build/scripted/device.so
export SCOUT_ANALYZE=$PWD/bin/analyze XDG_CACHE_HOME=$scratch/cache SCOUT_SITE=$site
tests_with() { # PYTHON   adds up what its tests say
    local code=0 said
    said=$(PYTHONPATH=$site "$1" -B tests/python/main.py 2>"$scratch/tests.txt") || code=$?
    if [[ $said =~ ([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped ]]; then
        passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2])) skipped=$((skipped + BASH_REMATCH[3]))
    else
        echo "FAILED the tests with $1 ended with $code"
        failed=$((failed + 1))
    fi
    grep -v ' passed, ' <<<"$said" || true
    if ((code != 0)); then sed 's/^/    /' "$scratch/tests.txt"; fi
}
python=out/venv/bin/python
if [[ ! -x $python ]]; then python=$(python3 -c 'import sys; print(sys.executable)'); fi # with its site
tests_with "$python"
if [[ -n ${SCOUT_TORCH:-} ]]; then
    tests_with "$SCOUT_TORCH"
    for model in decoder_step pruned_mlp transformer_block; do # whole models call by call, as tests/gpu/run.sh has them run
        bin/extract_ops "models/$model.onnx" -q --batch 2 --seq 8 -o "$scratch/$model.json" 2>/dev/null ||
            bin/extract_ops "models/$model.onnx" -q --batch 2 -o "$scratch/$model.json"
        check "$model: each occurrence is a call of PyTorch" "$SCOUT_TORCH" -B tests/gpu/end_to_end.py --shapes "$scratch/$model.json"
    done
fi

# ---- its types ----
if [[ -x out/venv/bin/mypy ]]; then
    check "mypy: its types" out/venv/bin/mypy --config-file python/mypy.ini --no-error-summary --cache-dir "$scratch/mypy" python/ceiling_scout
else
    skip "mypy is not installed"
fi
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
