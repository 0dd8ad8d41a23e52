#!/usr/bin/env bash
# Operations under Nsight Compute: the winner and the baseline that a report names are launched a few times each, and what
# ncu counted goes back into the report as `counters`, with a line on the bottleneck. DIR/counters/ keeps what ncu wrote.
# Usage: scripts/profile_ncu.sh OPS.json ID [DIR [option of scout_batch]…]
#        scripts/profile_ncu.sh --top N DIR [option of scout_batch]…
#   DIR   the folder whose reports/ID.json it is; that of OPS.json where it is not said
#   N     those that take longest in a run of DIR/ops.json; one that has its counters is left as it is
#   SCOUT=program, ANALYZE=program and NCU=program in the environment name others than those in bin/ and the ncu that is found
# Exit: as scout_batch; 4 where ncu is missing, or may not read the counters of this GPU.
set -euo pipefail
if (($# < 2)) || [[ $1 == --top && ($# -lt 3 || ! $2 =~ ^[1-9][0-9]?$) ]]; then
    echo "usage: ${0##*/} OPS.json ID [DIR [option]...], or ${0##*/} --top N DIR [option]..." >&2
    exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
top='' id=''
if [[ $1 == --top ]]; then
    top=$2 ops=$3/ops.json dir=$3
    shift 3
else
    ops=$1 id=$2 dir=${3:-$(dirname -- "$1")}
    shift "$(($# < 3 ? 2 : 3))"
fi
scout=${SCOUT:-$here/bin/scout_batch} analyze=${ANALYZE:-$here/bin/analyze}
export LC_ALL=C # ncu writes numbers as the locale wants them
export CEILING_SCOUT_PATIENCE=${CEILING_SCOUT_PATIENCE:-1000} # each kernel runs many times over, once for some counters each

die() { # CODE TEXT
    printf 'profile_ncu: %s\n' "$2" >&2
    exit "$1"
}

ncu=${NCU:-$(command -v ncu || true)}
for place in "${CUDA_HOME:-/usr/local/cuda}/bin/ncu" /opt/nvidia/nsight-compute/*/ncu; do
    if [[ -z $ncu && -x $place ]]; then ncu=$place; fi
done
if [[ -z $ncu ]] || ! command -v -- "$ncu" >/dev/null; then
    die 4 "Nsight Compute (ncu) is not here; install it, or say NCU=its path"
fi
if [[ ! -x $scout ]]; then die 4 "$scout is not there; say make first, or SCOUT=its path"; fi

# Names have changed from one generation to the next: of these, those are asked for that this ncu has for this GPU.
held=smsp__average_warps_issue_stalled
wanted=(
    gpu__time_duration.sum
    sm__warps_active.avg.pct_of_peak_sustained_active
    sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active
    sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active
    sm__pipe_tensor_op_gmma_cycles_active.avg.pct_of_peak_sustained_active
    sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active
    dram__throughput.avg.pct_of_peak_sustained_elapsed
    lts__throughput.avg.pct_of_peak_sustained_elapsed
)
for reason in barrier branch_resolving dispatch_stall drain gmma imc_miss lg_throttle long_scoreboard math_pipe_throttle membar \
    mio_throttle misc no_instruction not_selected selected short_scoreboard sleeping tex_throttle wait; do
    wanted+=("${held}_${reason}_per_issue_active.ratio")
done
known=$("$ncu" --query-metrics 2>/dev/null | grep -oE '^[a-z0-9_]+__[a-z0-9_]+' | sort -u || true)
metrics=
for metric in "${wanted[@]}"; do
    if [[ -z $known ]] || grep -qxF -- "${metric%%.*}" <<<"$known"; then metrics+=${metrics:+,}$metric; fi
done
if [[ -z $metrics ]]; then die 4 "$ncu knows none of the counters that are needed on this GPU"; fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [[ -L $dir/counters ]]; then die 4 "$dir/counters: is a link, and nothing is written through links; move it away"; fi
member() { sed -n "s/^  \"$1\": \"\(.*\)\",\{0,1\}\$/\1/p" "$report"; }

roles() { # ID   into `rows`: the baseline, and the best where it is another one
    report=$dir/reports/$1.json rows=(baseline)
    if [[ ! -e $report ]]; then
        die 3 "$report is not there; measure it first: $scout $ops --only $1 -o $dir"
    fi
    if [[ -n $(member best) && "$(member best):$(member best_variant)" != "$(member baseline):$(member baseline_variant)" ]]; then
        rows+=(best)
    fi
    if [[ -z $(member baseline) ]]; then rows=(best); fi
}
count() { # ID [option of scout_batch]…
    local id=$1 role csv code read_back=()
    shift
    roles "$id"
    mkdir -p -- "$dir/counters"
    for role in "${rows[@]}"; do
        csv=$scratch/$role.csv code=0
        "$ncu" --target-processes all --profile-from-start off --csv --page raw --print-units base --metrics "$metrics" \
            --log-file "$csv" "$scout" "$ops" --only "$id" -o "$dir" "$@" --run-once "$role" >"$scratch/said" 2>&1 || code=$?
        if grep -qs ERR_NVGPUCTRPERM "$csv" "$scratch/said"; then
            die 4 "the driver lets only administrators read this GPU's counters (ERR_NVGPUCTRPERM); run as root, or have them allowed"
        fi
        if ((code != 0)); then
            cat "$scratch/said" >&2
            tail -n 5 "$csv" >&2 2>/dev/null || true
            die "$((code > 4 ? 4 : code))" "launching the $role under $ncu ended with $code"
        fi
        if ! grep -qs '^"ID",' "$csv"; then
            tail -n 5 "$csv" >&2 2>/dev/null || true
            die 4 "$ncu saw no kernel of the $role; is it measured on this GPU?"
        fi
        mv -fT -- "$csv" "$dir/counters/.new" && mv -fT -- "$dir/counters/.new" "$dir/counters/$id.$role.csv" # whole or not
        read_back+=(--counters "$role=$dir/counters/$id.$role.csv")
    done
    "$scout" "$ops" --only "$id" -o "$dir" "$@" "${read_back[@]}"
}

# Operations with a time, the longest first: summary.csv's columns by their names, where commas inside of quotes are none.
longest() {
    "$analyze" "$dir" --format csv 2>/dev/null | awk -F'"' -v OFS='' '
        { for (k = 2; k <= NF; k += 2) gsub(/,/, ";", $k); $1 = $1; n = split($0, cell, ",") }
        NR == 1 { for (k = 1; k <= n; k++) at[cell[k]] = k; next }
        cell[at["weight_us"]] > 0 { print cell[at["weight_us"]] " " cell[at["operation"]] }' | sort -rg
}
if [[ -z $top ]]; then
    count "$id" "$@"
    exit
fi
longest >"$scratch/longest" || true
if [[ ! -s $scratch/longest ]]; then die 3 "$dir: no operation has a time; measure it first: $scout $ops -o $dir"; fi
while read -r _ id; do
    roles "$id" # another best than that of the counters has none
    if (($("$analyze" explain "$dir" "$id" 2>/dev/null | grep -c 'Nsight Compute on the ') >= ${#rows[@]})); then
        printf '%s: has its counters\n' "$id"
        continue
    fi
    count "$id" "$@" </dev/null
done < <(sed -n "1,${top}p" "$scratch/longest")
