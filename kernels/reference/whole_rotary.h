/* The reference of rotary embeddings (kernels/reference/whole_rotary.cu). Pointers are of the device; all is enqueued.
 */
#ifndef KERNELS_REFERENCE_WHOLE_ROTARY_H
#define KERNELS_REFERENCE_WHOLE_ROTARY_H

#include "scout/op/rotary.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct whole_rotary_problem {
    rotary_problem p;
    const void *x, *cosine, *sine;
} whole_rotary_problem;

/* Every element of y. */
cudaError_t whole_rotary(const whole_rotary_problem *problem, double *want, float *spread, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
