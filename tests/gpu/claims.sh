#!/usr/bin/env bash
# What the documents claim that this project started from (claims.json), held against scout_batch on a GPU:
#     tests/gpu/claims.sh RESULTS           measures, and says what came out; RESULTS/claims.md is the table
#     tests/gpu/claims.sh --write RESULTS   prints that table: > docs/claims.md
#     tests/gpu/claims.sh --write           the same without figures
#     tests/gpu/claims.sh --list            what would be run, and what decides each claim; needs no GPU
# All calls share CACHE_DIR (RESULTS/cache), so ceilings are measured once. They end after LIMIT seconds (235) together;
# claims whose call was not reached are open. BIN (bin) holds scout_batch and scout_cuda.so. DEVICE: cuda:0.
# TORCH_LIBRARIES: where the libraries lie; those of PyTorch when it is not set, else the search order's.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
claims=(python3 tests/gpu/claims.py)
BIN=${BIN:-bin} DEVICE=${DEVICE:-cuda:0} LIMIT=${LIMIT:-235}

case ${1:-} in
    --list)
        "${claims[@]}" --check || exit 3
        "${claims[@]}" --calls | sed "s|^\([^\t]*\)\t|\1: scout_batch --device $DEVICE |"
        exec "${claims[@]}" --list
        ;;
    --write) exec "${claims[@]}" "$@" ;;
    -* | "")
        sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
        exit 2
        ;;
esac
results=$1
if [[ ! -x $BIN/scout_batch ]]; then
    echo "$BIN/scout_batch is not there: build it first (make STATIC=1 all), or say where with BIN=" >&2
    exit 4
fi
"${claims[@]}" --check || exit 3
library=() failed=0
if [[ ! -v TORCH_LIBRARIES ]]; then TORCH_LIBRARIES=$(python3 tests/gpu/torch_libraries.py 2>/dev/null); fi
if [[ -n $TORCH_LIBRARIES ]]; then library=(--library-path "$TORCH_LIBRARIES"); fi
mkdir -p "$results"

while IFS=$'\t' read -r name arguments; do
    left=$((LIMIT - SECONDS)) start=$(date +%s.%N) code=0
    rm -rf "${results:?}/$name" "$results/$name.seconds" # nothing of an earlier run
    if ((left < 5)); then
        echo "FAILED $name: the $LIMIT s are used up"
        failed=$((failed + 1))
        continue
    fi
    read -r -a words <<<"$arguments"
    timeout --kill-after=5 "$left" "$BIN/scout_batch" "${words[@]}" --device "$DEVICE" "${library[@]}" \
        --cache-dir "${CACHE_DIR:-$results/cache}" -o "$results/$name" \
        >"$results/$name.txt" 2>"$results/$name.err" </dev/null || code=$?
    echo "$(date +%s.%N) $start $code" | awk '{print $1 - $2, $3}' >"$results/$name.seconds"
    echo "$name: $(cut -d. -f1 "$results/$name.seconds") s, exit $code"
    if ((code > 1 && code != 5)); then # 1 is "done, but", 5 "revert"
        echo "FAILED $name: exit $code: $(tail -n 1 "$results/$name.err" | cut -c 1-300)"
        failed=$((failed + 1))
    fi
done < <("${claims[@]}" --calls)
"${claims[@]}" --write "$results" >"$results/claims.md" || failed=$((failed + 1))
cat "$results/claims.md"
((failed == 0))
