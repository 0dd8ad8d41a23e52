/* Right random numbers on the device; for all else see kernels/reference/whole.h. */
#pragma once

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct whole_random_problem {
    int normal, flips; /* neither: uniform */
    const void *p;     /* probabilities, where it flips */
    uint32_t from, to; /* types; from: of p */
    int64_t count;
    double alpha, beta;
    uint64_t key;
} whole_random_problem;

cudaError_t whole_random(const whole_random_problem *p, double *want, float *spread, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
