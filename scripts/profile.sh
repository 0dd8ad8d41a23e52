#!/usr/bin/env bash
# One model's folder: runs the steps whose inputs have changed since they last ran, goes on after a step that ends with 1,
# stops at anything worse, and ends with the worst code. The steps: extract_ops, then, where PROFILE_SCOUT names it,
# scout_batch, which is what PROFILE_DEVICE to PROFILE_MIN_TIME are for, then, where PROFILE_ANALYZE names
# it, analyze, for a dispatch table and for a summary, which is printed at the end, done again or not. Before these
# profile_ncu.sh reads the counters of the PROFILE_COUNTERS operations that take longest.
# What `make profile` and `ceiling-scout profile` do.
# With PROFILE_ASK=folder it prints the folder and does nothing. PROFILE_NAME takes the place of the model's file name.
# PROFILE_ON is where it measures, whatever the folder is called by PROFILE_DEVICE: a zoo that has several GPUs says it.
# PROFILE_NIGHT names a night: what was not measured in it is measured, and shared with others of it in PROFILE_CACHE.
# Usage: PROFILE_MODEL=FILE [PROFILE_NAME=NAME] [PROFILE_OUT=FOLDER] [PROFILE_BATCH=N] [PROFILE_SEQ=N] [PROFILE_DIM="NAME=N…"]
#        [PROFILE_PRECISION=P] [PROFILE_SCOUT=SCOUT_BATCH] [PROFILE_DEVICE=D] [PROFILE_REGIME=R] [PROFILE_BUDGET=SECONDS]
#        [PROFILE_QUICK=1] [PROFILE_COUNTERS=N] [PROFILE_TARGET_CI=X%] [PROFILE_MIN_TIME=SECONDS] [PROFILE_NO_WAIT=1]
#        [PROFILE_ANALYZE=ANALYZE] scripts/profile.sh EXTRACT_OPS [--dim=NAME=N | option of extract_ops]…
set -euo pipefail
umask go-w # what others could change would be taken for measured
model=${PROFILE_MODEL:-} out=${PROFILE_OUT:-out}
batch=${PROFILE_BATCH:-} seq=${PROFILE_SEQ:-} precision=${PROFILE_PRECISION:-}
scout=${PROFILE_SCOUT:-} analyze=${PROFILE_ANALYZE:-} device=${PROFILE_DEVICE:-} regime=${PROFILE_REGIME:-} budget=${PROFILE_BUDGET:-}
if (($# < 1)) || [[ -z $model ]]; then
    echo "usage: PROFILE_MODEL=FILE ${0##*/} EXTRACT_OPS [option]..." >&2
    exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [[ -n ${PROFILE_COUNTERS:-} && ! $PROFILE_COUNTERS =~ ^[1-9][0-9]?$ ]]; then
    echo "counters of how many operations? say PROFILE=top3, or another number below 100; not $PROFILE_COUNTERS" >&2
    exit 2
fi
extract=$1
shift
options=()
read -r -d '' -a dims <<<"${PROFILE_DIM:-}" || true
for option; do # a name may hold a blank there
    if [[ $option == --dim=* ]]; then dims+=("${option#--dim=}"); else options+=("$option"); fi
done
worst=0

# A name as a terminal may see it: what would drive that one, or turn the direction of text around, becomes a "?".
shown() {
    printf '%s' "$1" | LC_ALL=C sed -z -e 's/[\x01-\x1f\x7f]/?/g' -e 's/\xc2[\x80-\x9f]/?/g' -e 's/\xd8\x9c/?/g' \
        -e 's/\xe2\x80[\x8e\x8f\xa8-\xae]/?/g' -e 's/\xe2\x81[\xa6-\xa9]/?/g' -e 's/\xef\xbb\xbf/?/g'
}
say() { printf '%s\n' "$(shown "$1")"; }

# The options as a part of the folder's name: b and s, the precision, the device and regime, then what --dim binds, each
# after a comma. Different options never give one name: what divides is escaped inside of a part. The budget is no part:
# it says how long to work, not on what.
escaped() {
    local text=${1//%/%25}
    text=${text//,/%2C}
    printf '%s' "${text//\//%2F}"
}
name=$(basename -- "$model")
stem=${PROFILE_NAME:-${name%.*}}
case $stem in '' | . | ..) stem=model ;; esac
folder=$out/$stem
tag=
if [[ -n $batch ]]; then tag+=_b$(escaped "$batch") options+=("--batch=$batch"); fi
if [[ -n $seq ]]; then tag+=_s$(escaped "$seq") options+=("--seq=$seq"); fi
if [[ -n $precision ]]; then tag+=_$(escaped "$precision") options+=("--precision=$precision"); fi
measuring=()
if [[ -n $scout && -n $device ]]; then tag+=_$(escaped "$device"); fi
device=${PROFILE_ON:-$device}
if [[ -n $scout && -n $device ]]; then measuring+=("--device=$device"); fi
if [[ -n $scout && -n $regime ]]; then tag+=_$(escaped "$regime") measuring+=("--regime=$regime"); fi
if [[ -n $scout && -n $budget ]]; then measuring+=("--budget=$budget"); fi
if [[ -n $scout && -n ${PROFILE_QUICK:-} ]]; then measuring+=(--quick); fi
if [[ -n $scout && -n ${PROFILE_TARGET_CI:-} ]]; then measuring+=("--target-ci=$PROFILE_TARGET_CI"); fi
if [[ -n $scout && -n ${PROFILE_MIN_TIME:-} ]]; then measuring+=("--min-time=$PROFILE_MIN_TIME"); fi
for dim in ${dims[@]+"${dims[@]}"}; do tag+=,$(escaped "$dim") options+=("--dim=$dim"); done
if [[ -n $tag ]]; then folder+=@${tag#[_,]}; fi
case $model in -*) model=./$model ;; esac
case $folder in -*) folder=./$folder ;; esac
if [[ ${PROFILE_ASK:-} == folder ]]; then
    printf '%s\n' "$folder"
    exit 0
fi

# Two models of one name would take turns in one folder and throw away each other's results: the second is refused. A
# model that is gone has moved, most likely, and leaves its folder to its next path.
path=$(realpath -s -- "$model")
check_owner() {
    local owner
    if [[ ! -e $folder/.model ]]; then return; fi
    owner=$(<"$folder/.model")
    if [[ $owner != "$path" && -e $owner && ! $owner -ef $path ]]; then
        say "$folder holds the results of $owner; give $model another folder (--out; with make OUT=), or remove $folder" >&2
        exit 2
    fi
}
check_owner

# A slip in what the last step gets is told before anything is made.
if ((${#measuring[@]} > 0)) && [[ ! -e $folder ]]; then
    "$scout" --list-devices "${measuring[@]}" >/dev/null
fi

# What a result depends on: the program's bytes wherever it lies, what it is told, and size and time of the model and of
# the files of external data that the result says the model names, there or not: shapes can be read from those.
about() { stat -L -c '%n %s %y' -- "$1" 2>/dev/null || printf '%s is missing\n' "$1"; }
data_files() { # RESULT   each with a zero behind it
    local result=$1 name home store
    printf '%s\0' "$model"
    if [[ ! -e $result ]]; then return; fi
    home=$(dirname -- "$model")
    store=$(dirname -- "$(realpath -m -- "$model")") # where the model is a link, its data may lie beside the file
    sed -n '/^    "external": \[$/,/^    \]/s/^      "\(.*\)",\{0,1\}$/\1/p' "$result" |
        sed 's/\\\\/\x01/g; s/\\"/"/g; s/\x01/\\\\/g' | while IFS= read -r name; do
        name=$(LC_ALL=C.UTF-8 printf '%b' "$name" 2>/dev/null) # which knows JSON's escapes, but for a quote's
        printf '%s\0' "$home/$name"
        if [[ -L $model ]]; then printf '%s\0' "$store/$name"; fi
    done
}
fingerprint() { # RESULT PROGRAM ARGUMENT…
    local result=$1 file
    shift 2
    printf '%q ' "$@"
    echo
    cksum <"$extract"
    data_files "$result" | while IFS= read -r -d '' file; do about "$file"; done
}

# A program that ends by itself has said why.
ended() { # NAME CODE
    if (($2 > 5)); then echo "$1 ended with $2" >&2; fi
}

run_step() { # NAME RESULT COMMAND…
    local name=$1 result=$2 code=0 stamp="$folder/.$1" want
    shift 2
    want=$(fingerprint "$result" "$@")
    if [[ -e $result && -e $stamp && "$(sed 1d "$stamp")" == "$want" ]]; then
        code=$(head -n 1 "$stamp")
        say "$result is up to date"
    else
        rm -f -- "$stamp" "$result" # a result of something else must not stay beside a failure
        "$@" {lock}>&- || code=$?
        if ((code <= 1)); then
            printf '%s\n' "$path" >"$folder/.model"
            printf '%s\n%s\n' "$code" "$(fingerprint "$result" "$@")" >"$stamp"
            say "wrote $result"
        fi
    fi
    if ((code > worst)); then worst=$code; fi
    if ((code > 1)); then
        ended "$name" "$code"
        exit "$worst"
    fi
}

# What the weights are decides what is measured, and ops.json tells no values. Files are read for it where their size or
# time has changed; a link, and what a name that leads elsewhere stands for, is never read: its size and time must do.
contents() {
    local seen="$folder/.contents" now file
    now=$(data_files "$folder/ops.json" | while IFS= read -r -d '' file; do about "$file"; done)
    if [[ ! -e $seen || "$(sed '1,/^$/d' "$seen")" != "$now" ]]; then
        data_files "$folder/ops.json" | while IFS= read -r -d '' file; do
            if [[ $file == "$model" || ($file != *..* && -f $file && ! -L $file) ]]; then cksum <"$file"; else about "$file"; fi
        done >"$seen.new"
        printf '\n%s\n' "$now" >>"$seen.new"
        mv -- "$seen.new" "$seen"
    fi
    sed '/^$/,$d' "$seen"
}

# Measuring depends on the operations, the weights, the program with its CUDA device, and the devices that are there:
# their drivers and libraries too. What was stopped halfway goes on where it was.
measured_from() {
    local home cuda
    home=$(dirname -- "$scout")
    printf '%q ' "${measuring[@]+"${measuring[@]}"}"
    echo
    cksum <"$scout"
    for cuda in "$home/scout_cuda.so" "$home/../lib/ceiling-scout/scout_cuda.so"; do
        if [[ -f $cuda ]]; then cksum <"$cuda"; fi
    done
    contents
    cksum <"$folder/ops.json"
    "$scout" --list-devices 2>&1 || true
}
count_reports() { find "$folder/reports" "$folder/fusions" -maxdepth 1 -name '*.json' 2>/dev/null | wc -l; }
measure() {
    local code=0 stamp="$folder/.measure" begun="$folder/.measuring" night="$folder/.night" want going resume=()
    want=$(measured_from)
    going="$want"$'\n'"GPUs: ${CUDA_VISIBLE_DEVICES:-all}" # it goes on where it began: what another GPU measured is no part of it
    if [[ -n ${PROFILE_NIGHT:-} && (! -e $night || $(<"$night") != "$PROFILE_NIGHT") ]]; then
        rm -f -- "$stamp" "$begun" # nor does it go on: what is there is of another night, and this one's is in its cache
    fi
    if [[ -e $folder/run.json && -e $stamp && "$(sed 1,2d "$stamp")" == "$want" &&
        $(sed -n 2p "$stamp") == "$(count_reports)" ]]; then
        code=$(head -n 1 "$stamp")
        say "$folder/reports is up to date"
    else
        if [[ -e $begun && "$(<"$begun")" == "$going" ]]; then resume=(--resume); fi
        rm -f -- "$stamp"
        printf '%s\n' "$going" >"$begun"
        "$scout" "$folder/ops.json" -o "$folder" "${measuring[@]+"${measuring[@]}"}" ${resume[@]+"${resume[@]}"} \
            ${PROFILE_NO_WAIT:+--no-wait} ${PROFILE_CACHE:+"--cache-dir=$PROFILE_CACHE"} {lock}>&- || code=$?
        if ((code <= 1)) && grep -q '^  "state": "complete",$' "$folder/run.json" && ! grep -q '^  "stopped": true,$' "$folder/run.json"; then
            rm -f -- "$begun"
            printf '%s\n%s\n%s\n' "$code" "$(count_reports)" "$want" >"$stamp"
            if [[ -n ${PROFILE_NIGHT:-} ]]; then printf '%s\n' "$PROFILE_NIGHT" >"$night"; fi
            say "wrote $folder/reports"
        fi
    fi
    if ((code > worst)); then worst=$code; fi
    if ((code > 1)); then
        ended measure "$code"
        exit "$worst"
    fi
}

# Nothing depends on counters: where they cannot be had, the summary is made without.
count_kernels() {
    local code=0
    if [[ -z ${PROFILE_COUNTERS:-} ]]; then return; fi
    SCOUT=$scout ANALYZE=$analyze "$here/profile_ncu.sh" --top "$PROFILE_COUNTERS" "$folder" ${device:+"--device=$device"} \
        ${regime:+"--regime=$regime"} ${PROFILE_NO_WAIT:+--no-wait} {lock}>&- || code=$?
    if ((code > worst)); then worst=$code; fi
    ended counters "$code"
}

# What follows from the reports: what is said of them depends on the ceilings in run.json too, a dispatch table does not.
# Nothing depends on these, so one that fails stops no other, and leaves nothing of an earlier run that no longer holds.
derived_from() { # PATH…
    cksum <"$analyze"
    find "$@" -type f -name '[!.]*' -printf '%p %s %T@\n' 2>/dev/null | LC_ALL=C sort | cksum
}
derive() { # NAME INPUTS RESULTS ARGUMENT…   inputs and results: files in the folder, blanks between
    local name=$1 code=0 stamp="$folder/.$1" want missing="" file files inputs=() results=()
    read -r -a files <<<"$2"
    for file in "${files[@]}"; do if [[ -e $folder/$file ]]; then inputs+=("$folder/$file"); fi; done
    read -r -a files <<<"$3"
    for file in "${files[@]}"; do results+=("$folder/$file"); done
    shift 3
    want=$(derived_from "${inputs[@]}")
    for file in "${results[@]}"; do if [[ ! -e $file ]]; then missing=yes; fi; done
    if [[ -z $missing && -e $stamp && "$(sed 1d "$stamp")" == "$want" ]]; then
        code=$(head -n 1 "$stamp")
        say "${results[0]} is up to date"
    else
        rm -f -- "$stamp" "${results[@]}"
        "$analyze" "$@" {lock}>&- || code=$?
        if ((code <= 1)); then printf '%s\n%s\n' "$code" "$want" >"$stamp"; fi
    fi
    if ((code > worst)); then worst=$code; fi
    ended "$name" "$code"
}
summarize() {
    if (($(count_reports) == 0)); then return; fi # a model without operations
    derive dispatch 'reports fusions' 'dispatch.json dispatch.h' \
        dispatch "$folder" -o "$folder/dispatch.json" --header "$folder/dispatch.h"
    derive analyze 'reports fusions run.json model.json' 'summary.txt summary.json summary.md summary.csv junit.xml report.html' "$folder" -o "$folder"
    if [[ -e $folder/summary.txt ]]; then printf '\n%s\n' "$(<"$folder/summary.txt")"; fi
    if [[ -e $folder/report.html ]]; then printf '\nthe whole report: %s\n' "$(shown "$folder/report.html")"; fi
}

# A folder without a result is none, and neither is one that was only made to hold it.
# shellcheck disable=SC2317 # called at the end, by the trap
drop_empty() {
    if [[ -n $locked ]]; then rm -f -- "$folder/.profile_lock"; fi
    if [[ -d $folder && -z $(find "$folder" -mindepth 1 ! -name .model -print -quit) ]]; then
        rm -f -- "$folder/.model"
        rmdir -- "$folder" || true
    fi
    if [[ -n $made_out ]]; then rmdir --ignore-fail-on-non-empty -- "$out" 2>/dev/null || true; fi
}

# One run at a time: another one would take a half of this one's files for its own. The lock ends with this process and
# is no child's. What waited finds most of its work done.
exec {lock}</dev/null
locked=
lock_folder() {
    local file=$folder/.profile_lock by told="" code
    if [[ ! -w $folder ]]; then return; fi # the first step says why
    if ! command -v flock >/dev/null; then
        say "flock (util-linux) is not installed: a second run in $folder would not be noticed" >&2
        return
    fi
    while [[ -z $locked ]]; do
        mkdir -p -- "$folder" || exit 4
        if [[ -e $file && (! -f $file || ! -w $file) ]]; then
            say "$file: is not this user's file; move it away" >&2
            exit 4
        fi
        exec {lock}>&-
        exec {lock}>>"$file"
        code=0
        flock -n "$lock" || code=$?
        if ((code == 1)); then
            by=$(head -c 300 -- "$file" | sed -n 1p)
            by=${by:-another run}
            if [[ -n ${PROFILE_NO_WAIT:-} ]]; then
                say "$folder: $by is writing there; leave out --no-wait to wait for it, or name another folder (--out)" >&2
                exit 4
            fi
            if [[ $told != "$by" ]]; then say "$folder: waiting for $by, which is writing there (--no-wait refuses)" >&2; fi
            told=$by
            flock -w 1 "$lock" || continue
        elif ((code > 1)); then
            say "$folder: its file system has no locks: a second run there would not be noticed" >&2
            return
        fi
        if [[ $file -ef /proc/self/fd/$lock ]]; then locked=yes; fi # else the last one took it away
    done
    printf 'process %s (%s, since %s)\n' "$$" "$model" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" >"$file"
}

made_out=
if [[ ! -d $out ]]; then made_out=yes; fi
mkdir -p -- "$folder" || exit 4
trap drop_empty EXIT
# What is written here stays here: a folder that came from elsewhere may hold links to anything.
link=$(find "$folder/" -maxdepth 2 -type l -print -quit)
if [[ -n $link ]]; then
    say "$link: is a link, and nothing is written through links; move it away" >&2
    exit 4
fi
lock_folder
check_owner
run_step extract "$folder/ops.json" "$extract" "$model" -o "$folder/ops.json" ${options[@]+"${options[@]}"}
if [[ -n $scout ]]; then measure; fi
if [[ -n $scout && -n $analyze ]]; then
    count_kernels
    summarize
fi
exit "$worst"
