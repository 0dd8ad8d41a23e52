/* The reference of rotary embeddings on this device. */
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/reference/cuda_whole.h"

#include "kernels/reference/whole.h"
#include "scout/cuda/device/cuda_device.h"

static scout_answer compute(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output,
                            double *want, float *spread, scout_why *why) {
    const whole_rotary_problem w = {rotary_problem_of(op), tensors[ROTARY_X], tensors[ROTARY_COS], tensors[ROTARY_SIN]};
    (void)output;
    return cuda_device_answer(whole_rotary(&w, want, spread, device->stream), "computing the reference of a rotation",
                              why);
}

CUDA_WHOLE_REFERENCE(cuda_whole_rotary, SCOUT_ROTARY, compute);
