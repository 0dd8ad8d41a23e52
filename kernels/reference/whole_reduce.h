/* The reference of reductions (kernels/reference/whole_reduce.cu). Pointers are of the device; all is enqueued on the
 * stream. */
#ifndef KERNELS_REFERENCE_WHOLE_REDUCE_H
#define KERNELS_REFERENCE_WHOLE_REDUCE_H

#include "scout/op/reduce.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct whole_reduce_problem {
    reduce_problem p;
    reduce_id id;
    const void *x;
    uint32_t type, output;
    int wholes; /* computed in integers of 64 bits */
} whole_reduce_problem;

/* Every output, densely. */
cudaError_t whole_reduce(const whole_reduce_problem *problem, double *want, float *spread, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
