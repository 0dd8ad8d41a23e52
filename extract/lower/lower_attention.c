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
    const int64_t left = graph_attr_int(n, "left_window_size", -1), right = graph_attr_int(n, "right_window_size", -1);
    const bool causal = graph_attr_int(n, "is_causal", 0) != 0 || right == 0;
    a.mask = causal    ? (mask || lengths ? "causal+padding" : "causal")
             : mask    ? "additive"
             : lengths ? "lengths"
                       : "none";
    if (mask) set_mask_shape(&a, mask);
    attention_share_cache(w, (const tensor *const[2]){past, past ? cost_in(w, 5) : NULL},
                          checked_sub(a.kv_len, past ? a.past : 0), a.kv_len);
    cost_boundary(w);
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

/* Which inputs of an operator mean what; -1: it has no such input. Queries, keys and values are the first three: those
 * that come in one, or that the operator projects by itself, expand/ took apart. */
typedef struct ms_form {
    const char *op_type;
    int mask; /* lengths, or a mask over keys */
    int additive;
    int past;  /* of keys; values follow */
    int total; /* how many keys there are with the fresh ones, or (total_is_past) without them */
    bool total_is_past;
    bool packed_tokens; /* padding is removed: the batch and the longest sequence come from `offsets` */
    int offsets;
} ms_form;

enum { MS_KEY = 1, MS_VALUE };

/* clang-format off */
static const ms_form forms[] = {
    /* operator, mask, additive, past, total, is past, packed, offsets */
    {"Attention", 3, 5, 4, 6, true, false, -1},
    {"DecoderMaskedMultiHeadAttention", 3, 4, 5, 7, true, false, -1},
    {"GroupQueryAttention", 5, 10, 3, 6, false, false, -1},
    {"MultiHeadAttention", 4, 5, 6, 8, true, false, -1},
    {"PackedAttention", 4, 5, -1, -1, false, true, 3},
    {"PackedMultiHeadAttention", 5, 6, -1, -1, false, true, 4},
    {"QAttention", 5, -1, 8, -1, false, false, -1},
    {"SparseAttention", -1, -1, 3, 7, false, false, -1},
};
/* clang-format on */

/* [B, S, H * D] or [B, H, S, D]; of packed tokens, [T, H * D], or [T, H, 3, D] of all three. */
static void ms_read_operands(const work *w, const ms_form *f, cost_attention *a) {
    const tensor *q = cost_in(w, 0), *k = cost_in(w, MS_KEY) ? cost_in(w, MS_KEY) : q,
                 *v = cost_in(w, MS_VALUE) ? cost_in(w, MS_VALUE) : k;
    const int64_t told = graph_attr_int(w->node, "kv_num_heads", 0);
    int64_t heads, len;
    if (f->packed_tokens) {
        a->kv_heads = a->heads;
        a->head = cost_rank(q) == 4 ? cost_dim(q, -1) : cost_dim(q, -1) / a->heads;
        a->v_head = cost_rank(v) == 2 ? cost_dim(v, -1) / a->heads : a->head;
        a->kv_len = a->q_len;
        return;
    }
    read_heads(q, a->heads, &a->heads, &a->q_len, &a->head);
    read_heads(k, told > 0 ? told : a->heads, &a->kv_heads, &a->kv_len, &len);
    read_heads(v, a->kv_heads, &heads, &len, &a->v_head);
}

/* What is done on the way beside the attention itself, and how its operands lie. */
static void ms_set_options(work *w, const ms_form *f) {
    const bool grouped = strcmp(f->op_type, "GroupQueryAttention") == 0;
    if (grouped && cost_in(w, 11)) oprec_set_int(&w->rec, "sink", 1);
    if (grouped && cost_in(w, 14)) oprec_set_int(&w->rec, "qk_norm", 1);
    if (cost_rank(cost_in(w, 0)) == 3) w->rec.layout = "bshd";
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

/* A mask over keys is the same for all heads, and [B, K] for all queries, too. */
static void ms_set_keys(const work *w, cost_attention *a, const tensor *mask) {
    const int rank = cost_rank(mask);
    set_mask_shape(a, mask);
    if (rank != 2 && rank != 3) return;
    int64_t *dims = arena_array(w->arena, int64_t, 4);
    dims[0] = cost_dim(mask, 0), dims[1] = 1, dims[2] = rank == 3 ? cost_dim(mask, 1) : 1, dims[3] = cost_dim(mask, -1);
    a->mask_rank = 4;
    a->mask_dims = dims;
}

static void ms_read_mask(const work *w, const ms_form *f, cost_attention *a) {
    const node *n = w->node;
    const tensor *mask = f->mask >= 0 ? cost_in(w, f->mask) : NULL,
                 *additive = f->additive >= 0 ? cost_in(w, f->additive) : NULL;
    const bool grouped = strcmp(f->op_type, "GroupQueryAttention") == 0, /* whose lengths may be [B, 1] */
        causal = grouped ? graph_attr_int(n, "causal", 1) != 0 : graph_attr_int(n, "unidirectional", 0) != 0,
               lengths = f->packed_tokens || grouped || cost_rank(mask) == 1;
    a->mask = causal     ? (mask || additive || lengths ? "causal+padding" : "causal")
              : additive ? "additive"
              : lengths  ? "lengths"
              : mask     ? "additive"
                         : "none";
    if (additive)
        set_mask_shape(a, additive);
    else if (mask && !lengths)
        ms_set_keys(w, a, mask);
}

/* ---- block masks ---- */

typedef struct blocks {
    int64_t side;
    double share; /* that is seen, of the blocks that a causal mask leaves */
} blocks;

/* Of the rows of blocks that its queries stand in, as all layouts of heads together have them. The rows of a layout are
 * places in a list of columns. */
static bool read_blocks(const work *w, blocks *b) {
    enum { MOST = 2048 }; /* blocks to a side that a record may have */
    const tensor *const rows = cost_in(w, 5), *const q = cost_in(w, 0);
    const value *const at = cost_values(w, rows);
    const int64_t total = known_length(w, cost_in(w, 7)), queries = cost_dim(q, 1), layouts = cost_dim(rows, 0),
                  each = cost_dim(rows, 1);
    b->side = graph_attr_int(w->node, "sparse_block_size", 0);
    if ((b->side != 64 && b->side != 128) || !at || cost_rank(rows) != 2 || at->n != checked_mul(layouts, each) ||
        layouts < 1 || queries < 1 || total < queries)
        return false;
    const int64_t first = (total - queries) / b->side, end = checked_ceil_div(total, b->side);
    if (end >= each || end > MOST) return false;
    double seen = 0, all = 0;
    for (int64_t k = 0; k < layouts; k++) seen += value_at(at, k * each + end) - value_at(at, k * each + first);
    for (int64_t k = first; k < end; k++) all += (double)(k + 1);
    b->share = seen / (all * (double)layouts);
    return b->share > 0 && b->share <= 1;
}

/* A record has one list of blocks for all heads: as many as they have on average, and drawn, as only data tell of each
 * head's own what they are worth together. */
static void set_blocks(work *w, const cost_attention *a, const blocks *b) {
    const double past = (double)(a->past > 0 ? a->past : 0), queries = (double)a->q_len;
    const char *const text = arena_printf(w->arena, "random,%.6g,%d,0", b->share, (int)b->side);
    oprec_set_text(&w->rec, "block_mask", text);
    opcost_attention_pairs(&w->rec, checked_from_double(b->share * queries * (past + (queries + 1) / 2)));
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
    if (n->whole) return;
    cost_attention a = {.batch = cost_dim(offsets, 0), .q_len = cost_dim(offsets, 1), .past = -1};
    a.heads = graph_attr_int(n, "num_heads", 1);
    a.scale = graph_attr_float(n, "scale", 0);
    a.softcap = graph_attr_float(n, "softcap", 0);
    blocks b = {0};
    const bool sparse = strcmp(f->op_type, "SparseAttention") == 0;
    if (sparse && !read_blocks(w, &b)) {
        lower_uncosted(w);
        return;
    }
    const int64_t window = graph_attr_int(n, "local_window_size", -1);
    if (window > 0) a.window = window;
    if (!cost_shaped(q) || !cost_shaped(offsets) || a.heads < 1) return;
    ms_read_operands(w, f, &a);
    ms_read_past(w, f, &a);
    ms_read_mask(w, f, &a);
    if (sparse) a.mask = "causal+blocks";
    cost_set_attention(w, &a);
    if (sparse) set_blocks(w, &a, &b);
    ms_set_options(w, f);
    cost_boundary(w);
}
