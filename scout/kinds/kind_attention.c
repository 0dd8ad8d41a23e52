/* Attention: its tensors as every candidate sees them (scout/op/attention.h), what cannot be expressed so, and how
 * exact a result has to be. */
#include "scout/kinds/kinds.h"

#include "common/checked.h"
#include "common/dtype.h"
#include "scout/kinds/kind_tensors.h"
#include "scout/op/attention.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const known_fields[] = {"kv_heads", "kv_len",   "v_head",     "scale",      "window",
                                           "past",     "softcap",  "block_mask", "mask_shape", "softmax_dtype",
                                           "q_layout", "k_layout", "v_layout",   "out_layout", NULL};

static const struct {
    const char *mask;
    bool tensor, lengths, causal, blocks;
} masks[] = {
    {"none", false, false, false, false},        {"causal", false, false, true, false},
    {"additive", true, false, false, false},     {"causal+padding", true, false, true, false},
    {"lengths", false, true, false, false},      {"blocks", false, false, false, true},
    {"causal+blocks", false, false, true, true},
};

typedef struct sizes {
    int64_t batch, heads, queries, dim, kv_heads, keys, v_dim;
} sizes;

static bool read_sizes(const scout_op *op, sizes *s, scout_why *why) {
    if (op->rank != 4) return kind_tensors_refuse(why, "shape", "an attention needs [B, H, Sq, D]");
    *s = (sizes){op->shape[0], op->shape[1], op->shape[2], op->shape[3], 0, 0, 0};
    s->kv_heads = op_number(op, "kv_heads", s->heads);
    s->keys = op_number(op, "kv_len", s->queries);
    s->v_dim = op_number(op, "v_head", s->dim);
    if (s->heads < 1 || s->kv_heads < 1 || s->heads % s->kv_heads != 0)
        return kind_tensors_refuse(why, "shape", "kv_heads does not divide the number of heads");
    if (s->queries < 1 || s->keys < 1) return kind_tensors_refuse(why, "shape", "there are no queries or no keys");
    return true;
}

static bool check_types(const scout_op *op, scout_why *why) {
    const char *softmax = op_text(op, "softmax_dtype");
    if ((op->input != SCOUT_FP32 && op->input != SCOUT_FP16 && op->input != SCOUT_BF16) || op->output != op->input)
        return kind_tensors_refuse(why, "type", "no attention of %s into %s is known here",
                                   dtype_get((dtype)op->input)->name, dtype_get((dtype)op->output)->name);
    if (softmax && strcmp(softmax, "fp32") != 0)
        return kind_tensors_refuse(why, "type", "a softmax in %.20s is not covered", softmax);
    return true;
}

/* A query that sees no key has no softmax, and a window without an end is no band before the query. */
static bool check_range(const scout_op *op, const sizes *s, bool causal, scout_why *why) {
    const int64_t past = op_number(op, "past", checked_sub(s->keys, s->queries));
    const int64_t window = op_number(op, "window", 0);
    const double cap = op_real(op, "softcap", 0), scale = op_real(op, "scale", 1);
    if (!isfinite(cap) || cap < 0 || !isfinite(scale))
        return kind_tensors_refuse(why, "feature", "softcap and scale must be finite");
    if (window < 0) return kind_tensors_refuse(why, "feature", "a window of %lld keys", (long long)window);
    if (window > 0 && !causal) return kind_tensors_refuse(why, "feature", "a window that is not causal is not covered");
    if (!causal) return true;
    if (past > (int64_t)1 << 40 || window > (int64_t)1 << 40)
        return kind_tensors_refuse(why, "shape", "no cache has so many keys");
    if (past < 0) return kind_tensors_refuse(why, "shape", "the first queries see no key: there is nothing to add up");
    const int64_t nearest = window > 0 ? checked_sub(checked_add(past, s->queries), window) : 0;
    if (nearest >= s->keys) return kind_tensors_refuse(why, "shape", "the last queries see no key within their window");
    return true;
}

/* The mask's kind says that there are blocks, and its field which: one without the other would be another attention. */
static bool check_blocks(const scout_op *op, const sizes *s, bool blocks, scout_why *why) {
    const char *text = op_text(op, "block_mask");
    block_mask m;
    char said[128];
    if (!op_field(op, "block_mask") != !blocks)
        return kind_tensors_refuse(why, "feature", "a block_mask beside the mask \"%.40s\" is not covered", op->mask);
    if (blocks && (!text || !block_mask_read(text, &m, said, sizeof said) || !block_mask_fits(&m, s->queries, s->keys)))
        return kind_tensors_refuse(why, "feature", "its block_mask cannot be read, or has too many blocks");
    return true;
}

/* How tensors lie that have a name for it; others tell their strides. */
static const char *const layouts[] = {"bhsd", "bshd"};

/* [B, H, S, D] as [B, S, H * D]. */
static void lay_inside(scout_tensor *t) {
    t->strides[0] = checked_mul(checked_mul(t->dims[1], t->dims[2]), t->dims[3]);
    t->strides[1] = t->dims[3];
    t->strides[2] = checked_mul(t->dims[1], t->dims[3]);
}

/* Three numbers: from sequence to sequence, head to head and row to row. No two elements lie at one place: a step is as
 * long as all that shorter ones reach. What is written leaves no gaps. */
static bool lay_by_steps(kind_tensors *k, scout_tensor *t, const char *field) {
    int64_t reach = t->dims[3], elements = reach;
    bool done[3];
    if (op_ints(k->op, field, t->strides, 3) != 3)
        return kind_tensors_refuse(k->why, "layout", "%s is neither bhsd, bshd nor three strides", field);
    for (int d = 0; d < 3; d++) done[d] = t->dims[d] == 1;
    for (int left = !done[0] + !done[1] + !done[2]; left > 0; left--) { /* the shortest step first */
        int next = -1;
        for (int d = 0; d < 3; d++)
            if (!done[d] && (next < 0 || t->strides[d] < t->strides[next])) next = d;
        if (t->strides[next] < reach) return kind_tensors_refuse(k->why, "layout", "the strides of %s overlap", field);
        done[next] = true;
        reach = checked_mul(t->strides[next], t->dims[next]);
        elements = checked_mul(elements, t->dims[next]);
    }
    for (int d = 0; d < 3; d++)
        if (t->dims[d] == 1) t->strides[d] = reach;
    if (t->role == SCOUT_OUTPUT && reach != elements)
        return kind_tensors_refuse(k->why, "layout", "the strides of %s leave gaps", field);
    return true;
}

/* [B, H, S, D] as it lies: by its own field, or as is usual for it. */
static bool add(kind_tensors *k, const char *name, scout_role role, uint32_t type, const int64_t *dims, bool inside) {
    char field[24];
    scout_tensor *t = kind_tensors_add(k, name, role, type, 4, dims);
    if (!t) return false;
    snprintf(field, sizeof field, "%s_layout", name);
    const char *told = op_text(k->op, field);
    if (op_field(k->op, field) ? told && strcmp(told, layouts[0]) == 0 : !inside) return true;
    if (!op_field(k->op, field) || (told && strcmp(told, layouts[1]) == 0))
        lay_inside(t);
    else if (!lay_by_steps(k, t, field))
        return false;
    return kind_tensors_close(k, t);
}

/* Strides of 0 where it is the same for all; no shape: a padding, one row of keys per sequence. One that repeats after
 * some sequences or heads (the windows of a Swin transformer) lies there for all of them, as libraries want it. */
static bool add_mask(kind_tensors *k, const scout_op *op, const sizes *s) {
    const int64_t full[4] = {s->batch, s->heads, s->queries, s->keys};
    int64_t given[SCOUT_MAX_RANK] = {0}, dims[4] = {1, 1, 1, 1}, stride = 1;
    int rank = op_ints(op, "mask_shape", given, SCOUT_MAX_RANK);
    if (rank == 0 && strcmp(op->mask, "additive") == 0)
        return kind_tensors_refuse(k->why, "feature", "the shape of its mask is not known");
    if (rank == 0) given[0] = s->batch, given[1] = given[2] = 1, given[3] = s->keys, rank = 4;
    for (int d = 0; d < rank - 4 && rank <= SCOUT_MAX_RANK; d++)
        if (given[d] != 1) return kind_tensors_refuse(k->why, "shape", "a mask of %d dimensions is not covered", rank);
    if (rank > SCOUT_MAX_RANK) return kind_tensors_refuse(k->why, "shape", "a mask of %d dimensions", rank);
    for (int d = 0; d < 4 && d < rank; d++) dims[3 - d] = given[rank - 1 - d];
    scout_tensor *t = kind_tensors_add(k, "mask", SCOUT_INPUT, op->input, 4, full);
    if (!t) return false;
    for (int d = 3; d >= 0; d--) {
        if (d < 2 && dims[d] > 1 && full[d] % dims[d] == 0) dims[d] = full[d];
        if (dims[d] != 1 && dims[d] != full[d])
            return kind_tensors_refuse(k->why, "shape", "its mask is %lld long where the scores are %lld",
                                       (long long)dims[d], (long long)full[d]);
        t->strides[d] = dims[d] == 1 ? 0 : stride;
        stride = checked_mul(stride, dims[d]);
    }
    return kind_tensors_close(k, t);
}

static bool add_lengths(kind_tensors *k, const sizes *s) {
    if (s->keys > INT32_MAX) return kind_tensors_refuse(k->why, "shape", "lengths do not fit into 32 bits");
    scout_tensor *t = kind_tensors_add_vector(k, "lengths", SCOUT_INPUT, SCOUT_INT32, s->batch);
    if (t) t->below = s->keys;
    return t != NULL;
}

static bool build(const operation *o, arena *a, scout_op *out, scout_why *why) {
    sizes s = {0};
    size_t row = 0;
    out->input = (uint32_t)o->rec.type;
    out->output = o->rec.out_type != DTYPE_NONE ? (uint32_t)o->rec.out_type : (uint32_t)o->rec.type;
    out->accumulate = SCOUT_FP32;
    if (!out->mask) out->mask = "none";
    while (row < sizeof masks / sizeof *masks && strcmp(masks[row].mask, out->mask) != 0) row++;
    if (row == sizeof masks / sizeof *masks)
        return kind_tensors_refuse(why, "feature", "a mask of kind \"%.40s\" is not covered", out->mask);
    if (out->what) return kind_tensors_refuse(why, "feature", "an attention of kind %.40s is not covered", out->what);
    if (!kind_fields_only(out, known_fields, why) || !check_types(out, why) || !read_sizes(out, &s, why) ||
        !check_range(out, &s, masks[row].causal, why) || !check_blocks(out, &s, masks[row].blocks, why))
        return false;
    const bool inside = out->layout && strcmp(out->layout, layouts[1]) == 0;
    if (out->layout && !inside && strcmp(out->layout, layouts[0]) != 0)
        return kind_tensors_refuse(why, "layout", "layout %.20s is not covered", out->layout);
    const bool cache = s.keys != s.queries; /* which lies as [B, H, L, D] unless it is told */
    const int64_t q[4] = {s.batch, s.heads, s.queries, s.dim}, k[4] = {s.batch, s.kv_heads, s.keys, s.dim},
                  v[4] = {s.batch, s.kv_heads, s.keys, s.v_dim}, c[4] = {s.batch, s.heads, s.queries, s.v_dim};
    kind_tensors to = kind_tensors_of(out, a, why);
    if (!add(&to, "q", SCOUT_INPUT, out->input, q, inside) ||
        !add(&to, "k", SCOUT_INPUT, out->input, k, inside && !cache) ||
        !add(&to, "v", SCOUT_INPUT, out->input, v, inside && !cache) ||
        !add(&to, "out", SCOUT_OUTPUT, out->output, c, inside))
        return false;
    if (masks[row].tensor && !add_mask(&to, out, &s)) return false;
    return !masks[row].lengths || add_lengths(&to, &s);
}

/* ---- tolerance ---- */

/* Errors are relative to |want| + spread, the root of the sum of the squares of probability times value. A score that
 * is off by d moves its term by d of it, so an output moves by about d of its spread. With fp32 sums a score is off by
 * the walk of `dim` roundings of its own size (1 where scale is 1 / sqrt(dim)), the two sums over the keys walk as
 * well; 6: five deviations and some room. Half types: libraries round the probabilities to the type before they
 * multiply, each by half a step at most, and some the scores (three deviations of that), all of them once. */
static double tolerance(const scout_op *op) {
    const attention_problem p = attention_problem_of(op);
    const double size = fmax(1, fabs(p.scale) * sqrt((double)p.dim));
    const double walk = 0x1p-24 * (16 + 6 * size * sqrt((double)p.dim) + 6 * sqrt((double)p.keys));
    return p.type == SCOUT_FP32 ? kind_rounding(p.type) + walk : 5 * kind_rounding(p.type) + walk;
}

/* One exponential for every pair of a query and a key that it sees: what the costs count, less both products. */
static double specials(const scout_op *op) {
    const attention_problem p = attention_problem_of(op);
    return op->flops / (2 * ((double)p.dim + (double)p.v_dim)) * (p.softcap > 0 ? 2 : 1);
}

const kind kind_attention = {.op = OP_ATTENTION, .build = build, .tolerance = tolerance, .specials = specials};
