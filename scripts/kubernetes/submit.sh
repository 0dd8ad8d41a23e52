#!/usr/bin/env bash
# A night of a zoo on Kubernetes, 1.31 or newer, by night.yaml beside this script: a pod for each line of `ceiling-scout zoo
# --list`, and when all have ended, however they did, one that tells of the night. It waits for that; interrupted, it goes
# on with --tell. The claim is of a volume that all nodes write, with locks; there it is /nights, and holds zoo.json and the
# models. The image is made from the Dockerfile, with --build-arg BASE=nvidia/cuda:…, or it measures the CPU.
# Usage: scripts/kubernetes/submit.sh [--print] ZOO.json IMAGE CLAIM [NIGHT]   --print: prints both jobs and submits nothing
#        scripts/kubernetes/submit.sh --tell NIGHT ZOO.json IMAGE CLAIM        when the first job was submitted before
# KUBECTL="kubectl --context=a --namespace=b" names the cluster. EVERY: seconds between two looks at it (30).
set -euo pipefail
usage="usage: ${0##*/} [--print | --tell NIGHT] ZOO.json IMAGE CLAIM [NIGHT]"
if [[ ${1:-} == --help || ${1:-} == -h ]]; then echo "$usage" && exit 0; fi
print='' told='' night=''
if [[ ${1:-} == --print ]]; then print=yes && shift; fi
if [[ ${1:-} == --tell && $# -gt 1 ]]; then told=yes night=$2 && shift 2; fi
if (($# < 3 || $# > 4)) || [[ $1 == -* || (-n $told && $# -gt 3) ]]; then
    echo "$usage" >&2
    exit 2
fi
zoo=$1 image=$2 claim=$3 night=${4:-${night:-$(date -u +%Y-%m-%d-%H%M%S)}}
if [[ ! $night =~ ^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$ ]]; then
    echo "$night: is no name of a night: small letters, digits and - alone, at most 32" >&2
    exit 2
fi
if [[ ! $image =~ ^[A-Za-z0-9][A-Za-z0-9._:/@-]*$ || ! $claim =~ ^[a-z0-9][a-z0-9.-]*$ ]]; then
    echo "$image, $claim: an image and the claim of a volume are wanted, as Kubernetes names them" >&2
    exit 2
fi
if [[ ! -f $zoo ]]; then
    echo "$zoo: is not there; name the list of models" >&2
    exit 3
fi
read -r -a kubectl <<<"${KUBECTL:-kubectl}"
if [[ -z $print ]] && ! command -v "${kubectl[0]}" >/dev/null; then
    echo "${kubectl[0]} is not in the path: submit from a machine that has it; --print shows what would be submitted" >&2
    exit 4
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=$(command -v ceiling-scout || true)
program=${program:-$here/../../bin/ceiling-scout}
if [[ ! -x $program ]]; then
    echo "ceiling-scout is neither in the path nor built here; say make install" >&2
    exit 4
fi
list=$("$program" zoo --list -- "$zoo") || exit
parts=$(wc -l <<<"$list")

jobs=$(<"$here/night.yaml")
# shellcheck disable=SC2016 # the template's own
jobs=${jobs//'${NIGHT}'/"$night"} jobs=${jobs//'${PARTS}'/"$parts"} jobs=${jobs//'${IMAGE}'/"$image"} jobs=${jobs//'${CLAIM}'/"$claim"}
if [[ -n $print ]]; then
    printf '%s\n' "$jobs"
    exit
fi
first=${jobs%%$'\n---\n'*} last=${jobs#*$'\n---\n'}
if [[ -z $told ]]; then
    "${kubectl[@]}" create -f - <<<"$first" || exit 4
    echo "night $night: $parts pods measure; interrupted, go on with: ${0##*/} --tell $night $zoo $image $claim"
fi
failed=0
while :; do
    if state=$("${kubectl[@]}" get job "ceiling-scout-$night" -o 'jsonpath={.status.conditions[*].type}'); then
        failed=0
        if [[ " $state " == *' Complete '* || " $state " == *' Failed '* ]]; then break; fi
    elif ((++failed >= 20)); then
        echo "night $night: its job cannot be looked at; go on later with: ${0##*/} --tell $night $zoo $image $claim" >&2
        exit 4
    fi
    sleep "${EVERY:-30}"
done
"${kubectl[@]}" create -f - <<<"$last" || exit 4
echo "night $night: all have ended; ceiling-scout-tell-$night tells of it in /nights/zoo/digest.md, and suspects are measured again"
