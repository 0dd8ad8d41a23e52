#!/usr/bin/env bash
# Parts of tests/gpu/run.sh on all cards of a machine, in one call:
#     tests/gpu/cards.sh [CARD:]TASK…
# TASK: PART[+PART…][,NAME=VALUE…], with what run.sh is told besides; @LIST is one list of part models, without fusions.
# Those with a card are done there one after the other, the others then by whichever card is free. An example:
#     tests/gpu/cards.sh 0:checks 0:targets "1:models,MODEL=llama2_7b@b1_s2048 bert_base@b8_s128" \
#         @vit_base@b1 @vit_base@b8 sanitizer,SANITIZE=memcheck sanitizer,SANITIZE=racecheck
# A card's tasks share one cache. Nothing begins in the last 45 of END seconds (540); RESULTS (out/gpu) gets a folder per
# task, and OUT, where it is set, an archive of them. CARDS: how many (all there are). BIN, CHECKS, MODELS, … are run.sh's.
# Tasks that check kernels or run sanitizers keep the processor busy: what is measured beside them settles later.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
if (($# == 0)) || [[ $1 == --help ]]; then
    sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 2
fi
END=${END:-540} RESULTS=${RESULTS:-out/gpu}
CARDS=${CARDS:-$(nvidia-smi --list-gpus | wc -l)}
tasks=("$@")
for task; do
    if [[ $task =~ ^([0-9]+): ]] && ((BASH_REMATCH[1] >= CARDS)); then
        echo "$task: there are $CARDS cards, from 0 on" >&2
        exit 2
    fi
done
mkdir -p "$RESULTS"
rm -rf "$RESULTS"/task_*

run_task() { # CARD NUMBER TASK
    local card=$1 task=$3 started=$SECONDS folder settings parts words code=0
    if [[ $task =~ ^[0-9]+:(.*) ]]; then task=${BASH_REMATCH[1]}; fi
    IFS=, read -r -a words <<<"$task"
    IFS=+ read -r -a parts <<<"${words[0]}"
    settings=("${words[@]:1}")
    if [[ ${parts[0]} == @* ]]; then parts=(models) settings+=("MODEL=${words[0]#@}" "FUSIONS=none"); fi
    folder=$RESULTS/task_$2
    echo "$3" >"$folder/task.txt"
    if [[ -d $RESULTS/cache$card ]]; then mv "$RESULTS/cache$card" "$folder/cache"; fi
    env -u CACHE -u DEVICES LIMIT=$((END - SECONDS)) "${settings[@]}" RESULTS="$folder" CUDA_VISIBLE_DEVICES="$card" \
        DEVICE=cuda:0 OUT= tests/gpu/run.sh "${parts[@]}" >"$folder/said.txt" 2>&1 || code=$?
    if [[ -d $folder/cache ]]; then mv "$folder/cache" "$RESULTS/cache$card"; fi
    echo "$code" >"$folder/code"
    echo "== card $card, $task: $((SECONDS - started)) s, ended at $SECONDS; $(tail -n 1 "$folder/said.txt")"
    grep -hE '^(FAILED|SKIPPED) ' "$folder/said.txt" | grep -v ': not reached$' | sort -u | cut -c 1-250
}
run_card() { # CARD
    local k
    for k in "${!tasks[@]}"; do
        if [[ ${tasks[k]} == "$1":* ]] && ((END - SECONDS > 45)) && mkdir "$RESULTS/task_$k"; then
            run_task "$1" "$k" "${tasks[k]}"
        fi
    done
    for k in "${!tasks[@]}"; do
        if [[ ! ${tasks[k]} =~ ^[0-9]+: ]] && ((END - SECONDS > 45)) && mkdir "$RESULTS/task_$k" 2>/dev/null; then
            run_task "$1" "$k" "${tasks[k]}"
        fi
    done
}

for ((card = 0; card < CARDS; card++)); do run_card "$card" & done
wait
failed=0
for k in "${!tasks[@]}"; do
    if [[ ! -e $RESULTS/task_$k/code ]]; then echo "SKIPPED ${tasks[k]}: the $END s of this call were used up"; fi
    if [[ $(cat "$RESULTS/task_$k/code" 2>/dev/null) != 0 ]]; then failed=$((failed + 1)); fi
done
if [[ -n ${OUT:-} ]]; then tar czf "$OUT/cards.tar.gz" --exclude='cache*' --exclude='*.so' -C "$RESULTS" .; fi
echo "${#tasks[@]} tasks, $failed not passed"
((failed == 0))
