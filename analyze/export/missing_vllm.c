/* The tuning files of vLLM, as 0.33 names them: one for the experts of a model, where its Triton kernel runs them, and
 * one for each product of a model whose weights are fp8 with a scale a block. Sizes are those of one GPU. */
#include "analyze/export/missing.h"

#include "common/checked.h"
#include "common/json.h"
#include "common/plain.h"

#include <inttypes.h>
#include <string.h>

enum { LARGEST = 1 << 28 }; /* of a size in a config.json */

static const char *const expert_places[] = {"", "model_executor/layers/fused_moe/configs", NULL};
static const char *const block_places[] = {"model_executor/layers/quantization/utils/configs", NULL};

typedef struct model {
    const missing_request *m;
    const json_t *config;
    missing_list *list;
    int64_t block[2]; /* that share a scale; 0: none do */
    const char *type; /* of quantised weights, in names; "": they are not quantised */
} model;

_Noreturn static void refuse(const model *o, const char *why, const char *name) {
    guard_fail(o->list->a->guard, STATUS_INPUT, "config.json: %s %s", plain_cell(o->list->a, name, 60), why);
}

/* 0: it is not there, or null. */
static int64_t size_of(const model *o, const char *name) {
    const json_t *const x = json_object_get(o->config, name);
    if (!x || json_is_null(x)) return 0;
    if (!json_is_integer(x) || json_integer_value(x) < 0 || json_integer_value(x) > LARGEST)
        refuse(o, "is no size", name);
    return json_integer_value(x);
}

static int64_t needed(const model *o, const char *name) {
    const int64_t x = size_of(o, name);
    if (x == 0) refuse(o, "is missing, or 0", name);
    return x;
}

/* By the first of its names, for families have their own. */
static int64_t first_of(const model *o, const char *const *names, const char **found) {
    for (; *names; names++) {
        const int64_t x = size_of(o, *names);
        *found = *names;
        if (x > 0) return x;
    }
    return 0;
}

static int64_t share(const model *o, int64_t x, const char *what) {
    const int64_t ways = o->m->tensor_parallel;
    if (x % ways != 0)
        guard_fail(o->list->a->guard, STATUS_INPUT, "%" PRId64 " GPUs cannot share %s, which is %" PRId64, ways, what,
                   x);
    return x / ways;
}

/* ---- names ---- */

/* As vLLM makes it: blanks and slashes become one _. */
static const char *device_name(const model *o) {
    char *const name = arena_strndup(o->list->a, o->m->device, strlen(o->m->device));
    char *to = name;
    for (const char *s = o->m->device; *s; s++) {
        const bool joins = strchr(" \t\n\v\f\r/", *s) != NULL;
        if (!joins) *to++ = *s;
        if (joins && (to == name || to[-1] != '_' || !strchr(" \t\n\v\f\r/", s[-1]))) *to++ = '_';
    }
    *to = 0;
    return name;
}

/* All of the H200's family share the files of experts. */
static const char *family_name(const model *o) {
    const char *const name = device_name(o);
    for (const char *s = name; (s = strstr(s, "H200")); s += 4)
        if ((s == name || s[-1] == '_') && (s[4] == '_' || s[4] == 0)) return "NVIDIA_H200";
    return name;
}

static const char *block_text(const model *o) {
    if (o->block[0] == 0) return "";
    return arena_printf(o->list->a, ",block_shape=[%" PRId64 ",%" PRId64 "]", o->block[0], o->block[1]);
}

/* ---- parts of a model ---- */

static void add_experts(const model *o) {
    static const char *const counts[] = {"num_local_experts", "n_routed_experts", "num_experts", NULL};
    static const char *const widths[] = {"moe_intermediate_size", "intermediate_size", NULL};
    const char *name = "";
    int64_t experts = first_of(o, counts, &name), width;
    if (experts == 0) return;
    if (o->m->expert_parallel) experts = share(o, experts, name);
    width = first_of(o, widths, &name);
    if (width == 0) refuse(o, "is missing, or 0", name);
    if (!o->m->expert_parallel) width = share(o, width, name);
    missing_add(o->list,
                arena_printf(o->list->a, "E=%" PRId64 ",N=%" PRId64 ",device_name=%s%s%s%s.json", experts, width,
                             family_name(o), *o->type ? ",dtype=" : "", o->type, block_text(o)),
                "experts", expert_places);
}

static void add_product(const model *o, const char *what, int64_t n, int64_t k) {
    missing_add(o->list,
                arena_printf(o->list->a, "N=%" PRId64 ",K=%" PRId64 ",device_name=%s,dtype=%s%s.json", n, k,
                             device_name(o), o->type, block_text(o)),
                what, block_places);
}

/* Gate and up are one product. */
static void add_feed_forward(const model *o, const char *in, const char *out, int64_t width, const char *name) {
    const int64_t hidden = needed(o, "hidden_size"), part = share(o, width, name);
    add_product(o, in, 2 * part, hidden);
    add_product(o, out, hidden, part);
}

/* Queries and keys go through a narrow layer (multi-head latent attention). */
static void add_latent_attention(const model *o) {
    const int64_t hidden = needed(o, "hidden_size"), narrow = needed(o, "kv_lora_rank");
    const int64_t turned = needed(o, "qk_rope_head_dim"), plain = needed(o, "qk_nope_head_dim");
    const int64_t heads = share(o, needed(o, "num_attention_heads"), "num_attention_heads");
    const int64_t values = needed(o, "v_head_dim"), queries = size_of(o, "q_lora_rank");
    if (queries > 0) {
        add_product(o, "attention, narrow", queries + narrow + turned, hidden);
        add_product(o, "queries", checked_mul(heads, plain + turned), queries);
    } else {
        add_product(o, "attention, narrow", narrow + turned, hidden);
        add_product(o, "queries", checked_mul(heads, plain + turned), hidden);
    }
    add_product(o, "keys and values", checked_mul(heads, plain + values), narrow);
    add_product(o, "attention's output", hidden, checked_mul(heads, values));
}

/* Queries, keys and values are one product. A key's head that is not enough for all GPUs is on several of them. */
static void add_attention(const model *o) {
    const int64_t hidden = needed(o, "hidden_size"), all = needed(o, "num_attention_heads");
    const int64_t heads = share(o, all, "num_attention_heads"), known = size_of(o, "num_key_value_heads");
    const int64_t keys = known > 0 ? known : all,
                  size = size_of(o, "head_dim") > 0 ? size_of(o, "head_dim") : hidden / all;
    const int64_t own = keys >= o->m->tensor_parallel ? share(o, keys, "num_key_value_heads") : 1;
    add_product(o, "attention's input", checked_mul(heads + 2 * own, size), hidden);
    add_product(o, "attention's output", hidden, checked_mul(heads, size));
}

/* Which of its layers have no experts. */
static bool has_dense_layers(const model *o) {
    return size_of(o, "first_k_dense_replace") > 0 || size_of(o, "decoder_sparse_step") > 1 ||
           json_array_size(json_object_get(o->config, "mlp_only_layers")) > 0;
}

static void add_products(const model *o) {
    static const char *const families[] = {"llama",     "mistral",   "qwen2",    "qwen3",       "mixtral",
                                           "qwen2_moe", "qwen3_moe", "glm4_moe", "deepseek_v2", "deepseek_v3"};
    static const char *const counts[] = {"num_local_experts", "n_routed_experts", "num_experts", NULL};
    const char *const family = json_get_text(o->config, "model_type"), *name;
    const int64_t shared = size_of(o, "n_shared_experts"), one = size_of(o, "shared_expert_intermediate_size");
    const bool experts = first_of(o, counts, &name) > 0;
    size_t k = 0;
    while (k < sizeof families / sizeof families[0] && strcmp(families[k], family) != 0) k++;
    if (k == sizeof families / sizeof families[0])
        guard_fail(o->list->a->guard, STATUS_INPUT,
                   "config.json: the products of model_type \"%s\" are not known here; those of llama, mistral, qwen2, "
                   "qwen3, mixtral, qwen2_moe, qwen3_moe, glm4_moe, deepseek_v2 and deepseek_v3 are",
                   plain_cell(o->list->a, family, 60));
    if (size_of(o, "kv_lora_rank") > 0)
        add_latent_attention(o);
    else
        add_attention(o);
    if (!experts || has_dense_layers(o))
        add_feed_forward(o, "feed-forward's input", "feed-forward's output", needed(o, "intermediate_size"),
                         "intermediate_size");
    if (shared > 0 && experts)
        add_feed_forward(o, "shared experts' input", "shared experts' output",
                         checked_mul(shared, needed(o, "moe_intermediate_size")), "the width of the shared experts");
    if (one > 0)
        add_feed_forward(o, "shared expert's input", "shared expert's output", one, "shared_expert_intermediate_size");
}

/* ---- */

static void read_quantisation(model *o) {
    const json_t *const q = json_object_get(o->config, "quantization_config"),
                        *block = json_object_get(q, "weight_block_size");
    const char *const method = json_get_text(q, "quant_method"), *type = json_get_text(o->config, "torch_dtype");
    if (!*type) type = json_get_text(o->config, "dtype");
    o->type = plain_same(type, "float32") ? "float32" : "";
    if (!json_is_object(q)) return;
    if (strcmp(method, "fp8") != 0) refuse(o, "is a quant_method that is not known here; fp8 is", method);
    o->type = "fp8_w8a8";
    if (!block || json_is_null(block)) return;
    if (json_array_size(block) != 2) refuse(o, "is no pair of sizes", "weight_block_size");
    for (size_t k = 0; k < 2; k++) {
        const json_t *const x = json_array_get(block, k);
        if (!json_is_integer(x) || json_integer_value(x) < 1 || json_integer_value(x) > LARGEST)
            refuse(o, "is no pair of sizes", "weight_block_size");
        o->block[k] = json_integer_value(x);
    }
}

void missing_vllm(const missing_request *m, const json_t *config, missing_list *list) {
    const json_t *const text = json_object_get(config, "text_config"); /* of a model that reads more than text */
    model o = {.m = m, .config = config, .list = list};
    if (!json_is_object(config)) guard_fail(list->a->guard, STATUS_INPUT, "config.json: is no object");
    read_quantisation(&o);
    if (json_is_object(text)) o.config = text;
    add_experts(&o);
    if (o.block[0] > 0) add_products(&o);
}
