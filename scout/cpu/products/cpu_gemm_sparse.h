/* Shared by products with sparse weights: the operations they take, A widened to fp32, the end of a column. The weight
 * is seen as [N,K], whichever way it is stored: a column of the product is a row of it. */
#pragma once

#include "scout/op/gemm.h"

/* Whether the weight is sparse, and the product supported by these kernels. */
scout_answer cpu_gemm_sparse_supports(const scout_op *op, scout_why *why);

/* Element [n][k] of the weight. */
float cpu_gemm_sparse_weight(const gemm_problem *p, const void *weight, int64_t n, int64_t k);

/* Rows from `row` on into to[k * rows + i] (`across`: what is multiplied lies together) or to[i * width + k]; what is
 * beyond `count` rows or K is 0. By all threads. */
typedef struct cpu_gemm_sparse_rows {
    const gemm_problem *p;
    const void *a;
    int64_t row, count, rows, width;
    int across;
    float *to;
} cpu_gemm_sparse_rows;
void cpu_gemm_sparse_widen(const cpu_gemm_sparse_rows *job);

/* c[row][n] = sum + bias[n]; bias NULL: none. */
void cpu_gemm_sparse_store(const gemm_problem *p, const void *bias, void *c, int64_t row, int64_t n, float sum);
