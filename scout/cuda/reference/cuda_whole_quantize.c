/* The reference of quantising: an operation as kernels/reference/whole.h describes it. */
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/reference/cuda_whole.h"

#include "kernels/reference/whole.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/op/quantize.h"

static scout_answer compute(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output,
                            double *want, float *spread, scout_why *why) {
    const quantize_problem p = quantize_problem_of(op);
    whole_quantize_problem w = {.x = tensors[0],
                                .scales = tensors[p.scales],
                                .from = p.from,
                                .to = p.to,
                                .scale_type = p.scale_type,
                                .quantizes = p.quantizes,
                                .outer = p.outer,
                                .channels = p.channels,
                                .inner = p.inner};
    if (p.dynamic) w.found = (int)output, w.scales = NULL;
    if (p.zero_points >= 0 && !p.dynamic)
        w.zero_points = tensors[p.zero_points], w.zero_type = op->tensors[p.zero_points].type;
    return cuda_device_answer(whole_quantize(&w, want, spread, device->stream), "computing the reference", why);
}

CUDA_WHOLE_REFERENCE(cuda_whole_quantize, SCOUT_QUANTIZE, compute);
