/* Convolutions of bytes by an own kernel: the baseline where cuDNN has no engine, such as uint8 inputs with int8
 * weights (its convolution has one type for both). */
#include "kernels/product/product_bytes.h"
#include "scout/cuda/own/own_gemm_quantised.h"
#include "scout/op/conv.h"

struct scout_plan {
    conv_bytes conv;
    int bias; /* its tensor; -1: none */
};

static int is_byte(uint32_t type) { return type == SCOUT_INT8 || type == SCOUT_UINT8; }

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const conv_problem p = conv_problem_of(op);
    (void)device;
    if (!is_byte(p.type_in) || !is_byte(p.type_weight)) return scout_say(why, SCOUT_NO, "type", "convolves bytes");
    if (p.transposed) return scout_say(why, SCOUT_NO, "feature", "transposed convolutions are not supported");
    if (p.residual >= 0) return scout_say(why, SCOUT_NO, "epilogue", "adds no residual to sums of bytes");
    if (p.quant.is && p.type_out != SCOUT_FP32 && !is_byte(p.type_out))
        return scout_say(why, SCOUT_NO, "type", "quantised convolutions come out as int8, uint8 or fp32");
    if (!p.quant.is && (p.type_out != SCOUT_INT32 || p.bias >= 0))
        return scout_say(why, SCOUT_NO, "type", "sums of bytes come out as int32, without a bias");
    if (p.quant.is ? !requantize_activation(&p.activation) : p.activation.function != ACTIVATION_PLAIN)
        return scout_say(why, SCOUT_NO, "epilogue", "no such activation");
    return SCOUT_OK;
}

/* The epilogue of a convolution is that of a product. */
static product_bytes_finish finish_of(const conv_problem *p) {
    const gemm_problem product = {.type_c = p->type_out, .activation = p->activation, .quant = p->quant};
    return own_gemm_quantised_finish(&product);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    const conv_problem p = conv_problem_of(op);
    scout_plan *const plan = *out;
    (void)device, (void)values, (void)needs, (void)why;
    plan->bias = p.bias;
    plan->conv = (conv_bytes){.images = p.n,
                              .group = p.group,
                              .cin = p.cin,
                              .cout = p.cout,
                              .last = p.w.last,
                              .in_n = p.in_n,
                              .in_c = p.in_c,
                              .in_step = p.in_step,
                              .out_n = p.out_n,
                              .out_c = p.out_c,
                              .out_step = p.out_step,
                              .w_g = p.w_g,
                              .w_o = p.w_o,
                              .w_i = p.w_i,
                              .signed_in = p.type_in == SCOUT_INT8,
                              .signed_weight = p.type_weight == SCOUT_INT8,
                              .zero_in = p.quant.zero_in,
                              .zero_weight = p.quant.zero_weight,
                              .quantised = p.quant.is,
                              .type = (int)p.type_out,
                              .finish = finish_of(&p)};
    for (int k = 0; k < CONV_BYTES_AXES; k++) {
        const window_axis *const a = &p.w.axes[k];
        plan->conv.axes[k] = (conv_bytes_axis){a->in, a->out, a->kernel, a->stride, a->dilation, a->begin};
    }
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    void *const *const t = args->tensors;
    const int error = conv_bytes_launch(&plan->conv, t[CONV_INPUT], t[CONV_WEIGHT],
                                        plan->bias >= 0 ? t[plan->bias] : NULL, t[CONV_OUTPUT], args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching conv_bytes", why) : SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\":\"conv_bytes\",\"quantised\":%d}", plan->conv.quantised);
}

const scout_candidate own_conv_bytes = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_CONV,
    .flags = SCOUT_BASELINE | SCOUT_OWN, /* the baseline where no library has one */
    .priority = 5,
    .name = "conv_bytes",
    .about = "own convolution of int8 and uint8 in any mixture, requantising fused, an output a thread",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"int8", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
