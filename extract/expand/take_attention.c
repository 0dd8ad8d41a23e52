/* Attention that projects its input, adds a bias or turns by itself. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include "common/checked.h"

#include <string.h>

/* Queries, keys and values side by side; the outputs are as wide as values, or as queries where values are as keys. */
static void take_columns(expansion *x, tensor *packed, bool as_queries) {
    const int64_t all = tensor_dim(packed, -1), told = tensor_dim(part_out(x, 0), -1),
                  other = checked_sub(all, told) / 2;
    const int64_t usual[QKV] = {as_queries ? told : other, other, as_queries ? other : told};
    const attr *sizes = graph_attr(x->n, "qkv_hidden_sizes", ATTR_INTS);
    const bool named = sizes && sizes->n == QKV && sizes->ints;
    if (named && sizes->ints[QUERY] != sizes->ints[KEY]) x->failed = true;
    tensor *const *parts = part_split(x, packed, -1, QKV, named ? sizes->ints : usual);
    for (int k = 0; k < QKV; k++) x->last.in[k] = parts[k];
}

/* [batch, length, heads, parts, size] as [batch, heads, length, size] each, which lie where they lay. */
static void take_heads(expansion *x, tensor *packed, int first) {
    static const int64_t ones[QKV] = {1, 1, 1}, perm[] = {0, 2, 1, 3};
    enum { AXIS = 3 };
    const int parts = QKV - first;
    tensor *const *each = part_split(x, packed, AXIS, parts, ones);
    for (int k = 0; k < parts && !x->failed; k++) {
        tensor *flat = *part_make(x, &(step){.op_type = "Squeeze", .in = {each[k], part_number(x, "axes", AXIS)}});
        x->last.in[first + k] = *part_make(x, &(step){.op_type = "Transpose",
                                                      .in = {flat},
                                                      .attrs = {ints_attr("perm", sizeof perm / sizeof *perm, perm)}});
    }
}

/* The operator makes the tables of its rotary embedding by itself. */
static void refuse_rotary(expansion *x) {
    if (graph_attr_int(x->n, "do_rotary", 0) != 0) x->failed = true;
}

/* Its input times a weight [input, queries + keys + values]. Behind that, queries, keys and values are its first
 * inputs.
 */
void take_projection(expansion *x) {
    tensor *made = *part_make(x, &(step){.op_type = "MatMul", .in = {part_in(x, 0), part_in(x, 1)}});
    take_columns(x, part_in(x, 2) ? part_add(x, made, part_in(x, 2)) : made, false);
    refuse_rotary(x);
}

void take_quantized_projection(expansion *x) {
    enum { INPUT, WEIGHT, BIAS, INPUT_SCALE, WEIGHT_SCALE, MASK, INPUT_ZERO, WEIGHT_ZERO };
    tensor *const used[STEP_INPUTS] = {part_in(x, INPUT),        part_in(x, WEIGHT),     part_in(x, INPUT_SCALE),
                                       part_in(x, WEIGHT_SCALE), part_in(x, INPUT_ZERO), part_in(x, WEIGHT_ZERO),
                                       part_in(x, BIAS)};
    step s = {.domain = "com.microsoft", .op_type = "MatMulIntegerToFloat"};
    memcpy(s.in, used, sizeof used);
    take_columns(x, *part_make(x, &s), false);
    refuse_rotary(x);
    part_leave_out(x, INPUT_SCALE);
    part_leave_out(x, WEIGHT_SCALE);
    part_leave_out(x, INPUT_ZERO);
    part_leave_out(x, WEIGHT_ZERO);
}

/* Of a packed input with heads before queries, keys and values: [3 * heads * size] as [heads, 3, size]. */
static tensor *bias_by_heads(expansion *x, tensor *bias, const tensor *packed) {
    static const int64_t perm[] = {1, 0, 2};
    const int64_t shape[] = {QKV, tensor_dim(packed, -3), tensor_dim(packed, -1)};
    tensor *apart = *part_make(x, &(step){.op_type = "Reshape", .in = {bias, part_numbers(x, "shape", QKV, shape)}});
    return *part_make(x, &(step){.op_type = "Transpose", .in = {apart}, .attrs = {ints_attr("perm", QKV, perm)}});
}

/* Keys and values that come from a cache have theirs already. */
static void take_bias(expansion *x, int slot, int packed_rank) {
    tensor *bias = part_in(x, slot), *query = part_in(x, QUERY), *key = part_in(x, KEY);
    if (!bias || tensor_rank(key) == packed_rank) return;
    if (!key) {
        x->last.in[QUERY] =
            part_add(x, query, tensor_rank(query) == packed_rank ? bias_by_heads(x, bias, query) : bias);
    } else {
        const int added = tensor_rank(key) == tensor_rank(query) ? QKV : KEY;
        const int64_t all = tensor_dim(bias, 0), first = tensor_dim(query, -1), last = tensor_dim(part_out(x, 0), -1);
        const int64_t sizes[QKV] = {first, checked_sub(checked_sub(all, first), last), last};
        tensor *const *parts = part_split(x, bias, 0, QKV, sizes);
        for (int k = 0; k < added; k++) x->last.in[k] = part_add(x, part_in(x, k), parts[k]);
    }
    part_leave_out(x, slot);
}

void take_multi_head(expansion *x) {
    enum { PACKED_RANK = 5 };
    take_bias(x, graph_is_ms(x->n, "DecoderMaskedMultiHeadAttention") ? 10 : 3, PACKED_RANK);
    if (tensor_rank(part_in(x, KEY)) == PACKED_RANK)
        take_heads(x, part_in(x, KEY), KEY);
    else if (!part_in(x, KEY) && tensor_rank(part_in(x, QUERY)) == PACKED_RANK)
        take_heads(x, x->last.in[QUERY], QUERY);
    else if (!part_in(x, KEY))
        take_columns(x, x->last.in[QUERY], false);
}

/* ---- tokens without padding ---- */

/* Its padding comes back, and goes again: kernels know sequences of different lengths, but not where each begins.
 * Places of tokens come first in `offsets`, and `ends` has where each sequence begins and ends. */
static void pad_tokens(expansion *x, tensor *const parts[QKV], tensor *offsets, tensor *ends, tensor *bias) {
    enum { LENGTHS = 4, ADDED };
    const int64_t batch = tensor_dim(offsets, 0), length = tensor_dim(offsets, 1), all = checked_mul(batch, length),
                  tokens = tensor_dim(parts[QUERY], 0);
    if (x->failed || tensor_rank(offsets) != 2 || tensor_dim(ends, 0) != checked_add(batch, 1) || tokens > all) return;
    const attr *const scale = graph_attr(x->n, "scale", ATTR_FLOAT);
    step s = {.domain = "com.microsoft",
              .op_type = "MultiHeadAttention",
              .attrs = {int_attr("num_heads", graph_attr_int(x->n, "num_heads", 0)),
                        scale ? real_attr("scale", scale->f) : (attr){.name = NULL}}};
    tensor *const places = part_cast(x, part_slice(x, part_reshaped(x, offsets, 1, &all), 0, 0, tokens), DTYPE_INT64);
    tensor *const rows = part_reshaped(x, places, 2, (int64_t[]){tokens, 1});
    for (int k = 0; k < QKV && !x->failed; k++) {
        const int64_t width = tensor_dim(parts[k], 1), flat[] = {all, width}, dims[] = {batch, length, width};
        tensor *const blank = part_zeros(x, parts[k]->info->type, 2, flat);
        s.in[k] =
            part_reshaped(x, *part_make(x, &(step){.op_type = "ScatterND", .in = {blank, rows, parts[k]}}), 3, dims);
    }
    s.in[LENGTHS] = part_do(x, "Sub", part_slice(x, ends, 0, 1, batch + 1), part_slice(x, ends, 0, 0, batch));
    s.in[ADDED] = bias;
    tensor *const made = *part_make(x, &s);
    tensor *const padded = part_reshaped(x, made, 2, (int64_t[]){all, tensor_dim(made, 2)});
    part_end(x, &(step){.op_type = "Gather", .in = {padded, places}});
}

void take_packed_multi_head(expansion *x) {
    enum { BIAS_SLOT = 3, OFFSETS, ENDS, ADDED, TOGETHER = 4 /* dimensions of all three in one */ };
    take_bias(x, BIAS_SLOT, TOGETHER);
    tensor *parts[QKV] = {x->last.in[QUERY], x->last.in[KEY], x->last.in[VALUE]};
    if (tensor_rank(parts[QUERY]) == TOGETHER) {
        static const int64_t ones[QKV] = {1, 1, 1};
        const int64_t dims[] = {tensor_dim(parts[QUERY], 0),
                                checked_mul(tensor_dim(parts[QUERY], 1), tensor_dim(parts[QUERY], 3))};
        tensor *const *each = part_split(x, parts[QUERY], 2, QKV, ones);
        for (int k = 0; k < QKV; k++) parts[k] = part_reshaped(x, each[k], 2, dims);
    }
    pad_tokens(x, parts, part_in(x, OFFSETS), part_in(x, ENDS), part_in(x, ADDED));
}

void take_packed_attention(expansion *x) {
    enum { OFFSETS = 3, ENDS, ADDED };
    take_projection(x);
    tensor *const parts[QKV] = {x->last.in[QUERY], x->last.in[KEY], x->last.in[VALUE]};
    pad_tokens(x, parts, part_in(x, OFFSETS), part_in(x, ENDS), part_in(x, ADDED));
}

static tensor *rotated(expansion *x, tensor *t, tensor *positions, const char *heads, tensor *cosine, tensor *sine) {
    const int64_t count = graph_attr_int(x->n, heads, 0), size = count > 0 ? tensor_dim(t, -1) / count : 0,
                  turned = checked_mul(2, tensor_dim(cosine, -1));
    return *part_make(x, &(step){.domain = "com.microsoft",
                                 .op_type = "RotaryEmbedding",
                                 .in = {t, positions, cosine, sine},
                                 .attrs = {int_attr("num_heads", count),
                                           int_attr("interleaved", graph_attr_int(x->n, "rotary_interleaved", 0)),
                                           int_attr("rotary_embedding_dim", turned < size ? turned : 0)}});
}

static void take_turned(expansion *x, int cosine, int positions) {
    const int sine = cosine + 1;
    const bool turns = graph_attr_int(x->n, "do_rotary", 0) != 0;
    if (!part_in(x, KEY)) take_columns(x, part_in(x, QUERY), true);
    if (!turns || x->failed) return;
    /* without positions of its own the lengths say where it stands, which changes nothing of the work */
    tensor *at = part_in(x, positions) ? part_in(x, positions) : part_number(x, "position", 0);
    x->last.in[QUERY] = rotated(x, x->last.in[QUERY], at, "num_heads", part_in(x, cosine), part_in(x, sine));
    x->last.in[KEY] = rotated(x, x->last.in[KEY], at, "kv_num_heads", part_in(x, cosine), part_in(x, sine));
    for (int k = cosine; k <= sine; k++) part_leave_out(x, k);
    if (positions >= 0) part_leave_out(x, positions);
}

void take_grouped(expansion *x) { take_turned(x, 7, 9); }
void take_sparse_attention(expansion *x) { take_turned(x, 9, -1); }

/* ---- a layer with its projections, whose batch stands second ---- */

enum { SOURCE = 1, QUERY_WEIGHT, PAIR_WEIGHT, BIAS, PADDING, CACHED_KEYS, CACHED_VALUES, FIXED, PAST, STATE, PADDED };

static tensor *batch_second(expansion *x, tensor *t) {
    static const int64_t perm[] = {1, 0, 2};
    return *part_make(x, &(step){.op_type = "Transpose", .in = {t}, .attrs = {ints_attr("perm", 3, perm)}});
}

/* What data decide at run time is one of several operators. */
static bool told(expansion *x, int slot) {
    const tensor *const t = part_in(x, slot);
    const value *const v = t ? t->info->val : NULL;
    if (!v || v->n != 1) x->failed = true;
    return v && v->n == 1 && value_at(v, 0) != 0;
}

/* Keys and values that are fixed come from another input, and from the cache once they are there. */
void take_decoder_attention(expansion *x) {
    enum { MASK = 4, PAST_KEYS = 6, PAST_VALUES }; /* of the attention */
    const bool fixed = told(x, FIXED), has_state = told(x, STATE), uses = told(x, PAST) && has_state,
               padded = told(x, PADDED);
    const int64_t width = tensor_dim(part_in(x, QUERY_WEIGHT), 1), sizes[] = {width, checked_mul(2, width)},
                  halves[] = {width, width};
    tensor *const query = batch_second(x, part_in(x, 0));
    tensor *const *bias = part_split(x, part_in(x, BIAS), 0, 2, sizes);
    step s = {.domain = "com.microsoft",
              .op_type = "MultiHeadAttention",
              .attrs = {int_attr("num_heads", graph_attr_int(x->n, "num_heads", 0)),
                        real_attr("mask_filter_value", graph_attr_float(x->n, "mask_filter_value", -10000))},
              .outputs = QKV};
    s.in[QUERY] = part_add(x, part_do(x, "MatMul", query, part_in(x, QUERY_WEIGHT)), bias[0]);
    if (fixed && uses) {
        s.in[KEY] = part_in(x, CACHED_KEYS), s.in[VALUE] = part_in(x, CACHED_VALUES);
    } else {
        tensor *const source = fixed ? batch_second(x, part_in(x, SOURCE)) : query;
        tensor *const pair = part_add(x, part_do(x, "MatMul", source, part_in(x, PAIR_WEIGHT)), bias[1]);
        tensor *const *parts = part_split(x, pair, 2, 2, halves);
        s.in[KEY] = parts[0], s.in[VALUE] = parts[1];
        if (uses) s.in[PAST_KEYS] = part_in(x, CACHED_KEYS), s.in[PAST_VALUES] = part_in(x, CACHED_VALUES);
    }
    /* there it says what is hidden, here what is not */
    if (padded) s.in[MASK] = part_cast(x, part_do(x, "Not", part_in(x, PADDING), NULL), DTYPE_INT32);
    const bool same = fixed && uses;
    for (int k = KEY; k < QKV; k++)
        if (same || !part_out(x, k)) s.left_out |= 1U << k;
    tensor *kept[QKV] = {NULL}, *const *const made = part_make(x, &s);
    for (int k = KEY; k < QKV; k++) kept[k] = same && part_out(x, k) ? part_do(x, "Identity", s.in[k], NULL) : made[k];
    batch_second(x, made[0]);
    part_end_made(x);
    for (int k = KEY; k < QKV; k++) part_give(x, k, kept[k]);
}
