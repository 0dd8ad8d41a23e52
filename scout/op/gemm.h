/* A matrix product as candidates read it: C[M,N] = activation(alpha * A[M,K] * B[K,N] + beta * bias + residual),
 * row-major, once per batch. Read from the tensors and fields of a scout_op; header-only, shared by candidates of all
 * devices and by plugins. */
#ifndef SCOUT_OP_GEMM_H
#define SCOUT_OP_GEMM_H

#include "scout/op/requantize.h"

/* Places in op->tensors. Bias, residual and scales follow where the operation has them: op_tensor finds them by name.
 */
enum { GEMM_A = 0, GEMM_B = 1, GEMM_C = 2 };

typedef struct gemm_problem {
    int64_t m, n, k, batch;
    int64_t stride_a, stride_b, stride_c; /* elements between products; 0: the same */
    int trans_a, trans_b;                 /* 0: as [M,K] and [K,N]; 1: stored as [K,M] and [N,K] */
    int64_t lda, ldb, ldc;                /* elements between rows as stored */
    uint32_t type_a, type_b, type_c, accumulate;
    int tf32;
    const char *bias;         /* NULL, "n", "m", "scalar", "full", "each" (of the batch: [batch,N]) */
    int residual;             /* its tensor, as large as C and laid out so; -1: none */
    op_activation activation; /* of the sum of everything */
    requantize quant;         /* sums of bytes that become bytes again */
    double alpha, beta;
    int64_t block_size; /* of a weight quantised in blocks along K (gemm_widens): a scale each; 0: none */
    int weight;         /* GEMM_A or GEMM_B: the constant side; -1: none */
    /* Of bytes that are not quantised by convention (scout/op/requantize.h): C = scales * (A - a_zero)(B - b_zero) +
     * bias. Their tensors, -1: none; zero points are of their side's type, scales fp32, one or one for each column. Of
     * a weight in blocks b_zero is [batch * N, blocks], as its scales are. */
    int a_zero, b_zero, scales;
    int b_zero_each, scales_each;
} gemm_problem;

/* Whether a weight is stored in fewer bits than the input, and becomes floats on the way. */
static inline int gemm_widens(uint32_t input, uint32_t weight) {
    return (input == SCOUT_FP32 || input == SCOUT_FP16 || input == SCOUT_BF16) &&
           (weight == SCOUT_INT4 || weight == SCOUT_UINT4 || weight == SCOUT_INT8 || weight == SCOUT_UINT8);
}

static inline gemm_problem gemm_problem_of(const scout_op *op) {
    const char *layout = op->layout ? op->layout : "nn";
    const scout_tensor *a = &op->tensors[GEMM_A], *b = &op->tensors[GEMM_B], *c = &op->tensors[GEMM_C];
    const scout_field *bias = op_field(op, "bias");
    gemm_problem p;
    memset(&p, 0, sizeof p);
    p.m = op->shape[0], p.n = op->shape[1], p.k = op->shape[2];
    p.batch = op_number(op, "batch", 1);
    p.trans_a = layout[0] == 't', p.trans_b = layout[1] == 't';
    /* all three are rank 3: [batch, rows, cols] as stored; stride 0 in front: one matrix for the whole batch */
    p.stride_a = a->strides[0], p.stride_b = b->strides[0], p.stride_c = c->strides[0];
    p.lda = a->strides[1], p.ldb = b->strides[1], p.ldc = c->strides[1];
    p.type_a = a->type, p.type_b = b->type, p.type_c = c->type, p.accumulate = op->accumulate;
    p.tf32 = (int)op->tf32;
    p.bias = bias ? bias->text : NULL;
    p.residual = op_tensor(op, "residual");
    p.activation = activation_of(op);
    p.quant = requantize_of(op, p.k);
    p.alpha = op_real(op, "alpha", 1), p.beta = op_real(op, "beta", 1);
    p.block_size = op_number(op, "block_size", gemm_widens(p.type_a, p.type_b) ? p.k : 0);
    p.weight = a->role == SCOUT_WEIGHT ? GEMM_A : b->role == SCOUT_WEIGHT ? GEMM_B : -1;
    p.a_zero = op_tensor(op, "a_zero"), p.b_zero = op_tensor(op, "b_zero");
    p.scales = p.block_size > 0 ? -1 : op_tensor(op, "scales");
    p.b_zero_each = p.b_zero >= 0 && op_elements(&op->tensors[p.b_zero]) > 1;
    p.scales_each = p.scales >= 0 && op_elements(&op->tensors[p.scales]) > 1;
    return p;
}

/* Whether its numbers are quantised: candidates without support for that refuse. */
static inline int gemm_has_zeros(const gemm_problem *p) { return p->a_zero >= 0 || p->b_zero >= 0 || p->scales >= 0; }

/* Whether the product has an epilogue. */
static inline int gemm_has_epilogue(const gemm_problem *p) {
    return p->bias || p->residual >= 0 || p->activation.function != ACTIVATION_PLAIN;
}

/* Whether the product or its bias has a factor. */
static inline int gemm_has_factors(const gemm_problem *p) { return p->alpha != 1 || p->beta != 1; }

#endif
