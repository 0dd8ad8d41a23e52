/* The primitives of oneDNN that candidates use, for both major versions. */
#include "scout/cpu/onednn/cpu_onednn.h"

static const cpu_onednn *library(void) { return cpu_onednn_get(NULL); } /* it is open wherever there are descriptors */

#if DNNL_VERSION_MAJOR >= 3

#define HANDLE(m) ((m)->md)

dnnl_status_t cpu_onednn_convolution(dnnl_primitive_desc_t *pd, bool transposed, const cpu_onednn_md *src,
                                     const cpu_onednn_md *weights, const cpu_onednn_md *bias, const cpu_onednn_md *dst,
                                     const cpu_onednn_window *w, const_dnnl_primitive_attr_t attr) {
    const_dnnl_memory_desc_t b = bias && bias->there ? bias->md : NULL;
    if (transposed)
        return library()->dnnl_deconvolution_forward_primitive_desc_create(
            pd, library()->engine, dnnl_forward_inference, dnnl_deconvolution_direct, src->md, weights->md, b, dst->md,
            w->strides, w->dilates, w->begin, w->end, attr);
    return library()->dnnl_convolution_forward_primitive_desc_create(
        pd, library()->engine, dnnl_forward_inference, dnnl_convolution_direct, src->md, weights->md, b, dst->md,
        w->strides, w->dilates, w->begin, w->end, attr);
}

dnnl_status_t cpu_onednn_pooling(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t how, const cpu_onednn_md *src,
                                 const cpu_onednn_md *dst, const cpu_onednn_window *w,
                                 const_dnnl_primitive_attr_t attr) {
    return library()->dnnl_pooling_forward_primitive_desc_create(pd, library()->engine, dnnl_forward_inference, how,
                                                                 src->md, dst->md, w->strides, w->kernel, w->dilates,
                                                                 w->begin, w->end, attr);
}

dnnl_status_t cpu_onednn_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t how, float alpha, float beta) {
    const bool hardswish = how == dnnl_eltwise_hardswish; /* has parameters since version 3 */
    return library()->dnnl_post_ops_append_eltwise(ops, how, hardswish ? 1.0F / 6 : alpha, hardswish ? 0.5F : beta);
}

dnnl_status_t cpu_onednn_softmax(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t algorithm, const cpu_onednn_md *src,
                                 const cpu_onednn_md *dst, int axis, const_dnnl_primitive_attr_t attr) {
    return library()->dnnl_softmax_forward_primitive_desc_create(pd, library()->engine, dnnl_forward_inference,
                                                                 algorithm, src->md, dst->md, axis, attr);
}

dnnl_status_t cpu_onednn_layer_norm(dnnl_primitive_desc_t *pd, const cpu_onednn_md *src, const cpu_onednn_md *dst,
                                    float epsilon, unsigned flags, const_dnnl_primitive_attr_t attr) {
    return library()->dnnl_layer_normalization_forward_primitive_desc_create(
        pd, library()->engine, dnnl_forward_inference, src->md, dst->md, NULL, epsilon, flags, attr);
}

dnnl_status_t cpu_onednn_batch_norm(dnnl_primitive_desc_t *pd, const cpu_onednn_md *src, const cpu_onednn_md *dst,
                                    float epsilon, unsigned flags, const_dnnl_primitive_attr_t attr) {
    return library()->dnnl_batch_normalization_forward_primitive_desc_create(
        pd, library()->engine, dnnl_forward_inference, src->md, dst->md, epsilon, flags, attr);
}

dnnl_status_t cpu_onednn_lrn(dnnl_primitive_desc_t *pd, const cpu_onednn_md *src, const cpu_onednn_md *dst,
                             int64_t size, float alpha, float beta, float k, const_dnnl_primitive_attr_t attr) {
    return library()->dnnl_lrn_forward_primitive_desc_create(pd, library()->engine, dnnl_forward_inference,
                                                             dnnl_lrn_across_channels, src->md, dst->md, size, alpha,
                                                             beta, k, attr);
}

dnnl_status_t cpu_onednn_eltwise(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t algorithm, const cpu_onednn_md *src,
                                 const cpu_onednn_md *dst, float alpha, float beta, const_dnnl_primitive_attr_t attr) {
    return library()->dnnl_eltwise_forward_primitive_desc_create(pd, library()->engine, dnnl_forward_inference,
                                                                 algorithm, src->md, dst->md, alpha, beta, attr);
}

dnnl_status_t cpu_onednn_binary(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t algorithm, const cpu_onednn_md *src0,
                                const cpu_onednn_md *src1, const cpu_onednn_md *dst, const_dnnl_primitive_attr_t attr) {
    return library()->dnnl_binary_primitive_desc_create(pd, library()->engine, algorithm, src0->md, src1->md, dst->md,
                                                        attr);
}

dnnl_status_t cpu_onednn_reduction(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t algorithm, const cpu_onednn_md *src,
                                   const cpu_onednn_md *dst, float p, const_dnnl_primitive_attr_t attr) {
    return library()->dnnl_reduction_primitive_desc_create(pd, library()->engine, algorithm, src->md, dst->md, p, 0,
                                                           attr);
}

dnnl_status_t cpu_onednn_recurrence(dnnl_primitive_desc_t *pd, const cpu_onednn_recurrent *r,
                                    const_dnnl_primitive_attr_t attr) {
    const cpu_onednn *l = library();
#define OF(m) ((m) ? (m)->md : NULL)
    if (r->cell == dnnl_vanilla_lstm)
        return l->dnnl_lstm_forward_primitive_desc_create(
            pd, l->engine, dnnl_forward_inference, r->direction, OF(r->src_layer), OF(r->src_iter), OF(r->src_iter_c),
            OF(r->weights_layer), OF(r->weights_iter), NULL, NULL, OF(r->bias), OF(r->dst_layer), OF(r->dst_iter),
            OF(r->dst_iter_c), 0, attr);
    if (r->cell == dnnl_vanilla_rnn)
        return l->dnnl_vanilla_rnn_forward_primitive_desc_create(
            pd, l->engine, dnnl_forward_inference, r->activation, r->direction, OF(r->src_layer), OF(r->src_iter),
            OF(r->weights_layer), OF(r->weights_iter), OF(r->bias), OF(r->dst_layer), OF(r->dst_iter), 0, 0, 0, attr);
    __typeof__(l->dnnl_gru_forward_primitive_desc_create) make = r->cell == dnnl_lbr_gru
                                                                     ? l->dnnl_lbr_gru_forward_primitive_desc_create
                                                                     : l->dnnl_gru_forward_primitive_desc_create;
    return make(pd, l->engine, dnnl_forward_inference, r->direction, OF(r->src_layer), OF(r->src_iter),
                OF(r->weights_layer), OF(r->weights_iter), OF(r->bias), OF(r->dst_layer), OF(r->dst_iter), 0, attr);
#undef OF
}

#else

#define HANDLE(m) (&(m)->md)

/* Version 2 describes an operation first; most have one descriptor for source and destination. */
static dnnl_status_t create(dnnl_primitive_desc_t *pd, dnnl_status_t described, const void *d,
                            const_dnnl_primitive_attr_t attr) {
    if (described != dnnl_success) return described;
    return library()->dnnl_primitive_desc_create(pd, d, attr, library()->engine, NULL);
}

dnnl_status_t cpu_onednn_convolution(dnnl_primitive_desc_t *pd, bool transposed, const cpu_onednn_md *src,
                                     const cpu_onednn_md *weights, const cpu_onednn_md *bias, const cpu_onednn_md *dst,
                                     const cpu_onednn_window *w, const_dnnl_primitive_attr_t attr) {
    const dnnl_memory_desc_t *b = bias && bias->there ? &bias->md : NULL;
    dnnl_convolution_desc_t d; /* of both: dnnl_deconvolution_desc_t is the same type */
    const dnnl_status_t status = transposed ? library()->dnnl_dilated_deconvolution_forward_desc_init(
                                                  &d, dnnl_forward_inference, dnnl_deconvolution_direct, &src->md,
                                                  &weights->md, b, &dst->md, w->strides, w->dilates, w->begin, w->end)
                                            : library()->dnnl_dilated_convolution_forward_desc_init(
                                                  &d, dnnl_forward_inference, dnnl_convolution_direct, &src->md,
                                                  &weights->md, b, &dst->md, w->strides, w->dilates, w->begin, w->end);
    return create(pd, status, &d, attr);
}

dnnl_status_t cpu_onednn_pooling(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t how, const cpu_onednn_md *src,
                                 const cpu_onednn_md *dst, const cpu_onednn_window *w,
                                 const_dnnl_primitive_attr_t attr) {
    dnnl_pooling_v2_desc_t d;
    const dnnl_status_t status = library()->dnnl_pooling_v2_forward_desc_init(
        &d, dnnl_forward_inference, how, &src->md, &dst->md, w->strides, w->kernel, w->dilates, w->begin, w->end);
    return create(pd, status, &d, attr);
}

dnnl_status_t cpu_onednn_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t how, float alpha, float beta) {
    return library()->dnnl_post_ops_append_eltwise(ops, 1, how, alpha, beta);
}

dnnl_status_t cpu_onednn_softmax(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t algorithm, const cpu_onednn_md *src,
                                 const cpu_onednn_md *dst, int axis, const_dnnl_primitive_attr_t attr) {
    dnnl_softmax_v2_desc_t d;
    const dnnl_status_t described =
        library()->dnnl_softmax_v2_forward_desc_init(&d, dnnl_forward_inference, algorithm, &src->md, &dst->md, axis);
    return create(pd, described, &d, attr);
}

dnnl_status_t cpu_onednn_layer_norm(dnnl_primitive_desc_t *pd, const cpu_onednn_md *src, const cpu_onednn_md *dst,
                                    float epsilon, unsigned flags, const_dnnl_primitive_attr_t attr) {
    dnnl_layer_normalization_desc_t d;
    (void)dst;
    const dnnl_status_t described = library()->dnnl_layer_normalization_forward_desc_init(
        &d, dnnl_forward_inference, &src->md, NULL, epsilon, flags);
    return create(pd, described, &d, attr);
}

dnnl_status_t cpu_onednn_batch_norm(dnnl_primitive_desc_t *pd, const cpu_onednn_md *src, const cpu_onednn_md *dst,
                                    float epsilon, unsigned flags, const_dnnl_primitive_attr_t attr) {
    dnnl_batch_normalization_desc_t d;
    (void)dst;
    const dnnl_status_t described =
        library()->dnnl_batch_normalization_forward_desc_init(&d, dnnl_forward_inference, &src->md, epsilon, flags);
    return create(pd, described, &d, attr);
}

dnnl_status_t cpu_onednn_lrn(dnnl_primitive_desc_t *pd, const cpu_onednn_md *src, const cpu_onednn_md *dst,
                             int64_t size, float alpha, float beta, float k, const_dnnl_primitive_attr_t attr) {
    dnnl_lrn_desc_t d;
    (void)dst;
    const dnnl_status_t described = library()->dnnl_lrn_forward_desc_init(
        &d, dnnl_forward_inference, dnnl_lrn_across_channels, &src->md, size, alpha, beta, k);
    return create(pd, described, &d, attr);
}

/* Version 2 has one md for source and destination. */
dnnl_status_t cpu_onednn_eltwise(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t algorithm, const cpu_onednn_md *src,
                                 const cpu_onednn_md *dst, float alpha, float beta, const_dnnl_primitive_attr_t attr) {
    dnnl_eltwise_desc_t d;
    (void)dst;
    const dnnl_status_t status =
        library()->dnnl_eltwise_forward_desc_init(&d, dnnl_forward_inference, algorithm, &src->md, alpha, beta);
    return create(pd, status, &d, attr);
}

dnnl_status_t cpu_onednn_binary(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t algorithm, const cpu_onednn_md *src0,
                                const cpu_onednn_md *src1, const cpu_onednn_md *dst, const_dnnl_primitive_attr_t attr) {
    dnnl_binary_desc_t d;
    const dnnl_status_t status = library()->dnnl_binary_desc_init(&d, algorithm, &src0->md, &src1->md, &dst->md);
    return create(pd, status, &d, attr);
}

dnnl_status_t cpu_onednn_reduction(dnnl_primitive_desc_t *pd, dnnl_alg_kind_t algorithm, const cpu_onednn_md *src,
                                   const cpu_onednn_md *dst, float p, const_dnnl_primitive_attr_t attr) {
    dnnl_reduction_desc_t d;
    const dnnl_status_t status = library()->dnnl_reduction_desc_init(&d, algorithm, &src->md, &dst->md, p, 0);
    return create(pd, status, &d, attr);
}

dnnl_status_t cpu_onednn_recurrence(dnnl_primitive_desc_t *pd, const cpu_onednn_recurrent *r,
                                    const_dnnl_primitive_attr_t attr) {
    const cpu_onednn *l = library();
    dnnl_rnn_desc_t d;
    dnnl_status_t status = dnnl_success;
#define OF(m)     ((m) ? &(m)->md : NULL)
    if (r->cell == dnnl_vanilla_lstm)
        status =
            l->dnnl_lstm_forward_desc_init(&d, dnnl_forward_inference, r->direction, OF(r->src_layer), OF(r->src_iter),
                                           OF(r->src_iter_c), OF(r->weights_layer), OF(r->weights_iter), OF(r->bias),
                                           OF(r->dst_layer), OF(r->dst_iter), OF(r->dst_iter_c), 0);
    else if (r->cell == dnnl_vanilla_rnn)
        status = l->dnnl_vanilla_rnn_forward_desc_init(
            &d, dnnl_forward_inference, r->activation, r->direction, OF(r->src_layer), OF(r->src_iter),
            OF(r->weights_layer), OF(r->weights_iter), OF(r->bias), OF(r->dst_layer), OF(r->dst_iter), 0, 0, 0);
    else
        status = (r->cell == dnnl_lbr_gru ? l->dnnl_lbr_gru_forward_desc_init : l->dnnl_gru_forward_desc_init)(
            &d, dnnl_forward_inference, r->direction, OF(r->src_layer), OF(r->src_iter), OF(r->weights_layer),
            OF(r->weights_iter), OF(r->bias), OF(r->dst_layer), OF(r->dst_iter), 0);
#undef OF
    return create(pd, status, &d, attr);
}

#endif

dnnl_status_t cpu_onednn_append_binary(dnnl_post_ops_t ops, dnnl_alg_kind_t how, const cpu_onednn_md *other) {
    return library()->dnnl_post_ops_append_binary(ops, how, HANDLE(other));
}

dnnl_status_t cpu_onednn_scaled(dnnl_primitive_attr_t attr, float scale) {
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t status = library()->dnnl_post_ops_create(&ops);
    if (status == dnnl_success) status = cpu_onednn_append_eltwise(ops, dnnl_eltwise_linear, scale, 0);
    if (status == dnnl_success) status = library()->dnnl_primitive_attr_set_post_ops(attr, ops);
    if (ops) library()->dnnl_post_ops_destroy(ops);
    return status;
}
