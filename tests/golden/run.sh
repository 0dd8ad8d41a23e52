#!/usr/bin/env bash
# Compares what extract_ops says of every model in models/ with the stored ops.json, byte by byte; where the stored file
# is meant to change, --update writes it anew and the difference is read in review. Each line of cases.txt is one case.
# Usage: tests/golden/run.sh [--update] EXTRACT_OPS
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
update=0
if [[ ${1:-} == --update ]]; then
    update=1
    shift
fi
extract=${1:?usage: tests/golden/run.sh [--update] EXTRACT_OPS}
passed=0 failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

check() { # STORED MADE
    if ((update)); then
        if ! cmp -s "$2" "$1"; then
            cp "$2" "$1"
            echo "updated $1"
        fi
        passed=$((passed + 1))
    elif cmp -s "$1" "$2"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $1 differs (make golden-update stores the new one):"
        diff -u "$1" "$2" | sed -n 1,40p || true
    fi
}

while read -r name model options; do
    if [[ -z $name || $name == \#* ]]; then continue; fi
    code=0
    # shellcheck disable=SC2086 # options are several words
    "$extract" "models/$model.onnx" -o "$scratch/ops.json" --tensors "$scratch/tensors.json" --quiet $options </dev/null \
        2>"$scratch/stderr" || code=$?
    printf '%d\n' "$code" >"$scratch/said.txt"
    cat "$scratch/stderr" >>"$scratch/said.txt"
    if ! python3 -B tests/taken.py "$scratch/ops.json" >"$scratch/refusal"; then
        failed=$((failed + 1))
        echo "FAILED $name: $(<"$scratch/refusal")"
    fi
    for file in ops.json tensors.json said.txt; do
        if [[ ! -e $scratch/$file ]]; then
            failed=$((failed + 1))
            echo "FAILED $name: no $file"
            sed 's/^/    /' "$scratch/said.txt"
            continue
        fi
        check "tests/golden/$name.$file" "$scratch/$file"
    done
    rm -rf "${scratch:?}"/*
done <tests/golden/cases.txt

for model in models/*.onnx; do
    model=${model##*/}
    if ! grep -qE "^[^#]*\b${model%.onnx}\b" tests/golden/cases.txt; then
        failed=$((failed + 1))
        echo "FAILED $model has no case in tests/golden/cases.txt"
    fi
done
echo "$passed passed, $failed failed"
((failed == 0))
