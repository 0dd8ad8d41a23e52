#!/usr/bin/env bash
# Everything that this project promises of a GPU, on the machine that has one, in one call:
#     tests/gpu/run.sh [PART|GROUP]…        (all parts when none is named; tests/gpu/run.sh --list says them)
# All of them take longer than one call may: it ends after LIMIT seconds (540), and what it did not reach is skipped and
# said, so within a group the most important parts come first. Repeatability, agreement, ceilings, the streaming kernel
# and a whole model are two calls of about eight minutes each: tests/gpu/run.sh figures, then tests/gpu/run.sh agreement;
# tests/gpu/run.sh checking has the kernels' own checks; kinds, models and libraries are whole calls, too.
# Needs a built tree and nothing else of the build: BIN (bin) holds scout_batch and scout_cuda.so, best linked with
# STATIC=1; CHECKS (BIN/../gpu) the check_* programs where they were built. python3 with PyTorch is the independent
# measurement. Results go to RESULTS (default out/gpu): per part what was said and the reports, then summary.txt; where
# OUT is set, they are packed into OUT: one archive per part and summary.txt.
# KINDS: of parts checks, kinds and sanitizer, the files of tests/gpu/kinds that are run (a pattern, without .json).
# MODELS: the folder of parts models and runtime (out/models), which tests/gpu/model_ops.sh makes where the models are;
# MODEL: of part models, the files that are measured (patterns, without .json): all together are more than one call, and
# the next one has from the cache what was measured. MODEL_SECONDS: most for each operation, on average (6). DEVICES: of
# part models, what the lists are spread over ("cuda:0 cuda:1"; DEVICE); FUSIONS: the lists whose fusions it measures,
# too (a pattern, without .json: *).
# CACHE: cache.tar.gz of an earlier call's OUT, on another machine of the same kind, say.
# CHECK_JOBS: processes of part checks at a time (6).
# SANITIZE: the tools of part sanitizer (memcheck racecheck synccheck initcheck); SANITIZE_JOBS: processes at a time (12).
# REPEAT_RUNS: how often part repeat measures (5; fewer prove less, and it says so). REPEAT_CEILINGS=cached: these runs
# share ceilings instead of measuring them anew (45 s each instead of 70).
# QUICK: of part quick, the lists that tests/gpu/models_quick.py --make writes where the models are (out/quick).
# PEERS: of parts peers and end_to_end, the lists that tests/gpu/model_ops.sh makes of `peers` (out/peers); PEER: which
# (patterns) of part peers; PEER_HOW=--no-autotune: what peers.py is told; END_TO_END: which lists of part end_to_end.
# All of them are two calls.
# ONNX: of parts plans and zoo, the folder of the models that tests/gpu/zoo/zoo.json names (out/onnx). Part zoo measures them in a night for
# each of NIGHTS: the GPUs that it has ("0"). A night on one takes all of a call (LIMIT=590), so one on two ("0,1") is a
# call of its own, with other RESULTS; judge.py zoo FOLDER holds the two against each other where one folder has both. BIN must be an
# installed tree's (make install).
# WHEEL: of part runtime, what make wheel made (its Python half is left out without); SANITIZED: launches of a stream
# under memcheck (10000). CHECKS may hold bench_run as well (make bench-run builds it).
# LLAMA_OPS: an ops.json of llama2_7b instead of the short form beside this file. MLP_SPARSE: mlp_sparse.onnx, whose
# weights part sparse looks at (skipped without; BIN must hold extract_ops); SPARSE_BLOCKS: what it sweeps (64 128).
# DEVICE: cuda:0.
# Ends with "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit

# Each part with the seconds that it may take; behind it what it took on an H200, or is expected to (about).
parts=(devices sustained bandwidth llama stream sweep burst precisions repeat agree epilogue faults trace checks sanitizer kinds
    targets sparse models agree_kinds custom fusions claims quick whole allocations peers end_to_end runtime plans zoo)
declare -A limits=(
    [devices]=30   # 5
    [sustained]=260 # about 160: three searches of 24 s, each with its audit
    [bandwidth]=60 # 1: the first search has measured it
    [llama]=120    # 60, as the ceilings are known by then
    [stream]=120   # 42
    [sweep]=90     # about 50
    [burst]=200    # about 150: three searches of 24 s, each with its audit
    [precisions]=200 # about 160: the rest of them, likewise
    [repeat]=420   # 350; 224 with REPEAT_CEILINGS=cached
    [agree]=190    # about 120: 14 to 20 s an operation
    [epilogue]=180 # about 110: four comparisons, and eleven operations measured
    [faults]=150   # 40
    [trace]=60     # about 35
    [checks]=300  # about 100: 50 for the programs, as much for all lists beside each other
    [sanitizer]=530 # about 60 to 120 for each of its four tools
    [kinds]=420   # about 2 s an operation
    [targets]=300 # about 240: 27 for attention and 20 for our own alone, 92 for rows, 100 for sparse weights
    [sparse]=300 # two sweeps of nine products, about 8 s each; 30 for the model
    [models]=530  # one device has no time for all 18: spread them over DEVICES
    [agree_kinds]=300 # about 150: 8 to 12 s an operation for PyTorch, 4 for scout_batch
    [custom]=200 [fusions]=420 # expected: 4 s an operation, 7 s a fusion
    [quick]=260 [allocations]=260 # expected: four models three times each; six processes of fourteen operations
    [whole]=300 # about 11 for each model of parts quick and models
    [peers]=560 # about 50 for each of the models
    [zoo]=590 # expected: 10 s for each of 45 lists
    [runtime]=480 # 290: 20 for the tables, 60 for the launches, 150 for memcheck, 60 for PyTorch
    [plans]=300 # expected: 10 s for each of nine, and 60 for all plans
    [claims]=260 # expected: 235 at most, as LIMIT of claims.sh says
    [end_to_end]=280) # expected: 50 for each of five, half of it by PyTorch
declare -A groups=([figures]="devices sustained bandwidth llama stream sweep burst" [agreement]="repeat agree faults trace"
    [checking]="epilogue checks sanitizer" [kinds]="kinds targets sparse" [fusions]="fusions claims" [instrument]="quick whole allocations" [libraries]="agree_kinds end_to_end custom")
LIMIT=${LIMIT:-540}

SPARSE_BLOCKS=${SPARSE_BLOCKS:-64 128}
REPEAT_RUNS=${REPEAT_RUNS:-5} SANITIZE_JOBS=${SANITIZE_JOBS:-12} CHECK_JOBS=${CHECK_JOBS:-6}
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

batch() { "$scout" --device "$DEVICE" "${library[@]}" --cache-dir "$cache" "$@"; }
timed() { # NAME COMMAND…: its seconds go to NAME.seconds; 1 is "done, but", 5 "revert": no failures of the run
    local name=$1 start code=0
    shift
    start=$(date +%s.%N)
    "$@" >"$part/$name.txt" 2>"$part/$name.err" || code=$?
    echo "$(date +%s.%N) $start $code" | awk '{print $1 - $2, $3}' >"$part/$name.seconds"
    if ((code > 1 && code != 5)); then
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
# One program beside others; what it said goes to NAME.txt, its exit status to NAME.code (124: not finished in ALLOWED s).
beside() { # JOBS NAME COMMAND…
    local most=$1 name=$2
    shift 2
    while (($(jobs -rp | wc -l) >= most)); do wait -n; done
    {
        CEILING_SCOUT_LIBRARY_PATH=$libraries timeout --kill-after=5 "${ALLOWED:-150}" "$@" >"$part/$name.txt" 2>&1
        echo $? >"$part/$name.code"
    } &
}
part_checks() { # the programs, then every candidate of every kind, libraries' too, launched once over awkward shapes
    local program file name found=$libraries${libraries:+${LD_LIBRARY_PATH:+:}}${LD_LIBRARY_PATH:-}
    timed candidates "$scout" "${library[@]}" --list-candidates
    for program in "$CHECKS"/check_*; do
        name=${program##*/}
        if [[ ! -x $program || $name == check_kernels ]]; then continue; fi
        # one at a time, as some are about time; CUPTI is looked for by its name alone
        beside 1 "$name" env LD_LIBRARY_PATH="$found" "$program" "$BIN/scout_cuda.so"
    done
    wait
    if [[ ! -x $CHECKS/check_kernels ]]; then return; fi
    for file in "$here"/own_awkward.json "$here"/kinds/${KINDS:-*}.json; do
        name=${file##*/}
        beside "$CHECK_JOBS" "kernels_${name%.json}" "$CHECKS/check_kernels" "$BIN/scout_cuda.so" --all "$file"
    done
    wait
}
part_bandwidth() { # the table of the first ceilings that were measured
    if [[ -e $RESULTS/sustained/fp16.json ]]; then
        cp "$RESULTS/sustained/fp16.json" "$part/ceilings.json"
    else
        timed bandwidth batch --ceilings --precision fp16 -o "$part/ceilings.json"
    fi
}
ceilings_of() { # LOAD PRECISION…: one call per precision with its audit, so that a late one is lost alone
    local load=$1 precision
    shift
    for precision; do
        timed "$precision" batch --ceilings --regime "$load" --precision "$precision" --exhaustive -o "$part/$precision.json"
        grep -E '^ +(peak +'"$precision"'|audit|memory)' "$part/$precision.txt"
    done
}
part_sustained() {
    rm -rf "$cache" # these are measured here, by every call of this script
    ceilings_of sustained fp16 bf16 fp8
}
part_burst() {
    rm -rf "$part/cache"
    cache=$part/cache
    ceilings_of burst fp16 bf16 fp8
}
part_precisions() { ceilings_of sustained tf32 int8 fp32; }
part_sweep() {
    timed sweep batch --ceilings --precision fp16 --k-sweep -o "$part/sweep.json"
    grep -iE 'sweep|^ +[0-9]+ ' "$part/sweep.txt" | sed -n 1,16p
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
    timed scout batch "$here/six_gemms.json" --precision fp16 --cache cold --no-cache -o "$part/scout"
    timed torch python3 "$here/agree.py" "$part/scout/reports" "$part/agree.json"
    cat "$part/torch.txt"
}
part_stream() {
    known
    timed stream batch "$here/stream_gemms.json" --precision fp16 --cache cold --no-cache -o "$part/run"
    timed bytes batch "$here/stream_bytes.json" --precision fp16 --cache cold --no-cache --budget 40 -o "$part/bytes"
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
        # a budget that is more than enough: what would not settle is measured once more
        timed "${name%.json}" batch "$file" --precision fp16 --cache cold --no-cache --budget 200 \
            -o "$part/${name%.json}"
        cat "$part/${name%.json}.txt"
        if [[ $name != attention_targets.json ]]; then continue; fi
        # a race drops what is far behind before it is confirmed: here our own is, however far
        timed attention_targets_alone batch "$file" --precision fp16 --cache cold --no-cache --compare \
            --candidate attention_tiled,attention_decode -o "$part/attention_targets_alone"
        cat "$part/attention_targets_alone.txt"
    done
}
part_sparse() { # weights of a model that are not alike, and from how many zeros on leaving them out is faster
    local block
    known
    if [[ -e ${MLP_SPARSE:-} && -x $BIN/extract_ops ]]; then
        timed extract "$BIN/extract_ops" "$MLP_SPARSE" --batch 4096 -o "$part/ops.json"
        timed mlp batch "$part/ops.json" --precision fp16 --only gemm --no-cache --weight-threshold 0.01 -o "$part/mlp"
        cat "$part/mlp.txt"
    fi
    for block in $SPARSE_BLOCKS; do # part targets has every candidate at one fraction: here are those that may be the fastest
        timed "sweep_$block" batch --op gemm --shape 8192,8192,8192 --precision fp16 --sparsity-sweep \
            --sparse-block "$block" --cache cold --no-cache --candidate cublaslt,gemm_block_sparse -o "$part/sweep_$block"
        grep -A 12 'zeros as' "$part/sweep_$block.txt"
    done
}
part_fusions() { # parts in sequence beside what does all at once: right everywhere, and at sizes that count, what it saves
    local name
    known
    for name in awkward large; do
        timed "${name}_apart" batch "$here/${name}_fusions.json" --no-fusions -o "$part/$name"
        timed "$name" batch "$here/${name}_fusions.json" --only fusion --resume -o "$part/$name"
        cat "$part/$name.txt"
    done
}
part_faults() {
    local plugin=$CHECKS/faulty.so
    if [[ ! -e $plugin ]]; then
        plugin=$RESULTS/faulty.so
        nvcc -std=c++17 -I. -O2 -shared -Xcompiler -fPIC -gencode=arch=compute_90a,code=sm_90a "$here/faulty.cu" \
            -o "$plugin" || return 1
    fi
    local own
    own=$(mktemp -d)/faulty.so # another copy may be there already
    install -m 755 "$plugin" "$own"
    known
    timed without batch --op gemm --shape 1024,1024,1024 --precision fp16 --no-cache -o "$part/without.json"
    timed with batch --op gemm --shape 1024,1024,1024 --precision fp16 --no-cache --custom-kernel "$own" \
        -o "$part/with.json"
}
part_custom() { # the example of a custom kernel beside cuBLAS, and what ncu counts of both where it is here and may
    local plugin shape name
    plugin=$(mktemp -d)/skinny_cuda.so
    if [[ -e $CHECKS/skinny_cuda.so ]]; then
        install -m 755 "$CHECKS/skinny_cuda.so" "$plugin"
    else
        make -s -C docs/examples/custom_kernel cuda SCOUT_INCLUDE="$PWD" OUT="${plugin%/*}" || return 1
    fi
    for shape in 1,4096,4096 4,11008,4096 3,1000,777 2,8,1; do
        name=skinny_${shape//,/x}
        batch --op gemm --shape "$shape" --precision fp16 --no-cache --custom-kernel "$plugin" --before cublas --compare \
            -o "$part/$name.json" >"$part/$name.txt" 2>"$part/$name.err"
        echo "$?" >"$part/$name.code"
        cat "$part/$name.txt"
    done
    printf '{"skinny": {"op": "gemm", "shape": [1, 4096, 4096]}}\n' >"$part/ops.json"
    known
    timed whole batch "$part/ops.json" --precision fp16 -o "$part/whole" --custom-kernel "$plugin"
    SCOUT=$scout scripts/profile_ncu.sh "$part/ops.json" skinny "$part/whole" --precision fp16 "${library[@]}" \
        --custom-kernel "$plugin" >"$part/ncu.txt" 2>&1
    echo "$?" >"$part/ncu.code"
    cat "$part/ncu.txt"
}
part_trace() { # what the timing engine takes for granted of a clock at its power limit
    timed clock_trace python3 "$here/clock_trace.py"
    cut -c 1-150 "$part/clock_trace.txt"
}
sanitize() { # TOOL NAME COMMAND…: one program under one tool, as TOOL-NAME
    local tool=$1 name=$2 options=(--print-limit 20 --error-exitcode 7)
    if [[ $tool == memcheck ]]; then options+=(--report-api-errors no); fi # what is refused is asked for, and answered
    shift 2
    beside "$SANITIZE_JOBS" "$tool-$name" compute-sanitizer --tool "$tool" "${options[@]}" "$@"
}
part_sanitizer() { # every own kernel over awkward shapes, launched alone; the largest are left out
    local tool file name how after kernels=$CHECKS/check_kernels ALLOWED=400
    if ! command -v compute-sanitizer >/dev/null || [[ ! -x $kernels ]]; then
        echo "skipped: compute-sanitizer or $kernels is not here"
        return
    fi
    timed candidates "$scout" "${library[@]}" --list-candidates
    sanitize memcheck first "$kernels" "$BIN/scout_cuda.so" --most 200 "$here/own_awkward.json"
    wait
    if grep -q 'Device not supported' "$part/memcheck-first.txt"; then
        echo "skipped: compute-sanitizer does not know this device, or may not look into it: another machine may let it"
        rm "$part"/*.code
        return
    fi
    rm "$part"/memcheck-first.*
    for tool in ${SANITIZE:-memcheck racecheck synccheck initcheck}; do
        how=(--most 1e8)
        # what libraries store by TMA initcheck calls unwritten: there such outputs are poisoned, which results would show
        after=("${how[@]}")
        if [[ $tool == racecheck ]]; then how+=(--no-compare); fi
        if [[ $tool == initcheck ]]; then how+=(--unwritten); fi
        for file in "$here"/own_awkward.json "$here"/kinds/${KINDS:-*}.json; do
            name=${file##*/}
            sanitize "$tool" "${name%.json}" "$kernels" "$BIN/scout_cuda.so" "${how[@]}" "$file"
        done
        # kernels of ours that libraries lean on: weights that are turned round, and three without shared memory
        sanitize "$tool" behind_quantised "$kernels" "$BIN/scout_cuda.so" --candidate cublaslt_quantised --variants 2 \
            "${how[@]}" "$here/kinds/gemm_quantised.json"
        if [[ $tool == memcheck || $tool == initcheck ]]; then
            sanitize "$tool" behind_conv "$kernels" "$BIN/scout_cuda.so" --candidate cudnn_conv --variants 4 "${how[@]}" \
                "$here/kinds/conv_dnn.json"
            sanitize "$tool" behind_attention "$kernels" "$BIN/scout_cuda.so" --candidate cudnn_attention --variants 1 \
                "${after[@]}" "$here/own_awkward.json"
            sanitize "$tool" behind_tail "$kernels" "$BIN/scout_cuda.so" --candidate cublaslt_tail \
                --variants 2 "${after[@]}" "$here/kinds/gemm_epilogue.json"
            sanitize "$tool" behind_padded "$kernels" "$BIN/scout_cuda.so" --candidate cublaslt_padded \
                --variants 3 "${after[@]}" "$here/kinds/gemm_padded.json"
            sanitize "$tool" behind_product "$kernels" "$BIN/scout_cuda.so" --candidate conv_product \
                --variants 6 "${after[@]}" "$here/kinds/conv_product.json"
        fi
        if [[ $tool == memcheck ]]; then
            sanitize "$tool" check_stream "$CHECKS/check_stream" "$BIN/scout_cuda.so" moves # reads memory that was not written
        fi
        sanitize "$tool" check_whole "$CHECKS/check_whole" "$BIN/scout_cuda.so"
    done
    wait
}
next_model() { # FILE…: the first one not taken; all devices ask at once
    local file
    for file; do
        if mkdir "$part/.${file##*/}" 2>/dev/null; then
            echo "$file"
            return
        fi
    done
    return 1
}
models_on() { # DEVICE FILE…
    local DEVICE=$1 file name how promised=llama2_7b@b1_s2048
    shift
    timed "ceilings_${DEVICE/:/_}" batch --ceilings --precision fp16
    while file=$(next_model "$@"); do
        name=${file##*/} name=${name%.json}
        how=(--budget "$(python3 -c 'import json, sys
model = json.load(open(sys.argv[1])) # weights take a replay about 2 s for each GB of fp16
seconds = float(sys.argv[2]) * sum(op["count"] > 0 for op in model["ops"])
print(5 + model["totals"]["parameters"] * 4e-9 + seconds)' "$file" "${MODEL_SECONDS:-6}")")
        if [[ $name == "$promised" ]]; then how=(--no-cache --budget 55); fi # what others left is none of its promise
        # shellcheck disable=SC2053 # a pattern it is
        if [[ $name != ${FUSIONS:-*} ]]; then how+=(--no-fusions); fi
        timed "$name" batch "$file" "${how[@]}" -o "$part/$name"
        echo "$name: $(tail -n 1 "$part/$name.txt" | cut -c 1-150)"
    done
}
part_models() { # the promised ones first; on several devices each list is of one of them
    local pattern device patterns files
    read -r -a patterns <<<"${MODEL:-llama2_7b@b1_s2048 bert_base@b8_s128 *}"
    mapfile -t files < <(for pattern in "${patterns[@]}"; do compgen -G "${MODELS:-out/models}/$pattern.json"; done)
    for device in ${DEVICES:-$DEVICE}; do models_on "$device" "${files[@]}" & done
    wait
}
part_agree_kinds() { # other libraries than cuBLASLt
    known
    timed scout batch "$here/agree_ops.json" --precision fp16 --cache cold --no-cache -o "$part/scout"
    CEILING_SCOUT_LIBRARY_PATH=$libraries timed torch python3 "$here/agree_kinds.py" "$here/agree_ops.json" \
        "$part/scout/reports" "$BIN/scout_cuda.so" "$part/agree_kinds.json"
    cat "$part/torch.txt"
}
part_end_to_end() { # the defaults of whole models beside PyTorch making the same calls; of part peers where that was before
    local name whole
    known
    for name in ${END_TO_END:-bert_base@b8_s128 gpt2@b8_s1024 llama2_7b@b1_s2048 resnet50@b8 vit_base@b8}; do
        whole=$RESULTS/peers/results/$name/model.json
        if [[ ! -e $whole ]]; then # with time for the tracer, which is behind all passes
            timed "$name" batch "${PEERS:-out/peers}/$name.json" --no-fusions --budget 30 -o "$part/$name"
            whole=$part/$name/model.json
        fi
        timed "torch_$name" python3 "$here/end_to_end.py" "${PEERS:-out/peers}/$name.json" "$whole" "$part/$name.json"
        cat "$part/torch_$name.txt"
    done
}

part_quick() { # whole models in the time that a person waits; QUICK: made by models_quick.py --make
    "$here/models_quick.py" "$BIN" "${QUICK:-out/quick}" "$part/results" | tee "$part/quick.txt"
}
part_allocations() { # fresh processes beside one that holds random allocations
    "$here/repeat_beside.py" "$BIN" "$part/results" | tee "$part/repeat_beside.txt"
}
part_whole() { # models of parts quick and models as a whole, by the defaults and by what is proven, and both beside fp32
    local folder name
    for folder in "$RESULTS"/quick/results/*@*/ "$RESULTS"/models/*@*/; do
        name=$(basename "$folder")
        if [[ ! -d $folder || $name == *_again || $name == *_quarter ]]; then continue; fi
        timed "$name" "$scout" --replay "$folder" --budget 10 "${library[@]}" --cache-dir "$cache"
        cp "$folder/model.json" "$part/$name.json"
        cat "$part/$name.txt"
    done
}
part_peers() { # whole models beside PyTorch
    local list name pattern patterns files measured=()
    read -r -a patterns <<<"${PEER:-*}"
    mapfile -t files < <(for pattern in "${patterns[@]}"; do compgen -G "${PEERS:-out/peers}/$pattern.json"; done)
    for list in "${files[@]}"; do
        name=$(basename "$list" .json)
        timed "$name" batch "$list" -o "$part/results/$name"
        if [[ ! -e $part/results/$name/model.json ]]; then
            echo "FAILED peers $name: it was not measured as a whole"
            continue
        fi
        cp "$part/results/$name/model.json" "$part/$name.json"
        measured+=("$name=$part/$name.json")
        echo "$name: $(cut -d' ' -f1 "$part/$name.seconds") s with its replay"
    done
    "$here/peers.py" ${PEER_HOW:+"$PEER_HOW"} "$part/peers.json" "${measured[@]}" 2>"$part/peers.err" | tee "$part/peers.txt"
}
part_runtime() { # what tables name, launched by libscout_run from C, Python and PyTorch
    local name tables=() check=$CHECKS/check_run
    known
    for name in bert_base@b8_s128 llama2_7b@b1_s2048; do
        timed "$name" batch "${MODELS:-out/models}/$name.json" --precision fp16 --no-replay --budget 20 -o "$part/$name"
        timed "dispatch_$name" "$BIN/analyze" dispatch "$part/$name" -o "$part/$name.json"
        tables+=("$part/$name.json")
    done
    export CEILING_SCOUT_LIBRARY_PATH=$BIN${libraries:+:$libraries} # bench_run finds the device there
    LAUNCHES=10000 timed check_run "$check" "$BIN/scout_cuda.so" "${tables[@]}"
    tail -n 40 "$part/check_run.txt"
    if [[ -x $CHECKS/bench_run ]]; then timed bench_run "$CHECKS/bench_run" 51 cuda && cat "$part/bench_run.txt"; fi
    if command -v compute-sanitizer >/dev/null; then
        LAUNCHES=${SANITIZED:-10000} timed memcheck compute-sanitizer --tool memcheck --report-api-errors no \
            --error-exitcode 7 "$check" "$BIN/scout_cuda.so" "${tables[0]}"
        tail -n 3 "$part/memcheck.txt"
    fi
    grep -hE 'operations$|threads on|passed,' "$part/check_run.txt" >"$part/runtime.txt"
    if [[ -n ${WHEEL:-} ]] && python3 -m pip install -q --no-index --no-deps --target "$part/site" "$WHEEL"; then
        export PYTHONPATH=$part/site:$here/../python${PYTHONPATH:+:$PYTHONPATH}
        timed torch python3 -m unittest -v test_torch.Cuda
        tail -n 4 "$part/torch.err"
        timed patch python3 "$here/patch.py" "bert_base@b8_s128=${tables[0]}" "llama2_7b@b1_s2048=${tables[1]}"
        cat "$part/patch.txt"
    fi
    { cat "$part"/bench_run.txt && grep -hE 'threads on|passed,|ERROR SUMMARY' "$part/memcheck.txt" && cat "$part"/patch.txt; } \
        >>"$part/runtime.txt" 2>/dev/null || true
}
part_zoo() { # a zoo with nothing known: each night has ceilings and a cache of its own
    local gpus model
    mkdir -p "$part/list"
    cp "$here/zoo/zoo.json" "$part/list/"
    grep -oE '[a-z0-9_]+\.onnx' "$here/zoo/zoo.json" | while read -r model; do
        ln -s "$(realpath "${ONNX:-out/onnx}/$model")" "$part/list/$model"
    done
    export CEILING_SCOUT_LIBRARY_PATH=$libraries
    for gpus in ${NIGHTS:-0}; do
        timed "on_$gpus" "$BIN/ceiling-scout" zoo "$part/list/zoo.json" --gpus "$gpus" --again --digest -o "$part/on_$gpus"
        "$BIN/analyze" history "$part/on_$gpus/zoo/history.db" --format csv -o "$part/on_$gpus/history.csv"
        tail -n 1 "$part/on_$gpus.txt"
    done
}
part_plans() { # whole models by libscout_run beside the CPU: by their defaults, and by the plan that was measured
    local name folders=()
    known
    for name in bert_tiny_w mlp_sparse mobilenet_v3 resnet50_ts vit_base_ts bert_base gpt2_ts llama_decode_kv swin_t; do
        local folder=$part/$name
        mkdir -p "$folder.default" "$folder"
        "$BIN/extract_ops" "${ONNX:-out/onnx}/$name.onnx" -q --batch 1 --seq 64 --precision fp16 -o "$folder/ops.json" \
            2>>"$part/extract.err" || continue
        cp "$folder/ops.json" "$folder.default/"
        timed "$name.batch" batch "$folder/ops.json" --budget 10 -o "$folder"
        folders+=("$folder.default" "$folder")
    done
    CEILING_SCOUT_LIBRARY_PATH=$libraries timed check_plan "$CHECKS/check_plan" "$BIN/scout_cuda.so" "${folders[@]}"
    grep -E 'off$|refused|passed' "$part/check_plan.txt" | sed "s|$part/||" | tee "$part/plans.txt"
}
part_claims() { # what the documents claim that this project started from
    TORCH_LIBRARIES=$libraries CACHE_DIR=$cache timed claims "$here/claims.sh" "$part/results"
    cat "$part/claims.txt"
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
if [[ -n ${CACHE:-} && ! -d $cache ]]; then tar xzf "$CACHE" -C "$RESULTS"; fi
# of PyTorch, for all; else whatever the search order finds
TORCH_LIBRARIES=$(python3 "$here/torch_libraries.py" 2>/dev/null)
export TORCH_LIBRARIES BIN DEVICE RESULTS CHECKS REPEAT_RUNS SANITIZE_JOBS CHECK_JOBS SPARSE_BLOCKS
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
    tar czf "$OUT/reports.tar.gz" --exclude='cache*' --exclude='*.so' --exclude=trace.json --exclude=program -C "$RESULTS" .
    cp "$RESULTS/summary.txt" "$OUT/summary.txt"
    if [[ -d $cache ]]; then tar czf "$OUT/cache.tar.gz" -C "$RESULTS" "${cache##*/}"; fi
fi
cat "$RESULTS/verdict.txt"
grep -q ' 0 failed' "$RESULTS/verdict.txt"
