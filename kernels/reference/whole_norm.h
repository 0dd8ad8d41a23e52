/* The reference of norms (kernels/reference/whole_norm.cu). Pointers are of the device; everything is enqueued on the
 * stream. */
#ifndef KERNELS_REFERENCE_WHOLE_NORM_H
#define KERNELS_REFERENCE_WHOLE_NORM_H

#include "scout/op/norm.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct whole_norm_tensor {
    const void *data; /* NULL: the operation has none */
    uint32_t type;
} whole_norm_tensor;

typedef struct whole_norm_problem {
    norm_problem p;
    whole_norm_tensor x, residual, input_bias, scale, bias, mean, variance;
    uint32_t type; /* of the output */
} whole_norm_problem;

/* Every element of y, as densely as x lies. */
cudaError_t whole_norm(const whole_norm_problem *problem, double *want, float *spread, cudaStream_t stream);
/* Every element of x + residual + input_bias. */
cudaError_t whole_norm_sum(const whole_norm_problem *problem, double *want, float *spread, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
