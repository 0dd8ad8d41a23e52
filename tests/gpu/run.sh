#!/usr/bin/env bash
# Everything that this project promises of a GPU, on the machine that has one, in one call:
#     tests/gpu/run.sh [PART|GROUP]…        (all parts when none is named; tests/gpu/run.sh --list says them)
# All of them take longer than one call may: it ends after LIMIT seconds (540), and what it did not reach is skipped and
# said, so within a group the most important parts come first. Repeatability, agreement, ceilings, the streaming kernel
# and a whole model are two calls of about eight minutes each: tests/gpu/run.sh figures, then tests/gpu/run.sh agreement;
# tests/gpu/run.sh checking has what is left.
# Needs a built tree and nothing else of the build: BIN (bin) holds scout_batch and scout_cuda.so, best linked with
# STATIC=1; CHECKS (BIN/../gpu) the check_* programs where they were built. python3 with PyTorch is the independent
# measurement. Results go to RESULTS (default out/gpu): per part what was said and the reports, then summary.txt; where
# OUT is set, they are packed into OUT: one archive per part and summary.txt.
# KINDS: of part kinds, the files of tests/gpu/kinds that are run (a pattern, without .json).
# REPEAT_RUNS: how often part repeat measures (5; fewer prove less, and it says so). REPEAT_CEILINGS=cached: these runs
# share ceilings instead of measuring them anew (45 s each instead of 70).
# LLAMA_OPS: an ops.json of llama2_7b instead of the short form beside this file. DEVICE: cuda:0.
# Ends with "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit

# Each part with the seconds that it may take; behind it what it took on an H200, or is expected to (about).
parts=(devices sustained bandwidth llama stream sweep burst repeat agree epilogue faults trace checks sanitizer kinds targets)
declare -A limits=(
    [devices]=30   # 5
    [sustained]=260 # about 160: three searches of 24 s, each with its audit
    [bandwidth]=60 # 1: the first search has measured it
    [llama]=120    # 60, as the ceilings are known by then
    [stream]=120   # 42
    [sweep]=90     # about 50
    [burst]=200    # about 120
    [repeat]=420   # 350; 224 with REPEAT_CEILINGS=cached
    [agree]=190    # about 120: 14 to 20 s an operation
    [epilogue]=180 # about 110: four comparisons, and eleven operations measured
    [faults]=150   # 40
    [trace]=60     # about 35
    [checks]=90 [sanitizer]=120
    [kinds]=420   # about 2 s an operation
    [targets]=120)
declare -A groups=([figures]="devices sustained bandwidth llama stream sweep burst" [agreement]="repeat agree epilogue faults trace"
    [checking]="checks sanitizer" [kinds]="kinds targets")
LIMIT=${LIMIT:-540}

REPEAT_RUNS=${REPEAT_RUNS:-5}
if [[ ! $REPEAT_RUNS =~ ^[1-9][0-9]?$ ]]; then
    echo "REPEAT_RUNS is how often to measure: 1 to 99, not $REPEAT_RUNS" >&2
    exit 2
fi
BIN=${BIN:-bin} DEVICE=${DEVICE:-cuda:0} RESULTS=${RESULTS:-out/gpu}
CHECKS=${CHECKS:-$BIN/../gpu}
if [[ $BIN != /* ]]; then BIN=$PWD/$BIN; fi
scout=$BIN/scout_batch
here=tests/gpu
cache=$RESULTS/cache

# The cuBLASLt and the cuDNN that PyTorch loads, for both; else whatever the search order finds.
torch_libraries() {
    python3 - <<'PYTHON' 2>/dev/null
import torch
torch.zeros(8, 8, device="cuda", dtype=torch.half) @ torch.zeros(8, 8, device="cuda", dtype=torch.half)
torch.backends.cudnn.version()
maps = [line.split()[-1] for line in open("/proc/self/maps") if "libcublasLt.so" in line or "libcudnn.so" in line]
print(":".join(sorted({path.rsplit("/", 1)[0] for path in maps})))
PYTHON
}

batch() { "$scout" --device "$DEVICE" "${library[@]}" --cache-dir "$cache" "$@"; }
timed() { # NAME COMMAND…: its seconds go to NAME.seconds; 1 is "done, but": no failure of the run
    local name=$1 start code=0
    shift
    start=$(date +%s.%N)
    "$@" >"$part/$name.txt" 2>"$part/$name.err" || code=$?
    echo "$(date +%s.%N) $start $code" | awk '{print $1 - $2, $3}' >"$part/$name.seconds"
    if ((code > 1)); then
        echo "FAILED $name: exit $code: $(tail -n 1 "$part/$name.err" | cut -c 1-300)"
        return 1
    fi
}

known() { timed ceilings batch --ceilings --precision fp16; } # measured once, by whichever part comes first

part_devices() {
    timed devices "$scout" "${library[@]}" --list-devices
    timed candidates "$scout" "${library[@]}" --list-candidates
    grep -E '^cuda' "$part/devices.txt" | cut -c 1-150
    nvidia-smi --query-gpu=name,driver_version,clocks.sm,power.draw,temperature.gpu --format=csv,noheader
}
part_checks() {
    local program
    for program in "$CHECKS"/check_*; do
        if [[ ! -x $program ]]; then continue; fi
        CEILING_SCOUT_LIBRARY_PATH=$libraries timeout 60 "$program" "$BIN/scout_cuda.so" \
            >"$part/${program##*/}.txt" 2>&1
        echo $? >"$part/${program##*/}.code"
    done
}
part_bandwidth() { # the table of the first ceilings that were measured
    if [[ -e $RESULTS/sustained/fp16.json ]]; then
        cp "$RESULTS/sustained/fp16.json" "$part/ceilings.json"
    else
        timed bandwidth batch --ceilings --precision fp16 -o "$part/ceilings.json"
    fi
}
ceilings_of() { # LOAD AUDITED…: one call per precision, so that a late one is lost alone
    local load=$1 precision audit
    shift
    for precision in fp16 bf16 fp8; do
        audit=()
        if [[ " $* " == *" $precision "* ]]; then audit=(--exhaustive); fi
        timed "$precision" batch --ceilings --regime "$load" --precision "$precision" "${audit[@]}" -o "$part/$precision.json"
        grep -E '^ +(peak +'"$precision"'|audit|memory)' "$part/$precision.txt"
    done
}
part_sustained() {
    rm -rf "$cache" # these are measured here, by every call of this script
    ceilings_of sustained fp16 bf16 fp8
}
part_burst() { # an audit in bursts takes as long as the search: of one precision
    rm -rf "$part/cache"
    cache=$part/cache
    ceilings_of burst fp16
}
part_sweep() {
    timed sweep batch --ceilings --precision fp16 --k-sweep -o "$part/sweep.json"
    grep -iE 'sweep|^ +[0-9]+ ' "$part/sweep.txt" | head -n 16
}
part_repeat() {
    local run dir
    for ((run = 1; run <= REPEAT_RUNS; run++)); do
        dir=$part/cache-$run
        if [[ ${REPEAT_CEILINGS:-fresh} == cached ]]; then dir=$cache; fi
        timed "run_$run" "$scout" --device "$DEVICE" "${library[@]}" "$here/six_gemms.json" --precision fp16 --cache cold \
            --no-cache --cache-dir "$dir" -o "$part/run_$run"
    done
}
part_agree() {
    if [[ ! -d $RESULTS/repeat/run_$REPEAT_RUNS/reports ]]; then
        timed scout batch "$here/six_gemms.json" --precision fp16 --cache cold --no-cache -o "$part/scout"
    else
        cp -r "$RESULTS/repeat/run_$REPEAT_RUNS" "$part/scout"
    fi
    timed torch python3 "$here/agree.py" "$part/scout/reports" "$part/agree.json"
    cat "$part/torch.txt"
}
part_stream() {
    known
    timed stream batch "$here/stream_gemms.json" --precision fp16 --cache cold --no-cache -o "$part/run"
}
part_llama() {
    local ops=${LLAMA_OPS:-$here/llama2_7b_gemms.json}
    known # only what follows is timed
    timed without batch "$ops" --precision fp16 --only gemm --no-cache -o "$part/without"
    timed with batch "$ops" --precision fp16 --only gemm -o "$part/with"
}
part_epilogue() { # a product with what stands behind it, fused and not, and projections as one and apart
    timed scout batch "$here/epilogue_gemms.json" --precision fp16 --cache cold --no-cache -o "$part/scout"
    timed torch python3 "$here/agree_epilogue.py" "$here/epilogue_gemms.json" "$part/scout/reports" "$part/agree.json"
    cat "$part/torch.txt"
}
part_kinds() { # every candidate of every kind over awkward shapes: what is WRONG, crashed or without a baseline
    local file name
    known
    for file in "$here"/kinds/${KINDS:-*}.json; do
        name=${file##*/}
        timed "${name%.json}" batch "$file" --precision fp16 --no-cache -o "$part/${name%.json}"
    done
}
part_targets() { # kinds other than products at the sizes that figures are promised of
    local file name
    known
    for file in "$here"/*_targets.json; do
        name=${file##*/}
        timed "${name%.json}" batch "$file" --precision fp16 --cache cold --no-cache -o "$part/${name%.json}"
        cat "$part/${name%.json}.txt"
    done
}
part_faults() {
    local plugin=$CHECKS/faulty.so
    if [[ ! -e $plugin ]]; then
        plugin=$RESULTS/faulty.so
        nvcc -std=c++17 -I. -O2 -shared -Xcompiler -fPIC -gencode=arch=compute_90a,code=sm_90a "$here/faulty.cu" \
            -o "$plugin" || return 1
    fi
    known
    timed without batch --op gemm --shape 1024,1024,1024 --precision fp16 --no-cache -o "$part/without.json"
    timed with batch --op gemm --shape 1024,1024,1024 --precision fp16 --no-cache --plugin "$(realpath "$plugin")" \
        -o "$part/with.json"
}
part_trace() { # what the timing engine takes for granted of a clock at its power limit
    timed clock_trace python3 "$here/clock_trace.py"
    cut -c 1-150 "$part/clock_trace.txt"
}
part_sanitizer() { # the device's own checks and one whole measurement, whose ceilings are known by now
    local tool program
    if ! command -v compute-sanitizer >/dev/null; then
        echo "skipped: compute-sanitizer is not here"
        return
    fi
    known
    for tool in memcheck racecheck; do
        timeout 60 compute-sanitizer --tool "$tool" --target-processes all --error-exitcode 7 "$scout" --device "$DEVICE" \
            "${library[@]}" --cache-dir "$cache" --op gemm --shape 16,512,512 --precision fp16 --no-cache --budget 10 \
            -o "$part/$tool.json" >"$part/$tool.txt" 2>&1
        echo $? >"$part/$tool.code"
    done
    program=$CHECKS/check_stream
    if [[ -x $program ]]; then
        CEILING_SCOUT_LIBRARY_PATH=$libraries timeout 60 compute-sanitizer --error-exitcode 7 "$program" \
            "$BIN/scout_cuda.so" >"$part/check_stream.txt" 2>&1
        echo $? >"$part/check_stream.code"
    fi
}

# A part in a process of its own, so that its limit ends all of it; then what it left is judged.
if [[ ${1:-} == --part ]]; then
    part=$RESULTS/$2 libraries=${TORCH_LIBRARIES:-}
    library=()
    if [[ -n $libraries ]]; then library=(--library-path "$libraries"); fi
    "part_$2"
    exit 0
fi
if [[ ${1:-} == --list ]]; then
    printf '%s\n' "${parts[@]}"
    for name in "${!groups[@]}"; do echo "$name: ${groups[$name]}"; done
    exit
fi
wanted=()
for name in "$@"; do
    read -r -a members <<<"${groups[$name]:-$name}"
    wanted+=("${members[@]}")
done
if ((${#wanted[@]} == 0)); then wanted=("${parts[@]}"); fi
for name in "${wanted[@]}"; do
    if [[ -z ${limits[$name]:-} ]]; then
        echo "no part is called $name; there are: ${parts[*]}" >&2
        exit 2
    fi
done
if [[ ! -x $scout ]]; then
    echo "$scout is not there: build it first (make STATIC=1 all), or say where with BIN=" >&2
    exit 4
fi
mkdir -p "$RESULTS"
TORCH_LIBRARIES=$(torch_libraries)
export TORCH_LIBRARIES BIN DEVICE RESULTS CHECKS REPEAT_RUNS
{
    echo "$(date -u +%FT%TZ) ${wanted[*]}; libraries from ${TORCH_LIBRARIES:-the search order}"
    for name in "${wanted[@]}"; do
        limit=$((LIMIT - SECONDS < limits[$name] ? LIMIT - SECONDS : limits[$name]))
        if ((limit < 15)); then
            echo "SKIPPED $name: the $LIMIT s of this call are used up"
            continue
        fi
        rm -rf "${RESULTS:?}/$name"
        mkdir -p "$RESULTS/$name"
        begun=$SECONDS
        echo "--- $name"
        timeout --kill-after=5 "$limit" bash "${BASH_SOURCE[0]}" --part "$name" 2>&1 ||
            echo "FAILED $name: ended after its $limit s"
        python3 "$here/judge.py" "$name" "$RESULTS/$name"
        echo "    $((SECONDS - begun)) s"
    done
} 2>&1 | tee "$RESULTS/log.txt"
{
    echo
    grep -hE '^(PASSED|FAILED|SKIPPED) ' "$RESULTS/log.txt"
    awk '/^PASSED /{p++} /^FAILED /{f++} /^SKIPPED /{s++} END {printf "%d passed, %d failed, %d skipped\n", p, f, s}' \
        "$RESULTS/log.txt"
} >"$RESULTS/verdict.txt"
cat "$RESULTS/log.txt" "$RESULTS/verdict.txt" >"$RESULTS/summary.txt"
if [[ -n ${OUT:-} ]]; then
    tar czf "$OUT/reports.tar.gz" --exclude='cache*' --exclude='*.so' -C "$RESULTS" .
    cp "$RESULTS/summary.txt" "$OUT/summary.txt"
fi
cat "$RESULTS/verdict.txt"
grep -q ' 0 failed' "$RESULTS/verdict.txt"
