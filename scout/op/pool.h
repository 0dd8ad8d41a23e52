/* A pool, read from the tensors and fields of a scout_op; header-only, shared by candidates of all devices and by
 * plugins. */
#ifndef SCOUT_OP_POOL_H
#define SCOUT_OP_POOL_H

#include "scout/op/requantize.h"
#include "scout/op/window.h"

/* Places in op->tensors. */
enum { POOL_INPUT = 0, POOL_OUTPUT = 1, POOL_INDICES = 2 };

typedef struct pool_problem {
    window w;
    int64_t n, channels;
    int64_t in_n, in_c, in_step, out_n, out_c, out_step; /* as of a convolution (scout/op/conv.h) */
    uint32_t type;
    int average;              /* else the maximum */
    double order;             /* of a norm (lp) instead; 0: none */
    int indices, columns;     /* of a maximum: its place is told, too; columns before rows */
    int padded;               /* an average counts padding in */
    requantize quant;         /* a quantised average; a maximum needs nothing */
    op_activation activation; /* of such an average */
} pool_problem;

/* Windows whose norm is computed, or whose maximum tells its place. */
static inline int pool_is_rare(const scout_op *op) {
    return op_is(op, "lp") || (op_is(op, "max") && op_real(op, "indices_out", 0) != 0);
}

/* Maxima and averages alone; others interpolate. */
static inline int pool_has_windows(const scout_op *op) {
    return (op_is(op, "max") || op_is(op, "average")) && !pool_is_rare(op);
}

static inline pool_problem pool_problem_of(const scout_op *op) {
    const scout_tensor *in = &op->tensors[POOL_INPUT], *out = &op->tensors[POOL_OUTPUT];
    pool_problem p;
    memset(&p, 0, sizeof p);
    p.w = window_of(op);
    const int channel = p.w.last ? (int)op->rank - 1 : 1;
    p.n = out->dims[0], p.channels = out->dims[channel];
    p.in_n = in->strides[0], p.in_c = in->strides[channel], p.in_step = p.w.last ? p.channels : 1;
    p.out_n = out->strides[0], p.out_c = out->strides[channel], p.out_step = p.w.last ? p.channels : 1;
    p.type = in->type;
    p.average = op_is(op, "average");
    if (op_is(op, "lp")) p.order = op_real(op, "p", 2);
    p.indices = op_is(op, "max") && op_real(op, "indices_out", 0) != 0;
    p.columns = op_real(op, "storage_order", 0) != 0;
    p.padded = op_number(op, "count_include_pad", 0) != 0;
    if (p.average) p.quant = requantize_average(op, window_kernel(&p.w)), p.activation = activation_of(op);
    return p;
}

/* The index of a place in a plane (images times channels) among all of the input, as ONNX counts. */
static inline int64_t pool_index(const pool_problem *p, int64_t plane, int64_t at) {
    const int64_t height = p->w.axes[1].in, width = p->w.axes[2].in, deep = at / width / height;
    const int64_t turned = (deep * width + at % width) * height + at / width % height;
    return plane * window_in(&p->w) + (p->columns ? turned : at);
}

/* The divisor of an average along one dimension: all taps of the window up to the end of padding (ceil_mode), or those
 * inside of the input. `inside`: the result of window_taps. */
static inline int64_t pool_count(const pool_problem *p, const window_axis *a, int64_t out, int64_t inside) {
    if (!p->padded) return inside;
    const int64_t room = a->in + a->begin + a->end - out * a->stride; /* from its first place to the end of padding */
    const int64_t fit = (room + a->dilation - 1) / a->dilation;
    return fit < a->kernel ? fit : a->kernel;
}

#endif
