#!/usr/bin/env bash
# One model's folder: runs the steps whose inputs have changed since they last ran, goes on after a step that ends with 1,
# stops at anything worse, and ends with the worst code.
# Usage: scripts/profile.sh EXTRACT_OPS MODEL FOLDER [option of extract_ops]…
set -euo pipefail
if (($# < 3)); then
    echo "usage: ${0##*/} EXTRACT_OPS MODEL FOLDER [option]..." >&2
    exit 2
fi
extract=$1 model=$2 folder=$3
shift 3
worst=0

# What a result depends on: the command, the program's bytes, and size and time of the model and of the external files that
# the result itself names (sizes of tensors can be read from those).
fingerprint() {
    local result=$1 file
    shift
    printf '%s\n' "$*"
    cksum <"$extract"
    stat -L -c '%n %s %y' "$model" 2>/dev/null || true
    if [[ ! -e $result ]]; then return; fi
    { grep -oE '"file": *"[^"\\]*"' "$result" || true; } | sed 's/^"file": *"//; s/"$//' | sort -u | while read -r file; do
        stat -L -c '%n %s %y' "$(dirname "$model")/$file" 2>/dev/null || echo "$file is missing"
    done
}

run_step() { # NAME RESULT COMMAND…
    local name=$1 result=$2 code=0 stamp="$folder/.$1" want
    shift 2
    want=$(fingerprint "$result" "$@")
    if [[ -e $result && -e $stamp && "$(sed 1d "$stamp")" == "$want" ]]; then
        code=$(head -n 1 "$stamp")
        echo "$result is up to date"
    else
        rm -f "$stamp" "$result" # a result of something else must not stay beside a failure
        "$@" || code=$?
        if ((code <= 1)); then
            printf '%s\n%s\n' "$code" "$(fingerprint "$result" "$@")" >"$stamp"
            echo "wrote $result"
        fi
    fi
    if ((code > worst)); then worst=$code; fi
    if ((code > 1)); then
        echo "$name ended with $code" >&2
        exit "$worst"
    fi
}

mkdir -p "$folder"
run_step extract "$folder/ops.json" "$extract" "$model" -o "$folder/ops.json" "$@"
exit "$worst"
