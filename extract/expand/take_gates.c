/* Gates, and norms with them. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include <string.h>

enum { WIDEST = INFO_MAX_RANK };

static const double usual_epsilon = 1e-5;

/* The norm of the last axis, times a scale as long as it; NULL: times one. */
static tensor *norm(expansion *x, tensor *t, tensor *scale) {
    const int64_t width = tensor_dim(t, -1);
    if (!t || width <= 0) x->failed = true;
    if (x->failed) return NULL;
    if (!scale) scale = part_table(x, "ones", t->info->type, 1, &width);
    return *part_make(x, &(step){.domain = "com.microsoft",
                                 .op_type = "SimplifiedLayerNormalization",
                                 .in = {t, scale},
                                 .attrs = {int_attr("axis", -1),
                                           real_attr("epsilon", graph_attr_float(x->n, "epsilon", usual_epsilon))}});
}

/* Its last axis in rows of that width. */
static tensor *in_rows(expansion *x, tensor *t, int64_t width) {
    int64_t dims[WIDEST + 1];
    const int rank = tensor_rank(t);
    if (rank < 1 || rank >= WIDEST || width <= 0 || tensor_dim(t, -1) % width != 0) x->failed = true;
    if (x->failed) return NULL;
    memcpy(dims, t->info->dims, sizeof *dims * (size_t)rank);
    dims[rank] = width;
    dims[rank - 1] /= width;
    return part_reshaped(x, t, rank + 1, dims);
}

static tensor *back(expansion *x, tensor *t) {
    const info *is = part_out(x, 0)->info;
    return x->failed ? NULL : part_reshaped(x, t, is->rank, is->dims);
}

void take_gated_norm(expansion *x) {
    enum { INPUT, SCALE, GATE };
    const char *activation = graph_attr_string(x->n, "activation", "silu");
    const bool plain = strcmp(activation, "sigmoid") == 0;
    if (!plain && strcmp(activation, "silu") != 0 && strcmp(activation, "swish") != 0) x->failed = true;
    tensor *scale = part_in(x, SCALE), *gate = part_in(x, GATE), *open = part_do(x, "Sigmoid", gate, NULL);
    if (!plain) open = part_do(x, "Mul", gate, open);
    tensor *made = back(x, norm(x, in_rows(x, part_in(x, INPUT), tensor_dim(scale, -1)), scale));
    part_end(x, &(step){.op_type = "Mul", .in = {made, open}});
}

/* A scale as wide as a branch is that of the norm; one of all branches is a product behind it. */
void take_branchwise_norm(expansion *x) {
    tensor *in = part_in(x, 0), *const scale = part_in(x, 1);
    const int64_t branches = graph_attr_int(x->n, "num_branches", 0);
    if (branches > 0) in = in_rows(x, in, tensor_dim(in, -1) / branches);
    const int64_t dims[] = {tensor_dim(in, -2), tensor_dim(in, -1)};
    const bool each = tensor_rank(scale) == 1 && tensor_dim(scale, 0) == dims[1];
    tensor *made = norm(x, in, each ? scale : NULL);
    if (scale && !each) made = part_do(x, "Mul", made, part_reshaped(x, scale, 2, dims));
    part_end_reshaped(x, made);
}

void take_gated_add(expansion *x) {
    tensor *product = part_do(x, "Mul", part_in(x, 1), part_in(x, 2));
    part_end(x, &(step){.op_type = "Add", .in = {part_in(x, 0), product}});
}

void take_scaled_silu(expansion *x) {
    tensor *in = part_in(x, 0), *const scale = part_in(x, 1);
    const double alpha = graph_attr_float(x->n, "alpha", 1);
    if (scale || alpha != 1) in = part_do(x, "Mul", in, scale ? scale : part_real(x, in, "alpha", alpha));
    part_end(x, &(step){.op_type = "Mul", .in = {in, part_do(x, "Sigmoid", in, NULL)}});
}

/* Its vectors have 32 bits, in which it counts. */
void take_linear_gate(expansion *x) {
    enum { DECAY, BIAS, SCALE, RATE };
    tensor *in = part_in(x, DECAY);
    if (x->failed || !in) return;
    const dtype type = in->info->type;
    if (type != DTYPE_FP32) in = part_cast(x, in, DTYPE_FP32);
    tensor *rate = part_out(x, 1) ? part_do(x, "Sigmoid", part_in(x, RATE), NULL) : NULL;
    tensor *soft = part_do(x, "Softplus", part_add(x, in, part_in(x, BIAS)), NULL), *const scale = part_in(x, SCALE);
    if (type != DTYPE_FP32)
        part_end(x,
                 &(step){.op_type = "Cast", .in = {part_do(x, "Mul", soft, scale)}, .attrs = {int_attr("to", type)}});
    else
        part_end(x, &(step){.op_type = "Mul", .in = {soft, scale}});
    part_give(x, 1, rate);
}

/* sigmoid(sign(dot) sqrt(max(|dot|, least))) times the value that all of a token's rows share. */
void take_engram_gate(expansion *x) {
    enum { KEYS, QUERIES, SHARED, KEY_SCALE, QUERY_SCALE };
    static const double least = 1e-6;
    tensor *key = part_do(x, "Mul", norm(x, part_in(x, KEYS), NULL), part_in(x, KEY_SCALE));
    tensor *query = part_do(x, "Mul", norm(x, part_in(x, QUERIES), NULL), part_in(x, QUERY_SCALE));
    if (part_out(x, 1)) x->failed = true; /* its norm would read what the last part makes */
    if (x->failed) return;
    const int64_t width = tensor_dim(key, -1);
    tensor *sum = *part_make(
        x, &(step){.op_type = "ReduceSum", .in = {part_do(x, "Mul", key, query), part_number(x, "axes", -1)}});
    tensor *root = part_do(x, "Sqrt", part_real(x, key, "width", (double)width), NULL);
    tensor *dot = part_do(x, "Div", sum, root);
    tensor *size = part_do(x, "Max", part_do(x, "Abs", dot, NULL), part_real(x, key, "least", least));
    tensor *sign = part_do(x, "Sign", dot, NULL), *const far = part_do(x, "Sqrt", size, NULL);
    tensor *gate = part_do(x, "Sigmoid", part_do(x, "Mul", sign, far), NULL), *const in = part_in(x, SHARED);
    tensor *shared = part_reshaped(x, in, 4, (int64_t[]){tensor_dim(in, 0), tensor_dim(in, 1), 1, tensor_dim(in, 2)});
    part_end(x, &(step){.op_type = "Mul", .in = {gate, shared}});
}

/* ---- biases that know how far queries and keys are apart ---- */

/* The bias of each head lies together, one for each class of distances. Which class belongs to which distance follows
 * from attributes alone. */
void take_position_bias(expansion *x) {
    tensor *table = part_in(x, 0), *const out = part_out(x, 0);
    const int64_t classes[] = {tensor_dim(table, 1), tensor_dim(table, 0)};
    if (x->failed) return;
    tensor *of_heads = part_reshaped(x, table, 2, classes);
    tensor *which = part_table(x, "classes", DTYPE_INT64, 2, &out->info->dims[2]);
    part_end_reshaped(
        x, *part_make(x, &(step){.op_type = "Gather", .in = {of_heads, which}, .attrs = {int_attr("axis", 1)}}));
}

void take_gated_position_bias(expansion *x) {
    enum { QUERIES, BIAS, POSITIONS, WEIGHT, WEIGHT_BIAS, FACTOR, TOKENS, RANK = 4 };
    static const int64_t perm[] = {0, 2, 1, 3}, ones[] = {1, 1};
    const tensor *in = part_in(x, QUERIES), *weight = part_in(x, WEIGHT);
    const int64_t batch = tensor_dim(in, 0), length = tensor_dim(in, 1), heads = graph_attr_int(x->n, "num_heads", 0);
    if (tensor_rank(in) != 3 || heads <= 0 || part_in(x, TOKENS)) x->failed = true;
    if (x->failed) return;
    tensor *query = part_reshaped(x, part_add(x, part_in(x, QUERIES), part_in(x, BIAS)), RANK,
                                  (int64_t[]){batch, length, heads, tensor_dim(weight, 0)});
    tensor *by_head =
        *part_make(x, &(step){.op_type = "Transpose", .in = {query}, .attrs = {ints_attr("perm", RANK, perm)}});
    tensor *made = part_add(x, part_do(x, "MatMul", by_head, part_in(x, WEIGHT)), part_in(x, WEIGHT_BIAS));
    tensor *two = part_reshaped(x, made, RANK + 1, (int64_t[]){batch, heads, length, 2, tensor_dim(weight, 1) / 2});
    tensor *sums = *part_make(
        x,
        &(step){.op_type = "ReduceSum", .in = {two, part_number(x, "axes", -1)}, .attrs = {int_attr("keepdims", 0)}});
    tensor *const *gates = part_split(x, part_do(x, "Sigmoid", sums, NULL), RANK - 1, 2, ones);
    if (x->failed) return;
    tensor *one = part_real(x, sums, "one", 1), *const both = part_real(x, sums, "two", 2);
    tensor *turned = part_do(x, "Sub", part_do(x, "Mul", gates[1], part_in(x, FACTOR)), one);
    tensor *gate = part_do(x, "Add", part_do(x, "Mul", gates[0], turned), both);
    part_end(x, &(step){.op_type = "Mul", .in = {gate, part_in(x, POSITIONS)}});
}
