"""A config.json as transformers writes it, by name, for the tests of `analyze export --missing`. Usage: made_configs.py NAME [MEMBER=JSON]…"""
import json
import sys

FP8 = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
CONFIGS = {
    "mixtral": {"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
                "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2, "torch_dtype": "bfloat16"},
    "deepseek": {"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
                 "n_routed_experts": 256, "n_shared_experts": 1, "first_k_dense_replace": 3, "num_attention_heads": 128,
                 "num_key_value_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
                 "qk_rope_head_dim": 64, "v_head_dim": 128, "torch_dtype": "bfloat16", "quantization_config": FP8},
    "qwen3_moe": {"model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768,
                  "num_experts": 128, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
                  "decoder_sparse_step": 1, "mlp_only_layers": [], "torch_dtype": "bfloat16"},
    "llama": {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
              "num_key_value_heads": 8, "torch_dtype": "bfloat16"},
}

config = CONFIGS[sys.argv[1]]
for text in sys.argv[2:]:
    name, _, value = text.partition("=")
    config[name] = FP8 if value == "fp8" else json.loads(value)
json.dump(config, sys.stdout)
