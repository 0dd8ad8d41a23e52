/* Attention of ai.onnx in forms that no kernel has: products, and what is done with the scores between them. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include "common/checked.h"

#include <math.h>
#include <string.h>

enum { MASK = 3, PAST_KEYS, PAST_VALUES, LENGTHS, SCORES = 3 /* output */, RANK = 4 };

typedef struct heads {
    int64_t batch, heads, groups, queries, keys; /* groups: of heads that share keys */
    bool packed;                                 /* [batch, length, heads * size] */
    dtype type;
} heads;

static tensor *turned(expansion *x, tensor *t) {
    static const int64_t perm[RANK] = {0, 2, 1, 3};
    return *part_make(x, &(step){.op_type = "Transpose", .in = {t}, .attrs = {ints_attr("perm", RANK, perm)}});
}

/* [batch, heads, length, size] of an input. */
static tensor *by_heads(expansion *x, int slot, const char *told) {
    tensor *const t = part_in(x, slot);
    const int64_t count = graph_attr_int(x->n, told, 0);
    if (tensor_rank(t) == RANK) return t;
    if (tensor_rank(t) != 3 || count < 1 || tensor_dim(t, 2) % count != 0) x->failed = true;
    if (x->failed) return NULL;
    const int64_t dims[RANK] = {tensor_dim(t, 0), tensor_dim(t, 1), count, tensor_dim(t, 2) / count};
    return turned(x, part_reshaped(x, t, RANK, dims));
}

/* With what the cache has in front. */
static tensor *present(expansion *x, tensor *fresh, int past, int slot) {
    tensor *const before = part_in(x, past);
    const step joined = {.op_type = "Concat", .in = {before, fresh}, .attrs = {int_attr("axis", 2)}};
    if (before) return *part_make(x, &joined);
    return fresh == part_in(x, slot) && part_out(x, slot) ? part_do(x, "Identity", fresh, NULL) : fresh;
}

/* That sees nothing to its right, however it is told. */
static bool is_causal(const expansion *x) {
    return graph_attr_int(x->n, "is_causal", 0) != 0 || graph_attr_int(x->n, "right_window_size", -1) == 0;
}

/* Then products of all queries and keys are more than its work. */
static bool has_window(const expansion *x) {
    return graph_attr_int(x->n, "left_window_size", -1) >= 0 ||
           (!is_causal(x) && graph_attr_int(x->n, "right_window_size", -1) > 0);
}

static bool has_short_mask(const expansion *x, int64_t keys) {
    const tensor *const mask = part_in(x, MASK);
    return tensor_rank(mask) > 0 && tensor_dim(mask, -1) < keys && tensor_dim(mask, -1) > 1;
}

/* What hides a key: the least number of half types, behind which nothing is left of a score. */
static double hides(dtype type) { return type == DTYPE_FP16 ? -65504 : -0x1.fep127; }

/* As long as there are keys; what is not there is hidden. */
static tensor *lengthened(expansion *x, tensor *mask, int64_t keys) {
    const int rank = tensor_rank(mask);
    int64_t pads[2 * RANK] = {0};
    if (rank > RANK) x->failed = true;
    if (x->failed || !has_short_mask(x, keys)) return mask;
    pads[2 * rank - 1] = checked_sub(keys, tensor_dim(mask, -1));
    tensor *const hidden =
        mask->info->type == DTYPE_BOOL ? NULL : part_real(x, mask, "hidden", hides(mask->info->type));
    return *part_make(
        x, &(step){.op_type = "Pad", .in = {mask, part_numbers(x, "pads", 2 * (int64_t)rank, pads), hidden}});
}

/* A query that sees no key gets zeros, but equal shares of all values by any number: where a run decides which keys are
 * seen, no plan may take one. */
static tensor *bias_of_seen(expansion *x, tensor *mask) {
    const tensor *const like = part_in(x, QUERY);
    tensor *const hidden = part_tensor(x, arena_printf(x->e->m->arena, "%s/hidden", x->n->name), TENSOR_ASSUMED,
                                       info_tensor(x->e->m->arena, like->info->type, 0, info_no_dims));
    return *part_make(x, &(step){.op_type = "Where", .in = {mask, part_real(x, like, "seen", 0), hidden}});
}

/* What is added to scores. Which keys a query sees by their places alone, follows from attributes. */
static tensor *bias_of(expansion *x, int64_t queries, int64_t keys) {
    const tensor *const like = part_in(x, QUERY);
    tensor *mask = part_in(x, MASK) ? lengthened(x, part_in(x, MASK), keys) : NULL;
    if (mask && mask->info->type == DTYPE_BOOL) mask = bias_of_seen(x, mask);
    if (!is_causal(x)) return mask;
    tensor *const past = part_table(x, "causal", like->info->type, 2, (int64_t[]){queries, keys});
    return mask ? part_do(x, "Add", mask, past) : past;
}

static tensor *capped(expansion *x, tensor *scores) {
    const double cap = graph_attr_float(x->n, "softcap", 0);
    if (cap <= 0) return scores;
    tensor *const flat = part_do(x, "Tanh", part_do(x, "Div", scores, part_real(x, scores, "cap", cap)), NULL);
    return part_do(x, "Mul", flat, part_real(x, scores, "cap", cap));
}

static tensor *masked(expansion *x, const heads *h, tensor *scores) {
    tensor *const bias = bias_of(x, h->queries, h->keys);
    return bias ? part_add(x, scores, bias) : scores;
}

/* Of half types a softmax counts in 32 bits as it is. */
static tensor *shares(expansion *x, const heads *h, tensor *scores) {
    const int64_t told = graph_attr_int(x->n, "softmax_precision", 0);
    const bool wide = told != 0 && told != h->type && told != DTYPE_FP32;
    if (wide && !dtype_known(told)) x->failed = true;
    if (x->failed) return NULL;
    tensor *const in = wide ? part_cast(x, scores, (dtype)told) : scores;
    tensor *const made = *part_make(x, &(step){.op_type = "Softmax", .in = {in}, .attrs = {int_attr("axis", -1)}});
    return wide ? part_cast(x, made, h->type) : made;
}

/* A kernel that has one result and its own softmax does not do. */
static bool needs_scores(const expansion *x) {
    const int64_t told = graph_attr_int(x->n, "softmax_precision", 0);
    const tensor *const in = part_in(x, QUERY);
    return part_out(x, SCORES) || (told != 0 && told != in->info->type && told != DTYPE_FP32);
}

/* It stays what it is, with a longer mask. */
static void give_mask(expansion *x, int64_t keys) {
    if (!has_short_mask(x, keys)) x->failed = true;
    if (!x->failed) x->last.in[MASK] = lengthened(x, part_in(x, MASK), keys);
}

/* Heads that share keys are rows of one product. */
static tensor *product(expansion *x, const heads *h, tensor *a, tensor *b, const attr *how) {
    const int64_t rows[RANK] = {h->batch, h->groups, checked_mul(h->heads / h->groups, h->queries), tensor_dim(a, -1)};
    step s = {.domain = "com.microsoft", .op_type = "FusedMatMul", .in = {part_reshaped(x, a, RANK, rows), b}};
    for (int k = 0; how[k].name; k++) s.attrs[k] = how[k];
    tensor *const made = *part_make(x, &s);
    return part_reshaped(x, made, RANK, (int64_t[]){h->batch, h->heads, h->queries, tensor_dim(made, -1)});
}

void take_scores(expansion *x) {
    const bool cached = part_in(x, PAST_KEYS) != NULL;
    const tensor *const fresh = part_in(x, KEY), *const in = part_in(x, QUERY);
    const int64_t length = tensor_dim(fresh, -2),
                  total = checked_add(length, cached ? tensor_dim(part_in(x, PAST_KEYS), 2) : 0);
    const int64_t mode = graph_attr_int(x->n, "qk_matmul_output_mode", 0);
    if (part_in(x, LENGTHS) || !in || !fresh || mode < 0 || mode > 3) x->failed = true;
    if (x->failed) return;
    if (!needs_scores(x)) {
        give_mask(x, total);
        return;
    }
    if (has_window(x)) x->failed = true;
    tensor *const query = by_heads(x, QUERY, "q_num_heads"),
                  *const key = present(x, by_heads(x, KEY, "kv_num_heads"), PAST_KEYS, KEY),
                  *const val = present(x, by_heads(x, VALUE, "kv_num_heads"), PAST_VALUES, VALUE);
    const heads h = {.batch = tensor_dim(query, 0),
                     .heads = tensor_dim(query, 1),
                     .groups = tensor_dim(key, 1),
                     .queries = tensor_dim(query, 2),
                     .keys = total,
                     .packed = tensor_rank(in) != RANK,
                     .type = in->info->type};
    if (h.groups < 1 || h.heads % h.groups != 0 || tensor_count(query) < 1 || h.keys < 1) x->failed = true;
    if (x->failed) return;
    const double scale = graph_attr_float(x->n, "scale", 1 / sqrt((double)tensor_dim(query, 3)));
    tensor *said[4];
    said[0] = product(x, &h, query, key, (attr[]){int_attr("transB", 1), real_attr("alpha", scale), {.name = NULL}});
    said[1] = capped(x, said[0]);
    said[2] = masked(x, &h, said[1]);
    said[3] = shares(x, &h, said[2]);
    tensor *const made = product(x, &h, said[3], val, (attr[]){{.name = NULL}});
    part_end_reshaped(x, h.packed ? turned(x, made) : made);
    part_give(x, KEY, key);
    part_give(x, VALUE, val);
    part_give(x, SCORES, said[mode]);
}
