/* The references of convolutions, and of quantised products, as rounding rules out projections, and of those with zero
 * points and scales: each is a 1x1 convolution with a row for an image. All other products have samples and projections
 * (cuda_device_check.c). */
#include "scout/cuda/reference/cuda_whole.h"

#include "kernels/reference/whole.h"
#include "scout/cuda/own/own_activate.h"
#include "scout/op/activation.h"
#include "scout/op/conv.h"
#include "scout/op/gemm.h"
#include "scout/op/requantize.h"

/* Some tens of seconds where fp64 is quick. */
static const double most_macs = 1e13;

static void set_epilogue(whole_conv_problem *w, const op_activation *a, const requantize *q) {
    w->activation = own_activate(a->function);
    w->alpha = a->alpha, w->beta = a->beta, w->steepest = activation_steepest(a);
    w->quantised = q->is, w->rounds = q->rounds, w->factor = q->factor;
    w->zero_in = q->zero_in, w->zero_weight = q->zero_weight, w->zero_out = q->zero_out;
    w->least = q->least, w->most = q->most;
}

static whole_conv_problem of_conv(const scout_op *op, const conv_problem *p, void *const *tensors) {
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
    set_epilogue(&w, &p->activation, &p->quant);
    if (p->scales >= 0) w.scales = tensors[p->scales], w.type_scales = op->tensors[p->scales].type, w.scales_each = 1;
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
    if ((double)p.n * (double)p.cout * (double)window_out(&p.w) * (double)conv_depth(&p) > most_macs)
        return scout_say(why, SCOUT_NO, "shape", "this convolution is too large to be checked in fp64");
    const whole_conv_problem w = of_conv(op, &p, tensors);
    return cuda_device_answer(whole_conv(&w, want, spread, device->stream), "computing the reference", why);
}

CUDA_WHOLE_REFERENCE(cuda_whole_conv, SCOUT_CONV, compute);

static whole_conv_problem of_gemm(const scout_op *op, const gemm_problem *p, void *const *tensors) {
    const int bias = op_tensor(op, "bias");
    whole_conv_problem w = {.input = tensors[GEMM_A],
                            .weight = tensors[GEMM_B],
                            .bias = bias >= 0 ? tensors[bias] : NULL,
                            .type_in = p->type_a,
                            .type_weight = p->type_b,
                            .type_out = p->type_c,
                            .type_bias = bias >= 0 ? op->tensors[bias].type : p->type_c,
                            .last = 1,
                            .images = p->m,
                            .group = 1,
                            .cin = p->k,
                            .cout = p->n,
                            .in_n = p->trans_a ? 1 : p->lda,
                            .in_c = p->trans_a ? p->lda : 1,
                            .out_n = p->ldc,
                            .out_c = 1,
                            .w_o = p->trans_b ? p->ldb : 1,
                            .w_i = p->trans_b ? 1 : p->ldb};
    set_epilogue(&w, &p->activation, &p->quant);
    if (p->a_zero >= 0) w.zeros_in = tensors[p->a_zero];
    if (p->b_zero >= 0) w.zeros_weight = tensors[p->b_zero], w.zeros_weight_each = p->b_zero_each;
    if (p->scales >= 0) w.scales = tensors[p->scales], w.type_scales = SCOUT_FP32, w.scales_each = p->scales_each;
    for (int k = 0; k < WHOLE_CONV_AXES; k++)
        w.axes[k] = (whole_conv_axis){.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
    return w;
}

scout_answer cuda_whole_gemm(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output,
                             double *want, float *spread, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    (void)output;
    if (!requantize_activation(&p.activation) || p.residual >= 0 || (p.bias && strcmp(p.bias, "n") != 0))
        return scout_say(why, SCOUT_NO, "epilogue", "no reference for this product's epilogue");
    if ((double)p.batch * (double)p.m * (double)p.n * (double)p.k > most_macs)
        return scout_say(why, SCOUT_NO, "shape", "this product is too large to be checked in fp64");
    whole_conv_problem w = of_gemm(op, &p, tensors);
    scout_answer answer = SCOUT_OK;
    for (int64_t k = 0; k < p.batch && answer == SCOUT_OK; k++) {
        w.input = (const uint8_t *)tensors[GEMM_A] + k * p.stride_a; /* both are bytes */
        w.weight = (const uint8_t *)tensors[GEMM_B] + k * p.stride_b;
        answer = cuda_device_answer(whole_conv(&w, want + k * p.stride_c, spread + k * p.stride_c, device->stream),
                                    "computing the reference", why);
    }
    return answer;
}
