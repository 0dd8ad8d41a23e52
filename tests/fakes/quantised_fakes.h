/* What test_cuda_quantised puts in the place of the kernels around cuBLASLt's product: plain loops over the host's
 * memory (the linker takes the __wrap_ functions for those that are named so). */
#ifndef TESTS_FAKES_QUANTISED_FAKES_H
#define TESTS_FAKES_QUANTISED_FAKES_H

#include "kernels/product/product_bytes.h"
#include "kernels/reference/whole.h"
#include "scout/cuda/own/own_activate.h"
#include "tests/fakes/lt_fake.h"

#include <cuda_runtime_api.h>

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

/* Of a single place, as kernels/reference/whole.h has it. */
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
