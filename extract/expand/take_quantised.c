/* Operators of bytes that are computed in floats: what they read is dequantised, and their result quantised again. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include "common/checked.h"

/* Input `at`, with its scale and zero point behind it. */
static tensor *floats(expansion *x, int at) {
    return *part_make(
        x, &(step){.op_type = "DequantizeLinear", .in = {part_in(x, at), part_in(x, at + 1), part_in(x, at + 2)}});
}

/* By the scale at `at` and the zero point behind it; without one it is bytes without a sign. */
static void bytes(expansion *x, tensor *result, int at) {
    const tensor *const out = part_out(x, 0), *const zero = part_in(x, at + 1);
    if (!out || out->info->type != (zero ? zero->info->type : DTYPE_UINT8)) x->failed = true;
    part_end(x, &(step){.op_type = "QuantizeLinear", .in = {result, part_in(x, at), part_in(x, at + 1)}});
}

static void take_unary(expansion *x, step *s) {
    enum { INPUT, SCALE = 3 /* of the result */ };
    s->in[0] = floats(x, INPUT);
    bytes(x, *part_make(x, s), SCALE);
}

void take_byte_sigmoid(expansion *x) { take_unary(x, &(step){.op_type = "Sigmoid"}); }

void take_byte_leaky_relu(expansion *x) {
    take_unary(x,
               &(step){.op_type = "LeakyRelu", .attrs = {real_attr("alpha", graph_attr_float(x->n, "alpha", 0.01))}});
}

/* Up to opset 12 all dimensions from the axis on are one. */
void take_byte_softmax(expansion *x) {
    enum { INPUT, SCALE = 3 };
    const tensor *const in = part_in(x, INPUT);
    const int rank = tensor_rank(in);
    int64_t axis = graph_attr_int(x->n, "axis", -1), flat[] = {1, 1};
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) x->failed = true;
    const bool joined = !x->failed && axis < rank - 1 && graph_attr_int(x->n, "opset", 13) < 13;
    tensor *in_floats = floats(x, INPUT);
    for (int d = 0; d < rank && joined; d++) flat[d >= axis] = checked_mul(flat[d >= axis], tensor_dim(in, d));
    if (joined) in_floats = part_reshaped(x, in_floats, 2, flat);
    tensor *made =
        *part_make(x, &(step){.op_type = "Softmax", .in = {in_floats}, .attrs = {int_attr("axis", joined ? 1 : axis)}});
    if (joined) made = part_reshaped(x, made, rank, in->info->dims);
    bytes(x, made, SCALE);
}

void take_byte_mean(expansion *x) {
    const attr *axes = graph_attr(x->n, "axes", ATTR_INTS);
    tensor *const along = axes && axes->ints && axes->n > 0 ? part_numbers(x, "axes", axes->n, axes->ints) : NULL;
    take_unary(x, &(step){.op_type = "ReduceMean",
                          .in = {NULL, along},
                          .attrs = {int_attr("keepdims", graph_attr_int(x->n, "keepdims", 1))}});
}

void take_byte_where(expansion *x) {
    enum { WHICH, THERE, ELSEWHERE = 4, SCALE = 7 };
    tensor *const there = floats(x, THERE), *const elsewhere = floats(x, ELSEWHERE);
    bytes(x, *part_make(x, &(step){.op_type = "Where", .in = {part_in(x, WHICH), there, elsewhere}}), SCALE);
}

void take_byte_concat(expansion *x) {
    enum { SCALE, FIRST = 2, EACH = 3 };
    const int pieces = (x->n->in_count - FIRST) / EACH;
    step s = {.op_type = "Concat", .attrs = {int_attr("axis", graph_attr_int(x->n, "axis", 0))}};
    if (pieces > STEP_INPUTS) x->failed = true;
    for (int k = 0; k < pieces && !x->failed; k++) s.in[k] = floats(x, FIRST + EACH * k);
    bytes(x, *part_make(x, &s), SCALE);
}

/* Bytes lie in the same order before and after, whichever that is. */
void take_ordered_gelu(expansion *x) {
    enum { INPUT, SCALE, RESULT_SCALE };
    const attr *const from = graph_attr(x->n, "order_X", ATTR_INT), *const to = graph_attr(x->n, "order_Y", ATTR_INT);
    const tensor *const out = part_out(x, 0);
    if ((from && to && from->i != to->i) || !out || out->info->type != DTYPE_INT8) x->failed = true;
    tensor *const wide =
        *part_make(x, &(step){.op_type = "DequantizeLinear", .in = {part_in(x, INPUT), part_in(x, SCALE)}});
    tensor *const made = *part_make(x, &(step){.op_type = "Gelu", .in = {wide}});
    part_end(x, &(step){.op_type = "QuantizeLinear",
                        .in = {made, part_in(x, RESULT_SCALE)},
                        .attrs = {int_attr("output_dtype", DTYPE_INT8)}});
}

/* Rows lie one after the other, or columns of the right side do: then it is turned. */
static tensor *in_rows(expansion *x, int at, int64_t depth) {
    static const int64_t perm[] = {1, 0};
    enum { BY_COLUMN, BY_ROW };
    tensor *const t = part_in(x, at);
    const int64_t order = graph_attr_int(x->n, "order_B", BY_ROW), dims[] = {tensor_dim(t, 1), tensor_dim(t, 0)};
    const char *const others[] = {"order_A", "order_Y"};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (graph_attr_int(x->n, others[k], BY_ROW) != BY_ROW) x->failed = true;
    if (tensor_rank(t) != 2 || dims[1] != depth || (order != BY_ROW && order != BY_COLUMN)) x->failed = true;
    if (order == BY_ROW) return t;
    return *part_make(
        x,
        &(step){.op_type = "Transpose", .in = {part_reshaped(x, t, 2, dims)}, .attrs = {ints_attr("perm", 2, perm)}});
}

/* Without a bias and more to add it is a product of bytes; else it is added up in floats. */
void take_ordered_product(expansion *x) {
    enum { LEFT, LEFT_SCALE, RIGHT, RIGHT_SCALE, SCALE, BIAS, MORE, MORE_SCALE };
    tensor *const left = part_in(x, LEFT), *const right = in_rows(x, RIGHT, tensor_dim(left, -1));
    tensor *const scales[] = {part_in(x, LEFT_SCALE), part_in(x, RIGHT_SCALE), part_in(x, SCALE)};
    if (!part_in(x, BIAS) && !part_in(x, MORE)) {
        tensor *const zero = part_scalar(x, "zero", DTYPE_INT8, 0);
        part_end(x, &(step){.op_type = "QLinearMatMul",
                            .in = {left, scales[0], zero, right, scales[1], zero, scales[2], zero}});
        return;
    }
    tensor *sum = *part_make(x, &(step){.domain = "com.microsoft",
                                        .op_type = "MatMulIntegerToFloat",
                                        .in = {left, right, scales[0], scales[1], NULL, NULL, part_in(x, BIAS)}});
    if (part_in(x, MORE))
        sum = part_add(
            x, sum,
            *part_make(x, &(step){.op_type = "DequantizeLinear", .in = {part_in(x, MORE), part_in(x, MORE_SCALE)}}));
    part_end(
        x,
        &(step){.op_type = "QuantizeLinear", .in = {sum, scales[2]}, .attrs = {int_attr("output_dtype", DTYPE_INT8)}});
}

/* To bytes and back, in the order in which they lie. */
static bool keeps_order(const expansion *x) {
    const attr *const from = graph_attr(x->n, "order_input", ATTR_INT), *const to =
                                                                            graph_attr(x->n, "order_output", ATTR_INT);
    return from && to && from->i == to->i;
}

void take_ordered_bytes(expansion *x) {
    if (!keeps_order(x)) x->failed = true;
    part_end(x, &(step){.op_type = "QuantizeLinear",
                        .in = {part_in(x, 0), part_in(x, 1)},
                        .attrs = {int_attr("output_dtype", DTYPE_INT8)}});
}

void take_ordered_floats(expansion *x) {
    const tensor *const out = part_out(x, 0), *const scale = part_in(x, 1);
    const step s = {.op_type = "DequantizeLinear", .in = {part_in(x, 0), part_in(x, 1)}};
    if (!keeps_order(x) || !out || !scale) x->failed = true;
    if (x->failed) return;
    if (out->info->type == scale->info->type)
        part_end(x, &s);
    else
        part_end(x, &(step){.op_type = "Cast", .in = {*part_make(x, &s)}, .attrs = {int_attr("to", out->info->type)}});
}

/* A weight of eight bits of float, each block of a row with a scale. */
void take_block_product(expansion *x) {
    enum { INPUT, WEIGHT, SCALES, INPUT_SCALE, BIAS, USUAL_BLOCK = 128 };
    tensor *const in = part_in(x, INPUT), *const bias = part_in(x, BIAS);
    if (!in || part_in(x, INPUT_SCALE)) x->failed = true;
    if (x->failed) return;
    tensor *const wide =
        *part_make(x, &(step){.op_type = "DequantizeLinear",
                              .in = {part_in(x, WEIGHT), part_in(x, SCALES)},
                              .attrs = {int_attr("axis", 1),
                                        int_attr("block_size", graph_attr_int(x->n, "block_size", USUAL_BLOCK))}});
    const step product = {.domain = "com.microsoft",
                          .op_type = "FusedMatMul",
                          .in = {in, part_cast(x, wide, in->info->type)},
                          .attrs = {int_attr("transB", 1)}};
    if (bias)
        part_end(x, &(step){.op_type = "Add", .in = {*part_make(x, &product), bias}});
    else
        part_end(x, &product);
}
