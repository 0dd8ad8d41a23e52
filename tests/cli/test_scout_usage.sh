#!/usr/bin/env bash
# scout_batch's options: help, what is wrong in one line, what does not go together, and the lists.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"

scout --help
check "--help: exit 0" exits 0
for option in --output --op --shape --precision --sparsity --device --regime --cache --launch --budget --exhaustive --only \
    --resume --no-cache --cache-dir --k-sweep --library-path --custom-kernel --compare --before --run-once --counters --ceilings \
    --list-devices --list-candidates --cache-info --early-exit --quiet --sparse-block --sparsity-sweep --weight-threshold \
    --target-ci --min-time --quick --axis; do
    check "--help names $option" contains stdout.txt "$option"
done
check "--help keeps its workings to itself" test -z "$(grep -e --worker stdout.txt)"
check "--help tells the exit codes" contains stdout.txt "exit codes:"
scout --version
check "--version" exits 0

echo '{"a": {"op": "gemm", "shape": [8, 8, 8], "precision": "fp32"}}' >ops.json
echo '{"a": {"op": "gemm", "shape": [8, 8, 8]}, "b": {"op": "gemm", "shape": [8, 8, 16]}}' >two.json
scout_refused "nothing" 2
scout_refused "two files" 2 ops.json ops.json
scout_refused "a file and --op" 2 ops.json --op gemm --shape 1,2,3
scout_refused "--op without --shape" 2 --op gemm -o refused
scout_refused "--shape without --op" 2 --shape 1,2,3
scout_refused "--ceilings and a file" 2 ops.json --ceilings
scout_refused "--sparsity with a file" 2 ops.json --sparsity 0.5 -o refused
scout_refused "--sparsity 1" 2 --op gemm --shape 8,8,8 --sparsity 1
scout_refused "--sparsity -1" 2 --op gemm --shape 8,8,8 --sparsity -1
scout_refused "--sparsity of what has no weight" 2 --op softmax --shape 64,64 --sparsity 0.9 -o refused
check "--sparsity of what has no weight: what has one" says "sparsity and pattern are for gemm"
scout_refused "--pattern without --sparsity" 2 --op gemm --shape 8,8,8 --pattern UNSTRUCTURED
scout_refused "--sparse-block without --sparsity" 2 --op gemm --shape 8,8,8 --sparse-block 32
scout_refused "--sparse-block of single numbers" 2 --op gemm --shape 8,8,8 --sparsity 0.5 --pattern UNSTRUCTURED --sparse-block 32
scout_refused "--sparse-block 48" 2 --op gemm --shape 8,8,8 --sparsity 0.5 --sparse-block 48
scout_refused "--sparsity-sweep with a file" 2 ops.json --sparsity-sweep
scout_refused "--sparsity-sweep of what has no weight" 2 --op norm --shape 8,8 --sparsity-sweep
scout_refused "--sparsity-sweep and --sparsity" 2 --op gemm --shape 8,8,8 --sparsity-sweep --sparsity 0.5
scout_refused "--sparsity-sweep into one report" 2 --op gemm --shape 8,8,8 --sparsity-sweep -o refused.json
scout_refused "--sparsity-sweep of halves" 2 --op gemm --shape 8,8,8 --sparsity-sweep --pattern STRUCTURED_24
scout_refused "--weight-threshold without a weight" 2 --op gemm --shape 8,8,8 --weight-threshold 0.1
scout_refused "--weight-threshold -1" 2 ops.json --weight-threshold -1
scout_refused "--k-sweep with a file" 2 ops.json --k-sweep
scout_refused "--k-sweep of what has no K" 2 --op norm --shape 8,8 --k-sweep
scout_refused "--resume without a folder" 2 ops.json --resume
scout_refused "--resume with one report" 2 ops.json --resume -o refused.json
scout_refused "--only with --op" 2 --op gemm --shape 8,8,8 --only gemm
scout_refused "--only of nothing" 2 ops.json --only conv -o refused
scout_refused "--budget 0" 2 ops.json --budget 0
scout_refused "--budget x" 2 ops.json --budget soon
scout_refused "--early-exit 2" 2 ops.json --early-exit 2
scout_refused "an unknown regime" 2 ops.json --regime fast
scout_refused "an unknown cache state" 2 ops.json --cache warm
scout_refused "an unknown launch" 2 ops.json --launch twice
scout_refused "an unknown precision" 2 --op gemm --shape 8,8,8 --precision fp12
scout_refused "an unknown kind" 2 --op gemmm --shape 8,8,8 --precision fp32 -o refused
scout_refused "an impossible shape" 2 --op gemm --shape 8,0,8 --precision fp32 -o refused
scout_refused "a shape of two" 2 --op gemm --shape 8,8 --precision fp32 -o refused
scout_refused "a kind that needs more than a shape" 2 --op conv --shape 1,8,14,14 --precision fp32 -o refused
check "a kind that needs more than a shape: where to say it" says 'give it by --set'
cp "$ROOT/models/transformer_block.onnx" model.onnx
scout_refused "a model instead of its operations" 3 model.onnx -o refused
check "a model instead of its operations: which program reads it" says 'extract its operations first: extract_ops model.onnx -o ops.json'
scout_refused "a shape that is none" 2 --op gemm --shape big --precision fp32 -o refused
scout_refused "output with a list" 2 --list-devices -o refused
scout_refused "a worker's words" 2 --worker 3
scout_refused "two reports in one file" 2 two.json --precision fp32 -o refused.json
cp ops.json same.json
scout_refused "an unknown candidate" 2 ops.json --candidate blas -o refused
scout_refused "the operations as output" 2 same.json -o same.json
check "the operations as output: they stay" same same.json ops.json

scout_refused "a missing file" 3 nowhere.json -o refused
printf '{"a": {"op": "gemm", "shape": [8, 8, ' >cut.json
scout_refused "a file that is cut short" 3 cut.json -o refused
echo '{"a": {"op": "gemm", "shape": [8, 8, -8], "precision": "fp32"}}' >negative.json
scout_refused "a negative dimension" 3 negative.json -o refused
echo '{"a": {"op": "teleport", "shape": [8]}}' >kind.json
scout_refused "an unknown kind in a file" 3 kind.json -o refused
echo '{"a": {"op": "gemm", "shape": [8, 8, 8], "sparcity": 0.5}}' >misspelt.json
scout_refused "a misspelt member" 3 misspelt.json -o refused
check "a misspelt member: what was meant" says 'misspelt.json: a: "sparcity" is not known; did you mean "sparsity"?'
echo '{"a": {"op": "softmax", "shape": [64, 64], "sparsity": 0.9}}' >weightless.json
scout_refused "zeros of what has no weight" 3 weightless.json -o refused
check "zeros of what has no weight: whose" says 'weightless.json: a: sparsity and pattern are for gemm'
echo '{"schema": "ceiling-scout/ops/9", "ops": []}' >future.json
scout_refused "a future format" 3 future.json -o refused
echo '[1, 2]' >array.json
scout_refused "no object" 3 array.json -o refused

scout_refused "a plugin that is not there" 3 ops.json --custom-kernel ./nothing.so -o refused
echo "no object" >text.so
scout_refused "a plugin that is none" 3 ops.json --custom-kernel ./text.so -o refused
scout_refused "a device that is not there" 4 ops.json --device cuda:7 -o refused

scout --list-devices
check "--list-devices: exit 0" exits 0
check "--list-devices: the CPU" prints "cpu "
scout --list-devices --custom-kernel "$SCRIPTED/device.so"
check "--list-devices: all of them" test "$(grep -c '^[a-z]' stdout.txt)" -ge 3
scout --list-devices --custom-kernel "$SCRIPTED/device.so" --device scripted:1
check "--list-devices --device: that one" test "$(grep '^[a-z]' stdout.txt | cut -d' ' -f1)" = scripted:1
scout --list-candidates --custom-kernel "$SCRIPTED/device.so"
check "--list-candidates: exit 0" exits 0
check "--list-candidates: of the plugin" prints "scripted_blas"
check "--list-candidates: says which is the baseline" prints "[baseline]"
scout --cache-info
check "--cache-info: exit 0" exits 0
check "--cache-info: says where" prints "$XDG_CACHE_HOME"
scout --cache-info --cache-dir elsewhere
check "--cache-info --cache-dir" prints elsewhere
finish
