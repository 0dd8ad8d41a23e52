/* The reference of softmax (kernels/reference/whole_softmax.cu). Pointers are of the device; all is enqueued on the
 * stream. */
#ifndef KERNELS_REFERENCE_WHOLE_SOFTMAX_H
#define KERNELS_REFERENCE_WHOLE_SOFTMAX_H

#include "scout/op/softmax.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct whole_softmax_problem {
    softmax_problem p;
    const void *x, *bias; /* bias NULL: none */
    uint32_t type;        /* of both */
    uint32_t output;
} whole_softmax_problem;

/* Every element, as densely as x lies. */
cudaError_t whole_softmax(const whole_softmax_problem *problem, double *want, float *spread, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
