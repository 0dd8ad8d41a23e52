#!/usr/bin/env python3
"""Exports small models of the families that extract_ops --config knows, with random weights, and keeps of each the graph
alone: exports/NAME.json is the configuration, exports/NAME_BATCH_TOKENS.onnx.gz the export. The tests hold the one against
the other. Needs torch and transformers, which the tests do not: made with torch 2.15.0, transformers 5.24.0, onnx 1.23.
Usage: make_exports.py FOLDER [NAME…]"""
import gzip
import os
import sys
import tempfile
import warnings

import onnx
import torch
import transformers

SMALL = dict(vocab_size=320, hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=8)
GROUPED = dict(SMALL, num_key_value_heads=2)
IMAGES = dict({key: SMALL[key] for key in SMALL if key != "vocab_size"}, image_size=32, patch_size=8)
CASES = {
    "llama": ("LlamaForCausalLM", GROUPED),
    "llama_bias": ("LlamaForCausalLM", dict(SMALL, attention_bias=True, mlp_bias=True, tie_word_embeddings=True)),
    "llama_half": ("LlamaForCausalLM", dict(GROUPED, dtype="float16")),
    "llama_body": ("LlamaModel", dict(GROUPED, head_dim=16)),
    "qwen2": ("Qwen2ForCausalLM", GROUPED),
    "qwen2_window": ("Qwen2ForCausalLM", dict(GROUPED, use_sliding_window=True, sliding_window=6, max_window_layers=1)),
    "mistral": ("MistralForCausalLM", dict(GROUPED, sliding_window=None)),
    "mistral_window": ("MistralForCausalLM", dict(GROUPED, sliding_window=6)),
    "gemma": ("GemmaForCausalLM", dict(SMALL, num_key_value_heads=1, head_dim=16)),
    "phi3": ("Phi3ForCausalLM", dict(GROUPED, pad_token_id=0)),
    "phi3_partial": ("Phi3ForCausalLM", dict(SMALL, pad_token_id=0, partial_rotary_factor=0.5, hidden_act="gelu")),
    "mixtral": ("MixtralForCausalLM", dict(GROUPED, num_local_experts=4, num_experts_per_tok=2)),
    "gpt2": ("GPT2LMHeadModel", dict(vocab_size=320, n_embd=64, n_layer=2, n_head=8, n_positions=64)),
    "bert": ("BertModel", dict(SMALL, max_position_embeddings=64)),
    "bert_masked": ("BertForMaskedLM", dict(SMALL, max_position_embeddings=64)),
    "bert_classes": ("BertForSequenceClassification", dict(SMALL, max_position_embeddings=64, num_labels=5)),
    "bert_tokens": ("BertForTokenClassification", dict(SMALL, max_position_embeddings=64, hidden_act="gelu_new")),
    "vit": ("ViTForImageClassification", dict(IMAGES, num_labels=5)),
    "vit_body": ("ViTModel", IMAGES),
    "bert_half": ("BertModel", dict(SMALL, max_position_embeddings=64, dtype="bfloat16")),
}
KEPT = 600  # elements of a constant that a mask may be made of; larger ones lose their data


def build(name):
    architecture, values = CASES[name]
    made = getattr(transformers, architecture)
    config = made.config_class(**values)
    config.architectures = [architecture]
    config._experts_implementation = "batched_mm"  # the default one has no form in ONNX
    model = made(config).eval()
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():  # a bias of zeros would be optimised away
            weight.normal_(0, 0.1)
    return model.to(config.dtype or torch.float32)


def strip(graph):
    for tensor in graph.initializer:
        count = 1
        for dim in tensor.dims:
            count *= dim
        if count > KEPT:
            for field in ("raw_data", "float_data", "int64_data", "int32_data"):
                tensor.ClearField(field)
        tensor.ClearField("metadata_props")
    for part in [graph, *graph.node, *graph.value_info, *graph.input, *graph.output]:
        part.ClearField("metadata_props")
        part.ClearField("doc_string")
    graph.ClearField("value_info")


def export(model, path, batch, tokens):
    if model.config.model_type == "vit":
        inputs = torch.zeros(batch, model.config.num_channels, model.config.image_size, model.config.image_size, dtype=model.dtype)
    else:
        inputs = torch.zeros(batch, tokens, dtype=torch.int64)
    options = {} if model.config.model_type in ("vit", "bert") else {"use_cache": False}
    with tempfile.TemporaryDirectory() as scratch:
        there = os.path.join(scratch, "model.onnx")
        torch.onnx.export(model, (inputs,), there, kwargs=options, dynamo=True, opset_version=20, external_data=False, verbose=False)
        made = onnx.load(there)
    strip(made.graph)
    made.ClearField("functions")
    made.ClearField("metadata_props")
    with open(path, "wb") as file:
        file.write(gzip.compress(made.SerializeToString(), mtime=0))


def main():
    warnings.filterwarnings("ignore")
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name in sys.argv[2:] or CASES:
        model = build(name)
        model.config.to_json_file(os.path.join(folder, f"{name}.json"))
        sizes = ((1, 17), (2, 17)) if name.startswith("vit") else ((1, 16), (2, 16), (1, 1))
        for batch, tokens in sizes:
            export(model, os.path.join(folder, f"{name}_{batch}_{tokens}.onnx.gz"), batch, tokens)
            print(name, batch, tokens, flush=True)


main()
