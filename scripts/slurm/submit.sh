#!/usr/bin/env bash
# A night of a zoo by Slurm: a task for each line of `ceiling-scout zoo --list`, and behind all of them, however they end,
# one that tells of the night. What is missing then is told, and is no reason to measure the rest again. The list, the
# folder and this program lie where all machines see them. A task that fails for a reason of its machine is tried once
# more; what Slurm requeues goes on in the same night. With --print it submits nothing and prints both jobs.
# Usage: [AT_ONCE=N] scripts/slurm/submit.sh [--print] ZOO.json FOLDER [option of sbatch]…   --partition=gpu --gres=gpu:1, say
# AT_ONCE: most tasks at a time.
set -euo pipefail
usage="usage: [AT_ONCE=N] ${0##*/} [--print] ZOO.json FOLDER [option of sbatch]..."
print=
if [[ ${1:-} == --help || ${1:-} == -h ]]; then echo "$usage" && exit 0; fi
if [[ ${1:-} == --print ]]; then print=yes && shift; fi
if (($# < 2)) || [[ $1 == -* || $2 == -* ]]; then
    echo "$usage" >&2
    exit 2
fi
zoo=$(realpath -ms -- "$1") folder=$(realpath -ms -- "$2")
shift 2
for option; do
    case $option in
    --dependency* | -d* | --array* | -a* | --output* | -o* | --wrap* | --parsable*)
        echo "$option: this script says that itself; AT_ONCE=4 lets four tasks run at a time" >&2
        exit 2
        ;;
    esac
done
if [[ ! ${AT_ONCE:-1} =~ ^[1-9][0-9]*$ ]]; then
    echo "AT_ONCE=$AT_ONCE: is how many tasks may run at a time: a number from 1 on" >&2
    exit 2
fi
if [[ $folder == *\\* ]]; then
    echo "$folder: Slurm writes no logs below a name with a backslash; name another folder" >&2
    exit 2
fi
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
night=$(date -u +%Y-%m-%dT%H:%M:%SZ)-$$
printf -v words '%q ' "$program" zoo "--night=$night" "--out=$folder"
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
first=$(part | submit "$@" "--array=1-$count${AT_ONCE:+%$AT_ONCE}" "--output=${logs//%/%%}/%A_%a.log") || exit 4
parts=${first%%;*} cluster=
if [[ $first == *\;* ]]; then cluster=${first#*;}; fi # where there are several
if ! last=$(tell | submit "$@" "--dependency=afterany:$parts" "--output=${logs//%/%%}/%j.log"); then
    scancel ${cluster:+"--clusters=$cluster"} "$parts" || echo "job $parts could not be taken back; say scancel $parts" >&2
    exit 4
fi
echo "job $parts measures $count models and sizes; behind it job ${last%%;*} tells of them in $folder/zoo/digest.md; logs in $logs"
