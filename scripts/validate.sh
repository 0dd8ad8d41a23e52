#!/usr/bin/env bash
# What `make validate` does: the library's default or a candidate (before) and a custom kernel or a candidate (after) on one
# operation, and whether to keep it: exit 0, 5 revert, 1 undecided.
# Usage: VALIDATE_AFTER=./mine.so|NAME VALIDATE_SHAPE=N,N,… [VALIDATE_BEFORE=NAME] [VALIDATE_OP=KIND] [VALIDATE_PRECISION=P]
#        [VALIDATE_DEVICE=D] [VALIDATE_REGIME=R] [VALIDATE_BUDGET=SECONDS] scripts/validate.sh SCOUT_BATCH
set -euo pipefail
scout=${1:?usage: VALIDATE_AFTER=./mine.so VALIDATE_SHAPE=M,N,K scripts/validate.sh SCOUT_BATCH}
after=${VALIDATE_AFTER:-} shape=${VALIDATE_SHAPE:-}
if [[ -z $after || -z $shape ]]; then
    echo 'What is to be compared? Say: make validate BEFORE=cublas AFTER=./mine.so SHAPE=4096,4096,4096' >&2
    exit 2
fi
options=("--op=${VALIDATE_OP:-gemm}" "--shape=$shape" --compare)
case $after in
*/* | *.so) options+=("--custom-kernel=$after") ;; # a bare name is refused there, and the reason said
*) options+=("--candidate=$after") ;;
esac
if [[ -n ${VALIDATE_BEFORE:-} ]]; then options+=("--before=$VALIDATE_BEFORE"); fi
if [[ -n ${VALIDATE_PRECISION:-} ]]; then options+=("--precision=$VALIDATE_PRECISION"); fi
if [[ -n ${VALIDATE_DEVICE:-} ]]; then options+=("--device=$VALIDATE_DEVICE"); fi
if [[ -n ${VALIDATE_REGIME:-} ]]; then options+=("--regime=$VALIDATE_REGIME"); fi
if [[ -n ${VALIDATE_BUDGET:-} ]]; then options+=("--budget=$VALIDATE_BUDGET"); fi
exec "$scout" "${options[@]}"
