/* What a recurrent layer's outputs should be, in fp64: every element, into memory of the caller. Enqueues only. */
#ifndef KERNELS_REFERENCE_WHOLE_RECURRENT_H
#define KERNELS_REFERENCE_WHOLE_RECURRENT_H

#include "kernels/pass/recurrent_kernels.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum whole_recurrent_output {
    WHOLE_RECURRENT_Y,
    WHOLE_RECURRENT_Y_H,
    WHOLE_RECURRENT_Y_C
} whole_recurrent_output;

enum { WHOLE_RECURRENT_STATES = 256 }; /* where its states begin in what it works in */

/* Bytes that it works in. */
uint64_t whole_recurrent_bytes(const recurrent_layer *p);
/* want and spread are indexed as the output lies; the outputs in `t` are not looked at. The first int of `room` is 1
 * afterwards where a spread was more than `most` times the number's size, or 1; else 0. */
cudaError_t whole_recurrent(const recurrent_layer *p, const recurrent_layer_tensors *t, whole_recurrent_output output,
                            double most, void *room, double *want, float *spread, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
