/* What rows of a table should be, in fp64: every element, into memory of the caller. Enqueues only. */
#ifndef KERNELS_REFERENCE_WHOLE_EMBEDDING_H
#define KERNELS_REFERENCE_WHOLE_EMBEDDING_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct whole_embedding_problem {
    const void *table, *indices;
    uint32_t type, index_type; /* as in scout/plugin.h; int32 or int64 */
    int64_t rows, cols;        /* of the output */
} whole_embedding_problem;

cudaError_t whole_embedding(const whole_embedding_problem *p, double *want, float *spread, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
