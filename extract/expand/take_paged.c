/* Attention to a cache in pages: what is fresh goes into them, and the pages of each sequence are put together. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include "common/checked.h"

#include <string.h>

enum { KEY_CACHE = 3, VALUE_CACHE, ENDS, PASTS, TABLE, COSINE, SINE, SLOTS, OTHERS, HINT = 16 };

typedef struct pages {
    int64_t tokens, batch, queries, heads, groups,
        size;                    /* queries: of each sequence, as many as any if they are even */
    int64_t count, length, held; /* pages, tokens of one, and pages of a sequence */
} pages;

/* Sinks, norms and packed caches are other work; the last input only hints at sizes. */
static bool is_plain(const expansion *x) {
    static const char *const words[][2] = {
        {"kv_cache_layout", "SEPARATE"}, {"k_quant_type", "NONE"}, {"v_quant_type", "NONE"}};
    const tensor *const in = part_in(x, QUERY);
    bool plain = graph_attr_int(x->n, "rotary_offset", 0) == 0;
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        plain = plain && strcmp(graph_attr_string(x->n, words[k][0], words[k][1]), words[k][1]) == 0;
    for (int k = OTHERS; k < x->n->in_count; k++) plain = plain && (k == HINT || !part_in(x, k));
    for (int k = KEY_CACHE; k <= VALUE_CACHE; k++)
        plain = plain && part_in(x, k) && in && part_in(x, k)->info->type == in->info->type;
    return plain && (graph_attr_int(x->n, "is_causal", 1) != 0 || graph_attr_int(x->n, "local_window_size", -1) <= 0);
}

static pages read_pages(expansion *x) {
    const tensor *const in = part_in(x, QUERY), *const cache = part_in(x, KEY_CACHE);
    pages p = {.tokens = tensor_dim(in, 0),
               .batch = tensor_dim(part_in(x, TABLE), 0),
               .heads = graph_attr_int(x->n, "num_heads", 0),
               .groups = graph_attr_int(x->n, "kv_num_heads", 0),
               .size = tensor_dim(cache, 3),
               .count = tensor_dim(cache, 0),
               .length = tensor_dim(cache, 1),
               .held = tensor_dim(part_in(x, TABLE), 1)};
    const int64_t width = checked_mul(p.heads, p.size);
    if (!is_plain(x) || tensor_rank(in) != 2 || tensor_rank(cache) != 4 || tensor_rank(part_in(x, TABLE)) != 2 ||
        tensor_count(in) < 1 || tensor_count(cache) < 1 || p.batch < 1 || p.held < 1 || p.heads < 1 || p.groups < 1 ||
        tensor_dim(cache, 2) != p.groups || tensor_dim(part_out(x, 0), -1) != width)
        x->failed = true;
    if (!x->failed) p.queries = checked_ceil_div(p.tokens, p.batch);
    return p;
}

static tensor *assumed(expansion *x, const char *what, dtype type, int rank, const int64_t *dims) {
    arena *const a = x->e->m->arena;
    return part_tensor(x, arena_printf(a, "%s/%s", x->n->name, what), TENSOR_ASSUMED, info_tensor(a, type, rank, dims));
}

/* Where each token stands in its sequence: of one token each behind what there is, of others only data tell. */
static tensor *positions_of(expansion *x, const pages *p) {
    const int64_t row[] = {1, p->tokens};
    if (p->queries > 1) return assumed(x, "positions", DTYPE_INT64, 2, row);
    return part_cast(x, part_reshaped(x, part_in(x, PASTS), 2, row), DTYPE_INT64);
}

/* Where each token goes: page by page, or as it is told. */
static tensor *slots_of(expansion *x, const pages *p) {
    const int64_t column[] = {p->tokens, 1};
    if (part_in(x, SLOTS)) return part_cast(x, part_reshaped(x, part_in(x, SLOTS), 2, column), DTYPE_INT64);
    if (p->queries > 1) return assumed(x, "slots", DTYPE_INT64, 2, column);
    tensor *const past = part_reshaped(x, part_in(x, PASTS), 2, column), *const table = part_in(x, TABLE);
    if (x->failed) return NULL;
    tensor *const length = part_scalar(x, "length", past->info->type, p->length);
    tensor *const page = *part_make(x, &(step){.op_type = "GatherElements",
                                               .in = {table, part_do(x, "Div", past, length)},
                                               .attrs = {int_attr("axis", 1)}});
    tensor *const first = part_do(x, "Mul", page, length);
    return part_cast(x, part_do(x, "Add", first, part_do(x, "Mod", past, length)), DTYPE_INT64);
}

static tensor *turned(expansion *x, const pages *p, tensor *t, int64_t heads, tensor *positions) {
    const int64_t dims[] = {1, p->tokens, tensor_dim(t, 1)}, flat[] = {p->tokens, dims[2]},
                  reach = checked_mul(2, tensor_dim(part_in(x, COSINE), -1));
    tensor *const made =
        *part_make(x, &(step){.domain = "com.microsoft",
                              .op_type = "RotaryEmbedding",
                              .in = {part_reshaped(x, t, 3, dims), positions, part_in(x, COSINE), part_in(x, SINE)},
                              .attrs = {int_attr("num_heads", heads),
                                        int_attr("interleaved", graph_attr_int(x->n, "rotary_interleaved", 0)),
                                        int_attr("rotary_embedding_dim", reach < p->size ? reach : 0)}});
    return part_reshaped(x, made, 2, flat);
}

/* Queries, keys and values of the fresh tokens. */
static void take_fresh(expansion *x, const pages *p, tensor *fresh[QKV]) {
    const int64_t width = checked_mul(p->groups, p->size), sizes[QKV] = {checked_mul(p->heads, p->size), width, width};
    for (int k = 0; k < QKV; k++) fresh[k] = part_in(x, k);
    if (!fresh[KEY]) {
        tensor *const *parts = part_split(x, fresh[QUERY], 1, QKV, sizes);
        for (int k = 0; k < QKV; k++) fresh[k] = parts[k];
    }
    for (int k = 0; k < QKV; k++)
        if (tensor_dim(fresh[k], 0) != p->tokens || tensor_dim(fresh[k], 1) != sizes[k]) x->failed = true;
    if (x->failed || graph_attr_int(x->n, "do_rotary", 0) == 0) return;
    tensor *const positions = positions_of(x, p);
    fresh[QUERY] = turned(x, p, fresh[QUERY], p->heads, positions);
    fresh[KEY] = turned(x, p, fresh[KEY], p->groups, positions);
}

/* The cache with what is fresh. */
static tensor *written(expansion *x, const pages *p, int slot, tensor *slots, tensor *fresh) {
    const int64_t rows[] = {checked_mul(p->count, p->length), checked_mul(p->groups, p->size)};
    tensor *const cache = part_in(x, slot), *const flat = part_reshaped(x, cache, 2, rows);
    tensor *const made = *part_make(x, &(step){.op_type = "ScatterND", .in = {flat, slots, fresh}});
    return x->failed ? NULL : part_reshaped(x, made, 4, cache->info->dims);
}

/* The pages of each sequence, one behind the other. */
static tensor *together(expansion *x, const pages *p, tensor *cache) {
    const int64_t width = checked_mul(p->groups, p->size), rows[] = {p->count, checked_mul(p->length, width)},
                  dims[] = {p->batch, checked_mul(p->held, p->length), width};
    return part_reshaped(
        x, *part_make(x, &(step){.op_type = "Gather", .in = {part_reshaped(x, cache, 2, rows), part_in(x, TABLE)}}), 3,
        dims);
}

/* How many keys each sequence has. */
static tensor *lengths_of(expansion *x, const pages *p) {
    tensor *const ends = part_in(x, ENDS);
    tensor *const fresh =
        part_do(x, "Sub", part_slice(x, ends, 0, 1, checked_add(p->batch, 1)), part_slice(x, ends, 0, 0, p->batch));
    return part_cast(x, part_do(x, "Add", part_in(x, PASTS), fresh), DTYPE_INT64);
}

/* Which tokens belong together, only data decide: where they are more than one each, all sequences have as many, and
 * of the cache all that their tables hold counts. */
void take_paged_attention(expansion *x) {
    enum { MASKED = 6 /* the lengths of an attention */, FIRST_CACHE = 1 };
    const pages p = read_pages(x);
    tensor *fresh[QKV] = {NULL}, *caches[2] = {NULL};
    if (x->failed) return;
    take_fresh(x, &p, fresh);
    tensor *const slots = slots_of(x, &p);
    const int64_t window = graph_attr_int(x->n, "local_window_size", -1), width = checked_mul(p.heads, p.size),
                  dims[] = {p.batch, p.queries, width}, rows[] = {checked_mul(p.batch, p.queries), width};
    /* what is behind the one query of a sequence, its length hides */
    const bool causal = graph_attr_int(x->n, "is_causal", 1) != 0 && (p.queries > 1 || window > 0);
    const attr *const scale = graph_attr(x->n, "scale", ATTR_FLOAT);
    step s = {.op_type = "Attention",
              .attrs = {int_attr("q_num_heads", p.heads), int_attr("kv_num_heads", p.groups),
                        int_attr("is_causal", causal), int_attr("left_window_size", window > 0 ? window - 1 : -1),
                        real_attr("softcap", graph_attr_float(x->n, "softcap", 0)),
                        scale && scale->f != 0 ? real_attr("scale", scale->f) : (attr){.name = NULL}}};
    for (int k = KEY; k < QKV && !x->failed; k++) {
        caches[k - KEY] = written(x, &p, KEY_CACHE + k - KEY, slots, fresh[k]);
        s.in[k] = together(x, &p, caches[k - KEY]);
    }
    s.in[QUERY] = p.queries > 1
                      ? *part_make(x, &(step){.op_type = "Gather",
                                              .in = {fresh[QUERY], assumed(x, "tokens", DTYPE_INT32, 2, dims)}})
                      : part_reshaped(x, fresh[QUERY], 3, dims);
    s.in[MASKED] = lengths_of(x, &p);
    tensor *const made = part_reshaped(x, *part_make(x, &s), 2, rows);
    if (p.queries > 1)
        part_end(x, &(step){.op_type = "Gather", .in = {made, assumed(x, "rows", DTYPE_INT32, 1, &p.tokens)}});
    else
        part_end_reshaped(x, made);
    for (int k = 0; k < 2; k++) part_give(x, FIRST_CACHE + k, caches[k]);
}
