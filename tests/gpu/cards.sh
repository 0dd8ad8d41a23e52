#!/usr/bin/env bash
# Parts of tests/gpu/run.sh on all cards of a machine, in one call:
#     tests/gpu/cards.sh [CARD:]TASK…
# TASK: PART[+PART…][,NAME=VALUE…], with what run.sh is told besides; @LIST is one list of part models, without fusions.
# Those with a card are done there one after the other, the others then by whichever card is free. An example:
#     tests/gpu/cards.sh 0:checks 0:targets "1:models+end_to_end,MODEL=llama2_7b@b1_s2048 bert_base@b8_s128" \
#         @vit_base@b1 @vit_base@b8 sanitizer,SANITIZE=memcheck sanitizer,SANITIZE=racecheck
# A card's tasks share one cache. Nothing begins in the last 45 of END seconds (540); RESULTS (out/gpu) gets a folder per
# task, and OUT, where it is set, an archive of them. CARDS: how many (all there are). All else is run.sh's: BIN, CHECKS,
# MODELS, … Tasks that check kernels or run sanitizers keep the processor busy: what is measured beside them settles later.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
if (($# == 0)) || [[ $1 == --help ]]; then
    sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 2
fi
END=${END:-540} RESULTS=${RESULTS:-out/gpu}
CARDS=${CARDS:-$(nvidia-smi --list-gpus | wc -l)}
tasks=("$@")
rm -rf "$RESULTS/.taken"
mkdir -p "$RESULTS/.taken"

name_of() { # TASK   of its folder
    local name=${1//[ +,=:]/_}
    echo "${name//[^A-Za-z0-9_.@-]/}"
}
run_task() { # CARD TASK
    local card=$1 task=$2 started=$SECONDS folder settings parts words
    IFS=, read -r -a words <<<"$task"
    IFS=+ read -r -a parts <<<"${words[0]}"
    settings=("${words[@]:1}")
    if [[ ${parts[0]} == @* ]]; then parts=(models) settings+=("MODEL=${words[0]#@}" "FUSIONS=none"); fi
    folder=$RESULTS/${card}_$(name_of "$task")
    mkdir -p "$folder" "$RESULTS/cache$card"
    ln -sfn "../cache$card" "$folder/cache"
    env LIMIT=$((END - SECONDS)) "${settings[@]}" RESULTS="$folder" CUDA_VISIBLE_DEVICES="$card" DEVICE=cuda:0 OUT= \
        tests/gpu/run.sh "${parts[@]}" >"$folder/said.txt" 2>&1
    rm -f "$folder/cache"
    echo "== card $card, $task: $((SECONDS - started)) s, ended at $SECONDS; $(tail -n 1 "$folder/said.txt")"
    grep -E '^(FAILED|SKIPPED) ' "$folder/log.txt" | grep -v ': not reached$' | sort -u | cut -c 1-250
}
time_left() { ((END - SECONDS > 45)); }
run_card() { # CARD
    local task
    for task in "${tasks[@]}"; do
        if [[ $task == "$1":* ]] && time_left; then run_task "$1" "${task#*:}"; fi
    done
    for task in "${tasks[@]}"; do
        if [[ ! $task =~ ^[0-9]+: ]] && time_left && mkdir "$RESULTS/.taken/$(name_of "$task")" 2>/dev/null; then
            run_task "$1" "$task"
        fi
    done
}

for ((card = 0; card < CARDS; card++)); do run_card "$card" & done
wait
rm -rf "$RESULTS/.taken"
if [[ -n ${OUT:-} ]]; then tar czf "$OUT/cards.tar.gz" --exclude='cache*' --exclude='*.so' -C "$RESULTS" .; fi
! grep -qE '^FAILED ' "$RESULTS"/*/log.txt
