/* Owns what a record's numbers follow from: types under --precision, compulsory bytes, weights traced to where their
 * bytes lie. One place, so that a plain node and a recognised pattern count the same way. */
#include "extract/ops/cost.h"

#include "common/checked.h"
#include "common/opcost.h"
#include "extract/graph/operators.h"
#include "extract/read/read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* the same of a type */
static dtype cost_as(const work *w, dtype type) {
    const bool replaced = type == DTYPE_FP32 || type == DTYPE_FP16 || type == DTYPE_BF16 || type == DTYPE_FP64;
    return replaced && w->precision != DTYPE_NONE ? w->precision : type;
}

dtype cost_type(const work *w, const tensor *t) { return t ? cost_as(w, t->info->type) : DTYPE_NONE; }

int64_t cost_bytes(const work *w, const tensor *t) {
    if (!t) return 0;
    if (t->info->form == INFO_TENSOR && t->info->rank >= 0) return dtype_bytes(cost_type(w, t), info_count(t->info));
    return info_bytes(t->info);
}

int64_t cost_part(int64_t bytes, int64_t part, int64_t whole) {
    if (part >= whole) return bytes;
    return checked_add(checked_mul(bytes / whole, part), checked_mul(bytes % whole, part) / whole);
}

int cost_rank(const tensor *t) { return t && info_shaped(t->info) ? t->info->rank : -1; }

bool cost_shaped(const tensor *t) { return cost_rank(t) >= 0; }

int64_t cost_dim(const tensor *t, int axis) {
    const int rank = cost_rank(t);
    if (axis < 0) axis += rank;
    return axis >= 0 && axis < rank ? t->info->dims[axis] : 0;
}

const tensor *cost_in(const work *w, int i) { return i >= 0 && i < w->node->in_count ? w->node->in[i] : NULL; }

const tensor *cost_out(const work *w, int i) { return i >= 0 && i < w->node->out_count ? w->node->out[i] : NULL; }

bool cost_known(const tensor *t) { return t->is_constant || t->source == TENSOR_INITIALIZER || t->info->val; }

void cost_set_shape(work *w, const tensor *t) {
    static const int64_t none = 0;
    if (!cost_shaped(t)) return;
    w->rec.rank = t->info->rank;
    w->rec.shape = t->info->dims ? t->info->dims : &none; /* infos never change, so their dims need no copy */
}

void cost_set_types(work *w, const tensor *in, const tensor *out) {
    const dtype given = cost_type(w, in), made = cost_type(w, out);
    w->rec.type = given != DTYPE_NONE ? given : made;
    w->rec.out_type = made != w->rec.type ? made : DTYPE_NONE;
}

const char *cost_text(const work *w, const char *text, bool lower_case) {
    enum { MOST = 200 };
    char *clean = arena_strndup(w->arena, text, strnlen(text, MOST));
    for (char *c = clean; *c; c++) {
        if (*c < ' ' || *c > '~') *c = '?';
        if (lower_case && *c >= 'A' && *c <= 'Z') *c = (char)(*c - 'A' + 'a');
    }
    return clean;
}

const char *cost_what(const work *w) {
    return w->node->def && w->node->def->detail ? w->node->def->detail : cost_text(w, w->node->op_type, true);
}

const value *cost_values(const work *w, const tensor *t) {
    if (!t || t->info->val || !t->blob) return t ? t->info->val : NULL;
    return read_values(w->model, t, INFO_MAX_VALUES);
}

bool cost_has_zero(const work *w, const tensor *t) {
    const value *known = cost_values(w, t);
    bool zero = known != NULL;
    for (int64_t k = 0; known && k < known->n; k++) zero = zero && value_at(known, k) == 0;
    return t && !zero;
}

bool cost_is_each(const tensor *t) { return t && cost_shaped(t) && info_count(t->info) > 1; }

int64_t cost_product(const int64_t *dims, int from, int to) {
    int64_t product = 1;
    for (int k = from; k < to; k++) product = checked_mul(product, dims[k]);
    return product;
}

void cost_set_rows(work *w, op_kind kind, const char *what, int64_t rows, int64_t cols, int64_t per_element) {
    const int64_t shape[2] = {rows, cols};
    w->rec.kind = kind;
    w->rec.what = what;
    oprec_set_shape(&w->rec, w->arena, 2, shape);
    w->rec.flops = checked_mul(checked_mul(rows, cols), per_element);
}

/* ---- weights ---- */

static bool is_view(const node *n) {
    static const char *const names[] = {"Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        if (graph_is(n, names[k])) return true;
    }
    return graph_is_ms(n, "ExpandDims");
}

typedef enum cost_swap { SWAP_NONE, SWAP_LAST, SWAP_OTHER } cost_swap;

/* What a Transpose does: nothing but move dimensions of size 1, swap the last two, or something else. */
static cost_swap transpose_kind(const node *n) {
    const tensor *in = n->in_count > 0 ? n->in[0] : NULL;
    const int rank = cost_rank(in);
    if (rank < 2 || rank > INFO_MAX_RANK) return rank < 0 ? SWAP_OTHER : SWAP_NONE;
    int64_t perm[INFO_MAX_RANK];
    for (int k = 0; k < rank; k++) perm[k] = rank - 1 - k;
    const attr *given = graph_attr(n, "perm", ATTR_INTS);
    if (given && given->n != rank) return SWAP_OTHER;
    for (int k = 0; given && k < rank; k++) perm[k] = given->ints[k];
    int64_t last = -1;
    bool ordered = true, plain = perm[rank - 1] == rank - 2 && perm[rank - 2] == rank - 1;
    for (int k = 0; k < rank; k++) {
        plain = plain && (k >= rank - 2 || perm[k] == k);
        if (cost_dim(in, (int)perm[k]) == 1) continue;
        ordered = ordered && perm[k] > last;
        last = perm[k];
    }
    if (ordered) return SWAP_NONE;
    return plain ? SWAP_LAST : SWAP_OTHER;
}

bool cost_keeps_order(const node *n) {
    return cost_rank(n->in_count > 0 ? n->in[0] : NULL) >= 0 && transpose_kind(n) == SWAP_NONE;
}

static bool keeps_matrix(const tensor *a, const tensor *b) {
    return cost_rank(a) >= 2 && cost_rank(b) >= 2 && cost_dim(a, -1) == cost_dim(b, -1) &&
           cost_dim(a, -2) == cost_dim(b, -2);
}

/* Of a stack of matrices the first ones, which lie where it does. */
static bool takes_first(const work *w, const node *n, const tensor *t, const tensor *in) {
    const value *starts = n->in_count > 1 ? cost_values(w, n->in[1]) : NULL;
    if (!graph_is(n, "Slice") || n->in_count > 4 || !starts || cost_rank(in) < 3 || cost_rank(t) != cost_rank(in))
        return false;
    for (int64_t k = 0; k < starts->n; k++)
        if (value_at(starts, k) != 0) return false;
    for (int k = 1; k < t->info->rank; k++)
        if (cost_dim(t, k) != cost_dim(in, k)) return false;
    return true;
}

/* Whether every number of one type is one of the other. */
static bool is_wider(dtype to, dtype from) {
    const dtype_info *a = dtype_get(to), *b = dtype_get(from);
    if (to == from) return true;
    if (b->cls == DTYPE_CLASS_FLOAT) return a->cls == DTYPE_CLASS_FLOAT && a->bits > b->bits;
    return to != DTYPE_BOOL && (a->cls == DTYPE_CLASS_FLOAT || a->bits > b->bits);
}

static bool is_cast(const node *n) { return graph_is(n, "Cast") || graph_is(n, "CastLike"); }

/* What a Cast takes away is missed where another one widens the rest to the type of what is read. */
static bool is_cut_down(const tensor *t, dtype read) {
    const tensor *in = t->producer && is_cast(t->producer) && t->producer->in_count > 0 ? t->producer->in[0] : NULL;
    return in && t->info->type != read && !is_wider(t->info->type, in->info->type);
}

/* One step up from a tensor towards its initializer; NULL where the trail ends. */
static tensor *trace_step(const work *w, tensor *t, cost_weight *found, bool *reshaped) {
    const node *n = t->producer;
    tensor *in = n && n->in_count > 0 ? n->in[0] : NULL;
    if (!in) return NULL;
    if (is_view(n)) {
        if (!keeps_matrix(t, in)) *reshaped = true;
        return in;
    }
    if (takes_first(w, n, t, in)) {
        found->part = checked_mul(found->part, cost_dim(t, 0));
        found->whole = checked_mul(found->whole, cost_dim(in, 0));
        if (!found->first) found->first = t;
        return in;
    }
    found->first = NULL; /* what follows may store it otherwise */
    if (is_cast(n)) return in;
    if (graph_is(n, "DequantizeLinear") || graph_is_ms(n, "DequantizeLinear")) {
        found->quantized = true;
        found->dequantize = n;
        found->swapped = found->transposed;
        found->scales = n->in_count > 1 ? n->in[1] : NULL;
        found->zero_points = n->in_count > 2 ? n->in[2] : NULL;
        found->block_size = graph_attr_int(n, "block_size", 0);
        return in;
    }
    if (!graph_is(n, "Transpose")) return NULL;
    const cost_swap swap = transpose_kind(n);
    if (swap == SWAP_OTHER || (swap == SWAP_LAST && *reshaped)) found->rearranged = true;
    if (swap == SWAP_LAST) found->transposed = !found->transposed;
    return in;
}

const node *cost_passed(const work *w, const tensor *t) {
    const node *n = t && !t->is_constant ? t->producer : NULL;
    const opfield *quant = oprec_field(&w->rec, "quant");
    if (!n || !(w->moves_stored || (quant && strcmp(quant->text, "qdq") == 0))) return NULL;
    if (!graph_is(n, "DequantizeLinear") && !graph_is_ms(n, "DequantizeLinear")) return NULL;
    return n->in_count > 0 && n->in[0] ? n : NULL;
}

bool cost_trace(const work *w, tensor *t, cost_weight *found) {
    *found = (cost_weight){.root = t, .part = 1, .whole = 1};
    if (!t || (!t->is_constant && t->source != TENSOR_INITIALIZER)) return false;
    const cost_weight itself = *found;
    cost_weight sliced =
        itself; /* as found where the first ones of a stack are taken: they lie so if only views follow */
    bool reshaped = false;
    for (int steps = 0; steps < 64; steps++) {
        const cost_weight before = *found;
        tensor *up = trace_step(w, found->root, found, &reshaped);
        const bool cut_down = is_cut_down(before.root, t->info->type);
        if (!before.first && found->first) sliced = before;
        const bool unpacked = found->dequantize != before.dequantize; /* bytes are read, wherever they lie */
        if (cut_down || (before.first && !found->first && !unpacked)) {
            *found = cut_down ? itself : sliced;
            break;
        }
        if (!up) break;
        found->root = up;
    }
    const bool packed = dtype_get(found->root->info->type)->cls == DTYPE_CLASS_INT &&
                        dtype_get(t->info->type)->cls == DTYPE_CLASS_FLOAT;
    found->quantized = found->quantized || packed;
    const tensor *stored = found->quantized ? found->root : t;
    found->type = cost_type(w, stored);
    found->bytes = checked_add(cost_bytes(w, stored),
                               checked_add(cost_bytes(w, found->scales), cost_bytes(w, found->zero_points)));
    if (found->quantized) found->bytes = cost_part(found->bytes, found->part, found->whole);
    return true;
}

/* ---- bytes ---- */

static int by_address(const void *a, const void *b) {
    const uintptr_t x = (uintptr_t) * (tensor *const *)a, y = (uintptr_t) * (tensor *const *)b;
    return (x > y) - (x < y);
}

static bool is_inside(const work *w, const node *n) {
    if (!n || w->node_count == 1) return n == w->node;
    int low = 0, high = w->node_count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (w->nodes[middle]->id < n->id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < w->node_count && w->nodes[low] == n;
}

bool cost_is_parameter(const tensor *t) {
    enum { MOST_SMALL = 8 };
    if (!cost_known(t) || cost_rank(t) < 0 || cost_rank(t) > 1) return false;
    return t->info->type == DTYPE_INT64 || (t->info->type == DTYPE_INT32 && info_count(t->info) <= MOST_SMALL);
}

static int64_t input_bytes(const work *w, tensor *t) {
    cost_weight stored;
    if (t->is_constant && t->producer && cost_trace(w, t, &stored)) return stored.bytes;
    return cost_bytes(w, t);
}

static bool is_read(const tensor *t) { return t && (t->is_graph_output || t->user_count > 0); }

static bool any_is_read(const node *n) {
    for (int k = 0; k < n->out_count; k++)
        if (is_read(n->out[k])) return true;
    return false;
}

bool cost_wanted(const node *n, int i) {
    return i >= 0 && i < n->out_count && n->out[i] && (is_read(n->out[i]) || !any_is_read(n));
}

static const work_share *share_of(const work *w, const tensor *t) {
    for (int k = 0; k < w->share_count; k++)
        if (w->shares[k].t == t) return &w->shares[k];
    return NULL;
}

void cost_share(work *w, const tensor *t, int64_t part, int64_t whole) {
    enum { MOST = 8 }; /* tensors of one operator */
    if (!t || part >= whole || share_of(w, t) || w->share_count == MOST) return;
    if (!w->shares) w->shares = arena_array(w->arena, work_share, MOST);
    w->shares[w->share_count++] = (work_share){t, part > 0 ? part : 0, whole};
}

/* Counting by parts, and never taking away what was not counted, keeps sums from going below zero. */
static int64_t shared(const work *w, const tensor *t, int64_t bytes) {
    const work_share *s = share_of(w, t);
    return s ? cost_part(bytes, s->part, s->whole) : bytes;
}

static bool leaves(const work *w, const tensor *t) {
    if (t->is_graph_output || t->user_count == 0 || w->node_count == 1) return true;
    for (int k = 0; k < t->user_count; k++) { /* a user of the shape alone needs no data */
        const node *n = t->users[k];
        if (!is_inside(w, n) && !graph_is(n, "Shape") && !graph_is(n, "Size")) return true;
    }
    return false;
}

static void cost_inputs(work *w) {
    size_t most = 0, count = 0;
    for (int k = 0; k < w->node_count; k++) most += (size_t)w->nodes[k]->in_count;
    const arena_mark scratch = arena_save(w->arena);
    tensor **seen = arena_array(w->arena, tensor *, most);
    for (int k = 0; k < w->node_count; k++) {
        const node *n = w->nodes[k];
        for (int i = 0; i < n->in_count; i++) {
            tensor *t = n->in[i];
            if (t && !is_inside(w, t->producer) && !cost_is_parameter(t)) seen[count++] = t;
        }
    }
    qsort(seen, count, sizeof *seen, by_address);
    w->rec.bytes_read = 0;
    for (size_t k = 0; k < count; k++) {
        if (k == 0 || seen[k] != seen[k - 1])
            w->rec.bytes_read = checked_add(w->rec.bytes_read, shared(w, seen[k], input_bytes(w, seen[k])));
    }
    arena_rewind(w->arena, scratch);
}

void cost_boundary(work *w) {
    cost_inputs(w);
    w->rec.bytes_written = 0;
    for (int k = 0; k < w->node_count; k++) {
        const node *n = w->nodes[k];
        const bool all = !any_is_read(n);
        for (int i = 0; i < n->out_count; i++) {
            tensor *t = n->out[i];
            if (t && (all || is_read(t)) && leaves(w, t))
                w->rec.bytes_written = checked_add(w->rec.bytes_written, shared(w, t, cost_bytes(w, t)));
        }
    }
}

/* ---- attention ---- */

void cost_set_attention(work *w, const cost_attention *a) {
    oprec *r = &w->rec;
    const int64_t kv_len = a->kv_len ? a->kv_len : a->q_len, v_head = a->v_head ? a->v_head : a->head;
    const int64_t shape[4] = {a->batch, a->heads, a->q_len, a->head};
    r->kind = OP_ATTENTION;
    r->mask = a->mask ? a->mask : "none";
    oprec_set_shape(r, w->arena, 4, shape);
    oprec_set_int(r, "kv_heads", a->kv_heads ? a->kv_heads : a->heads);
    oprec_set_int(r, "kv_len", kv_len);
    if (v_head != a->head) oprec_set_int(r, "v_head", v_head);
    const double customary = a->head > 0 ? 1 / sqrt((double)a->head) : 0;
    /* its root is stored in the operands' type, once for queries and once for keys */
    const double rounded = r->type == DTYPE_BF16 ? 4e-3 : 1e-3;
    if (a->scale != 0 && fabs(a->scale - customary) > rounded * customary) oprec_set_real(r, "scale", a->scale);
    if (a->window > 0) oprec_set_int(r, "window", a->window);
    if (a->softcap > 0) oprec_set_real(r, "softcap", a->softcap);
    if (a->mask_rank > 0) oprec_set_ints(r, w->arena, "mask_shape", a->mask_rank, a->mask_dims);
    const bool causal = strncmp(r->mask, "causal", 6) == 0;
    const int64_t customary_past = checked_sub(kv_len, a->q_len);
    const int64_t past = a->past < 0 ? customary_past : a->past;
    if (causal && past != customary_past) oprec_set_int(r, "past", past);
    opcost_attention(r);
}
