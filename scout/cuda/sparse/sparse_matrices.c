/* Descriptors of dense matrices for cuSPARSE, and what is asked of a weight before and after it is packed. */
#include "scout/cuda/sparse/sparse_matrices.h"

#include "scout/cuda/sparse/sparse_weight.h"

scout_answer sparse_matrices_supports(const scout_op *op, scout_why *why) {
    const scout_answer answer = sparse_weight_supports(op, why);
    if (answer != SCOUT_OK) return answer;
    const gemm_problem p = gemm_problem_of(op);
    if (op_number(op, "weight_nonzeros", 0) > INT32_MAX || p.m > INT32_MAX || p.n >= INT32_MAX || p.k >= INT32_MAX)
        return scout_say(why, SCOUT_NO, "shape", "dimensions or nonzeros exceed 32-bit counters");
    return sparse_open(why) ? SCOUT_OK : SCOUT_NO;
}

cudaDataType sparse_matrices_type(uint32_t input) {
    return input == SCOUT_FP32 ? CUDA_R_32F : input == SCOUT_FP16 ? CUDA_R_16F : CUDA_R_16BF;
}

cusparseOperation_t sparse_matrices_operation(const gemm_problem *p) {
    return p->trans_a ? CUSPARSE_OPERATION_TRANSPOSE : CUSPARSE_OPERATION_NON_TRANSPOSE;
}

cusparseStatus_t sparse_matrices_dense(const sparse_table *table, const gemm_problem *p, int64_t rows,
                                       cudaDataType type, const void *a, void *c, cudaDataType c_type, int64_t ldc,
                                       sparse_matrices *m) {
    const int64_t deep = p->trans_a ? rows : p->k, wide = p->trans_a ? p->k : rows;
    const cusparseStatus_t status =
        table->cusparseCreateConstDnMat(&m->a, deep, wide, p->lda, a, type, CUSPARSE_ORDER_COL);
    if (status != CUSPARSE_STATUS_SUCCESS) return status;
    return table->cusparseCreateDnMat(&m->c, p->n, rows, ldc, c, c_type, CUSPARSE_ORDER_COL);
}

void sparse_matrices_free(const sparse_table *table, const sparse_matrices *m) {
    if (m->weight) table->cusparseDestroySpMat(m->weight);
    if (m->a) table->cusparseDestroyDnMat(m->a);
    if (m->c) table->cusparseDestroyDnMat(m->c);
}

uint64_t sparse_matrices_rounded(uint64_t bytes) { return (bytes + 127) / 128 * 128; }

int sparse_matrices_download(const int32_t *from, int32_t *to, void *stream) {
    const cudaError_t error = cudaMemcpyAsync(to, from, sizeof *to, cudaMemcpyDeviceToHost, stream);
    return error ? (int)error : (int)cudaStreamSynchronize(stream);
}

scout_answer sparse_matrices_kept(const int32_t *at, int64_t wanted, const char *what, void *stream, scout_why *why) {
    int32_t kept = 0;
    const int error = sparse_matrices_download(at, &kept, stream);
    if (error) return cuda_device_answer((cudaError_t)error, "packing for cuSPARSE", why);
    if (kept == wanted) return SCOUT_OK;
    return scout_say(why, SCOUT_FAILED, "error", "the weight has %d %s that are not zero, not %lld", (int)kept, what,
                     (long long)wanted);
}
