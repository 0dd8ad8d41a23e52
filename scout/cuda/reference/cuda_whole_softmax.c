/* The reference of softmax on this device. */
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/reference/cuda_whole.h"

#include "kernels/reference/whole.h"
#include "scout/cuda/device/cuda_device.h"

static scout_answer compute(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output,
                            double *want, float *spread, scout_why *why) {
    const softmax_problem p = softmax_problem_of(op);
    const whole_softmax_problem w = {.p = p,
                                     .x = tensors[SOFTMAX_X],
                                     .bias = p.bias < 0 ? NULL : tensors[p.bias],
                                     .type = op->input,
                                     .output = op->tensors[output].type};
    return cuda_device_answer(whole_softmax(&w, want, spread, device->stream), "computing the reference of a softmax",
                              why);
}

CUDA_WHOLE_REFERENCE(cuda_whole_softmax, SCOUT_SOFTMAX, compute);
