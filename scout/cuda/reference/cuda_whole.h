/* The references of every kind but products, and of quantised products: each element of each output is computed in fp64
 * on the device and compared with the candidate's. A kind has one function. */
#pragma once

#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/plugin.h"

/* Enqueues on the device's stream what fills want and spread (both on the device) with as many elements as
 * op->tensors[output] has, densely in the order of its storage (its strides). SCOUT_NO: there is no reference for this.
 */
typedef scout_answer cuda_whole_compute(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output,
                                        double *want, float *spread, scout_why *why);

scout_answer cuda_whole_begin(cuda_whole_compute *compute, scout_device *device, const scout_op *op,
                              void *const *tensors, scout_check **check, scout_why *why);
scout_answer cuda_whole_compare(scout_check *check, const void *output, double tolerance, scout_verdict *verdict,
                                scout_why *why);
scout_answer cuda_whole_compare_at(scout_check *check, uint32_t tensor, const void *output, double tolerance,
                                   scout_verdict *verdict, scout_why *why);
void cuda_whole_end(scout_check *check);

/* Of quantised products; cuda_device_check.c has their reference, and that of all others. */
scout_answer cuda_whole_gemm(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output,
                             double *want, float *spread, scout_why *why);

/* A reference of that name, of its kind, by its function. */
#define CUDA_WHOLE_REFERENCE(name_, kind_, compute_)                                                                   \
    static scout_answer name_##_begin(scout_device *device, const scout_op *op, void *const *tensors, uint64_t seed,   \
                                      scout_check **check, scout_why *why) {                                           \
        (void)seed;                                                                                                    \
        return cuda_whole_begin(compute_, device, op, tensors, check, why);                                            \
    }                                                                                                                  \
    const scout_reference name_ = {.size = sizeof(scout_reference),                                                    \
                                   .kind = kind_,                                                                      \
                                   .begin = name_##_begin,                                                             \
                                   .compare = cuda_whole_compare,                                                      \
                                   .end = cuda_whole_end,                                                              \
                                   .compare_at = cuda_whole_compare_at}
