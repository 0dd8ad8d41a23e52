/* Functions of single elements, and small sets of them, that several operators make together. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include "common/checked.h"

#include <string.h>

static const int64_t halves[] = {1, 1};

/* Nothing is dropped outside of training: all of the mask is true. */
void take_bias_dropout(expansion *x) {
    enum { DATA, BIAS, RESIDUAL, TRAINING = 4 };
    const tensor *training = part_in(x, TRAINING), *mask = part_out(x, 1);
    const value *told = training ? training->info->val : NULL;
    if (training && !(told && told->n == 1 && value_at(told, 0) == 0)) x->failed = true;
    tensor *kept = NULL;
    const int rank = tensor_rank(mask);
    if (mask) kept = part_do(x, "Not", part_zeros(x, DTYPE_BOOL, rank > 0 ? rank : 0, mask->info->dims), NULL);
    tensor *sum = part_in(x, DATA), *add = part_in(x, BIAS);
    if (part_in(x, RESIDUAL)) {
        sum = part_add(x, sum, add);
        add = part_in(x, RESIDUAL);
    }
    part_end(x, &(step){.op_type = "Add", .in = {sum, add}});
    part_give(x, 1, kept);
}

void take_bias_split_gelu(expansion *x) {
    const int64_t width = tensor_dim(part_in(x, 0), -1) / 2, sizes[] = {width, width};
    tensor *const *parts =
        part_split(x, part_add(x, part_in(x, 0), part_in(x, 1)), tensor_rank(part_in(x, 0)) - 1, 2, sizes);
    tensor *gate = *part_make(x, &(step){.domain = "com.microsoft", .op_type = "Gelu", .in = {parts[1]}});
    part_end(x, &(step){.op_type = "Mul", .in = {parts[0], gate}});
}

/* Real and imaginary parts stand side by side on the last axis; the conjugate is that of the second factor. */
void take_complex_product(expansion *x) {
    const bool conjugate = strcmp(x->n->op_type, "ComplexMulConj") == 0;
    tensor *const *a = part_split(x, part_in(x, 0), tensor_rank(part_in(x, 0)) - 1, 2, halves);
    tensor *const *b = part_split(x, part_in(x, 1), tensor_rank(part_in(x, 1)) - 1, 2, halves);
    tensor *products[4], *sums[2];
    for (int k = 0; k < 4; k++) products[k] = part_do(x, "Mul", a[k % 2], b[(k % 2) ^ (k / 2)]);
    sums[0] = part_do(x, conjugate ? "Add" : "Sub", products[0], products[1]);
    sums[1] = part_do(x, conjugate ? "Sub" : "Add", products[3], products[2]);
    part_end(x, &(step){.op_type = "Concat",
                        .in = {sums[0], sums[1]},
                        .attrs = {int_attr("axis", tensor_rank(part_out(x, 0)) - 1)}});
}

void take_integer_product(expansion *x) {
    tensor *factors[2];
    for (int k = 0; k < 2; k++) {
        tensor *zero = part_in(x, 2 * k + 1);
        factors[k] = part_cast(x, part_in(x, 2 * k), DTYPE_INT32);
        if (zero) factors[k] = part_do(x, "Sub", factors[k], part_cast(x, zero, DTYPE_INT32));
    }
    part_end(x, &(step){.op_type = "Mul", .in = {factors[0], factors[1]}});
}

/* Whether any element of it is no number that the operator looks for. */
static tensor *any_found(expansion *x, tensor *t) {
    const bool nan_only = graph_attr_int(x->n, "isnan_only", 0) != 0,
               inf_only = graph_attr_int(x->n, "isinf_only", 0) != 0;
    tensor *infinite = nan_only ? NULL : part_do(x, "IsInf", t, NULL), *const nan = inf_only
                                                                                        ? NULL
                                                                                        : part_do(x, "IsNaN", t, NULL);
    if (!infinite && !nan) x->failed = true;
    tensor *each = infinite && nan ? part_do(x, "Or", infinite, nan) : infinite ? infinite : nan;
    return *part_make(x, &(step){.op_type = "ReduceMax", .in = {each}, .attrs = {int_attr("keepdims", 0)}});
}

void take_all_finite(expansion *x) {
    tensor *any = any_found(x, part_in(x, 0));
    for (int k = 1; k < x->n->in_count && !x->failed; k++) any = part_do(x, "Or", any, any_found(x, part_in(x, k)));
    part_end(x, &(step){.op_type = "Not", .in = {any}});
}

void take_binarizer(expansion *x) {
    tensor *in = part_in(x, 0);
    if (!in || dtype_get(in->info->type)->cls != DTYPE_CLASS_FLOAT) {
        x->failed = true;
        return;
    }
    tensor *above = part_do(x, "Greater", in, part_real(x, in, "threshold", graph_attr_float(x->n, "threshold", 0)));
    part_end(x, &(step){.op_type = "Cast", .in = {above}, .attrs = {int_attr("to", in->info->type)}});
}

/* One where the first of the largest is, of an axis or, before opset 13, of all from an axis on. */
void take_hardmax(expansion *x) {
    enum { ONE_AXIS = 13 };
    static const double values[] = {0, 1};
    static const int64_t pair = 2;
    tensor *in = part_in(x, 0);
    const bool one = x->n->opset >= ONE_AXIS;
    const int rank = tensor_rank(in);
    int64_t axis = graph_attr_int(x->n, "axis", one ? -1 : 1);
    if (axis < 0) axis += rank;
    if (rank < 1 || axis < 0 || axis >= rank) x->failed = true;
    if (x->failed) return;
    if (!one) {
        int64_t after = 1;
        for (int k = (int)axis; k < rank; k++) after = checked_mul(after, tensor_dim(in, k));
        in = part_reshaped(x, in, 2, (int64_t[]){after > 0 ? tensor_count(in) / after : 0, after});
        axis = 1;
    }
    tensor *best = *part_make(
        x, &(step){.op_type = "ArgMax", .in = {in}, .attrs = {int_attr("axis", axis), int_attr("keepdims", 0)}});
    const info *of_pair = info_of_floats(x->e->m->arena, part_in(x, 0)->info->type, 1, &pair, values, pair);
    const step s = {
        .op_type = "OneHot",
        .in = {best, part_number(x, "depth", tensor_dim(in, (int)axis)), part_constant(x, "values", of_pair)},
        .attrs = {int_attr("axis", axis)}};
    if (one)
        part_end(x, &s);
    else
        part_end_reshaped(x, *part_make(x, &s));
}

/* ---- the hash of 32 bits ---- */

static tensor *with(expansion *x, const char *op_type, tensor *t, uint32_t n) {
    return part_do(x, op_type, t, part_scalar(x, "number", DTYPE_UINT32, n));
}

static tensor *shifted(expansion *x, tensor *t, const char *direction, uint32_t n) {
    return *part_make(x, &(step){.op_type = "BitShift",
                                 .in = {t, part_scalar(x, "bits", DTYPE_UINT32, n)},
                                 .attrs = {text_attr("direction", direction)}});
}

static tensor *turned(expansion *x, tensor *t, uint32_t n) {
    tensor *const high = shifted(x, t, "LEFT", n);
    return part_do(x, "BitwiseOr", high, shifted(x, t, "RIGHT", 32 - n));
}

static tensor *mixed(expansion *x, tensor *t, uint32_t n) {
    return part_do(x, "BitwiseXor", t, shifted(x, t, "RIGHT", n));
}

/* MurmurHash3_x86_32 of one block, and of the length in bytes. */
void take_hash(expansion *x) {
    enum { BITS = 32, BYTES = 4 };
    tensor *in = part_in(x, 0);
    const tensor *const out = part_out(x, 0);
    if (!in || !out || dtype_get(in->info->type)->bits != BITS) x->failed = true;
    if (x->failed) return;
    const uint32_t seed = (uint32_t)graph_attr_int(x->n, "seed", 0);
    const attr as_bits = int_attr("to", DTYPE_UINT32);
    if (in->info->type != DTYPE_UINT32)
        in = *part_make(x, &(step){.op_type = "BitCast", .in = {in}, .attrs = {as_bits}});
    tensor *t = with(x, "Mul", turned(x, with(x, "Mul", in, 0xcc9e2d51), 15), 0x1b873593);
    t = turned(x, with(x, "BitwiseXor", t, seed), 13);
    t = with(x, "BitwiseXor", with(x, "Add", with(x, "Mul", t, 5), 0xe6546b64), BYTES);
    t = mixed(x, with(x, "Mul", mixed(x, t, 16), 0x85ebca6b), 13);
    t = mixed(x, with(x, "Mul", t, 0xc2b2ae35), 16);
    if (out->info->type == DTYPE_UINT32)
        part_end_made(x);
    else
        part_end(x, &(step){.op_type = "BitCast", .in = {t}, .attrs = {int_attr("to", out->info->type)}});
}
