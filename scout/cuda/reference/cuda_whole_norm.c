/* The reference of norms on this device. */
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/reference/cuda_whole.h"

#include "kernels/reference/whole.h"
#include "scout/cuda/device/cuda_device.h"

static whole_norm_tensor tensor_of(const scout_op *op, void *const *tensors, int at) {
    return at < 0 ? (whole_norm_tensor){NULL, SCOUT_NONE} : (whole_norm_tensor){tensors[at], op->tensors[at].type};
}

static scout_answer compute(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output,
                            double *want, float *spread, scout_why *why) {
    const norm_problem p = norm_problem_of(op);
    if (p.form == NORM_NONE) return scout_say(why, SCOUT_NO, "feature", "no reference for this form of norm");
    const whole_norm_problem w = {.p = p,
                                  .x = tensor_of(op, tensors, NORM_X),
                                  .residual = tensor_of(op, tensors, p.residual),
                                  .input_bias = tensor_of(op, tensors, p.input_bias),
                                  .scale = tensor_of(op, tensors, p.scale),
                                  .bias = tensor_of(op, tensors, p.bias),
                                  .mean = tensor_of(op, tensors, p.mean),
                                  .variance = tensor_of(op, tensors, p.variance),
                                  .type = op->tensors[output].type};
    const cudaError_t error = (int)output == p.sum ? whole_norm_sum(&w, want, spread, device->stream)
                                                   : whole_norm(&w, want, spread, device->stream);
    return cuda_device_answer(error, "computing the reference of a norm", why);
}

CUDA_WHOLE_REFERENCE(cuda_whole_norm, SCOUT_NORM, compute);
