#!/usr/bin/env bash
# Fuzzes extract_ops under the sanitizers from a corpus of small valid models. What crashes it is kept under out/fuzz.
# Usage: tests/fuzz/run.sh [SECONDS [JOBS]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seconds=${1:-60}
jobs=${2:-1}
here=tests/fuzz
out=out/fuzz
program=${BUILD:-out/build/fuzz-clang}/fuzz/fuzz_extract

make --no-print-directory -j"$(nproc)" MODE=fuzz CC=clang fuzzers
mkdir -p "$out/corpus" "$out/found"
python3 -B tests/hostile/make.py --seeds "$out/seeds"
python3 -B "$here/dictionary.py" >"$out/onnx.dict"

# The models and what is made of them are written where no disk is waited for, and go away whatever happens.
scratch=$(mktemp -d -p "$(if [[ -w /dev/shm ]]; then echo /dev/shm; else echo "${TMPDIR:-/tmp}"; fi)")
trap 'rm -rf "$scratch"' EXIT
export TMPDIR=$scratch

# What once crashed is tried again first. -timeout is per input; -rss_limit_mb covers the fuzzer's own memory too.
options=("$out/corpus" "$out/seeds" "$out/found" "-dict=$out/onnx.dict" "-artifact_prefix=$out/found/" -rss_limit_mb=512
    -timeout=5 -max_len=16384 -print_final_stats=1 -close_fd_mask=3 "-max_total_time=$seconds")
if ((jobs > 1)); then options+=("-fork=$jobs"); fi
code=0
"$program" "${options[@]}" 2>"$out/log" || code=$?
tail -n 12 "$out/log"
if ((code != 0)); then
    echo "FAILED with $code; the inputs are in $out/found, all that was said in $out/log"
    echo "0 passed, 1 failed"
    exit 1
fi
echo "1 passed, 0 failed"
