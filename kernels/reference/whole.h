/* Comparing whole outputs with what is right, and the references that compute it (kernels/reference/whole_*.cu): one
 * function a kind, each with a description of its own. All memory is the caller's; everything is enqueued on the
 * stream. */
#ifndef KERNELS_REFERENCE_WHOLE_H
#define KERNELS_REFERENCE_WHOLE_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct whole_found {
    unsigned long long wrong;
    unsigned long long at; /* of the worst element */
    double worst;          /* |got - want| / (|want| + spread); infinite for what is not a number */
    double got, want;
} whole_found;

/* Every element: `found` (on the device) is cleared before. Types as in scout/plugin.h. */
cudaError_t whole_compare(uint32_t type, const void *output, const double *want, const float *spread, uint64_t count,
                          double tolerance, whole_found *found, int multiprocessors, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
