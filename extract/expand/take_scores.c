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

/* What a query sees by its place alone: so many keys to each side of it; less than 0: all of them. */
typedef struct band {
    int64_t left, right;
} band;

static band band_of(const expansion *x) {
    const bool causal = graph_attr_int(x->n, "is_causal", 0) != 0;
    return (band){.left = graph_attr_int(x->n, "left_window_size", -1),
                  .right = causal ? 0 : graph_attr_int(x->n, "right_window_size", -1)};
}

static bool is_cut(band b) { return b.left >= 0 || b.right >= 0; }

/* Kernels know keys up to the query, and so many of them. */
static bool is_known(band b) { return b.right == 0 || !is_cut(b); }

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

static bool sees(band b, int64_t far) { return (b.right < 0 || far <= b.right) && (b.left < 0 || -far <= b.left); }

/* What a band hides of [queries, keys], the first query at key `at`: as a bias, or as what is seen. */
static tensor *band_mask(expansion *x, band b, int64_t at, int64_t queries, int64_t keys, dtype type) {
    arena *const a = x->e->m->arena;
    const int64_t dims[] = {queries, keys}, count = checked_mul(queries, keys);
    const int64_t last =
        checked_sub(checked_add(at, queries), keys); /* how far the last query is behind the last key */
    if (queries < 1 || keys < 1 || (b.left >= 0 && last > b.left))
        x->failed = true; /* a query without keys gets zeros */
    if (x->failed) return NULL;
    if (count > INFO_MAX_VALUES) return part_table(x, "band", type, 2, dims);
    double *const bias = arena_array(a, double, count);
    int64_t *const seen = arena_array(a, int64_t, count);
    for (int64_t k = 0; k < count; k++) {
        seen[k] = sees(b, k % keys - k / keys - at);
        bias[k] = seen[k] ? 0 : hides(type);
    }
    return part_constant(x, "band",
                         type == DTYPE_BOOL ? info_of_ints(a, type, 2, dims, seen, count)
                                            : info_of_floats(a, type, 2, dims, bias, count));
}

/* Lengths that come as data move the band of each sequence, and hide what is behind it. */
static tensor *places_mask(expansion *x, int64_t queries, int64_t keys, dtype type) {
    arena *const a = x->e->m->arena;
    const int64_t dims[RANK] = {tensor_dim(part_in(x, QUERY), 0), 1, queries, keys};
    if (!part_in(x, LENGTHS))
        return band_mask(x, band_of(x), tensor_dim(part_in(x, PAST_KEYS), 2), queries, keys, type);
    return part_tensor(x, arena_printf(a, "%s/seen", x->n->name), TENSOR_ASSUMED, info_tensor(a, type, RANK, dims));
}

/* What is added to scores. Which keys a query sees by their places alone, follows from attributes. */
static tensor *bias_of(expansion *x, int64_t queries, int64_t keys) {
    const tensor *const like = part_in(x, QUERY);
    tensor *mask = part_in(x, MASK) ? lengthened(x, part_in(x, MASK), keys) : NULL;
    if (mask && mask->info->type == DTYPE_BOOL) mask = bias_of_seen(x, mask);
    if (!is_cut(band_of(x)) && !part_in(x, LENGTHS)) return mask;
    tensor *const places = places_mask(x, queries, keys, like->info->type);
    return mask ? part_do(x, "Add", mask, places) : places;
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

/* ---- bands that no kernel knows ---- */

/* The node's attributes without its band, which a mask says. */
static void take_attrs(expansion *x, attr *attrs, int most) {
    static const char *const said[] = {"is_causal", "left_window_size", "right_window_size"};
    int count = 0;
    for (int k = 0; k < x->n->attr_count; k++) {
        bool kept = true;
        for (size_t j = 0; j < sizeof said / sizeof *said; j++)
            kept = kept && strcmp(x->n->attrs[k].name, said[j]) != 0;
        if (kept && count == most) x->failed = true;
        if (kept && count < most) attrs[count++] = x->n->attrs[k];
    }
}

/* A short sequence, or one with a mask: the band is one more, as a library has it. */
static void give_band(expansion *x, int64_t queries, int64_t keys) {
    enum { MOST_MASK = 1 << 28 };
    tensor *const given = part_in(x, MASK);
    node *const n = &x->last;
    if (checked_mul(queries, keys) > MOST_MASK) x->failed = true;
    tensor *const places = places_mask(x, queries, keys, (given ? given : part_in(x, QUERY))->info->type);
    if (x->failed) return;
    tensor **const in = arena_array(x->e->m->arena, tensor *, n->in_count + MASK + 1);
    attr *const attrs = arena_array(x->e->m->arena, attr, n->attr_count + 1);
    memcpy(in, n->in, (size_t)n->in_count * sizeof *in);
    in[MASK] = places;
    if (given)
        in[MASK] = part_do(x, places->info->type == DTYPE_BOOL ? "And" : "Add", lengthened(x, given, keys), places);
    n->in = in;
    if (n->in_count <= MASK) n->in_count = MASK + 1;
    part_leave_out(x, LENGTHS);
    take_attrs(x, attrs, n->attr_count);
    for (n->attr_count = 0; attrs[n->attr_count].name;) n->attr_count++;
    n->attrs = attrs;
}

/* Long ones in chunks of queries: chunks between the first and the last see as many keys each. */
typedef struct pieces {
    band b;
    int64_t batch, length, chunk, many; /* many: whole chunks that see all keys of their band */
    int64_t groups;                     /* of heads; 0: [batch, length, heads * size] */
    int axis;                           /* of the length */
} pieces;

/* An attention of queries from `at` on, the first of them at key `first` of those that are given. */
static tensor *attention_of(expansion *x, const pieces *p, tensor *const in[QKV], int64_t first) {
    step s = {.op_type = "Attention", .in = {in[QUERY], in[KEY], in[VALUE]}};
    s.in[MASK] = band_mask(x, p->b, first, tensor_dim(in[QUERY], p->axis), tensor_dim(in[KEY], p->axis),
                           part_in(x, QUERY)->info->type);
    take_attrs(x, s.attrs, (int)(sizeof s.attrs / sizeof *s.attrs));
    return *part_make(x, &s);
}

/* Of some queries, at one end of the sequence. */
static tensor *piece(expansion *x, const pieces *p, int64_t from, int64_t to) {
    const int64_t first = from > p->b.left ? from - p->b.left : 0,
                  end = to < p->length - p->b.right ? to + p->b.right : p->length;
    tensor *const in[QKV] = {part_slice(x, part_in(x, QUERY), p->axis, from, to),
                             part_slice(x, part_in(x, KEY), p->axis, first, end),
                             part_slice(x, part_in(x, VALUE), p->axis, first, end)};
    return attention_of(x, p, in, from - first);
}

/* [batch, heads, chunks, length, size] with heads that share keys behind their chunks, and back. */
static tensor *moved(expansion *x, const pieces *p, tensor *t, bool back) {
    static const int64_t perm[] = {0, 1, 3, 2, 4, 5};
    if (x->failed) return NULL;
    const int64_t count = p->many - 1, each = tensor_count(t) / p->batch / p->groups / count, size = tensor_dim(t, -1),
                  rows = each / p->chunk / size;
    const int64_t dims[] = {p->batch, p->groups, back ? count : rows, back ? rows : count, p->chunk, size};
    t = part_reshaped(x, t, 6, dims);
    return rows == 1 ? t
                     : *part_make(x, &(step){.op_type = "Transpose", .in = {t}, .attrs = {ints_attr("perm", 6, perm)}});
}

/* Where the keys of each chunk stand. */
static tensor *places_of(expansion *x, const pieces *p, int64_t seen) {
    const int64_t dims[] = {p->many - 1, seen}, count = checked_mul(dims[0], seen);
    if (count > INFO_MAX_VALUES) return part_table(x, "keys", DTYPE_INT64, 2, dims);
    int64_t *const at = arena_array(x->e->m->arena, int64_t, count);
    for (int64_t k = 0; k < count; k++) at[k] = (k / seen + 1) * p->chunk - p->b.left + k % seen;
    return part_constant(x, "keys", info_of_ints(x->e->m->arena, DTYPE_INT64, 2, dims, at, count));
}

/* All chunks in the middle at once: they are sequences of their own, or heads where these come first. */
static tensor *middle(expansion *x, const pieces *p) {
    const int64_t count = p->many - 1, seen = p->chunk + p->b.left + p->b.right,
                  sequences = checked_mul(p->batch, count);
    tensor *in[QKV] = {part_slice(x, part_in(x, QUERY), p->axis, p->chunk, p->many * p->chunk)};
    tensor *const places = places_of(x, p, seen);
    for (int k = KEY; k < QKV; k++)
        in[k] = *part_make(
            x, &(step){.op_type = "Gather", .in = {part_in(x, k), places}, .attrs = {int_attr("axis", p->axis)}});
    for (int k = QUERY; k < QKV && !x->failed; k++) {
        const int64_t rows = k == QUERY ? p->chunk : seen, size = tensor_dim(in[k], -1);
        if (k == QUERY && p->groups) in[k] = moved(x, p, in[k], false);
        const int64_t lists = tensor_count(in[k]) / p->batch / rows / size;
        in[k] = p->groups ? part_reshaped(x, in[k], RANK, (int64_t[]){p->batch, lists, rows, size})
                          : part_reshaped(x, in[k], 3, (int64_t[]){sequences, rows, size});
    }
    tensor *made = attention_of(x, p, in, p->b.left);
    if (x->failed) return NULL;
    if (p->groups) made = moved(x, p, made, true);
    const int64_t size = tensor_dim(made, -1), all = count * p->chunk;
    return p->groups ? part_reshaped(x, made, RANK, (int64_t[]){p->batch, tensor_dim(part_in(x, QUERY), 1), all, size})
                     : part_reshaped(x, made, 3, (int64_t[]){p->batch, all, size});
}

/* As Longformer has it: the work is that of the band, and not of all pairs. */
static void take_pieces(expansion *x, const pieces *p) {
    tensor *const first = piece(x, p, 0, p->chunk), *const last = piece(x, p, p->many * p->chunk, p->length);
    part_end(x, &(step){.op_type = "Concat", .in = {first, middle(x, p), last}, .attrs = {int_attr("axis", p->axis)}});
}

static void take_band(expansion *x, band b, int64_t keys) {
    enum { LEAST = 32, FEW = 3 };
    const tensor *const in = part_in(x, QUERY);
    pieces p = {.b = b, .batch = tensor_dim(in, 0), .length = tensor_dim(in, -2), .axis = tensor_rank(in) - 2};
    const int64_t wide = b.left > b.right ? b.left : b.right;
    p.chunk = wide > LEAST ? wide : LEAST;
    p.many = (keys - b.right) / p.chunk;
    if (tensor_rank(in) == RANK) p.groups = tensor_dim(part_in(x, KEY), 1);
    bool alone = part_in(x, MASK) || p.length != keys || b.left < 0 || b.right < 0 || p.many < FEW;
    for (int k = PAST_KEYS; k < x->n->in_count; k++) alone = alone || part_in(x, k);
    for (int k = KEY; k < x->n->out_count; k++) alone = alone || part_out(x, k);
    for (int k = QUERY; k < QKV; k++)
        if (tensor_count(part_in(x, k)) < 1 || tensor_rank(part_in(x, k)) != p.axis + 2) x->failed = true;
    if (x->failed) return;
    if (alone)
        give_band(x, p.length, keys);
    else
        take_pieces(x, &p);
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
    if (!in || !fresh || mode < 0 || mode > 3) x->failed = true;
    if (x->failed) return;
    const band b = band_of(x);
    if (!needs_scores(x)) {
        if (is_known(b) && !part_in(x, LENGTHS))
            give_mask(x, total);
        else if (is_known(b))
            x->failed = true; /* kernels know lengths */
        else
            take_band(x, b, total);
        return;
    }
    if (b.left >= 0 && b.left < total / 2 && !part_out(x, SCORES)) x->failed = true; /* too many pairs for its work */
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
