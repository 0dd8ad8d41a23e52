#!/usr/bin/env bash
# Fuzzes the programs' readers under the sanitizers: extract_ops from a corpus of small valid models for half of the time,
# then what scout_batch and what analyze read, and dispatch tables. What crashes them is kept under out/fuzz.
# Usage: tests/fuzz/run.sh [SECONDS [JOBS]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seconds=${1:-60}
jobs=${2:-1}
here=tests/fuzz
out=out/fuzz
programs=${BUILD:-out/build/fuzz-clang}/fuzz
passed=0 failed=0

make --no-print-directory -j"$(nproc)" MODE=fuzz CC=clang fuzzers
mkdir -p "$out/corpus" "$out/found" "$out/scout/corpus" "$out/scout/seeds" "$out/scout/found"
mkdir -p "$out/analyze/corpus" "$out/analyze/seeds" "$out/analyze/found"
mkdir -p "$out/dispatch/corpus" "$out/dispatch/seeds" "$out/dispatch/found"
python3 -B tests/hostile/make.py --seeds "$out/seeds"
python3 -B "$here/dictionary.py" >"$out/onnx.dict"

# The models and what is made of them are written where no disk is waited for, and go away whatever happens.
scratch=$(mktemp -d -p "$(if [[ -w /dev/shm ]]; then echo /dev/shm; else echo "${TMPDIR:-/tmp}"; fi)")
trap 'rm -rf "$scratch"' EXIT
export TMPDIR=$scratch
: >"$scratch/begun"

# Each kind of file that scout_batch reads, with the byte in front that says which it is.
seed() { # KIND NAME   from standard input
    { printf '%b' "\\x0$1" && cat; } >"$out/scout/seeds/$2"
}
for file in tests/golden/*.ops.json tests/gpu/*.json; do
    name=${file##*/}
    seed 0 "$name" < <(python3 -c 'import json, sys; json.dump(json.load(sys.stdin), sys.stdout, separators=(",", ":"))' <"$file")
done
seed 0 short <<<'{"a": {"op": "gemm", "shape": [4, 8, 16], "sparsity": 0.875}, "b": {"op": "layernorm", "shape": [64]}}'
seed 1 ceilings <<<'{"schema": "ceiling-scout/ceilings/1", "instance": "x", "load": "sustained", "launch": "graph", "taken": "2026-01-01T00:00:00Z", "launch_us": 1, "peaks": [], "bandwidths": [{"bytes": 65536, "read_fraction": 1, "resident": false, "tbps": 1, "rel_ci95": 0}]}'
for file in tests/counters/*; do seed 4 "${file##*/}" <"$file"; done
for file in tests/analyze/seeds/*.json; do seed 5 "${file##*/}" <"$file"; done
seed 3 cached <<<'{"a":[1,2.5,-3e9,true,null,"t\\n"],"b":{}}'

# What is no number is found by chance hardly ever: reports of all sorts, whole, in pairs, as plain JSON, and in a folder.
story=$(python3 - tests/golden/reports/mlp_sparse/run.json <<'EOF'
import json, sys

run = json.load(open(sys.argv[1]))
for device in run["devices"]:
    del device["ceilings"]["bandwidths"][6:]
print(json.dumps(run, separators=(",", ":")))
EOF
)
named=$(python3 -c 'import glob, json
ids = [json.load(open(path))["operation"] for path in sorted(glob.glob("tests/analyze/seeds/*.json"))]
print(json.dumps({"schema": "ceiling-scout/ops/1", "ops": [{"id": id, "count": 4, "nodes": ["/a", "/b"], "weights": [{"name": "w"}, None]} for id in ids]}))')
for file in tests/analyze/seeds/*.json; do
    name=${file##*/}
    { printf '\001' && cat "$file"; } >"$out/analyze/seeds/$name"
    { printf '\001' && cat "$file" && printf '\000' && cat tests/analyze/seeds/plain.json; } >"$out/analyze/seeds/two_$name"
    { printf '\001' && cat "$file" && printf '\000' && cat "$file"; } >"$out/analyze/seeds/twice_$name"
    { printf '\000' && cat "$file"; } >"$out/analyze/seeds/json_$name"
    { printf '\002%s\000%s\000' "$story" "$named" && cat "$file"; } >"$out/analyze/seeds/folder_$name"
done

# Tables with and without what may be left out, on one line; with a newline behind it a device is compared.
for file in tests/dispatch/seeds/*.json; do
    tr -d '\n' <"$file" >"$out/dispatch/seeds/${file##*/}"
    cp "$file" "$out/dispatch/seeds/compared_${file##*/}"
done
cp tests/dispatch/seeds/*.sig tests/dispatch/seeds/*.pub "$out/dispatch/seeds/"

# A log's last lines may be all that comes back from another machine: a short input, what was wrong with it, and where.
say_why() { # FOLDER
    local input
    input=$(find "$1/found" -type f -newer "$scratch/begun" -print -quit)
    if [[ -n $input ]]; then gzip -9c "$input" | base64 -w 200 | sed -n 1,4p | sed 's/^/FAILED input.gz in base64: /'; fi
    grep -E 'ERROR|runtime error' "$1/log" | sed -n 1,2p | sed 's/^/FAILED: /' || true
    sed -nE '/fuzzer::/d; s/^ +(#[0-9]+) 0x[0-9a-f]+ in ([^ (]+).*[/(]([^/]+)$/FAILED at \1 \2 \3/p' "$1/log" | sed -n 1,4p
}

# What once crashed is tried again first. -timeout is per input; -rss_limit_mb covers the fuzzer's own memory too.
# Freed memory that the sanitizer holds back counts as well, and grows with the corpus: a part of the usual will do.
export ASAN_OPTIONS=quarantine_size_mb=64
fuzz() { # PROGRAM FOLDER SECONDS OPTION…
    local program=$1 folder=$2 time=$3 code=0 options
    shift 3
    options=("$folder/corpus" "$folder/seeds" "$folder/found" "-artifact_prefix=$folder/found/" -rss_limit_mb=512 -timeout=5
        -max_len=16384 -print_final_stats=1 -close_fd_mask=3 "-max_total_time=$time" "$@")
    if ((jobs > 1)); then options+=("-fork=$jobs"); fi
    "$programs/$program" "${options[@]}" 2>"$folder/log" || code=$?
    tail -n 8 "$folder/log"
    if ((code != 0)); then
        say_why "$folder"
        echo "FAILED $program with $code; the inputs are in $folder/found, all that was said in $folder/log"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
}
fuzz fuzz_extract "$out" $((seconds / 2)) "-dict=$out/onnx.dict"
fuzz fuzz_scout "$out/scout" $((seconds / 6))
fuzz fuzz_dispatch "$out/dispatch" $((seconds / 6))
fuzz fuzz_analyze "$out/analyze" $((seconds - seconds / 2 - 2 * (seconds / 6)))
echo "$passed passed, $failed failed"
((failed == 0))
