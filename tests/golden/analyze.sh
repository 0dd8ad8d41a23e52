#!/usr/bin/env bash
# Compares what analyze says of reports that an H200 wrote (tests/golden/reports), and what it exports of them, with what is
# stored, byte by byte, and moves every measurement inside its interval: no verdict changes but of rows that are borderline.
# Usage: tests/golden/analyze.sh [--update] ANALYZE
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
update=0
if [[ ${1:-} == --update ]]; then
    update=1
    shift
fi
analyze=$(realpath "${1:?usage: tests/golden/analyze.sh [--update] ANALYZE}")
passed=0 failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cd tests/golden/reports
for model in */; do
    model=${model%/}
    for kind in summary.text summary.json export.tunableop export.inductor export.triton; do
        stored=../$model.$kind format=${kind#*.} code=0
        words=("$model" --format "$format")
        if [[ $kind == export.* ]]; then words=(export "$format" "$model"); fi
        if [[ $format == tunableop ]]; then words+=(--consumer 2.15.0); fi
        "$analyze" "${words[@]}" >"$scratch/said" 2>&1 </dev/null || code=$?
        echo "exit $code" >>"$scratch/said"
        if ((update)); then cp "$scratch/said" "$stored"; fi
        if cmp -s "$stored" "$scratch/said"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAILED $model: its $kind differs (make golden-update stores the new one):"
            diff -u "$stored" "$scratch/said" | sed -n 1,40p || true
        fi
    done
    if python3 ../moved_reports.py "$analyze" "$model" "$scratch/moved"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
