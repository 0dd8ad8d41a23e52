/* What is done to the sums of a convolution behind it: bias, residual, activation, in place. Self-contained: nothing of
 * the program is needed to use it. */
#ifndef KERNELS_CONV_TAIL_H
#define KERNELS_CONV_TAIL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CONV_TAIL_PLAIN,
    CONV_TAIL_RELU,        /* x < 0: alpha * x */
    CONV_TAIL_CLIP,        /* from alpha to beta */
    CONV_TAIL_HARDSIGMOID, /* alpha * x + beta, from 0 to 1 */
    CONV_TAIL_HARDSWISH,
    CONV_TAIL_SIGMOID,
    CONV_TAIL_TANH,
    CONV_TAIL_SILU
};

/* fp32. Element k belongs to channel k / step % channels (nhwc: step is 1). */
typedef struct conv_tail {
    int64_t elements, step, channels;
    int function;
    float alpha, beta;
} conv_tail;

/* Enqueues; bias and residual may be NULL. 0 or a cudaError_t. */
int conv_tail_launch(const conv_tail *tail, float *data, const float *bias, const float *residual, void *stream);

#ifdef __cplusplus
}
#endif

#endif
