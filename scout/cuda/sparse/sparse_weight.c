/* Sparse weights as operations describe them. */
#include "scout/cuda/sparse/sparse_weight.h"

const int64_t sparse_weight_sides[SPARSE_WEIGHT_SIDES] = {64, 128, 32, 16};

scout_answer sparse_weight_known(const scout_op *op, scout_why *why) {
    if (op->kind != SCOUT_GEMM || op->rank != 3 || op->tensor_count < 3)
        return scout_say(why, SCOUT_NO, "feature", "computes matrix products alone");
    const gemm_problem p = gemm_problem_of(op);
    if (op_number(op, "weight_nonzeros", -1) < 0)
        return scout_say(why, SCOUT_NO, "pattern", "weight is dense, or its sparsity is unknown");
    if (p.weight < 0 || p.batch != 1) return scout_say(why, SCOUT_NO, "shape", "multiplies one matrix with one weight");
    if (gemm_has_factors(&p)) return scout_say(why, SCOUT_NO, "feature", "no factors of the product or the bias");
    if ((p.bias && strcmp(p.bias, "n") != 0) || p.residual >= 0 || p.activation.function != ACTIVATION_PLAIN)
        return scout_say(why, SCOUT_NO, "epilogue", "no activation, no residual, and no bias but one per column");
    if (p.m < 1 || p.n < 1 || p.k < 1) return scout_say(why, SCOUT_NO, "shape", "a dimension of the product is 0");
    return SCOUT_OK;
}

scout_answer sparse_weight_supports(const scout_op *op, scout_why *why) {
    const scout_answer answer = sparse_weight_known(op, why);
    if (answer != SCOUT_OK) return answer;
    const gemm_problem p = gemm_problem_of(op);
    if ((p.type_a != SCOUT_FP32 && p.type_a != SCOUT_FP16 && p.type_a != SCOUT_BF16) || p.type_b != p.type_a ||
        p.type_c != p.type_a)
        return scout_say(why, SCOUT_NO, "type", "multiplies fp32, fp16 or bf16 with its like into the same");
    if (p.weight != GEMM_B)
        return scout_say(why, SCOUT_NO, "shape", "multiplies one matrix with a weight on the right");
    return SCOUT_OK;
}

int64_t sparse_weight_blocks(const scout_op *op, int64_t side) {
    char name[32];
    snprintf(name, sizeof name, "weight_blocks_%lld", (long long)side);
    return op_number(op, name, -1);
}

int sparse_weight_has_empty(const scout_op *op, int64_t side) {
    const gemm_problem p = gemm_problem_of(op);
    const int64_t blocks = sparse_weight_blocks(op, side), all = ((p.n + side - 1) / side) * ((p.k + side - 1) / side);
    return blocks >= 0 && blocks < all;
}

gemm_sparse_weight sparse_weight_of(const gemm_problem *p) {
    return (gemm_sparse_weight){
        .n = p->n, .k = p->k, .ld = p->ldb, .stored_nk = p->trans_b, .element = p->type_b == SCOUT_FP32 ? 4 : 2};
}
