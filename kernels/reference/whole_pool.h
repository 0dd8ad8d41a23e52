/* What a pool's output should be, in fp64: every element, into memory of the caller. Enqueues only. */
#ifndef KERNELS_REFERENCE_WHOLE_POOL_H
#define KERNELS_REFERENCE_WHOLE_POOL_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { WHOLE_POOL_AXES = 3 }; /* depth, height, width; what there is not is 1 */

typedef struct whole_pool_axis {
    int64_t in, out, kernel, stride, dilation, begin, end; /* begin, end: padding */
} whole_pool_axis;

typedef struct whole_pool_problem {
    const void *input;
    uint32_t type; /* as in scout/plugin.h */
    int average;   /* else the maximum */
    int padded;    /* an average counts padding in */
    int last;      /* channels are the last dimension, of input and output */
    int quantised; /* an average of bytes (scout/op/requantize.h), and what it is kept within before `zero` is added */
    double zero, factor, least, most;
    int64_t images, channels;
    whole_pool_axis axes[WHOLE_POOL_AXES];
    /* Element (image, channel, place) at image * n + channel * c + place * step. */
    int64_t in_n, in_c, in_step, out_n, out_c, out_step;
} whole_pool_problem;

/* want and spread are indexed as the output lies. */
cudaError_t whole_pool(const whole_pool_problem *p, double *want, float *spread, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
