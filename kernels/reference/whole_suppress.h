/* Boxes that are kept, on the device; for all else see kernels/reference/whole.h. */
#pragma once

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct whole_suppress_problem {
    const float *boxes, *scores;
    int64_t images, classes, count, most; /* count: of boxes */
    int centred;
    float overlap, threshold;
    unsigned char *gone; /* room for a flag of each score: its box is kept or given up */
} whole_suppress_problem;

/* want and spread: [images * classes * most, 3] */
cudaError_t whole_suppress(const whole_suppress_problem *p, double *want, float *spread, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
