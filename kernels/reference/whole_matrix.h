/* Right determinants and inverses on the device; for all else see kernels/reference/whole.h. */
#pragma once

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct whole_matrix_problem {
    const void *x;
    int inverts;
    uint32_t type;
    int64_t count, n; /* n: at most 64 */
} whole_matrix_problem;

cudaError_t whole_matrix(const whole_matrix_problem *p, double *want, float *spread, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
