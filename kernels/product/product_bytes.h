/* The prologue and epilogue of a library's product of bytes (int8 times int8 into int32): the input as the library
 * takes it, the correction of sums for zero points of both sides, and the conversion of sums; and a product of any
 * bytes without a library. Self-contained: nothing of the program is needed to use it. The arithmetic of one number is
 * here, for the kernels and for tests on machines without a GPU. */
#pragma once

#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#define PRODUCT_BYTES_FN static __host__ __device__ __forceinline__
#else
#define PRODUCT_BYTES_FN static inline
#endif

/* Element types, numbered as in ONNX. */
enum {
    PRODUCT_BYTES_FP32 = 1,
    PRODUCT_BYTES_UINT8 = 2,
    PRODUCT_BYTES_INT8 = 3,
    PRODUCT_BYTES_INT32 = 6,
    PRODUCT_BYTES_FP16 = 10,
    PRODUCT_BYTES_BF16 = 16
};

/* Bytes of a matrix, with zeros behind the end of its rows and below them. */
typedef struct product_bytes_input {
    int64_t rows, cols, ld;   /* as it lies */
    int64_t rows_to, cols_to; /* as it becomes, dense; columns in multiples of 16 */
    int flip;                 /* 1: it holds uint8, and becomes the int8 that is 128 less */
} product_bytes_input;

/* y = x < 0 ? slope * x : x with x = factor * (sum + bias), kept from low to high; of bytes rounded to the nearest
 * whole number, the even one in the middle, and zero added: low and high are such that this is a byte. */
typedef struct product_bytes_finish {
    int64_t rows, cols, ld_sums, ld_to; /* ld_sums in multiples of 4 */
    int type, zero;
    float factor, slope, low, high;
} product_bytes_finish;

/* Sums of products of x - a and w - b, from those of x and w: sum - a * (sum of the w) - b * (sum of the x) + k * a *
 * b; then int32, or a float that is it times a scale, plus a bias. A side that was uint8 has become the int8 that is
 * 128 less, and so does its zero point (`shift` 128), which is 0 where none is told. */
typedef struct product_bytes_zeros {
    int64_t rows, cols, ld_sums, ld_to, k;
    int type; /* int32, fp32, fp16, bf16; a bias has it too */
    int shift_a, shift_b;
    int b_each, scales_each; /* zero points of the right side, scales: one for each column */
} product_bytes_zeros;

/* Any product of bytes, element by element as it lies. Where no zero points are told, `zero_a` and `zero_b` are. */
typedef struct product_bytes_any {
    int64_t m, n, k, batch;
    int64_t a_row, a_k, a_batch, b_col, b_k, b_batch, c_row, c_batch; /* steps */
    int signed_a, signed_b, zero_a, zero_b;
    int bias_row, bias_col; /* steps of the bias */
    int quantised;          /* the sums go through `finish`, with a bias of int32; else as of product_bytes_zeros */
    int type, b_each, scales_each;
    product_bytes_finish finish;
} product_bytes_any;

PRODUCT_BYTES_FN int32_t product_bytes_zero(const void *zeros, int64_t at, int shift) {
    if (!zeros) return -shift;
    return shift ? ((const uint8_t *)zeros)[at] - shift : ((const int8_t *)zeros)[at];
}

PRODUCT_BYTES_FN int32_t product_bytes_corrected(int32_t sum, int32_t a, int32_t b, int32_t of_x, int32_t of_w,
                                                 int64_t k) {
    return (int32_t)((uint32_t)sum - (uint32_t)a * (uint32_t)of_w - (uint32_t)b * (uint32_t)of_x +
                     (uint32_t)k * (uint32_t)(a * b));
}

PRODUCT_BYTES_FN uint8_t product_bytes_shifted(uint8_t x, int flip) { return (uint8_t)(x ^ (flip ? 0x80 : 0)); }

/* Sums wrap around, as the library's do. */
PRODUCT_BYTES_FN float product_bytes_value(const product_bytes_finish *p, int32_t sum, int32_t bias) {
    const float x = (float)(int32_t)((uint32_t)sum + (uint32_t)bias) * p->factor;
    return fminf(fmaxf(x < 0 ? x * p->slope : x, p->low), p->high);
}

PRODUCT_BYTES_FN uint8_t product_bytes_rounded(const product_bytes_finish *p, float y) {
    return (uint8_t)((int)rintf(y) + p->zero);
}

#ifdef __cplusplus
extern "C" {
#endif

/* Each enqueues, and returns 0 or a cudaError_t. `to` begins at 16 bytes. */
int product_bytes_input_launch(const product_bytes_input *p, const void *from, void *to, void *stream);
/* `sums` (int32) begin at 16 bytes; bias: one int32 for each column, or NULL. fp32 may lie where its sums did, if its
 * rows are as long. Faster where everything begins at 16 bytes and columns are multiples of 4. */
int product_bytes_finish_launch(const product_bytes_finish *p, const void *sums, const void *bias, void *to,
                                void *stream);

/* Sums of the numbers of each row of an int8 matrix: columns and ld in multiples of 16, from 16 bytes on. */
int product_bytes_sums_launch(int64_t rows, int64_t cols, int64_t ld, const void *from, void *to, void *stream);
/* `of_x` by row and `of_w` by column as product_bytes_sums_launch made them, NULL where nothing depends on them; zeros,
 * scales (fp32, for floats alone) and bias, NULL where there are none. `to` may lie where the sums did, if numbers are
 * as long and rows too. */
int product_bytes_zeros_launch(const product_bytes_zeros *p, const void *sums, const void *of_x, const void *of_w,
                               const void *a_zero, const void *b_zero, const void *scales, const void *bias, void *to,
                               void *stream);
int product_bytes_any_launch(const product_bytes_any *p, const void *a, const void *b, const void *a_zero,
                             const void *b_zero, const void *scales, const void *bias, void *to, void *stream);

/* ---- convolutions of bytes in any mixture by a plain kernel: a thread for each output ---- */

enum { CONV_BYTES_AXES = 3 }; /* depth, height, width; what there is not is 1 */

typedef struct conv_bytes_axis {
    int64_t in, out, kernel, stride, dilation, begin; /* begin: padding before */
} conv_bytes_axis;

/* Sums of (x - zero_in) (w - zero_weight), and 0 where a window reaches beyond the input. As int32 they are the output;
 * quantised they go through `finish`, with a bias (int32) for each output channel. */
typedef struct conv_bytes {
    conv_bytes_axis axes[CONV_BYTES_AXES];
    int64_t images, group, cin, cout; /* channels of all groups */
    int last;                         /* channels are the last dimension */
    /* Element (image, channel, place) at image * n + channel * c + place * step. */
    int64_t in_n, in_c, in_step, out_n, out_c, out_step;
    /* Of a group: element (output channel, input channel, tap) at group * w_g + output * w_o + input * w_i + tap. */
    int64_t w_g, w_o, w_i;
    int signed_in, signed_weight, zero_in, zero_weight, quantised;
    int type; /* of the output: int32, or quantised int8, uint8, fp32 */
    product_bytes_finish finish;
} conv_bytes;

/* Enqueues, and returns 0 or a cudaError_t. bias NULL: none. */
int conv_bytes_launch(const conv_bytes *c, const void *input, const void *weight, const void *bias, void *output,
                      void *stream);

#ifdef __cplusplus
}
#endif
