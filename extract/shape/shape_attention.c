/* Attention of ai.onnx and what goes with it: plain, flexible and linear attention, rotary embedding. */
#include "common/checked.h"
#include "extract/infer/shape_need.h"
#include "extract/shape/shape.h"

#include <inttypes.h>
#include <string.h>

typedef struct heads {
    int64_t batch, count, length, size;
} heads;

/* Queries, keys and values come as [batch, heads, length, size], or packed as [batch, length, heads * size]. */
static heads unpack(infer *c, int i, bool packed, const char *attribute) {
    heads h;
    shape_need_rank(c, i, packed ? 3 : 4, packed ? 3 : 4);
    h.batch = infer_dim(c, i, 0);
    if (packed) {
        h.count = shape_need_positive(c, attribute);
        h.length = infer_dim(c, i, 1);
        h.size = shape_need_multiple(c, infer_dim(c, i, 2), h.count, "the width of an input", attribute);
    } else {
        h.count = infer_dim(c, i, 1);
        h.length = infer_dim(c, i, 2);
        h.size = infer_dim(c, i, 3);
    }
    return h;
}

static void need_heads_fit(infer *c, heads q, heads k, heads v) {
    if (q.batch != k.batch || k.batch != v.batch || k.count != v.count || k.length != v.length || q.size != k.size)
        infer_fail(c, "query, key and value do not fit: %s, %s, %s", shape_need_text(c, 0), shape_need_text(c, 1),
                   shape_need_text(c, 2));
    if (k.count > 0) shape_need_multiple(c, q.count, k.count, "the number of query heads", "the number of key heads");
}

/* The mask broadcasts to [batch, heads, length, total]; its last dimension may be shorter, for it is padded. */
static void need_mask_fits(infer *c, int i, heads q, int64_t total) {
    if (!infer_has(c, i)) return;
    int64_t want[4] = {q.batch, q.count, q.length, total};
    int rank = shape_need_rank(c, i, 0, 4);
    for (int k = 1; k <= rank; k++) {
        int64_t size = infer_dim(c, i, -k);
        if (size != 1 && size != want[4 - k] && !(k == 1 && size < total))
            infer_fail(c, "the mask %s does not broadcast to [%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "]",
                       shape_need_text(c, i), want[0], want[1], want[2], want[3]);
    }
}

void shape_attention(infer *c) {
    bool packed = shape_need_rank(c, 0, 3, 4) == 3;
    heads q = unpack(c, 0, packed, "q_num_heads"), k = unpack(c, 1, packed, "kv_num_heads"),
          v = unpack(c, 2, packed, "kv_num_heads");
    need_heads_fit(c, q, k, v);
    int64_t total = k.length;
    if (infer_has(c, 4) != infer_has(c, 5)) infer_fail(c, "past_key and past_value must be given together");
    if (infer_has(c, 4)) {
        heads past = unpack(c, 4, false, NULL), past_v = unpack(c, 5, false, NULL);
        if (past.batch != k.batch || past.count != k.count || past.size != k.size || past_v.size != v.size ||
            past.length != past_v.length)
            infer_fail(c, "past_key %s and past_value %s do not fit key %s and value %s", shape_need_text(c, 4),
                       shape_need_text(c, 5), shape_need_text(c, 1), shape_need_text(c, 2));
        total = checked_add(total, past.length);
    }
    need_mask_fits(c, 3, q, total);
    dtype type = infer_type(c, 0);
    if (packed)
        infer_set(c, 0, type, 3, (int64_t[]){q.batch, q.length, checked_mul(q.count, v.size)});
    else
        infer_set(c, 0, type, 4, (int64_t[]){q.batch, q.count, q.length, v.size});
    infer_set(c, 1, infer_type(c, 1), 4, (int64_t[]){k.batch, k.count, total, k.size});
    infer_set(c, 2, infer_type(c, 2), 4, (int64_t[]){k.batch, k.count, total, v.size});
    infer_set(c, 3, type, 4, (int64_t[]){q.batch, q.count, q.length, total});
}

/* The modifiers are bodies of one input: scores in, scores of the same shape out. */
static void infer_modifier(infer *c, const char *name, dtype type, const int64_t *dims) {
    const attr *a = infer_attr(c, name);
    if (!a || a->kind != ATTR_GRAPH || !a->g) return;
    if (a->g->input_count != 1 || a->g->output_count != 1)
        infer_fail(c, "attribute '%s' must be a graph of one input and one output, it has %d and %d", name,
                   a->g->input_count, a->g->output_count);
    a->g->inputs[0]->info = info_tensor(c->arena, type, 4, dims);
    infer_graph(c->model, a->g);
}

void shape_attention_flex(infer *c) {
    heads q = unpack(c, 0, false, NULL), k = unpack(c, 1, false, NULL), v = unpack(c, 2, false, NULL);
    need_heads_fit(c, q, k, v);
    int64_t type = infer_attr_int(c, "softmax_precision", infer_type(c, 0) == DTYPE_FP64 ? DTYPE_FP64 : DTYPE_FP32);
    if (!dtype_known(type)) infer_fail(c, "attribute 'softmax_precision' is %" PRId64 ", which is no data type", type);
    int64_t scores[4] = {q.batch, q.count, q.length, k.length};
    infer_modifier(c, "score_mod", (dtype)type, scores);
    infer_modifier(c, "prob_mod", (dtype)type, scores);
    infer_set(c, 0, infer_type(c, 0), 4, (int64_t[]){q.batch, q.count, q.length, v.size});
}

/* Keys and values update a state per key head; where there are more key heads than query heads, each of them answers.
 */
void shape_attention_linear(infer *c) {
    heads q = unpack(c, 0, true, "q_num_heads"), k = unpack(c, 1, true, "kv_num_heads"),
          v = unpack(c, 2, true, "kv_num_heads");
    if (q.batch != k.batch || k.batch != v.batch || q.length != k.length || k.length != v.length || q.size != k.size)
        infer_fail(c, "query, key and value do not fit: %s, %s, %s", shape_need_text(c, 0), shape_need_text(c, 1),
                   shape_need_text(c, 2));
    bool inverse = k.count > q.count && !strcmp(c->node->domain, "com.microsoft");
    if (inverse)
        shape_need_multiple(c, k.count, q.count, "the number of key heads", "the number of query heads");
    else
        shape_need_multiple(c, q.count, k.count, "the number of query heads", "the number of key heads");
    int64_t window = infer_attr_int(c, "state_window", 0);
    if (window < 0) infer_fail(c, "attribute 'state_window' is %" PRId64 ", it must not be negative", window);
    int64_t state[5] = {window, k.batch, k.count, k.size, v.size};
    int first = window > 0 ? 0 : 1;
    dtype state_type = infer_has(c, 3) ? infer_type(c, 3) : infer_type(c, 0);
    infer_set(c, 0, infer_type(c, 0), 3,
              (int64_t[]){q.batch, q.length, checked_mul(inverse ? k.count : q.count, v.size)});
    infer_set(c, 1, state_type, 5 - first, state + first);
}

void shape_attention_rotary(infer *c) {
    int rank = shape_need_rank(c, 0, 3, 4);
    int64_t size = infer_dim(c, 0, -1);
    if (rank == 3)
        size = shape_need_multiple(c, size, shape_need_positive(c, "num_heads"), "the width of the input", "num_heads");
    int64_t rotated = infer_attr_int(c, "rotary_embedding_dim", 0);
    if (rotated < 0 || rotated > size)
        infer_fail(c, "attribute 'rotary_embedding_dim' is %" PRId64 ", the heads of %s have %" PRId64, rotated,
                   shape_need_text(c, 0), size);
    shape_need_same(c, 2, 1);
    shape_need_dim(c, 1, -1, (rotated ? rotated : size) / 2, "half of what is rotated");
    shape_need_like(c, 0, 0);
}
