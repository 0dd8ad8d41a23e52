/* The table of families. What a row says follows transformers' classes of that name; a new family is a row, and what no
 * row can say yet a member of config_family. */
#include "extract/config/config_family.h"

#include <stdio.h>
#include <string.h>

static const config_flag attention_and_mlp[] = {
    {"attention_bias", CONFIG_BIAS_QKV | CONFIG_BIAS_OUT}, {"mlp_bias", CONFIG_BIAS_MLP}, {NULL, 0}};
static const config_flag attention[] = {{"attention_bias", CONFIG_BIAS_QKV | CONFIG_BIAS_OUT}, {NULL, 0}};
static const config_flag queries[] = {{"qkv_bias", CONFIG_BIAS_QKV}, {NULL, 0}};
static const config_flag none[] = {{NULL, 0}};

static const config_head causal_heads[] = {
    {"ForCausalLM", {{CONFIG_BIASLESS, "lm_head", CONFIG_TO_VOCAB}}},
    {"Model", {{CONFIG_END, NULL, 0}}},
    {NULL, {{CONFIG_END, NULL, 0}}},
};
static const config_head gpt2_heads[] = {
    {"LMHeadModel", {{CONFIG_BIASLESS, "lm_head", CONFIG_TO_VOCAB}}},
    {"Model", {{CONFIG_END, NULL, 0}}},
    {NULL, {{CONFIG_END, NULL, 0}}},
};
#define BERT_POOLER                                                                                                    \
    {CONFIG_FIRST, NULL, 0}, {CONFIG_DENSE, "bert.pooler.dense", CONFIG_TO_HIDDEN}, { CONFIG_TANH, NULL, 0 }
static const config_head bert_heads[] = {
    {"Model", {BERT_POOLER}},
    {"ForSequenceClassification", {BERT_POOLER, {CONFIG_DENSE, "classifier", CONFIG_TO_LABELS}}},
    {"ForTokenClassification", {{CONFIG_LINEAR, "classifier", CONFIG_TO_LABELS}}},
    {"ForMaskedLM",
     {{CONFIG_LINEAR, "cls.predictions.transform.dense", CONFIG_TO_HIDDEN},
      {CONFIG_ACTIVATE, "cls.predictions.transform.transform_act_fn", 0},
      {CONFIG_NORM, "cls.predictions.transform.LayerNorm", 0},
      {CONFIG_LINEAR, "cls.predictions.decoder", CONFIG_TO_VOCAB}}},
    {NULL, {{CONFIG_END, NULL, 0}}},
};
static const config_head vit_heads[] = {
    {"ForImageClassification", {{CONFIG_FIRST, NULL, 0}, {CONFIG_DENSE, "classifier", CONFIG_TO_LABELS}}},
    {"Model", {{CONFIG_FIRST, NULL, 0}, {CONFIG_DENSE, "vit.pooler.dense", CONFIG_TO_HIDDEN}, {CONFIG_TANH, NULL, 0}}},
    {NULL, {{CONFIG_END, NULL, 0}}},
};

static const config_names llama_names = {.tokens = "model.embed_tokens",
                                         .layer = "model.layers",
                                         .norm_1 = "input_layernorm",
                                         .query = "self_attn.q_proj",
                                         .key = "self_attn.k_proj",
                                         .value = "self_attn.v_proj",
                                         .fused = "self_attn.qkv_proj",
                                         .out = "self_attn.o_proj",
                                         .norm_2 = "post_attention_layernorm",
                                         .gate = "mlp.gate_proj",
                                         .up = "mlp.up_proj",
                                         .down = "mlp.down_proj",
                                         .last_norm = "model.norm"};
static const config_names phi3_names = {.tokens = "model.embed_tokens",
                                        .layer = "model.layers",
                                        .norm_1 = "input_layernorm",
                                        .fused = "self_attn.qkv_proj",
                                        .out = "self_attn.o_proj",
                                        .norm_2 = "post_attention_layernorm",
                                        .gate = "mlp.gate_up_proj",
                                        .up = "mlp.gate_up_proj",
                                        .down = "mlp.down_proj",
                                        .last_norm = "model.norm"};
static const config_names mixtral_names = {.tokens = "model.embed_tokens",
                                           .layer = "model.layers",
                                           .norm_1 = "input_layernorm",
                                           .query = "self_attn.q_proj",
                                           .key = "self_attn.k_proj",
                                           .value = "self_attn.v_proj",
                                           .out = "self_attn.o_proj",
                                           .norm_2 = "post_attention_layernorm",
                                           .router = "block_sparse_moe.gate",
                                           .gate = "block_sparse_moe.experts.w1",
                                           .down = "block_sparse_moe.experts.w2",
                                           .up = "block_sparse_moe.experts.w3",
                                           .last_norm = "model.norm"};
static const config_names gpt2_names = {.tokens = "transformer.wte",
                                        .positions = "transformer.wpe",
                                        .layer = "transformer.h",
                                        .norm_1 = "ln_1",
                                        .fused = "attn.c_attn",
                                        .out = "attn.c_proj",
                                        .norm_2 = "ln_2",
                                        .up = "mlp.c_fc",
                                        .down = "mlp.c_proj",
                                        .last_norm = "transformer.ln_f"};
static const config_names bert_names = {.tokens = "bert.embeddings.word_embeddings",
                                        .positions = "bert.embeddings.position_embeddings",
                                        .segments = "bert.embeddings.token_type_embeddings",
                                        .embedding_norm = "bert.embeddings.LayerNorm",
                                        .layer = "bert.encoder.layer",
                                        .query = "attention.self.query",
                                        .key = "attention.self.key",
                                        .value = "attention.self.value",
                                        .out = "attention.output.dense",
                                        .norm_1 = "attention.output.LayerNorm",
                                        .up = "intermediate.dense",
                                        .down = "output.dense",
                                        .norm_2 = "output.LayerNorm"};
static const config_names vit_names = {.tokens = "vit.embeddings.patch_embeddings.projection",
                                       .first = "vit.embeddings.cls_token",
                                       .positions = "vit.embeddings.position_embeddings",
                                       .layer = "vit.encoder.layer",
                                       .norm_1 = "layernorm_before",
                                       .query = "attention.attention.query",
                                       .key = "attention.attention.key",
                                       .value = "attention.attention.value",
                                       .out = "attention.output.dense",
                                       .norm_2 = "layernorm_after",
                                       .up = "intermediate.dense",
                                       .down = "output.dense",
                                       .last_norm = "vit.layernorm"};

#define RMS   "RMSNormalization"
#define LAYER "LayerNormalization"

/* By name. */
static const config_family families[] = {
    {.model_type = "bert",
     .prefix = "Bert",
     .defaults = {.vocab = 30522,
                  .hidden = 768,
                  .layers = 12,
                  .heads = 12,
                  .inner = 3072,
                  .positions = 512,
                  .types = 2,
                  .labels = 2,
                  .tied = true,
                  .activation = "gelu"},
     .flags = none,
     .bias = CONFIG_BIAS_QKV | CONFIG_BIAS_OUT | CONFIG_BIAS_MLP,
     .norm = LAYER,
     .norm_behind = true,
     .embedding = CONFIG_SEGMENTS,
     .heads = bert_heads,
     .names = &bert_names},
    {.model_type = "gemma",
     .prefix = "Gemma",
     .defaults = {.vocab = 256000,
                  .hidden = 3072,
                  .layers = 28,
                  .heads = 16,
                  .kv_heads = 16,
                  .head = 256,
                  .inner = 24576,
                  .rotated = 1,
                  .tied = true,
                  .activation = "gelu_pytorch_tanh"},
     .flags = attention,
     .norm = RMS,
     .scaled = true,
     .causal = true,
     .mlp = CONFIG_GATED,
     .heads = causal_heads,
     .names = &llama_names},
    {.model_type = "gpt2",
     .prefix = "GPT2",
     .defaults = {.vocab = 50257,
                  .hidden = 768,
                  .layers = 12,
                  .heads = 12,
                  .positions = 1024,
                  .labels = 2,
                  .tied = true,
                  .activation = "gelu_new"},
     .flags = none,
     .bias = CONFIG_BIAS_QKV | CONFIG_BIAS_OUT | CONFIG_BIAS_MLP,
     .norm = LAYER,
     .causal = true,
     .qkv = CONFIG_SPLIT,
     .embedding = CONFIG_POSITIONS,
     .linear = CONFIG_GEMM,
     .heads = gpt2_heads,
     .names = &gpt2_names},
    {.model_type = "llama",
     .prefix = "Llama",
     .defaults = {.vocab = 32000,
                  .hidden = 4096,
                  .layers = 32,
                  .heads = 32,
                  .inner = 11008,
                  .rotated = 1,
                  .activation = "silu"},
     .flags = attention_and_mlp,
     .norm = RMS,
     .causal = true,
     .mlp = CONFIG_GATED,
     .heads = causal_heads,
     .names = &llama_names},
    {.model_type = "mistral",
     .prefix = "Mistral",
     .defaults = {.vocab = 32000,
                  .hidden = 4096,
                  .layers = 32,
                  .heads = 32,
                  .kv_heads = 8,
                  .inner = 14336,
                  .window = 4096,
                  .rotated = 1,
                  .activation = "silu"},
     .flags = none,
     .norm = RMS,
     .causal = true,
     .mlp = CONFIG_GATED,
     .heads = causal_heads,
     .names = &llama_names},
    {.model_type = "mixtral",
     .prefix = "Mixtral",
     .defaults = {.vocab = 32000,
                  .hidden = 4096,
                  .layers = 32,
                  .heads = 32,
                  .kv_heads = 8,
                  .inner = 14336,
                  .experts = 8,
                  .top_k = 2,
                  .rotated = 1,
                  .activation = "silu"},
     .flags = none,
     .norm = RMS,
     .causal = true,
     .mlp = CONFIG_EXPERTS,
     .heads = causal_heads,
     .names = &mixtral_names},
    {.model_type = "phi3",
     .prefix = "Phi3",
     .defaults =
         {.vocab = 32064, .hidden = 3072, .layers = 32, .heads = 32, .inner = 8192, .rotated = 1, .activation = "silu"},
     .flags = none,
     .norm = RMS,
     .causal = true,
     .qkv = CONFIG_SLICED,
     .mlp = CONFIG_GATED_FUSED,
     .heads = causal_heads,
     .names = &phi3_names},
    {.model_type = "qwen2",
     .prefix = "Qwen2",
     .defaults = {.vocab = 151936,
                  .hidden = 4096,
                  .layers = 32,
                  .heads = 32,
                  .kv_heads = 32,
                  .inner = 22016,
                  .window = 4096,
                  .window_from = 28,
                  .rotated = 1,
                  .activation = "silu"},
     .flags = none,
     .bias = CONFIG_BIAS_QKV,
     .norm = RMS,
     .causal = true,
     .window_asked = true,
     .mlp = CONFIG_GATED,
     .heads = causal_heads,
     .names = &llama_names},
    {.model_type = "vit",
     .prefix = "ViT",
     .defaults = {.hidden = 768,
                  .layers = 12,
                  .heads = 12,
                  .inner = 3072,
                  .image = 224,
                  .patch = 16,
                  .channels = 3,
                  .labels = 2,
                  .activation = "gelu"},
     .flags = queries,
     .bias = CONFIG_BIAS_QKV | CONFIG_BIAS_OUT | CONFIG_BIAS_MLP,
     .norm = LAYER,
     .embedding = CONFIG_PATCHES,
     .heads = vit_heads,
     .names = &vit_names},
};
enum { FAMILIES = sizeof families / sizeof *families };

static const config_activation activations[] = {
    {"gelu", "Gelu", NULL, false},       {"gelu_fast", "Gelu", "tanh", false},
    {"gelu_new", "Gelu", "tanh", false}, {"gelu_pytorch_tanh", "Gelu", "tanh", false},
    {"relu", "Relu", NULL, false},       {"sigmoid", "Sigmoid", NULL, false},
    {"silu", "Sigmoid", NULL, true},     {"swish", "Sigmoid", NULL, true},
    {"tanh", "Tanh", NULL, false},
};
enum { ACTIVATIONS = sizeof activations / sizeof *activations };

const config_family *config_family_find(const char *model_type) {
    for (int k = 0; k < FAMILIES; k++)
        if (strcmp(families[k].model_type, model_type) == 0) return &families[k];
    return NULL;
}

const config_activation *config_activation_find(const char *name) {
    for (int k = 0; k < ACTIVATIONS; k++)
        if (strcmp(activations[k].name, name) == 0) return &activations[k];
    return NULL;
}

/* One name behind the other; how much of the text is used. */
static size_t add_name(char *text, size_t size, size_t used, const char *name) {
    if (used >= size) return used;
    return used + (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", name);
}

const char *config_family_names(char *text, size_t size) {
    size_t used = 0;
    for (int k = 0; k < FAMILIES; k++) used = add_name(text, size, used, families[k].model_type);
    return text;
}

const char *config_activation_names(char *text, size_t size) {
    size_t used = 0;
    for (int k = 0; k < ACTIVATIONS; k++) used = add_name(text, size, used, activations[k].name);
    return text;
}
