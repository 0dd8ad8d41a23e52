/* The reference of pools: an operation as kernels/reference/whole.h describes it. */
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/reference/cuda_whole.h"

#include "kernels/reference/whole.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/op/pool.h"

static scout_answer compute(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output,
                            double *want, float *spread, scout_why *why) {
    const pool_problem p = pool_problem_of(op);
    whole_pool_problem w = {.input = tensors[POOL_INPUT],
                            .type = p.type,
                            .average = p.average,
                            .padded = p.padded,
                            .last = p.w.last,
                            .quantised = p.quant.is,
                            .zero = p.quant.zero_in,
                            .factor = p.quant.factor,
                            .images = p.n,
                            .channels = p.channels,
                            .in_n = p.in_n,
                            .in_c = p.in_c,
                            .in_step = p.in_step,
                            .out_n = p.out_n,
                            .out_c = p.out_c,
                            .out_step = p.out_step};
    (void)output;
    if (p.quant.is) requantize_bounds(&p.quant, &p.activation, &w.least, &w.most);
    for (int k = 0; k < WHOLE_POOL_AXES; k++) {
        const window_axis *a = &p.w.axes[k];
        w.axes[k] = (whole_pool_axis){a->in, a->out, a->kernel, a->stride, a->dilation, a->begin, a->end};
    }
    return cuda_device_answer(whole_pool(&w, want, spread, device->stream), "computing the reference", why);
}

CUDA_WHOLE_REFERENCE(cuda_whole_pool, SCOUT_POOL, compute);
