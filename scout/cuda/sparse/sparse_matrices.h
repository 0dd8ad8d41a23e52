/* What a product by cuSPARSE is made of, whatever form its weight has. It wants the sparse matrix on the left and
 * stores by columns what we store by rows, so C = A W becomes C' = W' A' without a copy. Descriptors hold pointers, and
 * those change with every launch: they are made for each, which is host work alone and no part of a graph. */
#pragma once

#include "scout/cuda/sparse/sparse.h"
#include "scout/op/gemm.h"

typedef struct sparse_matrices {
    cusparseConstSpMatDescr_t weight; /* made by the candidate, and given back with the others */
    cusparseConstDnMatDescr_t a;
    cusparseDnMatDescr_t c;
} sparse_matrices;

/* Whether its dimensions and the weight's numbers can be counted, and the library is there. */
scout_answer sparse_matrices_supports(const scout_op *op, scout_why *why);
cudaDataType sparse_matrices_type(uint32_t input); /* of fp32, fp16 and bf16 */
/* A stored as [K,M] is, by columns, A as [M,K]: then it is transposed. */
cusparseOperation_t sparse_matrices_operation(const gemm_problem *p);

/* A and C where they begin with the first of `rows` rows of the product; C of its own type, its rows ldc apart. */
cusparseStatus_t sparse_matrices_dense(const sparse_table *table, const gemm_problem *p, int64_t rows,
                                       cudaDataType type, const void *a, void *c, cudaDataType c_type, int64_t ldc,
                                       sparse_matrices *m);
void sparse_matrices_free(const sparse_table *table, const sparse_matrices *m);

/* --- packing --- */

uint64_t sparse_matrices_rounded(uint64_t bytes); /* to whole lines: what follows begins on one */
/* Waits for a number that packing left on the device; a cudaError_t. */
int sparse_matrices_download(const int32_t *from, int32_t *to, void *stream);
/* That packing kept as many as the operation says; `what` is their name. */
scout_answer sparse_matrices_kept(const int32_t *at, int64_t wanted, const char *what, void *stream, scout_why *why);
