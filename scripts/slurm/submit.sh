#!/usr/bin/env bash
# A night of a zoo by Slurm: a task for each line of `ceiling-scout zoo --list`, and behind all of them, however they end,
# one that tells of the night. What is missing then is told, and is no reason to measure the rest again. The list, the
# folder and this program lie where all machines see them. A task that goes wrong is tried once more where it is; what
# Slurm requeues goes on in the same night. With --print it submits nothing and prints both jobs.
# Usage: scripts/slurm/submit.sh [--print] ZOO.json FOLDER [option of sbatch]…   --partition=gpu --gres=gpu:1 --time=30, say
set -euo pipefail
usage="usage: ${0##*/} [--print] ZOO.json FOLDER [option of sbatch]..."
print=
if [[ ${1:-} == --print ]]; then print=yes && shift; fi
if (($# < 2)) || [[ $1 == -* || $2 == -* ]]; then
    echo "$usage" >&2
    exit 2
fi
zoo=$(realpath -m -- "$1") folder=$(realpath -m -- "$2")
shift 2
if [[ ! -f $zoo ]]; then
    echo "$zoo: is not there; name the list of models" >&2
    exit 3
fi
if [[ -z $print ]] && ! command -v sbatch >/dev/null; then
    echo "sbatch is not in the path: submit from a machine of the cluster; --print shows what would be submitted" >&2
    exit 4
fi
program=$(realpath -se -- "$(command -v ceiling-scout)" 2>/dev/null || realpath -e -- "$(dirname -- "${BASH_SOURCE[0]}")/../../bin/ceiling-scout" 2>/dev/null) || {
    echo "ceiling-scout is neither in the path nor built here; say make install" >&2
    exit 4
}
list=$("$program" zoo --list --out="$folder" -- "$zoo") || exit
count=$(wc -l <<<"$list")
logs=$folder/zoo/slurm
printf -v words '%q ' "$program" zoo --again "--out=$folder"
printf -v what '%q' "$zoo"

part() {
    printf '#!/usr/bin/env bash\nfor try in 1 2; do\n    code=0\n'
    # shellcheck disable=SC2016 # the task's own
    printf '    %s--part "$SLURM_ARRAY_TASK_ID/%d" -- %s || code=$?\n' "$words" "$count" "$what"
    # shellcheck disable=SC2016
    printf '    if ((code <= 3)); then break; fi\ndone\nexit $code\n'
}
tell() { printf '#!/usr/bin/env bash\nexec %s--tell --digest -- %s\n' "$words" "$what"; }
submit() { # OPTION…   the job's script is on stdin; prints the job's number
    sbatch --parsable --requeue --open-mode=append --job-name=ceiling-scout "$@"
}

if [[ -n $print ]]; then
    part && tell
    exit
fi
mkdir -p -- "$logs" || exit 4
parts=$(part | submit "--array=1-$count" "--output=${logs//%/%%}/%A_%a.log" "$@") || exit 4
parts=${parts%%;*} # behind it stands the cluster, where there are several
if ! last=$(tell | submit "--dependency=afterany:$parts" "--output=${logs//%/%%}/%j.log" "$@"); then
    scancel "$parts"
    exit 4
fi
echo "job $parts measures $count models and sizes; behind it job ${last%%;*} tells of them in $folder/zoo/digest.md; logs in $logs"
