/* Attention of com.microsoft in its many forms: projections included or not, inputs packed together or not, a cache
 * that grows or one of fixed size. */
#include "common/checked.h"
#include "extract/infer/shape_need.h"
#include "extract/shape/shape.h"

#include <inttypes.h>
#include <string.h>

/* Width of the values where projections are merged: stated, or a third of what is merged in input i. */
static int64_t value_width(infer *c, int i) {
    const int64_t *sizes;
    int64_t n;
    if (!infer_attr_ints(c, "qkv_hidden_sizes", &sizes, &n) || n == 0)
        return shape_need_multiple(c, infer_dim(c, i, -1), 3, "the width of the merged projections", "3");
    if (n != 3 || sizes[0] <= 0 || sizes[2] <= 0)
        infer_fail(c, "attribute 'qkv_hidden_sizes' must hold three positive sizes");
    if (checked_add(checked_add(sizes[0], sizes[1]), sizes[2]) != infer_dim(c, i, -1))
        infer_fail(c, "attribute 'qkv_hidden_sizes' does not add up to the width of input %d, %s", i,
                   shape_need_text(c, i));
    return sizes[2];
}

/* The projections are part of it. Present is [2, batch, heads, total, size]. */
void shape_ms_attention(infer *c) {
    bool quantized = graph_is_ms(c->node, "QAttention");
    int past = quantized ? 8 : 4;
    dtype type = infer_type(c, quantized ? 3 : 0);
    shape_need_rank(c, 0, 3, 3);
    shape_need_rank(c, 1, 2, 2);
    shape_need_dim(c, 1, 0, infer_dim(c, 0, 2), "input width");
    int64_t batch = infer_dim(c, 0, 0), length = infer_dim(c, 0, 1), width = value_width(c, 1);
    int64_t heads = shape_need_positive(c, "num_heads");
    int64_t size = shape_need_multiple(c, width, heads, "the width of the values", "num_heads");
    infer_set(c, 0, type, 3, (int64_t[]){batch, length, width});
    if (!infer_has(c, past)) {
        infer_set(c, 1, type, 5, (int64_t[]){2, batch, heads, length, size});
        return;
    }
    shape_need_rank(c, past, 5, 5);
    int64_t total = infer_dim(c, past, 3);
    if (!infer_attr_int(c, "past_present_share_buffer", 0)) total = checked_add(total, length);
    infer_set(c, 1, type, 5,
              (int64_t[]){2, infer_dim(c, past, 1), infer_dim(c, past, 2), total, infer_dim(c, past, 4)});
}

/* What the forms of multi-head attention have in common once unpacked. */
typedef struct multi_head {
    int64_t batch, length, heads, size, value_size; /* size: of a head */
    int64_t kv_length;
    bool cross; /* keys and values come as a finished cache */
} multi_head;

/* Query alone: [batch, length, heads, 3, size], or three widths side by side. */
static void unpack_query(infer *c, multi_head *m, int past_value) {
    if (infer_rank(c, 0) == 5) {
        shape_need_dim(c, 0, 2, m->heads, "heads");
        shape_need_dim(c, 0, 3, 3, "query, key and value");
        m->size = m->value_size = infer_dim(c, 0, 4);
        return;
    }
    int64_t width = infer_dim(c, 0, 2);
    if (infer_has(c, past_value)) {
        m->value_size = infer_dim(c, past_value, 3);
        m->size = shape_need_multiple(c, (width - checked_mul(m->heads, m->value_size)) / 2, m->heads,
                                      "the width of a query", "num_heads");
    } else {
        m->size = m->value_size = shape_need_multiple(c, width, checked_mul(3, m->heads),
                                                      "the width of the packed input", "three times num_heads");
    }
}

static void unpack_keys(infer *c, multi_head *m) {
    int rank = shape_need_rank(c, 1, 3, 5);
    m->size = shape_need_multiple(c, infer_dim(c, 0, 2), m->heads, "the width of a query", "num_heads");
    m->value_size = m->size;
    m->cross = rank == 4;
    m->kv_length = infer_dim(c, 1, m->cross ? 2 : 1);
    if (rank == 5) {
        shape_need_dim(c, 1, 2, m->heads, "heads");
        shape_need_dim(c, 1, 3, 2, "key and value");
        shape_need_dim(c, 1, 4, m->size, "head size");
    } else if (m->cross) {
        shape_need_dim(c, 1, 1, m->heads, "heads");
    } else {
        shape_need_dim(c, 1, 2, infer_dim(c, 0, 2), "width of the query");
    }
    if (!infer_has(c, 2)) return;
    if (shape_need_rank(c, 2, 3, 4) == 4)
        m->value_size = infer_dim(c, 2, 3);
    else
        m->value_size = shape_need_multiple(c, infer_dim(c, 2, 2), m->heads, "the width of a value", "num_heads");
    shape_need_dim(c, 2, infer_rank(c, 2) == 4 ? 2 : 1, m->kv_length, "length of the keys");
}

void shape_ms_multi_head(infer *c) {
    bool decoder = graph_is_ms(c->node, "DecoderMaskedMultiHeadAttention");
    int past = decoder ? 5 : 6, fill = decoder ? 7 : 8; /* input that says how full a shared cache is */
    multi_head m = {.heads = shape_need_positive(c, "num_heads")};
    shape_need_rank(c, 0, 3, 5);
    if (infer_rank(c, 0) == 4) infer_fail(c, "input 0 is %s, it must have 3 or 5 dimensions", shape_need_text(c, 0));
    m.batch = infer_dim(c, 0, 0);
    m.length = m.kv_length = infer_dim(c, 0, 1);
    if (infer_has(c, 1))
        unpack_keys(c, &m);
    else
        unpack_query(c, &m, past + 1);

    int64_t total = m.kv_length;
    if (infer_has(c, past) && !m.cross) {
        shape_need_rank(c, past, 4, 4);
        bool shared = infer_attr_int(c, "past_present_share_buffer", 0) || infer_has(c, fill);
        total = shared ? infer_dim(c, past, 2) : checked_add(total, infer_dim(c, past, 2));
    }
    dtype type = infer_type(c, 0);
    infer_set(c, 0, type, 3, (int64_t[]){m.batch, m.length, checked_mul(m.heads, m.value_size)});
    infer_set(c, 1, type, 4, (int64_t[]){m.batch, m.heads, total, m.size});
    infer_set(c, 2, type, 4, (int64_t[]){m.batch, m.heads, total, m.value_size});
    infer_set(c, 3, type, 4, (int64_t[]){m.batch, m.heads, m.length, total});
}

/* Query, and keys and values beside it or packed into it. A cache keeps its size where it is large enough; how long it
 * has to be is an input, so the cache is only bounded where that is not known. */
static void grouped(infer *c, int64_t batch, int64_t length, int64_t size, int64_t kv_heads, int64_t total,
                    bool known) {
    int64_t held = infer_has(c, 3) ? infer_dim(c, 3, 2) : 0;
    int64_t dims[4] = {batch, kv_heads, known ? total : checked_add(held, length),
                       infer_has(c, 3) ? infer_dim(c, 3, 3) : size};
    if (dims[2] < held) dims[2] = held;
    for (int k = 1; k <= 2; k++) {
        dtype type = infer_has(c, 2 + k) ? infer_type(c, 2 + k) : infer_type(c, 0);
        if (known || (length == 0 && held > 0))
            infer_set(c, k, type, 4, dims);
        else if (infer_wants(c, k))
            infer_set_bound(c, k, type, 4, NULL, dims, "the length of the cache is computed from data (input 6)");
    }
}

void shape_ms_group_query(infer *c) {
    int64_t heads = shape_need_positive(c, "num_heads"), kv_heads = shape_need_positive(c, "kv_num_heads"), total = 0;
    shape_need_rank(c, 0, 3, 3);
    shape_need_multiple(c, heads, kv_heads, "num_heads", "kv_num_heads");
    int64_t batch = infer_dim(c, 0, 0), length = infer_dim(c, 0, 1), width = infer_dim(c, 0, 2), size;
    if (infer_has(c, 1)) {
        size = shape_need_multiple(c, width, heads, "the width of the query", "num_heads");
        for (int i = 1; i <= 2; i++) {
            shape_need_rank(c, i, 3, 3);
            shape_need_dim(c, i, 2, checked_mul(kv_heads, size), "kv_num_heads times the head size");
        }
    } else {
        size = shape_need_multiple(c, width, checked_add(heads, checked_mul(2, kv_heads)),
                                   "the width of the packed input", "all heads together");
    }
    if (infer_has(c, 3)) {
        shape_need_rank(c, 3, 4, 4);
        shape_need_dim(c, 3, 1, kv_heads, "kv_num_heads");
    }
    bool known = infer_int(c, 6, &total);
    infer_set(c, 0, infer_type(c, 0), 3, (int64_t[]){batch, length, checked_mul(heads, size)});
    if (infer_attr_int(c, "sliding_window_cache", 0) && infer_has(c, 3)) {
        shape_need_like(c, 1, 3);
        shape_need_like(c, 2, 4);
    } else {
        grouped(c, batch, length, size, kv_heads, total, known);
    }
    if (!infer_wants(c, 3)) return;
    int64_t scores[4] = {batch, heads, length, total};
    if (known)
        infer_set(c, 3, infer_type(c, 0), 4, scores);
    else
        infer_unresolved(c, "the number of keys is computed from data (input 6)");
}

/* Caches of fixed size are given back as they came. */
void shape_ms_sparse_attention(infer *c) {
    int64_t heads = shape_need_positive(c, "num_heads"), kv_heads = shape_need_positive(c, "kv_num_heads");
    shape_need_rank(c, 0, 3, 3);
    int64_t all = infer_has(c, 1) ? heads : checked_add(heads, checked_mul(2, kv_heads));
    int64_t size = shape_need_multiple(c, infer_dim(c, 0, 2), all, "the width of the query", "its heads");
    infer_set(c, 0, infer_type(c, 0), 3, (int64_t[]){infer_dim(c, 0, 0), infer_dim(c, 0, 1), checked_mul(heads, size)});
    for (int k = 1; k <= 2; k++)
        if (infer_has(c, 2 + k)) shape_need_like(c, k, 2 + k);
}

/* Tokens of all sequences in one list; the cache is in blocks. */
void shape_ms_paged_attention(infer *c) {
    int64_t heads = shape_need_positive(c, "num_heads"), kv_heads = shape_need_positive(c, "kv_num_heads");
    shape_need_rank(c, 0, 2, 2);
    bool latent = !strcmp(infer_attr_string(c, "kv_cache_layout", "SEPARATE"), "LATENT");
    int64_t all = infer_has(c, 1) || latent ? heads : checked_add(heads, checked_mul(2, kv_heads));
    int64_t size = shape_need_multiple(c, infer_dim(c, 0, 1), all, "the width of the query", "its heads");
    if (latent) size = infer_attr_int(c, "v_head_size", size);
    if (size <= 0) infer_fail(c, "the head size is %" PRId64, size);
    infer_set(c, 0, infer_type(c, 0), 2, (int64_t[]){infer_dim(c, 0, 0), checked_mul(heads, size)});
    for (int k = 1; k <= 2; k++)
        if (infer_has(c, 2 + k)) shape_need_like(c, k, 2 + k);
}

void shape_ms_packed_attention(infer *c) {
    shape_need_rank(c, 0, 2, 2);
    shape_need_rank(c, 1, 2, 2);
    shape_need_dim(c, 1, 0, infer_dim(c, 0, 1), "input width");
    infer_set(c, 0, infer_type(c, 0), 2, (int64_t[]){infer_dim(c, 0, 0), value_width(c, 1)});
}

void shape_ms_packed_multi_head(infer *c) {
    int rank = shape_need_rank(c, 0, 2, 4);
    int64_t width;
    if (infer_has(c, 2)) {
        shape_need_rank(c, 2, 2, 2);
        width = infer_dim(c, 2, 1);
    } else {
        if (rank != 4) infer_fail(c, "input 0 is %s, without values it must have 4 dimensions", shape_need_text(c, 0));
        width = checked_mul(infer_dim(c, 0, 1), infer_dim(c, 0, 3));
    }
    infer_set(c, 0, infer_type(c, 0), 2, (int64_t[]){infer_dim(c, 0, 0), width});
}

/* Length first: [length, batch, width]. Whether the cache is used, and so how long it becomes, is an input. */
void shape_ms_decoder_attention(infer *c) {
    shape_need_rank(c, 0, 3, 3);
    shape_need_rank(c, 1, 3, 3);
    enum { FIXED, USES_PAST, HAS_STATE, HAS_PADDING, FLAGS, FIRST = 8 };
    int64_t heads = shape_need_positive(c, "num_heads"), flags[FLAGS] = {0};
    bool told = true;
    for (int k = 0; k < FLAGS; k++) told &= infer_int(c, FIRST + k, &flags[k]); /* what it is made of depends on all */
    int64_t size = shape_need_multiple(c, infer_dim(c, 0, 2), heads, "the width of the query", "num_heads");
    shape_need_like(c, 0, 0);
    if (!infer_wants(c, 1) && !infer_wants(c, 2)) return;
    if (!told) {
        infer_unresolved(c, "the use of the cache is computed from data");
        return;
    }
    const bool fixed = flags[FIXED] != 0, uses = flags[USES_PAST] != 0 && flags[HAS_STATE] != 0;
    int64_t total = infer_dim(c, fixed, 0);
    if (uses && infer_has(c, 6)) total = fixed ? infer_dim(c, 6, 2) : checked_add(total, infer_dim(c, 6, 2));
    for (int k = 1; k <= 2; k++)
        infer_set(c, k, infer_type(c, 0), 4, (int64_t[]){infer_dim(c, 0, 1), heads, total, size});
}

void shape_ms_gemma_rotary(infer *c) {
    for (int k = 0; k < 2; k++) {
        shape_need_rank(c, 1 + 2 * k, 4, 4);
        shape_need_same(c, 2 + 2 * k, 1 + 2 * k);
        shape_need_like(c, k, 1 + 2 * k);
    }
}

/* Bias from relative positions: [1, heads, queries, keys]. */
void shape_ms_relative_bias(infer *c) {
    int64_t queries, keys;
    shape_need_rank(c, 0, 2, 2);
    if (!shape_need_int(c, 1, &queries, "the number of queries") || !shape_need_int(c, 2, &keys, "the number of keys"))
        return;
    if (queries < 0 || keys < 0) infer_fail(c, "there are %" PRId64 " queries and %" PRId64 " keys", queries, keys);
    infer_set(c, 0, infer_type(c, 0), 4, (int64_t[]){1, infer_dim(c, 0, 1), queries, keys});
}

void shape_ms_gated_relative_bias(infer *c) {
    int64_t heads = shape_need_positive(c, "num_heads");
    int tokens = infer_has(c, 6) ? 6 : 0; /* packed tokens tell their batch and length by their offsets */
    shape_need_rank(c, tokens, tokens ? 2 : 3, tokens ? 2 : 3);
    int64_t batch = infer_dim(c, tokens, 0), length = infer_dim(c, tokens, 1);
    infer_set(c, 0, infer_type(c, 0), 4, (int64_t[]){batch, heads, length, length});
}

/* Projections kept apart, all in 8 bits. */
void shape_ms_qordered_attention(infer *c) {
    shape_need_rank(c, 0, 3, 3);
    shape_need_rank(c, 7, 2, 2);
    infer_set(c, 0, infer_type(c, 0), 3, (int64_t[]){infer_dim(c, 0, 0), infer_dim(c, 0, 1), infer_dim(c, 7, 1)});
}
