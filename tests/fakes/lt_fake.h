/* cuBLASLt in plain loops over the host's memory (the linker takes the __wrap_ functions in the place of those that
 * open it): products of int8 into int32, TN and in multiples of 16 alone, and of fp32 of every form, with what may
 * stand behind these. */
#ifndef TESTS_FAKES_LT_FAKE_H
#define TESTS_FAKES_LT_FAKE_H

#include "scout/cuda/lt/lt.h"
#include "tests/unit/unit.h"

#include <stdlib.h>

enum { ALGORITHMS = 3 }; /* that the library offers */

static int fewest = 1;      /* rows that it has a product of bytes for */
static bool no_epilogues;   /* it has nothing behind a product */
static int products, wide;  /* launches; and the most rows times columns of one */
static int64_t narrow_line; /* the least that every leading dimension of the last one is a multiple of, in bytes */

typedef struct fake_layout {
    cudaDataType type;
    int64_t rows, cols, ld, stride;
    int32_t batch;
} fake_layout;

typedef struct fake_product {
    cublasOperation_t first, second;
    cublasLtEpilogue_t epilogue;
    const float *bias;
} fake_product;

static fake_product told; /* of one at a time */

static cublasStatus_t make_product(cublasLtMatmulDesc_t *out, cublasComputeType_t compute, cudaDataType_t scale) {
    fake_product *const p = malloc(sizeof *p);
    if (!p) return CUBLAS_STATUS_ALLOC_FAILED;
    *p = (fake_product){CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, NULL};
    UNIT_CHECK(compute == CUBLAS_COMPUTE_32I ? scale == CUDA_R_32I
                                             : compute == CUBLAS_COMPUTE_32F && scale == CUDA_R_32F);
    *out = (cublasLtMatmulDesc_t)(void *)p;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t drop_product(cublasLtMatmulDesc_t product) {
    free((void *)product);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_product(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                                  const void *value, size_t size) {
    fake_product *const p = (fake_product *)(void *)product;
    if (attribute == CUBLASLT_MATMUL_DESC_TRANSA) memcpy(&p->first, value, size);
    if (attribute == CUBLASLT_MATMUL_DESC_TRANSB) memcpy(&p->second, value, size);
    if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE) memcpy(&p->epilogue, value, size);
    if (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER) memcpy(&p->bias, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t make_layout(cublasLtMatrixLayout_t *out, cudaDataType type, uint64_t rows, uint64_t cols,
                                  int64_t ld) {
    fake_layout *const l = malloc(sizeof *l);
    if (!l) return CUBLAS_STATUS_ALLOC_FAILED;
    *l = (fake_layout){type, (int64_t)rows, (int64_t)cols, ld, 0, 1};
    UNIT_CHECK(type == CUDA_R_8I || type == CUDA_R_32I || type == CUDA_R_32F);
    *out = (cublasLtMatrixLayout_t)(void *)l;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_layout(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute,
                                 const void *value, size_t size) {
    fake_layout *const l = (fake_layout *)(void *)layout;
    if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) memcpy(&l->batch, value, size);
    if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) memcpy(&l->stride, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t drop_layout(cublasLtMatrixLayout_t layout) {
    free((void *)layout);
    return CUBLAS_STATUS_SUCCESS;
}

static fake_layout layout_of(cublasLtMatrixLayout_t layout) {
    fake_layout l;
    memcpy(&l, (const void *)layout, sizeof l);
    return l;
}

static cublasStatus_t make_preference(cublasLtMatmulPreference_t *out) {
    static cublasLtMatmulPreferenceOpaque_t any;
    *out = &any;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t drop_preference(cublasLtMatmulPreference_t preference) {
    (void)preference;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_preference(cublasLtMatmulPreference_t preference,
                                     cublasLtMatmulPreferenceAttributes_t attribute, const void *value, size_t size) {
    (void)preference, (void)attribute, (void)value, (void)size;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t rank(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a_layout,
                           cublasLtMatrixLayout_t b_layout, cublasLtMatrixLayout_t c_layout,
                           cublasLtMatrixLayout_t d_layout, cublasLtMatmulPreference_t preference, int most,
                           cublasLtMatmulHeuristicResult_t results[], int *count) {
    const fake_layout a = layout_of(a_layout), b = layout_of(b_layout);
    fake_product p;
    (void)handle, (void)c_layout, (void)d_layout, (void)preference;
    memcpy(&p, (const void *)product, sizeof p);
    *count = 0;
    if (a.type == CUDA_R_8I &&
        (a.cols % 16 || a.rows % 16 || p.first != CUBLAS_OP_T || p.second != CUBLAS_OP_N || b.cols < fewest))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (no_epilogues && p.epilogue != CUBLASLT_EPILOGUE_DEFAULT) return CUBLAS_STATUS_NOT_SUPPORTED;
    for (; *count < ALGORITHMS && *count < most; ++*count)
        results[*count] =
            (cublasLtMatmulHeuristicResult_t){.state = CUBLAS_STATUS_SUCCESS, .workspaceSize = 100 * (size_t)*count};
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t get_config(const cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t attribute,
                                 void *value, size_t size, size_t *written) {
    (void)algo, (void)attribute;
    memset(value, 0, size);
    *written = size;
    return CUBLAS_STATUS_SUCCESS;
}

/* By columns; `flipped`: as stored, the other way round. */
static int64_t fake_at(const fake_layout *l, bool flipped, int32_t batch, int64_t row, int64_t col) {
    return batch * l->stride + (flipped ? row * l->ld + col : col * l->ld + row);
}

static float fake_behind(float x, int64_t row) {
    const bool bias = told.epilogue == CUBLASLT_EPILOGUE_BIAS || told.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
    const bool relu = told.epilogue == CUBLASLT_EPILOGUE_RELU || told.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
    if (bias) x += told.bias[row];
    return relu && x < 0 ? 0 : x;
}

static bool fake_fits(const fake_layout *a, const fake_layout *b, const fake_layout *c) {
    const int64_t rows = told.first == CUBLAS_OP_T ? a->cols : a->rows,
                  depth = told.first == CUBLAS_OP_T ? a->rows : a->cols;
    const int64_t cols = told.second == CUBLAS_OP_T ? b->rows : b->cols,
                  other = told.second == CUBLAS_OP_T ? b->cols : b->rows;
    return rows == c->rows && cols == c->cols && depth == other && a->ld >= a->rows && b->ld >= b->rows &&
           c->ld >= c->rows && a->batch == c->batch && b->batch == c->batch;
}

static cublasStatus_t multiply(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void *alpha, const void *a,
                               cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
                               const void *beta, const void *added, cublasLtMatrixLayout_t added_layout, void *c,
                               cublasLtMatrixLayout_t c_layout, const cublasLtMatmulAlgo_t *algo, void *workspace,
                               size_t workspace_bytes, cudaStream_t stream) {
    const fake_layout x = layout_of(a_layout), y = layout_of(b_layout), z = layout_of(c_layout);
    const bool bytes = x.type == CUDA_R_8I;
    uint32_t factors[2];
    float both[2];
    (void)handle, (void)added_layout, (void)algo, (void)stream, (void)workspace, (void)workspace_bytes;
    memcpy(&told, (const void *)product, sizeof told);
    memcpy(&factors[0], alpha, sizeof factors[0]), memcpy(&factors[1], beta, sizeof factors[1]);
    memcpy(both, factors, sizeof both);
    if (bytes ? factors[0] != 1 || factors[1] != 0 || added != c : both[0] != 1) return CUBLAS_STATUS_INVALID_VALUE;
    if (((uintptr_t)a | (uintptr_t)b | (uintptr_t)c) % 16) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (!fake_fits(&x, &y, &z)) return CUBLAS_STATUS_INVALID_VALUE;
    const bool first = told.first == CUBLAS_OP_T, second = told.second == CUBLAS_OP_T;
    const int64_t depth = first ? x.rows : x.cols;
    for (int32_t n = 0; n < z.batch; n++)
        for (int64_t at = 0; at < z.rows * z.cols; at++) {
            const int64_t i = at % z.rows, j = at / z.rows, to = fake_at(&z, false, n, i, j);
            int32_t whole = 0;
            float sum = both[1] != 0 && !bytes ? both[1] * ((const float *)added)[to] : 0;
            for (int64_t k = 0; k < depth; k++) {
                const int64_t of_a = fake_at(&x, first, n, i, k), of_b = fake_at(&y, second, n, k, j);
                if (bytes)
                    whole += ((const int8_t *)a)[of_a] * ((const int8_t *)b)[of_b];
                else
                    sum += ((const float *)a)[of_a] * ((const float *)b)[of_b];
            }
            if (bytes)
                ((int32_t *)c)[to] = whole;
            else
                ((float *)c)[to] = fake_behind(sum, i);
        }
    products++;
    if ((int)(z.rows * z.cols) > wide) wide = (int)(z.rows * z.cols);
    for (narrow_line = 16; (x.ld | y.ld | z.ld) * 4 % narrow_line; narrow_line /= 2) {
    }
    return CUBLAS_STATUS_SUCCESS;
}

static const char *status_text(cublasStatus_t answer) {
    (void)answer;
    return "status";
}

static const lt_table table = {.cublasLtMatmul = multiply,
                               .cublasLtMatmulDescCreate = make_product,
                               .cublasLtMatmulDescDestroy = drop_product,
                               .cublasLtMatmulDescSetAttribute = set_product,
                               .cublasLtMatrixLayoutCreate = make_layout,
                               .cublasLtMatrixLayoutDestroy = drop_layout,
                               .cublasLtMatrixLayoutSetAttribute = set_layout,
                               .cublasLtMatmulPreferenceCreate = make_preference,
                               .cublasLtMatmulPreferenceDestroy = drop_preference,
                               .cublasLtMatmulPreferenceSetAttribute = set_preference,
                               .cublasLtMatmulAlgoGetHeuristic = rank,
                               .cublasLtMatmulAlgoConfigGetAttribute = get_config,
                               .cublasLtGetStatusString = status_text};

const lt_table *__wrap_lt_open(scout_why *reason);
const lt_table *__wrap_lt_open(scout_why *reason) {
    (void)reason;
    return &table;
}

const lt_table *__wrap_lt_ready(cublasLtHandle_t *handle, scout_why *reason);
const lt_table *__wrap_lt_ready(cublasLtHandle_t *handle, scout_why *reason) {
    *handle = NULL;
    return __wrap_lt_open(reason);
}

#endif
