#!/usr/bin/env bash
# The operations of the models that parts `models` and `peers` of tests/gpu/run.sh measure, one file each, made where the
# models are:
#     tests/gpu/model_ops.sh FROM TO [peers]    FROM: a folder of ONNX models; TO: what MODELS, or PEERS, is told on the
#                                               GPU's machine
# A file is called NAME@bBATCH_sSEQUENCE.json (NAME@bBATCH.json where there is no sequence). What they say of weights
# stays behind with the models: there, weights are random numbers. EXTRACT: the program (bin/extract_ops).
set -euo pipefail
from=${1:?FROM, a folder of ONNX models} to=${2:?TO, a folder}
extract=${EXTRACT:-bin/extract_ops}

# NAME FILE BATCHES SEQUENCES: of part models as long as the model allows, of part peers as people run them
models=("bert_base bert_base 1,8 128,512" "gpt2 gpt2_ts 1,8 128,1024" "llama2_7b llama2_7b 1,8 128,2048"
    "vit_base vit_base_ts 1,8" "resnet50 resnet50_ts 1,8" "mobilenet_v3 mobilenet_v3 1,8")
if [[ ${3:-} == peers ]]; then
    models=("bert_base bert_base 8 128" "gpt2 gpt2_ts 8 1024" "llama2_7b llama2_7b 1 2048" "swin_t swin_t 8"
        "vit_base vit_base_ts 1,8,32" "resnet50 resnet50_ts 8,32" "mobilenet_v3 mobilenet_v3 8")
fi

mkdir -p "$to"
for model in "${models[@]}"; do
    read -r name file batches sequences <<<"$model"
    for batch in ${batches//,/ }; do
        if [[ -z $sequences ]]; then
            "$extract" "$from/$file.onnx" -q --precision fp16 --batch "$batch" -o "$to/$name@b$batch.json"
        fi
        for sequence in ${sequences//,/ }; do
            "$extract" "$from/$file.onnx" -q --precision fp16 --batch "$batch" --seq "$sequence" \
                -o "$to/$name@b${batch}_s$sequence.json"
        done
    done
done
printf '%d files in %s\n' "$(find "$to" -name '*@*.json' | wc -l)" "$to"
