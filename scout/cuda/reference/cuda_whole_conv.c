/* The reference of convolutions: an operation as kernels/reference/whole.h describes it. */
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/reference/cuda_whole.h"

#include "scout/cuda/device/cuda_device.h"
#include "scout/cuda/reference/cuda_whole_conv.h"
#include "scout/op/conv.h"

static whole_conv_problem problem_of(const scout_op *op, const conv_problem *p, void *const *tensors) {
    whole_conv_problem w = {.input = tensors[CONV_INPUT],
                            .weight = tensors[CONV_WEIGHT],
                            .bias = p->bias >= 0 ? tensors[p->bias] : NULL,
                            .residual = p->residual >= 0 ? tensors[p->residual] : NULL,
                            .type_in = p->type_in,
                            .type_weight = p->type_weight,
                            .type_out = p->type_out,
                            .type_bias = p->bias >= 0 ? op->tensors[p->bias].type : p->type_out,
                            .transposed = p->transposed,
                            .last = p->w.last,
                            .images = p->n,
                            .group = p->group,
                            .cin = p->cin,
                            .cout = p->cout,
                            .in_n = p->in_n,
                            .in_c = p->in_c,
                            .in_step = p->in_step,
                            .out_n = p->out_n,
                            .out_c = p->out_c,
                            .out_step = p->out_step,
                            .w_g = p->w_g,
                            .w_o = p->w_o,
                            .w_i = p->w_i};
    cuda_whole_conv_behind(&w, &p->activation, &p->quant);
    for (int k = 0; k < WHOLE_CONV_AXES; k++) {
        const window_axis *a = &p->w.axes[k];
        w.axes[k] = (whole_conv_axis){a->in, a->out, a->kernel, a->stride, a->dilation, a->begin};
    }
    return w;
}

static scout_answer compute(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output,
                            double *want, float *spread, scout_why *why) {
    const conv_problem p = conv_problem_of(op);
    (void)output;
    if (p.activation.function == ACTIVATION_UNKNOWN)
        return scout_say(why, SCOUT_NO, "epilogue", "no reference for this activation");
    if ((double)p.n * (double)p.cout * (double)window_out(&p.w) * (double)conv_depth(&p) > cuda_whole_conv_most_macs)
        return scout_say(why, SCOUT_NO, "shape", "this convolution is too large to be checked in fp64");
    const whole_conv_problem w = problem_of(op, &p, tensors);
    return cuda_device_answer(whole_conv(&w, want, spread, device->stream), "computing the reference", why);
}

CUDA_WHOLE_REFERENCE(cuda_whole_conv, SCOUT_CONV, compute);
