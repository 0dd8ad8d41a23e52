/* What test_cuda_quantised puts in the place of cuBLASLt's product and of the kernels around it: plain loops over the
 * host's memory (the linker takes the __wrap_ functions for those that are named so). */
#ifndef TESTS_CUDA_QUANTISED_FAKES_H
#define TESTS_CUDA_QUANTISED_FAKES_H

#include "kernels/product_bytes.h"
#include "kernels/whole_conv.h"
#include "scout/cuda/lt.h"
#include "scout/cuda/own_activate.h"
#include "tests/unit/unit.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

enum { ALGORITHMS = 3 }; /* that the library offers */

static int fewest;         /* rows that the library has a product for */
static int products, wide; /* launches; and the most rows times columns of one */

/* ---- cuBLASLt: TN alone, in multiples of 16 ---- */

typedef struct fake_layout {
    uint64_t rows, cols;
    int64_t ld;
} fake_layout;

static cublasOperation_t first, second;

static cublasStatus_t make_product(cublasLtMatmulDesc_t *out, cublasComputeType_t compute, cudaDataType_t scale) {
    static cublasLtMatmulDescOpaque_t any;
    UNIT_INT(compute, CUBLAS_COMPUTE_32I);
    UNIT_INT(scale, CUDA_R_32I);
    *out = &any;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t drop_product(cublasLtMatmulDesc_t product) {
    (void)product;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_product(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                                  const void *value, size_t size) {
    (void)product;
    UNIT_INT(size, sizeof first);
    if (attribute == CUBLASLT_MATMUL_DESC_TRANSA) memcpy(&first, value, sizeof first);
    if (attribute == CUBLASLT_MATMUL_DESC_TRANSB) memcpy(&second, value, sizeof second);
    UNIT_CHECK(attribute != CUBLASLT_MATMUL_DESC_EPILOGUE);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t make_layout(cublasLtMatrixLayout_t *out, cudaDataType type, uint64_t rows, uint64_t cols,
                                  int64_t ld) {
    fake_layout *const l = malloc(sizeof *l);
    if (!l) return CUBLAS_STATUS_ALLOC_FAILED;
    *l = (fake_layout){rows, cols, ld};
    UNIT_CHECK(type == CUDA_R_8I || type == CUDA_R_32I);
    *out = (cublasLtMatrixLayout_t)(void *)l;
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
    (void)handle, (void)product, (void)c_layout, (void)d_layout, (void)preference;
    *count = 0;
    if (a.cols % 16 || a.rows % 16 || first != CUBLAS_OP_T || second != CUBLAS_OP_N || b.cols < (uint64_t)fewest)
        return CUBLAS_STATUS_NOT_SUPPORTED;
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

/* By columns: each element of C is a column of A times one of B. */
static cublasStatus_t multiply(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void *alpha, const void *a,
                               cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
                               const void *beta, const void *added, cublasLtMatrixLayout_t added_layout, void *c,
                               cublasLtMatrixLayout_t c_layout, const cublasLtMatmulAlgo_t *algo, void *workspace,
                               size_t workspace_bytes, cudaStream_t stream) {
    const fake_layout of_a = layout_of(a_layout), of_b = layout_of(b_layout), of_c = layout_of(c_layout);
    int32_t factors[2];
    (void)handle, (void)product, (void)added_layout, (void)algo, (void)stream, (void)workspace, (void)workspace_bytes;
    memcpy(&factors[0], alpha, sizeof factors[0]);
    memcpy(&factors[1], beta, sizeof factors[1]);
    if (factors[0] != 1 || factors[1] != 0 || added != c) return CUBLAS_STATUS_INVALID_VALUE;
    if (((uintptr_t)a | (uintptr_t)b | (uintptr_t)c) % 16) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (of_c.rows != of_a.cols || of_c.cols != of_b.cols || of_a.rows != of_b.rows) return CUBLAS_STATUS_INVALID_VALUE;
    for (int64_t i = 0; i < (int64_t)of_b.cols; i++)
        for (int64_t j = 0; j < (int64_t)of_a.cols; j++) {
            const int8_t *const x = (const int8_t *)b + i * of_b.ld, *const w = (const int8_t *)a + j * of_a.ld;
            int32_t sum = 0;
            for (int64_t k = 0; k < (int64_t)of_a.rows; k++) sum += x[k] * w[k];
            ((int32_t *)c)[i * of_c.ld + j] = sum;
        }
    products++;
    if ((int)(of_c.rows * of_c.cols) > wide) wide = (int)(of_c.rows * of_c.cols);
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

/* ---- the kernels, as loops ---- */

int __wrap_product_bytes_input_launch(const product_bytes_input *p, const void *from, void *to, void *stream);
int __wrap_product_bytes_input_launch(const product_bytes_input *p, const void *from, void *to, void *stream) {
    (void)stream;
    if (p->cols_to % 16 || (uintptr_t)to % 16 || p->rows_to < p->rows || p->cols_to < p->cols)
        return cudaErrorInvalidValue;
    if (from != to) memset(to, 0, (size_t)(p->rows_to * p->cols_to)); /* what lies there lies so already */
    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t j = 0; j < p->cols; j++)
            ((uint8_t *)to)[i * p->cols_to + j] =
                product_bytes_shifted(((const uint8_t *)from)[i * p->ld + j], p->flip);
    return cudaSuccess;
}

int __wrap_product_bytes_sums_launch(int64_t rows, int64_t cols, int64_t ld, const void *from, void *to, void *stream);
int __wrap_product_bytes_sums_launch(int64_t rows, int64_t cols, int64_t ld, const void *from, void *to, void *stream) {
    (void)stream;
    if (cols % 16 || ld % 16 || (uintptr_t)from % 16) return cudaErrorInvalidValue;
    for (int64_t i = 0; i < rows; i++) {
        int32_t sum = 0;
        for (int64_t j = 0; j < cols; j++) sum += ((const int8_t *)from)[i * ld + j];
        ((int32_t *)to)[i] = sum;
    }
    return cudaSuccess;
}

/* Of int32 and fp32. */
int __wrap_product_bytes_zeros_launch(const product_bytes_zeros *p, const void *sums, const void *of_x,
                                      const void *of_w, const void *a_zero, const void *b_zero, const void *scales,
                                      const void *bias, void *to, void *stream);
int __wrap_product_bytes_zeros_launch(const product_bytes_zeros *p, const void *sums, const void *of_x,
                                      const void *of_w, const void *a_zero, const void *b_zero, const void *scales,
                                      const void *bias, void *to, void *stream) {
    const int32_t a = product_bytes_zero(a_zero, 0, p->shift_a);
    (void)stream;
    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t j = 0; j < p->cols; j++) {
            const int32_t b = product_bytes_zero(b_zero, p->b_each ? j : 0, p->shift_b);
            const int32_t sum = product_bytes_corrected(((const int32_t *)sums)[i * p->ld_sums + j], a, b,
                                                        of_x ? ((const int32_t *)of_x)[i] : 0,
                                                        of_w ? ((const int32_t *)of_w)[j] : 0, p->k);
            if ((a && !of_w) || (b && !of_x)) return cudaErrorInvalidValue;
            const int64_t at = i * p->ld_to + j;
            if (p->type == PRODUCT_BYTES_INT32)
                ((int32_t *)to)[at] = sum;
            else
                ((float *)to)[at] = (float)sum * ((const float *)scales)[p->scales_each ? j : 0] +
                                    (bias ? ((const float *)bias)[j] : 0);
        }
    return cudaSuccess;
}

int __wrap_product_bytes_finish_launch(const product_bytes_finish *p, const void *sums, const void *bias, void *to,
                                       void *stream);
int __wrap_product_bytes_finish_launch(const product_bytes_finish *p, const void *sums, const void *bias, void *to,
                                       void *stream) {
    (void)stream;
    if (p->ld_sums % 4 || (uintptr_t)sums % 16 || p->ld_sums < p->cols || p->ld_to < p->cols)
        return cudaErrorInvalidValue;
    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t j = 0; j < p->cols; j++) {
            const int32_t sum = ((const int32_t *)sums)[i * p->ld_sums + j];
            const float y = product_bytes_value(p, sum, bias ? ((const int32_t *)bias)[j] : 0);
            if (p->type == PRODUCT_BYTES_FP32)
                ((float *)to)[i * p->ld_to + j] = y;
            else
                ((uint8_t *)to)[i * p->ld_to + j] = product_bytes_rounded(p, y);
        }
    return cudaSuccess;
}

cudaError_t __wrap_kernels_transpose(void *to, const void *from, int element, int64_t rows, int64_t cols,
                                     int64_t ld_from, int64_t ld_to, int64_t stride_from, int64_t stride_to,
                                     int64_t matrices, cudaStream_t stream);
cudaError_t __wrap_kernels_transpose(void *to, const void *from, int element, int64_t rows, int64_t cols,
                                     int64_t ld_from, int64_t ld_to, int64_t stride_from, int64_t stride_to,
                                     int64_t matrices, cudaStream_t stream) {
    (void)stride_from, (void)stride_to, (void)stream;
    if (element != 1 || matrices != 1) return cudaErrorInvalidValue;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) ((int8_t *)to)[c * ld_to + r] = ((const int8_t *)from)[r * ld_from + c];
    return cudaSuccess;
}

cudaError_t __wrap_cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream);
cudaError_t __wrap_cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
    (void)stream;
    memset(to, value, bytes);
    return cudaSuccess;
}

/* Of a single place, as kernels/whole_conv.h has it. */
cudaError_t __wrap_whole_conv(const whole_conv_problem *p, double *want, float *spread, cudaStream_t stream);
cudaError_t __wrap_whole_conv(const whole_conv_problem *p, double *want, float *spread, cudaStream_t stream) {
    (void)stream;
    for (int k = 0; k < WHOLE_CONV_AXES; k++)
        if (p->axes[k].in != 1 || p->axes[k].out != 1 || p->axes[k].kernel != 1 || p->axes[k].stride != 1)
            return cudaErrorInvalidValue;
    if (!p->quantised || p->group != 1 || p->transposed || (p->bias && p->type_bias != SCOUT_INT32))
        return cudaErrorInvalidValue;
    for (int64_t i = 0; i < p->images; i++)
        for (int64_t j = 0; j < p->cout; j++) {
            double sum = p->bias ? ((const int32_t *)p->bias)[j] : 0;
            for (int64_t k = 0; k < p->cin; k++) {
                const uint8_t x = ((const uint8_t *)p->input)[i * p->in_n + k * p->in_c];
                const uint8_t w = ((const uint8_t *)p->weight)[j * p->w_o + k * p->w_i];
                sum += ((p->type_in == SCOUT_UINT8 ? x : (int8_t)x) - p->zero_in) *
                       ((p->type_weight == SCOUT_UINT8 ? w : (int8_t)w) - p->zero_weight);
            }
            const double x = p->factor * sum;
            const double y = p->activation == ACTIVATE_RELU   ? x < 0 ? p->alpha * x : x
                             : p->activation == ACTIVATE_CLIP ? fmin(fmax(x, p->alpha), p->beta)
                                                              : x;
            const int64_t at = i * p->out_n + j * p->out_c;
            want[at] = p->rounds ? fmin(p->most, fmax(p->least, y + p->zero_out)) : y + p->zero_out;
            spread[at] = (float)p->factor;
        }
    return cudaSuccess;
}

#endif
