#!/usr/bin/env bash
# Configurations instead of models: they list what the exported model does, and what is wrong is said.
source "${ROOT:?}/tests/cli/lib.sh"
exports=$ROOT/tests/config/exports

# ---- equal to the export ----
for packed in "$exports"/*.onnx.gz; do
    name=${packed##*/} name=${name%.onnx.gz}
    tokens=${name##*_} batch=${name%_*} batch=${batch##*_} config=${name%_*_*}
    gunzip -c "$packed" >export.onnx
    run "$EXTRACT_OPS" export.onnx -q -o export.json
    check "$name: the export" test "$EXIT" -le 1
    sizes=(--batch "$batch")
    if [[ $config != vit* ]]; then sizes+=(--tokens "$tokens"); fi
    extract --config "$exports/$config.json" "${sizes[@]}" -q -o config.json
    check "$name: exit 0" exits 0
    run python3 -B "$ROOT/tests/cli/config_compare.py" export.json config.json
    check "$name: equal" exits 0
done
check "all families are among them" test "$(cat "$exports"/*.json | grep -o '"model_type": "[^"]*"' | sort -u | wc -l)" = 9

# ---- a published size ----
cat >llama2.json <<'JSON'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
 "num_attention_heads": 32, "vocab_size": 32000, "torch_dtype": "float16"}
JSON
total() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["totals"][sys.argv[2]])' "$@"; }
ops() { python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$@"; }
extract --config llama2.json --tokens 16 -q -o llama2.ops.json
check "Llama 2 7B: its parameters" test "$(total llama2.ops.json parameters)" = 6738415616
check "Llama 2 7B: its type" test "$(ops llama2.ops.json '{o["dtype"] for o in r["ops"] if o["op"] == "gemm"}')" = "{'fp16'}"
check "Llama 2 7B: its name" test "$(ops llama2.ops.json 'r["model"]["name"]')" = llama2
extract --config llama2.json --tokens 16 -q -o again.json
check "the same bytes" same llama2.ops.json again.json
extract --config llama2.json --tokens 16 -q -o single.json --precision bf16
check "--precision" test "$(ops single.json '{o["dtype"] for o in r["ops"] if o["op"] == "gemm"}')" = "{'bf16'}"

# ---- several runs ----
for tokens in 1 16 2048; do extract --config llama2.json --tokens $tokens -q -o "of_$tokens.json"; done
extract --config llama2.json --tokens 1,16,2048 -q -o all.json
check "runs: exit 0" exits 0
check "runs: the work of all" test "$(total all.json macs)" = \
    $(($(total of_1.json macs) + $(total of_16.json macs) + $(total of_2048.json macs)))
check "runs: the weights of one" test "$(total all.json parameters)" = 6738415616
check "runs: an entry for each size" test \
    "$(ops all.json 'sorted((o["shape"][0], o["count"]) for o in r["ops"] if o["op"] == "gemm" and o["shape"][1:] == [4096, 4096])')" = \
    "[(1, 128), (16, 128), (2048, 128)]"
check "runs: dataflow of all" test "$(ops all.json 'len(r["graph"]["occurrences"]) == sum(o["count"] for o in r["ops"] if o["op"] != "move" or o.get("what") not in ("view", "folded"))')" = True

# ---- a cache ----
extract --config llama2.json --tokens 1 --past 2047 --batch 8 -q -o step.json
check "a step: keys of all" test "$(ops step.json '[(o["shape"], o["kv_len"], o["mask"]) for o in r["ops"] if o["op"] == "attention"]')" = \
    "[([8, 32, 1, 128], 2048, 'none')]"
check "a step: the cache is read" test "$(ops step.json '[o["bytes_read"] > 8 * 2047 * 2 * 4096 * 2 for o in r["ops"] if o["op"] == "attention"]')" = "[True]"
check "a step: what was asked for" test "$(ops step.json 'r["dims"]')" = "{'batch': 8, 'tokens': 1, 'past': 2047}"
check "runs: what was asked for" test "$(ops all.json 'r["dims"]')" = "{'batch': 1, 'tokens_1': 1, 'tokens_16': 16, 'tokens_2048': 2048}"
extract --config llama2.json --tokens 64 --past 192 -q -o chunk.json
check "a chunk behind a cache is causal" test "$(ops chunk.json '[(o["kv_len"], o["mask"]) for o in r["ops"] if o["op"] == "attention"]')" = "[(256, 'causal')]"

# ---- windows, and what null says: a step behind 8192 keys sees them all, or the last ones ----
steps() { # WHAT WINDOWS CONFIG: the windows and the heads of keys of its attentions
    printf '{"num_hidden_layers": 2, "max_window_layers": 0, %s}' "$3" >window.json
    extract --config window.json --tokens 1 --past 8192 -q -o window.ops.json
    check "$1" test "$(ops window.ops.json '[(o.get("window"), o["kv_heads"]) for o in r["ops"] if o["op"] == "attention"]')" = "$2"
}
steps "Mistral: the default window" "[(4096, 8)]" '"model_type": "mistral"'
steps "Mistral: null is no window" "[(None, 8)]" '"model_type": "mistral", "sliding_window": null'
steps "Mistral: null heads of keys are heads" "[(4096, 32)]" '"model_type": "mistral", "num_key_value_heads": null'
steps "Mistral: what does not ask for a window" "[(4096, 8)]" '"model_type": "mistral", "use_sliding_window": false'
steps "Qwen2: no window unless asked for" "[(None, 32)]" '"model_type": "qwen2", "sliding_window": 4096'
steps "Qwen2: no window where refused" "[(None, 32)]" '"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": false'
steps "Qwen2: the window asked for" "[(2048, 32)]" '"model_type": "qwen2", "sliding_window": 2048, "use_sliding_window": true'
steps "Qwen2: the default window" "[(4096, 32)]" '"model_type": "qwen2", "use_sliding_window": true'

# ---- names, quantised weights ----
mkdir -p "some model" && cp llama2.json "some model/config.json"
extract --config "some model/config.json" --tokens 1 -q -o named.json
check "a folder's name" test "$(ops named.json 'r["model"]["name"]')" = "some model"
sed 's/"vocab_size"/"quantization_config": {"bits": 4}, "vocab_size"/' llama2.json >quantised.json
extract --config quantised.json --tokens 1 -q -o quantised.ops.json
check "quantised: exit 0" exits 0
check "quantised: a warning" says "quantization_config is not followed"

# ---- what is refused ----
known="known are bert, gemma, gpt2, llama, mistral, mixtral, phi3, qwen2, vit"
config_refused() { # WHAT CODE TEXT CONFIG ARGUMENTS…
    local what=$1 code=$2 text=$3
    printf '%s' "$4" >bad.json
    refused "$what" "$code" --config bad.json -o refused.json "${@:5}"
    check "$what: says so" says "$text"
}
config_refused "an unknown family" 3 "\"mamba\" is not known; $known" '{"model_type": "mamba"}' --tokens 1
config_refused "no family" 3 "$known" '{}' --tokens 1
config_refused "no object" 3 "an object is expected" '[]' --tokens 1
config_refused "no JSON" 3 "extract_ops: bad.json: line 1" '{"model_type": ' --tokens 1
config_refused "an unknown activation" 3 '"snake", which is not known' '{"model_type": "llama", "hidden_act": "snake"}' --tokens 1
config_refused "an unknown type" 3 "must be float32, float16 or bfloat16" '{"model_type": "llama", "dtype": "int4"}' --tokens 1
config_refused "an architecture that ends like another" 3 "known are BertModel," '{"model_type": "bert", "architectures": ["BertLMHeadModel"]}' --tokens 1
config_refused "an unknown architecture" 3 "known are LlamaForCausalLM, LlamaModel" '{"model_type": "llama", "architectures": ["LlamaForX"]}' --tokens 1
config_refused "heads that do not fit" 3 "no multiple of the 7 heads" '{"model_type": "llama", "num_attention_heads": 7}' --tokens 1
config_refused "heads of keys that do not fit" 3 "no multiple of the 5 heads of keys" '{"model_type": "llama", "num_key_value_heads": 5}' --tokens 1
config_refused "too many experts" 3 "9 experts, but there are 8" '{"model_type": "mixtral", "num_experts_per_tok": 9}' --tokens 1
config_refused "a text for a number" 3 '"hidden_size" must be a whole number' '{"model_type": "llama", "hidden_size": "4096"}' --tokens 1
config_refused "a negative number" 3 '"hidden_size" must be a whole number' '{"model_type": "llama", "hidden_size": -1}' --tokens 1
config_refused "too many positions" 3 "512 positions" '{"model_type": "bert"}' --tokens 513
config_refused "too many positions behind a cache" 3 "1024 positions" '{"model_type": "gpt2"}' --tokens 1 --past 1024
config_refused "too many layers" 3 "more than 4096 in all" '{"model_type": "llama", "num_hidden_layers": 4096}' --tokens 1,2
config_refused "no tokens" 2 "needs --tokens" '{"model_type": "llama"}'
config_refused "tokens of an image" 2 "leave out --tokens" '{"model_type": "vit"}' --tokens 5
config_refused "a cache of BERT" 2 "leave out --past" '{"model_type": "bert"}' --tokens 5 --past 5
config_refused "a number twice" 2 "names 7 twice" '{"model_type": "llama"}' --tokens 7,1,7
config_refused "no number" 2 "--tokens must be" '{"model_type": "llama"}' --tokens 1,
config_refused "a sequence" 2 "give --tokens" '{"model_type": "llama"}' --seq 5
refused "a folder" 3 --config . --tokens 1 -o refused.json
refused "no file" 3 --config nowhere.json --tokens 1 -o refused.json
refused "both" 2 "$MODEL" --config llama2.json --tokens 1 -o refused.json
refused "neither" 2 --tokens 1 -o refused.json
refused "tokens of a model" 2 "$MODEL" --tokens 1 -o refused.json
cp llama2.json kept.json
refused "the configuration's own name" 2 --config kept.json --tokens 1 -o kept.json
check "the configuration is as before" same kept.json llama2.json
run "$EXTRACT_OPS" llama2.json -q
check "a configuration as a model: what to do" says "a config.json for --config"

# ---- bent at random ----
run python3 -B "$ROOT/tests/cli/config_hostile.py" "$EXTRACT_OPS" 600 "$exports"/*.json
check "600 bent configurations are answered" exits 0
tail -n 1 stdout.txt
finish
