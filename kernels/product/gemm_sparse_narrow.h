/* Sums in fp32 become outputs in 16 bits: what stands behind a product of a library that is exact only in fp32. */
#ifndef KERNELS_PRODUCT_GEMM_SPARSE_NARROW_H
#define KERNELS_PRODUCT_GEMM_SPARSE_NARROW_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* to[r][c] = sums[r][c] + bias[c], rounded once; sums lie without gaps, rows of `to` are `ld` elements apart. bias, of
 * the output's type: NULL is none. brain: bf16 instead of fp16. Only enqueues; returns a cudaError_t. */
int gemm_sparse_narrow(const float *sums, int64_t rows, int64_t cols, const void *bias, int brain, void *to, int64_t ld,
                       void *stream);

#ifdef __cplusplus
}
#endif

#endif
