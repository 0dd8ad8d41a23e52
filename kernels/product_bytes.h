/* What stands around a library's product of bytes (int8 times int8 into int32): its input as the library takes it, and
 * what becomes of its sums. Self-contained: nothing of the program is needed to use it. What is done to one number
 * stands here, for the kernels and for tests on machines without a GPU. */
#ifndef KERNELS_PRODUCT_BYTES_H
#define KERNELS_PRODUCT_BYTES_H

#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#define PRODUCT_BYTES_FN static __host__ __device__ __forceinline__
#else
#define PRODUCT_BYTES_FN static inline
#endif

/* Element types, numbered as in ONNX. */
enum { PRODUCT_BYTES_FP32 = 1, PRODUCT_BYTES_UINT8 = 2, PRODUCT_BYTES_INT8 = 3 };

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

#ifdef __cplusplus
}
#endif

#endif
