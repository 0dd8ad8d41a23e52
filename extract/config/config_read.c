/* Reads a config.json into the values of its family, and refuses what contradicts itself. */
#include "extract/config/config_read.h"

#include "common/json.h"

#include <string.h>
#include <strings.h>

enum { MAX_BYTES = 8 << 20, MAX_DEPTH = 64 };

typedef struct reader {
    const json_t *root;
    config_read *to;
    status *st;
} reader;

#define AT(member) offsetof(config_values, member)

/* Whole numbers, by all the names that families give them. What is missing stays the default, and so does what is null
 * and no_default does not name. */
static const struct {
    const char *names[2];
    size_t offset;
    int64_t least, most;
} numbers[] = {
    {{"vocab_size"}, AT(vocab), 1, 1 << 30},
    {{"hidden_size", "n_embd"}, AT(hidden), 1, 1 << 24},
    {{"num_hidden_layers", "n_layer"}, AT(layers), 1, 4096},
    {{"num_attention_heads", "n_head"}, AT(heads), 1, 1 << 16},
    {{"num_key_value_heads"}, AT(kv_heads), 1, 1 << 16},
    {{"head_dim"}, AT(head), 1, 1 << 16},
    {{"intermediate_size", "n_inner"}, AT(inner), 1, 1 << 26},
    {{"max_position_embeddings", "n_positions"}, AT(positions), 1, 1 << 30},
    {{"type_vocab_size"}, AT(types), 1, 1 << 20},
    {{"num_local_experts"}, AT(experts), 1, 4096},
    {{"num_experts_per_tok"}, AT(top_k), 1, 4096},
    {{"sliding_window"}, AT(window), 0, (int64_t)1 << 40},
    {{"max_window_layers"}, AT(window_from), 0, 1 << 20},
    {{"image_size"}, AT(image), 1, 1 << 16},
    {{"patch_size"}, AT(patch), 1, 1 << 16},
    {{"num_channels"}, AT(channels), 1, 1 << 16},
};
/* Where null says that there is none, whatever the default is. */
static const char *const no_default[] = {"num_key_value_heads", "sliding_window"};
enum { NUMBERS = sizeof numbers / sizeof *numbers, NAMES = 2 };

static const json_t *member(const json_t *root, const char *const names[NAMES], const char **name) {
    for (int k = 0; k < NAMES && names[k]; k++) {
        const json_t *found = json_object_get(root, names[k]);
        *name = names[k];
        if (found && !json_is_null(found)) return found;
    }
    return NULL;
}

static bool is_none(const json_t *root, const char *name) {
    bool named = false;
    for (size_t k = 0; k < sizeof no_default / sizeof *no_default; k++) named |= strcmp(name, no_default[k]) == 0;
    return named && json_is_null(json_object_get(root, name));
}

static bool read_numbers(const reader *r) {
    for (int k = 0; k < NUMBERS; k++) {
        const char *name;
        const json_t *found = member(r->root, numbers[k].names, &name);
        int64_t *const to = (int64_t *)(void *)((char *)&r->to->values + numbers[k].offset);
        if (is_none(r->root, numbers[k].names[0])) *to = 0;
        if (!found) continue;
        const int64_t x = json_is_integer(found) ? (int64_t)json_integer_value(found) : numbers[k].least - 1;
        if (x < numbers[k].least || x > numbers[k].most) {
            return status_fail(r->st, STATUS_INPUT, "\"%s\" must be a whole number from %lld to %lld", name,
                               (long long)numbers[k].least, (long long)numbers[k].most);
        }
        *to = x;
    }
    return true;
}

static bool read_type(const reader *r) {
    static const char *const names[NAMES] = {"dtype", "torch_dtype"};
    static const struct {
        const char *name;
        dtype type;
    } types[] = {{"float32", DTYPE_FP32}, {"float16", DTYPE_FP16}, {"bfloat16", DTYPE_BF16}};
    const char *name;
    const json_t *found = member(r->root, names, &name);
    r->to->type = DTYPE_FP32;
    if (!found) return true;
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        if (!json_is_string(found) || strcmp(types[k].name, json_string_value(found)) != 0) continue;
        r->to->type = types[k].type;
        return true;
    }
    return status_fail(r->st, STATUS_INPUT, "\"%s\" must be float32, float16 or bfloat16", name);
}

static bool read_activation(const reader *r) {
    /* Gemma's stands under a name of its own, which goes before. */
    static const char *const names[2][NAMES] = {{"hidden_activation"}, {"hidden_act", "activation_function"}};
    const char *name = "hidden_act", *asked = r->to->values.activation;
    for (int k = 1; k >= 0; k--) {
        const char *tried;
        const json_t *found = member(r->root, names[k], &tried);
        if (!found) continue;
        name = tried;
        asked = json_is_string(found) ? json_string_value(found) : "";
    }
    r->to->activation = config_activation_find(asked);
    if (r->to->activation) return true;
    char known[300] = "";
    status_set(r->st, STATUS_INPUT, "\"%s\" is \"%.60s\", which is not known; known are %s", name, asked,
               config_activation_names(known, sizeof known));
    return false;
}

/* What is told otherwise than by one number or text. */
static bool read_others(const reader *r) {
    config_values *v = &r->to->values;
    const json_t *labels = json_object_get(r->root, "id2label"),
                 *rotated = json_object_get(r->root, "partial_rotary_factor"),
                 *rotary = json_object_get(r->root, "rope_parameters"), /* where newer files have that */
                     *sliding = json_object_get(r->root, "use_sliding_window"),
                 *tied = json_object_get(r->root, "tie_word_embeddings");
    if (json_is_object(labels) && json_object_size(labels) > 0) v->labels = (int64_t)json_object_size(labels);
    if (!rotated) rotated = json_object_get(rotary, "partial_rotary_factor");
    if (json_is_number(rotated)) v->rotated = json_number_value(rotated);
    if (r->to->family->window_asked && !json_is_true(sliding)) v->window = 0;
    if (json_is_boolean(tied)) v->tied = json_is_true(tied);
    r->to->quantised = json_is_object(json_object_get(r->root, "quantization_config"));
    r->to->bias = r->to->family->bias;
    for (const config_flag *f = r->to->family->flags; f->name; f++) {
        const json_t *flag = json_object_get(r->root, f->name);
        if (json_is_true(flag)) r->to->bias |= f->bias;
        if (json_is_false(flag)) r->to->bias &= ~f->bias;
    }
    return true;
}

/* What follows from other numbers, and what must fit. */
static bool complete(const reader *r) {
    config_values *v = &r->to->values;
    status *st = r->st;
    if (v->kv_heads == 0) v->kv_heads = v->heads;
    if (v->inner == 0) v->inner = 4 * v->hidden; /* GPT-2 */
    if (v->head == 0 && v->hidden % v->heads != 0)
        status_set(st, STATUS_INPUT, "the hidden size %lld is no multiple of the %lld heads", (long long)v->hidden,
                   (long long)v->heads);
    else if (v->heads % v->kv_heads != 0)
        status_set(st, STATUS_INPUT, "the %lld heads are no multiple of the %lld heads of keys", (long long)v->heads,
                   (long long)v->kv_heads);
    else if (v->top_k > v->experts)
        status_set(st, STATUS_INPUT, "a token goes to %lld experts, but there are %lld", (long long)v->top_k,
                   (long long)v->experts);
    else if (v->patch > v->image)
        status_set(st, STATUS_INPUT, "a patch is %lld wide, but the image %lld", (long long)v->patch,
                   (long long)v->image);
    else if (!(v->rotated >= 0 && v->rotated <= 1))
        status_set(st, STATUS_INPUT, "\"partial_rotary_factor\" must be from 0 to 1");
    if (v->head == 0) v->head = v->hidden / v->heads;
    return st->code == STATUS_OK;
}

/* "LlamaForCausalLM" is Llama's head "ForCausalLM"; old files write LLaMA. */
static bool is_head(const char *name, const char *prefix, const char *suffix) {
    const size_t n = strlen(prefix);
    return strncasecmp(name, prefix, n) == 0 && strcmp(name + n, suffix) == 0;
}

static bool find_head(const reader *r) {
    const json_t *list = json_object_get(r->root, "architectures");
    const char *name = json_string_value(json_array_get(list, 0)), *prefix = r->to->family->prefix;
    char known[300] = "";
    size_t used = 0;
    r->to->head = r->to->family->heads;
    if (!list || json_is_null(list) || (json_is_array(list) && json_array_size(list) == 0)) return true;
    for (const config_head *h = r->to->family->heads; h->suffix && used < sizeof known; h++) {
        r->to->head = h;
        if (name && is_head(name, prefix, h->suffix)) return true;
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s%s", used ? ", " : "", prefix, h->suffix);
    }
    return status_fail(r->st, STATUS_INPUT, "the architecture \"%.60s\" is not known; known are %s", name ? name : "",
                       known);
}

static bool find_family(const reader *r) {
    const char *type = json_get_text_or_null(r->root, "model_type");
    char known[300] = "";
    r->to->family = type ? config_family_find(type) : NULL;
    if (!r->to->family) {
        status_set(r->st, STATUS_INPUT, "the model type \"%.60s\" is not known; known are %s", type ? type : "",
                   config_family_names(known, sizeof known));
        return false;
    }
    r->to->values = r->to->family->defaults;
    return true;
}

bool config_read_file(config_read *to, const char *path, status *st) {
    const json_limits limits = {.bytes = MAX_BYTES, .depth = MAX_DEPTH};
    json_t *root = json_read(path, &limits, st);
    if (!root) return false;
    const reader r = {.root = root, .to = to, .st = st};
    bool good = json_is_object(root);
    if (!good) status_set(st, STATUS_INPUT, "this is no configuration: an object is expected");
    good = good && find_family(&r) && read_numbers(&r) && read_activation(&r) && read_type(&r) && read_others(&r) &&
           complete(&r) && find_head(&r);
    json_decref(root);
    return good;
}
