#!/usr/bin/env bash
# analyze export --missing: which tuning files a model's deployment looks for, where, and what is refused.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/analyze.sh"

made() { python3 "$ROOT/tests/cli/made_configs.py" "${@:2}" >"$1"; } # FILE NAME MEMBER=JSON…
missing() { analyze export --missing vllm "$1" --device "NVIDIA H200" --configs vllm "${@:2}"; }
names() { sed -n 's/^  [a-z]*  *.* \([^ ]*\)$/\1/p' stdout.txt | tr '\n' ' '; }
missing_refused() { # WHAT CODE ARGUMENTS…
    local what=$1 code=$2
    shift 2
    analyze_refused "$what" "$code" export --missing vllm "$@"
}
experts=vllm/model_executor/layers/fused_moe/configs blocks=vllm/model_executor/layers/quantization/utils/configs
mkdir -p $experts $blocks tuned

# ---- experts ----
made mixtral.json mixtral
missing mixtral.json --tensor-parallel 2
check "experts: exit 1, it is missing" exits 1
check "experts: its name" test "$(names)" = "E=8,N=7168,device_name=NVIDIA_H200.json "
check "experts: how many" prints "vllm: tuning files of mixtral.json on NVIDIA H200: 1, missing: 1"
check "experts: nothing on stderr" test -z "$STDERR"
touch "$experts/E=8,N=7168,device_name=NVIDIA_H200.json"
missing mixtral.json --tensor-parallel 2
check "experts: exit 0, it is there" exits 0
check "experts: where" prints "found    experts"
check "experts: and by its path" prints "$experts/E=8,N=7168"
missing mixtral.json --tensor-parallel 2 --expert-parallel
check "experts: shared, not cut" test "$EXIT $(names)" = "1 E=4,N=14336,device_name=NVIDIA_H200.json "
touch "tuned/E=4,N=14336,device_name=NVIDIA_H200.json"
missing mixtral.json --tensor-parallel 2 --expert-parallel --configs tuned
check "experts: in a folder of tuning files" exits 0
mkdir model && mv mixtral.json model/config.json
missing model
check "experts: a folder of a model" test "$(names)" = "E=8,N=14336,device_name=NVIDIA_H200.json "
for device in "NVIDIA H100 80GB HBM3=NVIDIA_H100_80GB_HBM3" "NVIDIA H200 NVL=NVIDIA_H200" "NVIDIA  H20/x=NVIDIA_H20_x" "XH200=XH200"; do
    analyze export --missing vllm model --device "${device%=*}" --configs vllm
    check "experts: on ${device%=*}" test "$(names)" = "E=8,N=14336,device_name=${device#*=}.json "
done
for type in 'fp32="float32"=,dtype=float32' 'fp8={"quant_method": "fp8"}=,dtype=fp8_w8a8'; do
    member=${type#*=} member=${member%%=*}
    case $type in fp8*) made typed.json mixtral "quantization_config=$member" ;; *) made typed.json mixtral "torch_dtype=$member" ;; esac
    missing typed.json
    check "experts: ${type%%=*}" test "$(names)" = "E=8,N=14336,device_name=NVIDIA_H200,${type##*=,}.json "
done
made nested.json qwen3_moe
python3 -c 'import json; print(json.dumps({"model_type": "x_vl", "text_config": json.load(open("nested.json"))}))' >text.json
missing text.json
check "experts: of a model that reads more than text" test "$(names)" = "E=128,N=768,device_name=NVIDIA_H200.json "

# ---- products whose blocks have scales ----
made deepseek.json deepseek
missing deepseek.json --tensor-parallel 8
name() { echo "$1,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128,128].json"; }
check "products: DeepSeek-V3 on 8" test "$(names)" = "$(for size in E=256,N=256 N=2112,K=7168 N=3072,K=1536 N=4096,K=512 N=7168,K=2048 \
    N=4608,K=7168 N=7168,K=2304 N=512,K=7168 N=7168,K=256; do printf %s "$(name $size)" && printf ' '; done)"
touch "$blocks/$(name N=4096,K=512)" "tuned/$(name N=7168,K=256)"
missing deepseek.json --tensor-parallel 8 --configs tuned
check "products: those of the package alone are read" prints "9, missing: 8"
made llama.json llama quantization_config=fp8
missing llama.json
check "products: Llama" test "$(names)" = "$(for size in N=6144,K=4096 N=4096,K=4096 N=28672,K=4096 N=4096,K=14336; do printf %s "$(name $size)" && printf ' '; done)"
missing llama.json --tensor-parallel 16
check "products: heads of keys on several GPUs" test "$(names | cut -d ' ' -f 1)" = "$(name N=512,K=4096)"
made plain.json llama
missing plain.json
check "none are looked for: exit 0" exits 0
check "none are looked for: says so" prints "NVIDIA H200: 0, missing: 0"

# ---- refused ----
missing_refused "no device" 2 model --configs vllm
missing_refused "no folder of files" 2 model --device H200
missing_refused "a folder of files that is not there" 3 model --device H200 --configs nowhere
missing_refused "two models" 2 model model --device H200 --configs vllm
missing_refused "an output" 2 model --device H200 --configs vllm -o refused
analyze_refused "another program" 2 export --missing sglang model --device H200 --configs vllm
missing_refused "no such model" 3 nowhere --device H200 --configs vllm
missing_refused "experts that cannot be shared" 3 model --device H200 --configs vllm --tensor-parallel 3 --expert-parallel
check "experts that cannot be shared: says which" says "3 GPUs cannot share num_local_experts, which is 8"
missing_refused "experts that cannot be cut" 3 model --device H200 --configs vllm --tensor-parallel 3
for bad in 'num_local_experts=-1' 'num_local_experts="8"' 'num_local_experts=1e3' 'num_local_experts=99999999999999999999' \
    'intermediate_size=null' 'quantization_config={"quant_method": "gptq"}' 'quantization_config={"quant_method": "\u001b[31m"}' \
    'quantization_config={"quant_method": "fp8", "weight_block_size": [128]}' \
    'quantization_config={"quant_method": "fp8", "weight_block_size": [0, 128]}' \
    'quantization_config={"quant_method": "fp8", "weight_block_size": {"a": 1}}'; do
    made bad.json mixtral "$bad"
    missing_refused "$bad" 3 bad.json --device H200 --configs vllm
    check "$bad: the terminal is left alone" test -z "$(LC_ALL=C grep -n '[[:cntrl:]]' stderr.txt)"
done
made bad.json mixtral 'model_type="another"' quantization_config=fp8
missing_refused "a family that is not known" 3 bad.json --device H200 --configs vllm
check "a family that is not known: says which are" says "deepseek_v3"
for text in '' '[]' '{' '1' '"x"' "$(printf '[%.0s' {1..100})"; do
    printf %s "$text" >bad.json
    missing_refused "a file that holds $(printf %q "${text:0:5}")" 3 bad.json --device H200 --configs vllm
done
analyze export --missing vllm model --device $'a\x1b[31m\nb' --configs vllm
check "hostile: a device" test -z "$(LC_ALL=C grep -n '[[:cntrl:]]' stdout.txt)"
finish
