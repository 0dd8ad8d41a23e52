/* A convolution as a cuDNN graph: the convolution, then its epilogue in the order of the library's precompiled kernels
 * (residual, bias, activation). One dimension of space becomes two. */

#include "scout/cuda/dnn/dnn.h"

#include <string.h>

/* After sums in fp32. */
static bool has_more(const conv_problem *p) {
    if (p->quant.is) return false;
    return p->bias >= 0 || p->residual >= 0 || p->activation.function != ACTIVATION_PLAIN;
}

/* Where one of both is 1, the two orders of the weight are one. */
static bool two_orders(const scout_op *op) {
    const conv_problem p = conv_problem_of(op);
    return window_kernel(&p.w) > 1 && op->tensors[CONV_WEIGHT].dims[1] > 1;
}

/* Where all of space is one place, the two orders of activations are one as well. cuDNN is told the channels-last
 * strides then: by those of nchw, which are all 1, kernels compiled at run time write the places of a batch over each
 * other. */
static bool is_last(const scout_op *op) {
    const conv_problem p = conv_problem_of(op);
    bool one = true;
    for (int k = 0; k < WINDOW_AXES; k++) one = one && p.w.axes[k].in == 1 && p.w.axes[k].out == 1;
    return p.w.last || one;
}

bool dnn_conv_packs(const scout_op *op, dnn_conv_form form) {
    const bool wanted =
        form == DNN_CONV_PACKED || form == DNN_CONV_CONVERTED || (form == DNN_CONV_SPLIT && is_last(op));
    return wanted && two_orders(op) && op->tensors[CONV_WEIGHT].role == SCOUT_WEIGHT;
}

/* cuDNN does not document nhwc activations with a weight in another layout: some engines take it, and some of those
 * give wrong results. */
bool dnn_conv_exists(const scout_op *op, dnn_conv_form form) {
    const conv_problem p = conv_problem_of(op);
    enum { MANY = 65535 }; /* matrices that one launch transposes */
    if (form == DNN_CONV_PACKED)
        return is_last(op) && dnn_conv_packs(op, form) && op->tensors[CONV_WEIGHT].dims[0] <= MANY;
    if (form == DNN_CONV_AS_IS && dnn_conv_exists(op, DNN_CONV_PACKED)) return false;
    if (form == DNN_CONV_SPLIT)
        return has_more(&p) && (!dnn_conv_packs(op, form) || op->tensors[CONV_WEIGHT].dims[0] <= MANY);
    if (form == DNN_CONV_CONVERTED) return !is_last(op) && p.n <= MANY && op->tensors[CONV_WEIGHT].dims[0] <= MANY;
    return true;
}

/* --- tensors --- */

typedef struct teller {
    dnn_graph *g;
    const scout_op *op;
    conv_problem p;
    bool last; /* channels of activations, as cuDNN sees them */
    int space; /* dimensions: 2 or 3 */
    int64_t out_dims[SCOUT_MAX_RANK], out_strides[SCOUT_MAX_RANK];
} teller;

static const window_axis *axis(const teller *t, int k) { return &t->p.w.axes[WINDOW_AXES - t->space + k]; }

/* [n, channels, space]: densely, with the channels where they are wanted. */
static void lay(const teller *t, int64_t n, int64_t channels, bool last, const int64_t *space, int64_t *dims,
                int64_t *strides) {
    int64_t step = last ? channels : 1;
    dims[0] = n, dims[1] = channels;
    for (int k = t->space - 1; k >= 0; k--) {
        dims[2 + k] = space[k], strides[2 + k] = step;
        step *= space[k];
    }
    strides[1] = last ? 1 : step;
    strides[0] = last ? step : step * channels;
}

static bool is_one(const int64_t *space, int count) {
    for (int k = 0; k < count; k++)
        if (space[k] != 1) return false;
    return true;
}

static dnn_desc tell_input(const teller *t, cudnnDataType_t type) {
    int64_t dims[SCOUT_MAX_RANK], strides[SCOUT_MAX_RANK], space[WINDOW_AXES];
    for (int k = 0; k < t->space; k++) space[k] = axis(t, k)->in;
    lay(t, t->p.n, t->p.cin, t->last, space, dims, strides);
    return dnn_tensor(t->g, CONV_INPUT + 1, type, t->space + 2, dims, strides);
}

static dnn_desc tell_weight(const teller *t, cudnnDataType_t type, dnn_conv_form form) {
    int64_t dims[SCOUT_MAX_RANK], strides[SCOUT_MAX_RANK], space[WINDOW_AXES];
    const int64_t *const stored = t->op->tensors[CONV_WEIGHT].dims;
    const bool last = dnn_conv_packs(t->op, form) || (t->last && !two_orders(t->op));
    for (int k = 0; k < t->space; k++) space[k] = axis(t, k)->kernel;
    lay(t, stored[0], stored[1], last, space, dims, strides);
    return dnn_tensor(t->g, CONV_WEIGHT + 1, type, t->space + 2, dims, strides);
}

static dnn_desc tell_output(const teller *t, int place, cudnnDataType_t type) {
    return dnn_tensor(t->g, place + 1, type, t->space + 2, t->out_dims, t->out_strides);
}

static dnn_desc tell_bias(const teller *t, cudnnDataType_t type) {
    const int64_t ones[WINDOW_AXES] = {1, 1, 1};
    int64_t dims[SCOUT_MAX_RANK], strides[SCOUT_MAX_RANK];
    lay(t, 1, t->p.cout, t->last, ones, dims, strides);
    return dnn_tensor(t->g, t->p.bias + 1, type, t->space + 2, dims, strides);
}

static dnn_desc between(const teller *t, cudnnDataType_t type) {
    return dnn_virtual(t->g, type, t->space + 2, t->out_dims, t->out_strides);
}

/* --- operations --- */

static dnn_desc tell_window(const teller *t, cudnnDataType_t sums) {
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t space = t->space;
    int64_t begin[WINDOW_AXES], end[WINDOW_AXES], stride[WINDOW_AXES], dilation[WINDOW_AXES];
    for (int k = 0; k < t->space; k++) {
        const window_axis *const a = axis(t, k);
        begin[k] = a->begin, end[k] = a->end, stride[k] = a->stride, dilation[k] = a->dilation;
    }
    const dnn_attribute attributes[] = {
        {CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums},
        {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode},
        {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &space},
        {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, space, begin},
        {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, space, end},
        {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, space, stride},
        {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, space, dilation},
    };
    return dnn_make(t->g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, attributes, sizeof attributes / sizeof attributes[0],
                    "cuDNN's convolution");
}

/* A transposed convolution is what another one needs for the gradient of its input. */
static void tell_convolution(const teller *t, dnn_desc how, dnn_desc x, dnn_desc w, dnn_desc y) {
    static const float one = 1, zero = 0;
    const bool back = t->p.transposed != 0;
    const dnn_attribute attributes[] = {
        {back ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC
              : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
         CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &how},
        {back ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
         CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x},
        {back ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
         CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &w},
        {back ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
         CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y},
        {back ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
         CUDNN_TYPE_FLOAT, 1, &one},
        {back ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
         CUDNN_TYPE_FLOAT, 1, &zero},
    };
    dnn_node(t->g,
             back ? CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
                  : CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
             attributes, sizeof attributes / sizeof attributes[0], "cuDNN's convolution");
}

/* Quantised: the bias, a factor and the activation of integer sums; the library rounds its output. */
static void tell_quantised(const teller *t, dnn_desc sums, dnn_desc y) {
    const bool plain = t->p.activation.function == ACTIVATION_PLAIN;
    const dnn_behind behind = {
        .activation = t->p.activation, .rank = t->space + 2, .dims = t->out_dims, .strides = t->out_strides};
    const dnn_desc factor = dnn_scalar(t->g, DNN_ACTIVATE_FIRST, CUDNN_DATA_FLOAT, t->space + 2);
    const dnn_desc scaled = plain ? y : between(t, CUDNN_DATA_FLOAT);
    dnn_desc biased = sums;
    if (t->p.bias >= 0) {
        biased = between(t, CUDNN_DATA_FLOAT);
        dnn_pointwise(t->g, CUDNN_POINTWISE_ADD, sums, tell_bias(t, CUDNN_DATA_INT32), NULL, biased, NULL);
    }
    dnn_pointwise(t->g, CUDNN_POINTWISE_MUL, biased, factor, NULL, scaled, NULL);
    if (!plain) dnn_activate(t->g, &behind, scaled, y);
}

/* The library's precompiled engines for bytes claim 32-bit output and write saturated bytes (9.19). Engines compiled at
 * run time write the right type, and only they take a graph with an epilogue. */
static void tell_whole(const teller *t, dnn_desc how, dnn_desc x, dnn_desc w, dnn_desc y) {
    const dnn_pointwise_how copy = {.math = CUDNN_DATA_INT32};
    const dnn_desc sums = between(t, CUDNN_DATA_INT32);
    tell_convolution(t, how, x, w, sums);
    if (t->p.quant.is)
        tell_quantised(t, sums, y);
    else
        dnn_pointwise(t->g, CUDNN_POINTWISE_IDENTITY, sums, NULL, NULL, y, &copy);
}

scout_answer dnn_conv_build(dnn_graph *g, const scout_op *op, int64_t way, scout_why *why) {
    const dnn_conv_form form = (dnn_conv_form)way;
    cudnnDataType_t in = CUDNN_DATA_FLOAT, weight = CUDNN_DATA_FLOAT, out = CUDNN_DATA_FLOAT;
    int64_t space[WINDOW_AXES];
    teller t = {.g = g, .op = op, .p = conv_problem_of(op)};
    if (!dnn_conv_exists(op, form)) return scout_say(why, SCOUT_NO, "layout", "this form does not fit the operation");
    if (!dnn_type(t.p.type_in, &in) || !dnn_type(t.p.type_weight, &weight) || !dnn_type(t.p.type_out, &out))
        return scout_say(why, SCOUT_NO, "type", "cuDNN's convolution does not support these types");
    t.last = is_last(op) || form == DNN_CONV_CONVERTED;
    t.space = t.p.w.spatial < 2 ? 2 : t.p.w.spatial;
    for (int k = 0; k < t.space; k++) space[k] = axis(&t, k)->out;
    lay(&t, t.p.n, t.p.cout, t.last || is_one(space, t.space), space, t.out_dims, t.out_strides);
    g->refused = dnn_activate_refused(op);
    g->coarse = g->refused & ~dnn_activate_never(op);
    const bool more = has_more(&t.p) && form != DNN_CONV_SPLIT;
    const dnn_desc x = tell_input(&t, in), w = tell_weight(&t, weight, form);
    const dnn_desc y = tell_output(&t, CONV_OUTPUT, out);
    if (op->accumulate == SCOUT_INT32) {
        tell_whole(&t, tell_window(&t, CUDNN_DATA_INT32), x, w, y);
        return SCOUT_OK;
    }
    const dnn_desc sums = more ? between(&t, CUDNN_DATA_FLOAT) : y;
    tell_convolution(&t, tell_window(&t, CUDNN_DATA_FLOAT), x, w, sums);
    if (!more) return SCOUT_OK;
    const dnn_behind behind = {.residual = t.p.residual >= 0 ? tell_output(&t, t.p.residual, out) : NULL,
                               .bias = t.p.bias >= 0 ? tell_bias(&t, out) : NULL,
                               .activation = t.p.activation,
                               .rank = t.space + 2,
                               .dims = t.out_dims,
                               .strides = t.out_strides};
    dnn_activate(g, &behind, sums, y);
    return SCOUT_OK;
}
