/* What quantised numbers, and those that come back from them, should be in fp64: every element, into memory of the
 * caller. Enqueues only. */
#ifndef KERNELS_REFERENCE_WHOLE_QUANTIZE_H
#define KERNELS_REFERENCE_WHOLE_QUANTIZE_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct whole_quantize_problem {
    const void *x, *scales, *zero_points;     /* zero_points NULL: none */
    uint32_t from, to, scale_type, zero_type; /* as in scout/plugin.h */
    int quantizes;                            /* else it goes back */
    int64_t outer, channels, inner;           /* channels: how many scales there are */
    int found; /* of dynamic quantising: 1 to 3, its output y, scale or zero point; scales and zero points are none then
                */
} whole_quantize_problem;

cudaError_t whole_quantize(const whole_quantize_problem *p, double *want, float *spread, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
