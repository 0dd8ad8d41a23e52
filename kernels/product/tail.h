/* The epilogue of a product or a convolution in a pass of its own: bias, residual, activation, in place. For libraries
 * without a fused kernel. Self-contained: nothing of the program is needed to use it. */
#pragma once

#include "kernels/pass/activate.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types, numbered as in ONNX. */
enum { TAIL_FP32 = 1, TAIL_FP16 = 10, TAIL_BF16 = 16 };

/* The bias of element k is number k / step % channels: of columns step is 1; of rows it is what a row has; a matrix has
 * as many channels as there are elements. Everything is of one type, and is computed in fp32. */
typedef struct tail {
    int64_t elements, step, channels;
    int type;
    float factor; /* of the bias */
    int function; /* ACTIVATE_… */
    float alpha, beta;
} tail;

/* Enqueues; bias and residual may be NULL. 0 or a cudaError_t. Faster where everything begins at 16 bytes. */
int tail_launch(const tail *t, void *data, const void *bias, const void *residual, void *stream);

#ifdef __cplusplus
}
#endif
