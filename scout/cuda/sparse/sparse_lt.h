/* cuSPARSELt, opened at run time as cuSPARSE is (sparse.h), and its candidate: a weight that keeps two of each four
 * numbers along K. Its header comes with the library and not with the CUDA toolkit, so that what is called is declared
 * here: values and signatures of versions 0.8 to 0.10, which agree. Others may not, and are refused. */
#pragma once

#include "scout/plugin.h"

#include <cusparse.h>
#include <stdalign.h>

/* Handles, descriptors and plans are 512 bytes of the caller's; there is room for twice that. */
typedef struct sparse_lt_object {
    alignas(16) uint8_t data[1024];
} sparse_lt_object;

/* The library's numbers. */
enum { SPARSE_LT_HALF_ZEROS = 0 };                                   /* of a structured matrix */
enum { SPARSE_LT_SUM_INT32 = 0, SPARSE_LT_SUM_FP32 = 2 };            /* what is added up in */
enum { SPARSE_LT_DEFAULT = 0 };                                      /* how an algorithm is selected */
enum { SPARSE_LT_ALGO = 0, SPARSE_LT_ALGOS, SPARSE_LT_SPLIT_K = 3 }; /* attributes of a selection */
enum { SPARSE_LT_BIAS_POINTER = 8 };                                 /* attribute of a product */

#define SPARSE_LT_FUNCTIONS(F)                                                                                         \
    F(cusparseLtInit, (sparse_lt_object * handle))                                                                     \
    F(cusparseLtGetProperty, (libraryPropertyType property, int *value))                                               \
    F(cusparseLtDenseDescriptorInit,                                                                                   \
      (const sparse_lt_object *handle, sparse_lt_object *matrix, int64_t rows, int64_t cols, int64_t ld,               \
       uint32_t alignment, cudaDataType type, cusparseOrder_t order))                                                  \
    F(cusparseLtStructuredDescriptorInit,                                                                              \
      (const sparse_lt_object *handle, sparse_lt_object *matrix, int64_t rows, int64_t cols, int64_t ld,               \
       uint32_t alignment, cudaDataType type, cusparseOrder_t order, int sparsity))                                    \
    F(cusparseLtMatDescriptorDestroy, (const sparse_lt_object *matrix))                                                \
    F(cusparseLtMatmulDescriptorInit,                                                                                  \
      (const sparse_lt_object *handle, sparse_lt_object *product, cusparseOperation_t operation_a,                     \
       cusparseOperation_t operation_b, const sparse_lt_object *a, const sparse_lt_object *b,                          \
       const sparse_lt_object *c, const sparse_lt_object *d, int compute))                                             \
    F(cusparseLtMatmulDescSetAttribute,                                                                                \
      (const sparse_lt_object *handle, sparse_lt_object *product, int attribute, const void *value, size_t bytes))     \
    F(cusparseLtMatmulAlgSelectionInit,                                                                                \
      (const sparse_lt_object *handle, sparse_lt_object *selection, const sparse_lt_object *product, int how))         \
    F(cusparseLtMatmulAlgSelectionDestroy, (const sparse_lt_object *selection))                                        \
    F(cusparseLtMatmulAlgGetAttribute,                                                                                 \
      (const sparse_lt_object *handle, const sparse_lt_object *selection, int attribute, void *value, size_t bytes))   \
    F(cusparseLtMatmulAlgSetAttribute,                                                                                 \
      (const sparse_lt_object *handle, sparse_lt_object *selection, int attribute, const void *value, size_t bytes))   \
    F(cusparseLtMatmulPlanInit, (const sparse_lt_object *handle, sparse_lt_object *plan,                               \
                                 const sparse_lt_object *product, const sparse_lt_object *selection))                  \
    F(cusparseLtMatmulPlanDestroy, (const sparse_lt_object *plan))                                                     \
    F(cusparseLtMatmulGetWorkspace, (const sparse_lt_object *handle, const sparse_lt_object *plan, size_t *bytes))     \
    F(cusparseLtSpMMACompressedSize,                                                                                   \
      (const sparse_lt_object *handle, const sparse_lt_object *plan, size_t *bytes, size_t *buffer_bytes))             \
    F(cusparseLtSpMMACompress, (const sparse_lt_object *handle, const sparse_lt_object *plan, const void *dense,       \
                                void *compressed, void *buffer, cudaStream_t stream))                                  \
    F(cusparseLtMatmul,                                                                                                \
      (const sparse_lt_object *handle, const sparse_lt_object *plan, const void *alpha, const void *a, const void *b,  \
       const void *beta, const void *c, void *d, void *workspace, cudaStream_t *streams, int32_t stream_count))

typedef struct sparse_lt_table {
#define SPARSE_LT_MEMBER(name, parameters) cusparseStatus_t(*name) parameters;
    SPARSE_LT_FUNCTIONS(SPARSE_LT_MEMBER)
#undef SPARSE_LT_MEMBER
    const char *(*cusparseLtGetErrorString)(cusparseStatus_t status);
    char path[256], version[48];
} sparse_lt_table;

/* The library, opened at the first call; NULL: why says where it was looked for. No context is made. */
const sparse_lt_table *sparse_lt_open(scout_why *why);
/* The handle of the device that is current; made at the first call, lives as long as the process. */
const sparse_lt_table *sparse_lt_ready(const sparse_lt_object **handle, scout_why *why);
/* What a status other than success means; `doing` is the function's name. What it refuses is `code`. */
scout_answer sparse_lt_answer(const sparse_lt_table *table, cusparseStatus_t status, const char *doing,
                              const char *code, scout_why *why);
