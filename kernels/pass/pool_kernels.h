/* Pools on the GPU: maximum and average over windows of one to three dimensions. Self-contained: nothing of the program
 * is needed to use them.
 *
 *     pool_shape shape = {…};
 *     pool_config config = {.lanes = 1, .vector = 1};
 *     if (!pool_direct_fits(&shape, &config)) …
 *     pool_direct_launch(&shape, &config, input, output, stream);
 *
 * A launch only enqueues, allocates nothing, needs no workspace, and can be captured in a graph. `stream` is a
 * cudaStream_t. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types, numbered as in ONNX. */
enum { POOL_FP32 = 1, POOL_UINT8 = 2, POOL_INT8 = 3, POOL_FP16 = 10, POOL_BF16 = 16 };

enum { POOL_AXES = 3, POOL_LARGEST = 1 << 28, POOL_MOST_LANES = 32 };

/* Each at most POOL_LARGEST; every window has a place inside of the input. */
typedef struct pool_axis {
    int in, out, kernel, stride, dilation;
    int begin, end; /* padding */
} pool_axis;

/* An average of bytes that becomes bytes again (`is` 1): of x - zero it is multiplied by the factor, kept within least
 * and most, rounded, and zero added. Of all else everything is 0. */
typedef struct pool_quant {
    int is, zero;
    float factor, least, most;
} pool_quant;

typedef struct pool_shape {
    int64_t n, channels;
    pool_axis axes[POOL_AXES]; /* depth, height, width */
    int last;                  /* 1: channels are the last dimension (nhwc), else nchw; densely packed */
    int type;
    int average; /* else the maximum */
    int padded;  /* an average counts padding in */
    pool_quant quant;
} pool_shape;

typedef struct pool_config {
    int lanes;  /* 1, 8 or 32: threads that share a window */
    int vector; /* 1: nhwc, 16 bytes of channels at once, which must divide them all; else 0 */
} pool_config;

int pool_direct_fits(const pool_shape *shape, const pool_config *config);
/* 0 or a cudaError_t */
int pool_direct_launch(const pool_shape *shape, const pool_config *config, const void *in, void *out, void *stream);

#ifdef __cplusplus
}
#endif
