/* Right crops on the device; for all else see kernels/reference/whole.h. */
#pragma once

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct whole_crop_problem {
    const void *input, *rois;
    const int32_t *batches;
    uint32_t type; /* of input and rois */
    int nearest;
    int64_t count, channels, in[2], out[2];
    double outside;
} whole_crop_problem;

cudaError_t whole_crop(const whole_crop_problem *p, double *want, float *spread, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
