#!/bin/bash
# Checks and times the project's own matrix products on the GPU of this machine:
#     tests/gpu/kernels/run.sh [FOLDER]      results go to FOLDER (default out/gpu-kernels)
# GEMM_BENCH names a program that is built already; else nvcc builds it. SCOUT_CUDA=bin/scout_cuda.so also asks its
# candidates which operations they take. SANITIZE=0 leaves out compute-sanitizer, ALL=1 prints every variant.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 2
folder=${1:-out/gpu-kernels}
mkdir -p "$folder"
program=${GEMM_BENCH:-}
if [ -z "$program" ]; then
    program=$folder/gemm_bench
    nvcc -std=c++17 -I. -O3 '-gencode=arch=compute_90,code=[sm_90,compute_90]' \
        -o "$program" kernels/product/gemm_*.cu tests/gpu/kernels/gemm_bench.cu -ldl || exit 1
fi
# cuBLASLt: the loader's own places, the toolkit's, then the one that a Python package brought.
packaged=$(python3 -c 'import nvidia.cu13 as m; print(list(m.__path__)[0] + "/lib")' 2> /dev/null)
for place in /usr/local/cuda/lib64 "$packaged"; do
    [ -e "$place/libcublasLt.so.13" ] && export LD_LIBRARY_PATH="$place${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" && break
done

passed=0 failed=0 skipped=0
count() { # LOG: adds what its last line says
    local line
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$1" | tail -n 1)
    if [ -z "$line" ]; then failed=$((failed + 1)) && return; fi
    passed=$((passed + $(cut -d' ' -f1 <<<"$line")))
    failed=$((failed + $(cut -d' ' -f3 <<<"$line")))
}

"$program" check > "$folder/check.txt" 2>&1
status=$?
grep -m 20 FAILED "$folder/check.txt"
count "$folder/check.txt"
[ $status -gt 1 ] && failed=$((failed + 1))

if [ -n "${SCOUT_CUDA:-}" ]; then
    ${CC:-cc} -std=c11 -D_GNU_SOURCE -I. -o "$folder/check_own" tests/gpu/kernels/check_own.c -ldl &&
        "$folder/check_own" "$SCOUT_CUDA" > "$folder/check_own.txt" 2>&1
    grep FAILED "$folder/check_own.txt"
    count "$folder/check_own.txt"
fi

if [ "${SANITIZE:-1}" = 1 ] && command -v compute-sanitizer > /dev/null; then
    for tool in memcheck racecheck initcheck; do
        size=small
        [ $tool = racecheck ] && size=tiny
        timeout "${SANITIZE_SECONDS:-300}" compute-sanitizer --tool $tool --error-exitcode 7 "$program" check $size \
            > "$folder/$tool.txt" 2>&1 && echo clean >> "$folder/$tool.txt" &
    done
    wait
    for tool in memcheck racecheck initcheck; do
        if [ "$(tail -n 1 "$folder/$tool.txt")" = clean ]; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAILED compute-sanitizer $tool:"
            grep -E '=========' "$folder/$tool.txt" | sed -n 1,12p
            tail -n 2 "$folder/$tool.txt"
        fi
    done
else
    skipped=$((skipped + 3))
fi

"$program" time ${ALL:+all} > "$folder/gemm_stream_bench.txt" 2>&1 || failed=$((failed + 1))
cat "$folder/gemm_stream_bench.txt"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
