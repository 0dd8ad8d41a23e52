/* Owns attention written as one node: of ai.onnx, and of com.microsoft in its many packings. All become the same
 * record. */
#include "extract/lower/lower.h"

#include "common/checked.h"
#include "common/opcost.h"
#include "extract/ops/cost.h"

#include <string.h>

static void set_mask_shape(cost_attention *a, const tensor *mask) {
    if (!cost_shaped(mask)) return;
    a->mask_rank = mask->info->rank;
    a->mask_dims = mask->info->dims;
}

/* Heads, length and size of an operand: [B, H, L, D], or [B, L, H * D] with the heads told. */
static void read_heads(const tensor *t, int64_t told, int64_t *heads, int64_t *len, int64_t *size) {
    const bool split = cost_rank(t) == 4;
    *heads = split ? cost_dim(t, 1) : told;
    *len = cost_dim(t, split ? 2 : 1);
    *size = split ? cost_dim(t, 3) : *heads > 0 ? cost_dim(t, 2) / *heads : 0;
}

/* A cache is appended to in place: of the present keys and values only the fresh ones are written, and of a buffer that
 * is longer than what it holds only the valid ones are read. */
static void attention_share_cache(work *w, const tensor *const past[2], int64_t fresh, int64_t kv_len) {
    for (int k = 0; k < 2; k++) {
        const tensor *present = cost_out(w, 1 + k);
        const int rank = cost_rank(present), past_rank = cost_rank(past[k]);
        if (rank == 4 || rank == 5) cost_share(w, present, fresh, cost_dim(present, rank - 2));
        if (past_rank == 4 || past_rank == 5)
            cost_share(w, past[k], checked_sub(kv_len, fresh), cost_dim(past[k], past_rank - 2));
    }
}

static void attention_set_linear(work *w, const cost_attention *a) {
    const char *rule = graph_attr_string(w->node, "update_rule", "gated_delta");
    cost_set_attention(w, a);
    if (cost_rank(cost_in(w, 0)) == 3) w->rec.layout = "bshd";
    w->rec.what = "linear";
    oprec_set_text(&w->rec, "rule", cost_text(w, rule, true));
    /* each step updates a state of head x v_head and reads it once; the delta rules read it once more */
    const int64_t state = checked_mul(a->head, a->v_head ? a->v_head : a->head);
    const int64_t touched = strstr(rule, "delta") ? 3 : 2;
    opcost_macs(&w->rec,
                checked_mul(checked_mul(checked_mul(a->batch, a->heads), a->q_len), checked_mul(state, touched)));
}

void lower_attention(work *w) {
    const node *n = w->node;
    const tensor *q = cost_in(w, 0), *k = cost_in(w, 1), *v = cost_in(w, 2);
    const bool linear = strcmp(n->op_type, "LinearAttention") == 0, flex = strcmp(n->op_type, "FlexAttention") == 0;
    w->rec.kind = OP_ATTENTION;
    cost_set_types(w, q, cost_out(w, 0));
    cost_boundary(w);
    if (!cost_shaped(q) || !cost_shaped(k) || !cost_shaped(v)) return;
    cost_attention a = {.batch = cost_dim(q, 0),
                        .past = -1,
                        .scale = graph_attr_float(n, "scale", 0),
                        .softcap = graph_attr_float(n, "softcap", 0)};
    int64_t v_heads, v_len;
    read_heads(q, graph_attr_int(n, "q_num_heads", 0), &a.heads, &a.q_len, &a.head);
    const int64_t told = graph_attr_int(n, "kv_num_heads", 0);
    read_heads(k, told, &a.kv_heads, &a.kv_len, &(int64_t){0});
    read_heads(v, told, &v_heads, &v_len, &a.v_head);
    if (linear) {
        attention_set_linear(w, &a);
        return;
    }
    const tensor *mask = flex ? NULL : cost_in(w, 3), *past = flex ? NULL : cost_in(w, 4),
                 *lengths = flex ? NULL : cost_in(w, 6);
    a.past = cost_dim(past, 2);
    a.kv_len = checked_add(a.kv_len, a.past);
    if (lengths && !past) a.past = -1; /* the cache is one of the operands; the queries are its last rows */
    const bool causal = graph_attr_int(n, "is_causal", 0) != 0;
    a.mask = causal    ? (mask || lengths ? "causal+padding" : "causal")
             : mask    ? "additive"
             : lengths ? "lengths"
                       : "none";
    if (mask) set_mask_shape(&a, mask);
    attention_share_cache(w, (const tensor *const[2]){past, past ? cost_in(w, 5) : NULL},
                          checked_sub(a.kv_len, past ? a.past : 0), a.kv_len);
    cost_boundary(w);
    const int64_t left = graph_attr_int(n, "left_window_size", -1), right = graph_attr_int(n, "right_window_size", -1);
    if (left >= 0 && (causal || right >= 0)) a.window = checked_add(left, causal ? 1 : checked_add(right, 1));
    cost_set_attention(w, &a);
    if (flex) w->rec.what = "flex";
    if (!causal && left >= 0) oprec_set_int(&w->rec, "window_left", left);
    if (!causal && right >= 0) oprec_set_int(&w->rec, "window_right", right);
    const int64_t precise = graph_attr_int(n, "softmax_precision", 0);
    if (dtype_known(precise) && (dtype)precise != w->rec.type)
        oprec_set_text(&w->rec, "softmax_dtype", dtype_get((dtype)precise)->name);
    if (cost_out(w, 3)) oprec_set_int(&w->rec, "scores_out", 1);
    if (cost_rank(q) == 3) w->rec.layout = "bshd";
}

/* ---- com.microsoft ---- */

/* Which inputs of an operator mean what; -1: it has no such input. */
typedef struct ms_form {
    const char *op_type;
    int weight; /* projects the input to queries, keys and values inside the operator */
    int key, value;
    int mask; /* lengths, or a mask over keys */
    int additive;
    int past;  /* of keys; values follow */
    int total; /* how many keys there are with the fresh ones, or (total_is_past) without them */
    bool total_is_past;
    bool packed_tokens; /* padding is removed: the batch and the longest sequence come from `offsets` */
    int offsets;
    int bias; /* of queries, keys and values */
} ms_form;

/* clang-format off */
static const ms_form forms[] = {
    /* operator, weight, key, value, mask, additive, past, total, is past, packed, offsets, bias */
    {"Attention", 1, -1, -1, 3, 5, 4, 6, true, false, -1, 2},
    {"DecoderMaskedMultiHeadAttention", -1, 1, 2, 3, 4, 5, 7, true, false, -1, 10},
    {"GroupQueryAttention", -1, 1, 2, 5, 10, 3, 6, false, false, -1, -1},
    {"MultiHeadAttention", -1, 1, 2, 4, 5, 6, 8, true, false, -1, 3},
    {"PackedAttention", 1, -1, -1, 4, 5, -1, -1, false, true, 3, 2},
    {"PackedMultiHeadAttention", -1, 1, 2, 5, 6, -1, -1, false, true, 4, 3},
    {"QAttention", 1, -1, -1, 5, -1, 8, -1, false, false, -1, 2},
};
/* clang-format on */

static void ms_set_projection(work *w, const ms_form *f, int64_t rows) {
    cost_weight found;
    const tensor *in = cost_in(w, 0), *weight = cost_in(w, f->weight);
    const int64_t made[3] = {rows, cost_dim(weight, -1), cost_dim(in, -1)};
    if (!weight) return;
    oprec_set_ints(&w->rec, w->arena, "projection", 3, made);
    const int64_t macs = cost_product(made, 0, 3);
    w->rec.macs = checked_add(w->rec.macs, macs);
    w->rec.flops = checked_add(w->rec.flops, checked_mul(2, macs));
    if (!cost_trace(w, w->node->in[f->weight], &found)) return;
    w->weight = found.root;
    w->rec.weight_type = found.type;
}

/* Sizes of heads where the operator projects for itself: the weight is [in, q + k + v], all alike unless told. */
static void ms_read_projected(const work *w, const ms_form *f, cost_attention *a) {
    const attr *sizes = graph_attr(w->node, "qkv_hidden_sizes", ATTR_INTS);
    const bool told = sizes && sizes->n == 3 && sizes->ints;
    const int64_t all = cost_dim(cost_in(w, f->weight), -1);
    a->kv_heads = a->heads;
    a->head = (told ? sizes->ints[0] : all / 3) / a->heads;
    a->v_head = (told ? sizes->ints[2] : all / 3) / a->heads;
    a->kv_len = a->q_len;
}

/* Queries alone are [B, S, H * D]; keys and values may be packed with them, or with each other. */
static void ms_read_operands(const work *w, const ms_form *f, cost_attention *a) {
    const tensor *q = cost_in(w, 0), *k = cost_in(w, f->key), *v = cost_in(w, f->value);
    const int64_t told = graph_attr_int(w->node, "kv_num_heads", 0);
    a->kv_heads = told > 0 ? told : a->heads;
    const int heads_at = f->packed_tokens ? 1 : 2;
    const bool split = cost_rank(q) == heads_at + 3; /* …, H, 3, D */
    const int64_t parts = !k && !split ? checked_add(a->heads, checked_mul(2, a->kv_heads)) : a->heads;
    a->head = split ? cost_dim(q, -1) : parts > 0 ? cost_dim(q, -1) / parts : 0;
    a->v_head = a->head;
    a->kv_len = a->q_len;
    if (f->packed_tokens || !k) return;
    if (cost_rank(k) == 4)
        a->kv_len = cost_dim(k, 2); /* [B, H, L, D] */
    else
        a->kv_len = cost_dim(k, 1);
    if (cost_rank(v) == 3 && a->kv_heads > 0)
        a->v_head = cost_dim(v, 2) / a->kv_heads;
    else if (cost_rank(v) == 4)
        a->v_head = cost_dim(v, 3);
}

/* What is done on the way beside the attention itself, and how its operands lie. */
static void ms_set_options(work *w, const ms_form *f) {
    const tensor *key = f->key >= 0 ? cost_in(w, f->key) : NULL;
    const bool grouped = strcmp(f->op_type, "GroupQueryAttention") == 0;
    if (f->bias >= 0 && cost_in(w, f->bias)) oprec_set_int(&w->rec, "bias", 1);
    if (grouped && cost_in(w, 11)) oprec_set_int(&w->rec, "sink", 1);
    if (grouped && cost_in(w, 14)) oprec_set_int(&w->rec, "qk_norm", 1);
    if (graph_attr_int(w->node, "do_rotary", 0)) {
        enum { COS = 7, SIN = 8 };
        const int64_t positions = checked_mul(w->rec.shape[0], w->rec.shape[2]);
        oprec_set_int(&w->rec, "rotary", 1);
        for (int slot = COS; grouped && slot <= SIN; slot++)
            cost_share(w, cost_in(w, slot), positions, cost_dim(cost_in(w, slot), 0));
    }
    if (cost_rank(cost_in(w, 0)) == 3) w->rec.layout = "bshd";
    if (f->weight < 0 && !key) oprec_set_text(&w->rec, "packed", "qkv");
    if (cost_rank(key) == 5) oprec_set_text(&w->rec, "packed", "kv");
    if (f->packed_tokens) oprec_set_int(&w->rec, "packed_tokens", 1);
}

/* A length that comes as an input and is known; 0 where it is not. */
static int64_t known_length(const work *w, const tensor *t) {
    const value *known = cost_values(w, t);
    const int64_t length = known && known->n == 1 ? checked_from_double(value_at(known, 0)) : 0;
    return length > 0 ? length : 0;
}

/* Keys of earlier steps. The buffer may be longer than what it holds: an input says how long that is, or the present
 * output how long both are together. */
static void ms_read_past(work *w, const ms_form *f, cost_attention *a) {
    const tensor *past = f->past >= 0 ? cost_in(w, f->past) : NULL, *present = cost_out(w, 1);
    const int length_at = cost_rank(past) - 2;
    const int64_t fresh = a->kv_len, told = f->total >= 0 ? known_length(w, cost_in(w, f->total)) : 0;
    const tensor *both[2] = {past, f->past >= 0 && cost_rank(past) == 4 ? cost_in(w, f->past + 1) : NULL};
    if (past) {
        a->kv_len = checked_add(a->kv_len, cost_dim(past, length_at));
        if (cost_rank(present) == cost_rank(past) && cost_dim(present, length_at) > 0)
            a->kv_len = cost_dim(present, length_at);
        if (told > 0) a->kv_len = f->total_is_past ? checked_add(told, fresh) : told;
        a->past = a->kv_len > fresh ? checked_sub(a->kv_len, fresh) : 0;
    }
    attention_share_cache(w, both, fresh, a->kv_len);
}

static void ms_read_mask(const work *w, const ms_form *f, cost_attention *a) {
    const node *n = w->node;
    const tensor *mask = f->mask >= 0 ? cost_in(w, f->mask) : NULL,
                 *additive = f->additive >= 0 ? cost_in(w, f->additive) : NULL;
    const bool causal = strcmp(f->op_type, "GroupQueryAttention") == 0 ? graph_attr_int(n, "causal", 1) != 0
                                                                       : graph_attr_int(n, "unidirectional", 0) != 0;
    const bool lengths = f->packed_tokens || cost_rank(mask) == 1;
    a->mask = causal     ? (mask || additive || lengths ? "causal+padding" : "causal")
              : additive ? "additive"
              : lengths  ? "lengths"
              : mask     ? "additive"
                         : "none";
    if (additive)
        set_mask_shape(a, additive);
    else if (mask && !lengths)
        set_mask_shape(a, mask);
}

void lower_attention_ms(work *w) {
    const node *n = w->node;
    const ms_form *f = &forms[0];
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        if (strcmp(forms[k].op_type, n->op_type) == 0) f = &forms[k];
    }
    const tensor *q = cost_in(w, 0), *offsets = f->packed_tokens ? cost_in(w, f->offsets) : q;
    w->rec.kind = OP_ATTENTION;
    cost_set_types(w, q, cost_out(w, 0));
    cost_boundary(w);
    cost_attention a = {.batch = cost_dim(offsets, 0), .q_len = cost_dim(offsets, 1), .past = -1};
    a.heads = graph_attr_int(n, "num_heads", 1);
    a.scale = graph_attr_float(n, "scale", 0);
    a.softcap = graph_attr_float(n, "softcap", 0);
    const int64_t window = graph_attr_int(n, "local_window_size", -1);
    if (window > 0) a.window = window;
    if (!cost_shaped(q) || !cost_shaped(offsets) || a.heads < 1) return;
    if (f->weight >= 0)
        ms_read_projected(w, f, &a);
    else
        ms_read_operands(w, f, &a);
    ms_read_past(w, f, &a);
    ms_read_mask(w, f, &a);
    cost_set_attention(w, &a);
    ms_set_options(w, f);
    cost_boundary(w);
    if (f->weight >= 0) ms_set_projection(w, f, cost_product(q->info->dims, 0, q->info->rank - 1));
}
