/* Products of bytes in any mixture and layout by an own kernel, with zero points, scales and requantising: the baseline
 * where cublaslt_quantised does not apply, such as products of two activations. */
#include "scout/cuda/own/own_gemm_quantised.h"

struct scout_plan {
    product_bytes_any any;
    int bias, a_zero, b_zero, scales; /* their tensors; -1: none */
};

static bool is_byte(uint32_t type) { return type == SCOUT_INT8 || type == SCOUT_UINT8; }

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    static const char *const forms[] = {"n", "m", "scalar", "full"};
    const gemm_problem p = gemm_problem_of(op);
    const int bias = op_tensor(op, "bias");
    bool known = !p.bias;
    (void)device;
    if (!is_byte(p.type_a) || !is_byte(p.type_b))
        return scout_say(why, SCOUT_NO, "type", "multiplies bytes with bytes");
    if (p.residual >= 0) return scout_say(why, SCOUT_NO, "epilogue", "adds no residual to products of bytes");
    for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++)
        known = known || (bias >= 0 && strcmp(forms[k], p.bias) == 0);
    if (!known || (bias >= 0 && p.quant.is && op->tensors[bias].type != SCOUT_INT32))
        return scout_say(why, SCOUT_NO, "epilogue", "adds no bias of this kind");
    if (p.quant.is ? !requantize_activation(&p.activation) : p.activation.function != ACTIVATION_PLAIN)
        return scout_say(why, SCOUT_NO, "epilogue", "no such activation");
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    const gemm_problem p = gemm_problem_of(op);
    (void)device, (void)values, (void)needs, (void)why;
    const bool by_row = p.bias && (p.bias[0] == 'm' || p.bias[0] == 'f'),
               by_col = p.bias && (p.bias[0] == 'n' || p.bias[0] == 'f');
    plan->any = (product_bytes_any){.m = p.m,
                                    .n = p.n,
                                    .k = p.k,
                                    .batch = p.batch,
                                    .a_row = p.trans_a ? 1 : p.lda,
                                    .a_k = p.trans_a ? p.lda : 1,
                                    .a_batch = p.stride_a,
                                    .b_col = p.trans_b ? p.ldb : 1,
                                    .b_k = p.trans_b ? 1 : p.ldb,
                                    .b_batch = p.stride_b,
                                    .c_row = p.ldc,
                                    .c_batch = p.stride_c,
                                    .signed_a = p.type_a == SCOUT_INT8,
                                    .signed_b = p.type_b == SCOUT_INT8,
                                    .zero_a = p.quant.zero_in,
                                    .zero_b = p.quant.zero_weight,
                                    .bias_row = by_row ? by_col ? (int)p.n : 1 : 0,
                                    .bias_col = by_col,
                                    .quantised = p.quant.is,
                                    .type = (int)p.type_c,
                                    .b_each = p.b_zero_each,
                                    .scales_each = p.scales_each,
                                    .finish = own_gemm_quantised_finish(&p)};
    plan->bias = op_tensor(op, "bias");
    plan->a_zero = p.a_zero, plan->b_zero = p.b_zero, plan->scales = p.scales;
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    void *const *const t = args->tensors;
    const int error =
        product_bytes_any_launch(&plan->any, t[GEMM_A], t[GEMM_B], plan->a_zero >= 0 ? t[plan->a_zero] : NULL,
                                 plan->b_zero >= 0 ? t[plan->b_zero] : NULL, plan->scales >= 0 ? t[plan->scales] : NULL,
                                 plan->bias >= 0 ? t[plan->bias] : NULL, t[GEMM_C], args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching gemm_bytes", why) : SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\":\"product_bytes\",\"tile\":\"16x16x16\",\"quantised\":%d}",
                    plan->any.quantised);
}

const scout_candidate own_gemm_bytes = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .flags = SCOUT_BASELINE | SCOUT_OWN, /* the baseline where no library has one */
    .priority = 5,
    .name = "gemm_bytes",
    .about = "own product of int8 and uint8 in any mixture and layout, zero points, scales and requantising fused",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"int8", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
