/* Post-operations: which of the library's functions an activation is. */
#include "scout/cpu/onednn/cpu_onednn_plan.h"

static dnnl_status_t append_activation(dnnl_post_ops_t ops, const op_activation *a) {
    static const dnnl_alg_kind_t algorithms[ACTIVATION_UNKNOWN] = {
        [ACTIVATION_RELU] = dnnl_eltwise_relu,           [ACTIVATION_CLIP] = dnnl_eltwise_clip,
        [ACTIVATION_HARDSWISH] = dnnl_eltwise_hardswish, [ACTIVATION_SIGMOID] = dnnl_eltwise_logistic,
        [ACTIVATION_TANH] = dnnl_eltwise_tanh,           [ACTIVATION_SILU] = dnnl_eltwise_swish,
        [ACTIVATION_GELU] = dnnl_eltwise_gelu_erf,       [ACTIVATION_GELU_TANH] = dnnl_eltwise_gelu_tanh};
    const float alpha = (float)a->alpha, beta = (float)a->beta;
    if (a->function == ACTIVATION_PLAIN) return dnnl_success;
    if (a->function != ACTIVATION_HARDSIGMOID)
        return cpu_onednn_append_eltwise(ops, algorithms[a->function], alpha, beta);
    const dnnl_status_t status = cpu_onednn_append_eltwise(ops, dnnl_eltwise_linear, alpha, beta);
    return status == dnnl_success ? cpu_onednn_append_eltwise(ops, dnnl_eltwise_clip, 0, 1) : status;
}

dnnl_status_t cpu_onednn_post(const cpu_onednn *l, dnnl_primitive_attr_t attr, double factor,
                              const cpu_onednn_md *residual, const op_activation *a) {
    const bool added = residual && residual->there;
    dnnl_post_ops_t ops = NULL;
    if (factor == 1 && !added && a->function == ACTIVATION_PLAIN) return dnnl_success;
    dnnl_status_t status = l->dnnl_post_ops_create(&ops);
    if (status == dnnl_success && factor != 1)
        status = cpu_onednn_append_eltwise(ops, dnnl_eltwise_linear, (float)factor, 0);
    if (status == dnnl_success && added) status = cpu_onednn_append_binary(ops, dnnl_binary_add, residual);
    if (status == dnnl_success) status = append_activation(ops, a);
    if (status == dnnl_success) status = l->dnnl_primitive_attr_set_post_ops(attr, ops);
    if (ops) l->dnnl_post_ops_destroy(ops);
    return status;
}

dnnl_status_t cpu_onednn_post_quantise(const cpu_onednn *l, dnnl_primitive_attr_t attr, const requantize *quant) {
    if (!quant->is) return dnnl_success;
#if DNNL_VERSION_MAJOR >= 3
    (void)l, (void)attr;
    return dnnl_unimplemented;
#else
    const float factor = (float)quant->factor;
    const int32_t zero_in = quant->zero_in, zero_out = quant->zero_out;
    dnnl_status_t status = l->dnnl_primitive_attr_set_output_scales(attr, 1, 0, &factor);
    if (status == dnnl_success && zero_in)
        status = l->dnnl_primitive_attr_set_zero_points(attr, DNNL_ARG_SRC, 1, 0, &zero_in);
    if (status == dnnl_success && zero_out)
        status = l->dnnl_primitive_attr_set_zero_points(attr, DNNL_ARG_DST, 1, 0, &zero_out);
    return status;
#endif
}

/* One linear function alone: with two of them, version 2.6 takes the numbers of the first for both. */
dnnl_status_t cpu_onednn_post_sum(const cpu_onednn *l, dnnl_primitive_attr_t attr, const requantize *quant, int zeros,
                                  const op_activation *a) {
    const double shift = quant->zero_out - quant->factor * zeros * quant->zero_in;
    const bool linear = quant->factor != 1 || shift != 0, clips = a->function != ACTIVATION_PLAIN;
    dnnl_post_ops_t ops = NULL;
    double least, most;
    if (!quant->is || (!linear && !clips)) return dnnl_success;
    requantize_bounds(quant, a, &least, &most);
    dnnl_status_t status = l->dnnl_post_ops_create(&ops);
    if (status == dnnl_success && linear)
        status = cpu_onednn_append_eltwise(ops, dnnl_eltwise_linear, (float)quant->factor, (float)shift);
    if (status == dnnl_success && clips)
        status = cpu_onednn_append_eltwise(ops, dnnl_eltwise_clip, (float)(least + quant->zero_out),
                                           (float)(most + quant->zero_out));
    if (status == dnnl_success) status = l->dnnl_primitive_attr_set_post_ops(attr, ops);
    if (ops) l->dnnl_post_ops_destroy(ops);
    return status;
}
