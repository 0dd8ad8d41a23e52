/* Products of com.microsoft: fused, quantised to blocks, to bytes, to eight bits of float. */
#include "common/checked.h"
#include "extract/infer/shape_need.h"
#include "extract/shape/shape.h"

#include <inttypes.h>
#include <string.h>

/* A matrix operand, or a stack of them, as the product sees it. */
typedef struct operand {
    int rank;
    int64_t dims[INFO_MAX_RANK];
    bool vector;
} operand;

static operand read_operand(infer *c, int i) {
    operand o = {.rank = shape_need_rank(c, i, 1, -1)};
    for (int k = 0; k < o.rank; k++) o.dims[k] = infer_dim(c, i, k);
    o.vector = o.rank == 1;
    return o;
}

/* [rows, stack..., columns] becomes [stack..., rows, columns]. */
static void rows_inwards(operand *o) {
    int64_t rows = o->dims[0];
    if (o->rank < 3) return;
    memmove(o->dims, o->dims + 1, (size_t)(o->rank - 2) * sizeof *o->dims);
    o->dims[o->rank - 2] = rows;
}

static void swap_last(operand *o) {
    if (o->rank < 2) return;
    int64_t last = o->dims[o->rank - 1];
    o->dims[o->rank - 1] = o->dims[o->rank - 2];
    o->dims[o->rank - 2] = last;
}

/* Sets output 0 to the product of inputs 0 and j by numpy's rules. */
static void multiply(infer *c, operand a, operand b, int j, dtype type) {
    int64_t dims[INFO_MAX_RANK], depth = a.dims[a.rank - 1], depth_b = b.vector ? b.dims[0] : b.dims[b.rank - 2];
    if (depth != depth_b)
        infer_fail(c, "the inner dimensions of the product are %" PRId64 " and %" PRId64 ": %s and %s", depth, depth_b,
                   shape_need_text(c, 0), shape_need_text(c, j));
    int rank = infer_broadcast(c, a.rank > 2 ? a.rank - 2 : 0, a.dims, b.rank > 2 ? b.rank - 2 : 0, b.dims, dims);
    if (!a.vector) dims[rank++] = a.dims[a.rank - 2];
    if (!b.vector) dims[rank++] = b.dims[b.rank - 1];
    infer_set(c, 0, type, rank, dims);
}

void shape_ms_fused_matmul(infer *c) {
    operand a = read_operand(c, 0), b = read_operand(c, 1);
    if (infer_attr_int(c, "transBatchA", 0)) rows_inwards(&a);
    if (infer_attr_int(c, "transBatchB", 0)) rows_inwards(&b);
    if (infer_attr_int(c, "transA", 0)) swap_last(&a);
    if (infer_attr_int(c, "transB", 0)) swap_last(&b);
    multiply(c, a, b, 1, infer_type(c, infer_in(c, 0)->form == INFO_SPARSE ? 1 : 0));
}

void shape_ms_dynamic_quantize_matmul(infer *c) {
    multiply(c, read_operand(c, 0), read_operand(c, 1), 1, infer_type(c, 0));
}

/* The scale says which float the result is. */
void shape_ms_matmul_integer_to_float(infer *c) {
    multiply(c, read_operand(c, 0), read_operand(c, 1), 1, infer_type(c, 2));
}

/* Output k is input 0 with `n` in place of its last dimension, which has to be `depth` (0: not checked). */
static void replace_last(infer *c, int k, int64_t depth, int64_t n) {
    int64_t dims[INFO_MAX_RANK];
    int rank = shape_need_rank(c, 0, 1, -1);
    if (depth > 0) shape_need_dim(c, 0, rank - 1, depth, "depth of the product");
    for (int d = 0; d < rank - 1; d++) dims[d] = infer_dim(c, 0, d);
    dims[rank - 1] = n;
    infer_set(c, k, infer_type(c, 0), rank, dims);
}

/* The weight is packed, so its size is an attribute. */
void shape_ms_matmul_nbits(infer *c) { replace_last(c, 0, shape_need_positive(c, "K"), shape_need_positive(c, "N")); }

void shape_ms_matmul_bnb4(infer *c) {
    if (graph_is_ms(c->node, "MatMulFpQ4")) {
        const int64_t *shape;
        int64_t n;
        if (!shape_need_ints(c, 2, &shape, &n, "the shape of the weight")) return;
        if (n != 2) infer_fail(c, "input 2 (B_shape) has %" PRId64 " values, it must have 2", n);
        replace_last(c, 0, shape[0], shape[1]);
        return;
    }
    int64_t k = shape_need_positive(c, "K"), n = shape_need_positive(c, "N");
    bool transposed = infer_attr_int(c, "transB", 1) != 0;
    replace_last(c, 0, transposed ? k : n, transposed ? n : k);
}

/* Rows of the weight are outputs. */
void shape_ms_matmul_blocks(infer *c) {
    shape_need_rank(c, 1, 2, 2);
    replace_last(c, 0, 0, infer_dim(c, 1, 0));
}

void shape_ms_matmul_nbits_mlp(infer *c) {
    replace_last(c, 0, shape_need_positive(c, "K"), shape_need_positive(c, "N"));
    shape_need_like(c, 1, 0);
}

void shape_ms_matmul_nbits_qkv(infer *c) {
    int64_t depth = shape_need_positive(c, "K"), q = shape_need_positive(c, "Nq"), kv = shape_need_positive(c, "Nkv");
    for (int k = 0; k < 3; k++) replace_last(c, k, depth, k == 0 ? q : kv);
    shape_need_like(c, 3, 0);
}

/* [M, N] of two matrices, each perhaps transposed. */
static void set_gemm(infer *c, int b, dtype type) {
    shape_need_rank(c, 0, 2, 2);
    shape_need_rank(c, b, 2, 2);
    int ta = infer_attr_int(c, "transA", 0) != 0, tb = infer_attr_int(c, "transB", 0) != 0;
    if (infer_dim(c, 0, 1 - ta) != infer_dim(c, b, tb))
        infer_fail(c, "the inner dimensions of the product differ: %s and %s", shape_need_text(c, 0),
                   shape_need_text(c, b));
    infer_set(c, 0, type, 2, (int64_t[]){infer_dim(c, 0, ta), infer_dim(c, b, 1 - tb)});
}

void shape_ms_gemm_float8(infer *c) {
    int64_t type = infer_attr_int(c, "dtype", DTYPE_FP32);
    if (!dtype_known(type)) infer_fail(c, "attribute 'dtype' is %" PRId64 ", which is no data type", type);
    set_gemm(c, 1, (dtype)type);
}

/* Without a zero point for the output it stays a float. */
void shape_ms_qgemm(infer *c) { set_gemm(c, 3, infer_has(c, 8) ? infer_type(c, 8) : DTYPE_FP32); }

/* The tensor-core layouts change how bytes lie, not how many there are. */
void shape_ms_qordered_matmul(infer *c) {
    operand a = read_operand(c, 0), b = read_operand(c, 2);
    if (infer_attr_int(c, "order_B", 1) == 0 && b.rank == 2 && a.dims[a.rank - 1] != b.dims[0]) swap_last(&b);
    multiply(c, a, b, 2, infer_type(c, 0));
}

/* Distances between rows. */
void shape_ms_cdist(infer *c) {
    shape_need_rank(c, 0, 2, 2);
    shape_need_rank(c, 1, 2, 2);
    shape_need_dim(c, 1, 1, infer_dim(c, 0, 1), "width");
    infer_set(c, 0, infer_type(c, 0), 2, (int64_t[]){infer_dim(c, 0, 0), infer_dim(c, 1, 0)});
}
