#!/usr/bin/env bash
# --set, --causal and --kv-heads: what else --op is than its shape, by the names of the short form.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"

same_reports() { # WHAT ENTRY WORDS…   the words measure the operation that the entry of a file is
    local what=$1 entry=$2
    shift 2
    echo "{\"x\": $entry}" >ops.json
    scripted ops.json -o by_file
    scripted "$@" -o by_words
    check "$what: one report" test "$(find by_words/reports -name '*.json' | wc -l)" = 1
    check "$what: as by a file" test "$(field by_words/reports/*.json 'r["key"], r["flops"], r["bytes_read"], r["bytes_written"]')" = \
        "$(field by_file/reports/*.json 'r["key"], r["flops"], r["bytes_read"], r["bytes_written"]')"
    check "$what: schemas" fits_schema by_words/run.json by_words/reports/*.json
    rm -rf by_file by_words
}

same_reports "a convolution" '{"op": "conv", "shape": [1, 16, 28, 28], "input": [1, 3, 56, 56], "kernel": [3, 3], "stride": [2, 2], "pads": [1, 1, 1, 1]}' \
    --op conv --shape 1,16,28,28 --set input=1,3,56,56 --set kernel=3,3 --set stride=2,2 --set pads=1,1,1,1
same_reports "an attention" '{"op": "attention", "shape": [1, 8, 64, 64], "causal": true, "kv_heads": 2, "kv_len": 128}' \
    --op attention --shape 1,8,64,64 --causal --kv-heads 2 --set kv_len=128
same_reports "a text, and true" '{"op": "gemm", "shape": [8, 16, 32], "layout": "nt", "bias": true, "activation": "relu"}' \
    --op gemm --shape 8,16,32 --set layout=nt --set bias=true --set activation=relu
same_reports "a fraction" '{"op": "attention", "shape": [1, 2, 16, 16], "scale": 0.5}' --op attention --shape 1,2,16,16 --set scale=0.5
same_reports "a block mask" '{"op": "attention", "shape": [1, 2, 512, 16], "block_mask": "local,0.25"}' \
    --op attention --shape 1,2,512,16 --set block_mask=local,0.250,64
same_reports "a block mask under a causal one" '{"op": "attention", "shape": [1, 2, 512, 16], "causal": true, "block_mask": "random,0.3,128,7"}' \
    --op attention --shape 1,2,512,16 --causal --set block_mask=random,0.3,128,7
same_reports "beside other options" '{"op": "gemm", "shape": [8, 64, 64], "layout": "nt", "sparsity": 0.5, "precision": "fp16"}' \
    --op gemm --shape 8,64,64 --set layout=nt --sparsity 0.5 --precision fp16
# ---- a device by a part of its name ----
scout --custom-kernel "$SCRIPTED/device.so" --device one --op gemm --shape 8,8,8 -o named.json
check "--device one: Scripted One" test "$EXIT $(field named.json 'r["device"]["model"]')" = "0 Scripted One"
scout_refused "--device one:7" 4 --custom-kernel "$SCRIPTED/device.so" --device one:7 --op gemm --shape 8,8,8 -o refused

# ---- a sequence in the place of a kind ----
same_reports "a sequence" '{"op": ["gemm", "bias", "relu"], "shape": [8, 16, 32]}' --op gemm --shape 8,16,32 --set bias=n --set activation=relu
same_reports "a sequence with a sum" '{"op": ["matmul", "add", "gelu"], "shape": [8, 16, 32]}' --op gemm --shape 8,16,32 --set residual=1 --set activation=gelu
same_reports "a sequence of a convolution" '{"op": ["conv2d", "bias", "silu"], "shape": [1, 8, 8, 8], "input": [1, 3, 10, 10], "kernel": [3, 3]}' \
    --op conv --shape 1,8,8,8 --set input=1,3,10,10 --set kernel=3,3 --set bias=channel --set activation=silu
same_reports "a sequence of one" '{"op": ["gemm"], "shape": [8, 16, 32]}' --op gemm --shape 8,16,32
for wrong in '["gemm", "relu", "bias"]' '["gemm", "relu", "gelu"]' '["gemm", "bias", "bias"]' '[]' '["gemm", 1]' '[["gemm"]]' '["softmax", "relu"]' \
    '["gemm", "nothing"]' '["nothing", "relu"]' '["gemm", "bias"], "bias": "n"' '["gemm", "bias\u0000"]' \
    '["gemm", "add", "add", "add", "add", "add", "add", "add", "add", "add"]'; do
    echo "{\"a\": {\"op\": $wrong, \"shape\": [8, 16, 32]}}" >ops.json
    scout_refused "op is $wrong" 3 ops.json -o refused
done

# ---- all of several ----
scripted --op gemm --shape 1..4,8,8 --axis precision=fp32,fp16 --set layout=nt -o sweep
check "a sweep: every operation has it" test "$(for file in sweep/reports/*.json; do field "$file" 'r["layout"]'; done | sort | uniq -c | tr -s ' ')" = " 6 nt"
check "a sweep: run.json says so" test "$(field sweep/run.json 'r["options"]["sets"]')" = "['layout=nt']"
scripted --op gemm --shape 8,8,8 --set layout=nt -o alone.json
check "a report may be a file" test "$(field alone.json 'r["layout"]')" = nt

for wrong in "--op gemm --shape 8,8,8|M=4" "--op gemm --shape 8,8,8|kv_heads=2" "--op gemm --shape 8,8,8|op=conv" "--op gemm --shape 8,8,8|shape=1,2,3" \
    "--op gemm --shape 8,8,8|layout" "--op gemm --shape 8,8,8|layout=" "--op gemm --shape 8,8,8|=nt" "--op gemm --shape 8,8,8|layout=nx" \
    "--op gemm --shape 8,8,8|batch=99999999999999999999" "--op conv --shape 1,8,8,8|input=1,3,8,8" "--op conv --shape 1,8,8,8|kernel=3,,3" \
    "--op gemm --shape 8,8,8 --set layout=nt|layout=nt" "--op gemm --shape 8,8,8 --axis layout=nn,nt|layout=nt" \
    "--op gemm --shape 8,8,8 --k-sweep|layout=nt" "--op gemm --shape 8,8,8 --sparsity-sweep|layout=nt"; do
    read -ra words <<<"${wrong%|*}"
    scout_refused "${wrong/|/ --set }" 2 "${words[@]}" --set "${wrong#*|}" -o refused
done
check "the last: says what to do" contains stderr.txt "leave --set out"
scout_refused "what a convolution needs" 2 --op conv --shape 1,8,8,8 -o refused
check "what a convolution needs: how it is given" contains stderr.txt "give it by --set"
scout_refused "--causal of a product" 2 --op gemm --shape 8,8,8 --causal -o refused
scout_refused "--kv-heads twice" 2 --op attention --shape 1,8,8,8 --kv-heads 2 --kv-heads 4 -o refused
scout_refused "--kv-heads that divide nothing" 2 --op attention --shape 1,8,8,8 --kv-heads 3 -o refused
scout_refused "--kv-heads that is no number" 2 --op attention --shape 1,8,8,8 --kv-heads x -o refused
# ---- block masks ----
for wrong in local bigbird,0.5 local,0 local,1.5 local,nan local,0.5,32 local,0.5,64,1 random,0.5,64,-1 random,0.5,64,4294967296 \
    random,0.5,64,1,1 0.5 0.5,0.5 "local,0.5 "; do
    scout_refused "block_mask=$wrong" 2 --op attention --shape 1,2,512,16 --set "block_mask=$wrong" -o refused
done
scout_refused "a block mask of a product" 2 --op gemm --shape 8,8,8 --set block_mask=local,0.5 -o refused
scout_refused "a block mask beside another" 2 --op attention --shape 1,2,512,16 --set block_mask=local,0.5 --set mask=lengths -o refused
scout_refused "blocks without a mask of them" 2 --op attention --shape 1,2,512,16 --set mask=blocks -o refused
scout_refused "more blocks than there may be" 2 --op attention --shape 1,1,131073,16 --set block_mask=local,0.5 -o refused
check "more blocks than there may be: how many" contains stderr.txt "131072 queries and keys at most"
echo '{"a": {"op": "gemm", "shape": [8, 8, 8]}}' >ops.json
scout_refused "of a file" 2 ops.json --set layout=nt -o refused
finish
