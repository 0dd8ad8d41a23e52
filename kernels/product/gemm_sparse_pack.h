/* Sparse forms of a weight, made on the device from its dense one: lists of blocks, lists of numbers, and blocks in
 * rows of one length. The weight is seen as [n,k], whichever way it is stored: what is listed of each column of the
 * product lies together. What is written depends on the weight alone, byte for byte. Each call only enqueues. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gemm_sparse_weight {
    const void *from;
    int64_t n, k, ld; /* ld: elements between stored rows */
    int stored_nk;    /* 1: stored [n,k]; 0: [k,n] */
    int element;      /* bytes: 2 (fp16, bf16) or 4 (fp32) */
} gemm_sparse_weight;

/* Columns of blocks of `side` along n: begin[columns + 1], place along k (in blocks), blocks as [side of n][side of k]
 * with zeros beyond the edges. What is beyond `room` blocks is counted in `begin` and not written. */
int gemm_sparse_pack_blocks(const gemm_sparse_weight *w, int side, int64_t room, int32_t *begin, int32_t *place,
                            void *values, void *stream);

/* The same of single numbers: begin[n + 1], places along k, numbers. */
int gemm_sparse_pack_numbers(const gemm_sparse_weight *w, int64_t room, int32_t *begin, int32_t *place, void *values,
                             void *stream);

/* How many blocks the longest column has. */
int gemm_sparse_pack_longest(const gemm_sparse_weight *w, int side, int32_t *longest, void *stream);

/* `width` blocks for each column: place[columns][width], -1 where there is no more; numbers as
 * [columns * side][width * side], zeros where there is none. */
int gemm_sparse_pack_rows(const gemm_sparse_weight *w, int side, int64_t width, int32_t *place, void *values,
                          void *stream);

/* --- gemm_sparse_narrow: the epilogue of a library that is exact only in fp32 --- */

/* to[r][c] = sums[r][c] + bias[c], rounded once; sums are dense, rows of `to` are `ld` elements apart. bias, of the
 * output's type: NULL is none. brain: bf16 instead of fp16. Returns a cudaError_t. */
int gemm_sparse_narrow(const float *sums, int64_t rows, int64_t cols, const void *bias, int brain, void *to, int64_t ld,
                       void *stream);

#ifdef __cplusplus
}
#endif
