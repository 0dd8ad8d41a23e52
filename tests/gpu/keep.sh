#!/usr/bin/env bash
# Keeps what tests/gpu/run.sh left, as the programs wrote it: tests/gpu/keep.sh RESULTS [FOLDER]
# RESULTS: an unpacked reports.tar.gz; FOLDER: docs/results/h200. Parts that did not run leave what is kept of them alone.
set -euo pipefail
from=${1:?RESULTS, an unpacked reports.tar.gz}
to=${2:-$(dirname "${BASH_SOURCE[0]}")/../../docs/results/h200}

keep() { # FROM TO
    if [[ -s $from/$1 ]]; then cp "$from/$1" "$to/$2"; fi
}
ran() { grep -qE "^--- $1\$" "$from/log.txt"; } # by the last call: its folder may hold what others have left
if ran sustained; then keep summary.txt figures.txt; fi
if ran repeat; then # what was said of these parts alone: the call may have gone on with others
    awk 'NR == 1 || /^--- /{kept = NR == 1 || $2 ~ /^(repeat|agree|faults|trace)$/} kept' "$from/log.txt" >"$to/agreement.txt"
fi
if ran precisions; then # the last of its calls knows all; each says the audit of its own
    {
        grep -vE '^ +audit' "$from/precisions/fp32.txt"
        awk '/^--- /{kept = $2 == "precisions"} kept && /^ +audit|^(PASSED|FAILED)/' "$from/log.txt"
    } >"$to/ceilings_precisions.txt"
fi
keep sustained/fp8.txt ceilings_sustained.txt # the last of its calls knows all precisions
keep sustained/fp8.json ceilings_sustained.json
keep burst/fp8.txt ceilings_burst.txt
keep sweep/sweep.txt k_sweep.txt
keep stream/stream.txt gemm_stream.txt
keep stream/bytes.txt gemm_stream_bytes.txt
keep llama/without.txt llama2_7b_gemms.txt
keep llama/with.txt llama2_7b_gemms_cached.txt
for run in 1 2 3 4 5; do keep "repeat/run_$run.txt" "repeat_$run.txt"; done
keep agree/torch.txt agree.txt
keep quick/quick.txt quick.txt
keep allocations/repeat_beside.txt repeat_beside.txt
keep peers/peers.txt peers.txt
keep runtime/runtime.txt runtime.txt
keep claims/results/claims.md claims.md
if ran zoo; then
    mkdir -p "$to/zoo"
    keep zoo/on_0/zoo/digest.md zoo/digest.md
    keep zoo/on_0/zoo/index.html zoo/index.html
    keep zoo/on_0/zoo/index.json zoo/index.json
    keep zoo/on_0/history.csv zoo/history.csv
    # of both nights, where the folder of another call's has been put beside this one's
    python3 "$(dirname "${BASH_SOURCE[0]}")/judge.py" zoo "$from/zoo" >"$to/zoo/nights.txt"
fi
if ran whole; then
    for path in "$from"/whole/*@*.json; do
        name=${path##*/} name=${name%.json}
        printf '%s\n' "$name" && cat "$from/whole/$name.txt"
    done >"$to/whole.txt"
fi
judged() { # FROM TO WHAT: with the verdicts on it, as one call may have measured a part of a part
    if [[ ! -s $from/$1 ]] || ! grep -qE "^(PASSED|FAILED|SKIPPED) $3" "$from/log.txt"; then return; fi
    mkdir -p "$(dirname "$to/$2")"
    { cat "$from/$1" && grep -hE "^(PASSED|FAILED|SKIPPED) $3" "$from/log.txt" | sort -u; } >"$to/$2" || true
}
for path in "$from"/models/*@*.txt; do
    name=${path##*/} name=${name%.txt}
    judged "models/$name.txt" "models/$name.txt" "models $name:"
done
for path in "$from"/end_to_end/torch_*@*.txt; do
    name=${path##*/torch_} name=${name%.txt}
    judged "end_to_end/torch_$name.txt" "end_to_end/$name.txt" "end_to_end $name:"
done
judged agree_kinds/torch.txt agree_kinds.txt "agree_kinds "
judged epilogue/torch.txt epilogue.txt "epilogue"
if [[ -d $from/custom ]]; then
    cat "$from"/custom/skinny_*.txt "$from/custom/ncu.txt" >"$to/custom_kernel.txt"
    grep -hE '^(PASSED|FAILED) custom ' "$from/log.txt" | sort -u >>"$to/custom_kernel.txt" || true
fi
for tool in memcheck racecheck synccheck initcheck; do # what was launched, and what came of it
    if ! grep -qE "^(PASSED|FAILED) sanitizer $tool:" "$from/log.txt"; then continue; fi
    {
        for path in "$from"/sanitizer/"$tool"-*.txt; do
            name=${path##*/"$tool"-}
            printf '%-24s %s\n' "${name%.txt}" "$(grep -cE '^launched ' "$path") launches; $(grep -E 'SUMMARY' "$path" | tail -n 1)"
        done
        grep -E "^(PASSED|FAILED) sanitizer $tool:" "$from/log.txt"
    } >"$to/sanitizer_$tool.txt"
done
for path in "$from"/targets/*_targets.txt; do keep "targets/${path##*/}" "${path##*/}"; done
if ran checks; then grep -E '^(PASSED|FAILED) checks: ' "$from/log.txt" >"$to/checks.txt" || true; fi
if ran kinds; then grep -E '^(PASSED|FAILED) kinds ' "$from/log.txt" >"$to/kinds.txt" || true; fi
keep faults/with.txt faults.txt
keep trace/clock_trace.txt clock_trace.txt
keep sparse/mlp.txt mlp_sparse.txt
for block in 64 128; do keep "sparse/sweep_$block.txt" "sparsity_sweep_$block.txt"; done
