/* A window that slides over the space of a tensor, as convolutions and pools have it: read from an operation's fields.
 * Header-only, shared by candidates of all devices and by plugins. Space is always depth, height and width; a missing
 * dimension is 1. */
#ifndef SCOUT_OP_WINDOW_H
#define SCOUT_OP_WINDOW_H

#include "scout/op/op.h"

enum { WINDOW_AXES = 3 };

typedef struct window_axis {
    int64_t in, out, kernel, stride, dilation;
    int64_t begin, end; /* padding before and behind */
} window_axis;

typedef struct window {
    int spatial; /* dimensions of space: the last ones of `axes` */
    int last;    /* 1: channels are the last dimension (nhwc) */
    window_axis axes[WINDOW_AXES];
} window;

static inline int64_t window_read(const int64_t *list, int count, int at, int64_t otherwise) {
    return at < count ? list[at] : otherwise;
}

/* Of an operation that its kind has checked: rank 3 to 5, each list with a number for each dimension. */
static inline window window_of(const scout_op *op) {
    int64_t input[SCOUT_MAX_RANK], kernel[WINDOW_AXES], stride[WINDOW_AXES], dilation[WINDOW_AXES];
    int64_t pads[2 * WINDOW_AXES];
    window w = {.spatial = (int)op->rank - 2, .last = op->layout && strcmp(op->layout, "nhwc") == 0};
    const int n = w.spatial, first = w.last ? 1 : 2;
    const int inputs = op_ints(op, "input", input, SCOUT_MAX_RANK),
              kernels = op_ints(op, "kernel", kernel, WINDOW_AXES);
    const int strides = op_ints(op, "stride", stride, WINDOW_AXES);
    const int dilations = op_ints(op, "dilation", dilation, WINDOW_AXES);
    const int padded = op_ints(op, "pads", pads, 2 * WINDOW_AXES);
    for (int k = 0; k < WINDOW_AXES; k++) {
        const int d = k - (WINDOW_AXES - n); /* among those the operation has */
        w.axes[k] = (window_axis){1, 1, 1, 1, 1, 0, 0};
        if (d < 0) continue;
        const int64_t in = window_read(input, inputs, first + d, 1);
        w.axes[k] = (window_axis){.in = in,
                                  .out = op->shape[first + d],
                                  .kernel = window_read(kernel, kernels, d, in), /* none: global */
                                  .stride = window_read(stride, strides, d, 1),
                                  .dilation = window_read(dilation, dilations, d, 1),
                                  .begin = window_read(pads, padded, d, 0),
                                  .end = window_read(pads, padded, n + d, 0)};
    }
    return w;
}

static inline int64_t window_in(const window *w) { return w->axes[0].in * w->axes[1].in * w->axes[2].in; }
static inline int64_t window_out(const window *w) { return w->axes[0].out * w->axes[1].out * w->axes[2].out; }
static inline int64_t window_kernel(const window *w) {
    return w->axes[0].kernel * w->axes[1].kernel * w->axes[2].kernel;
}

/* How many places of the input the window reaches over. */
static inline int64_t window_reach(const window_axis *a) { return (a->kernel - 1) * a->dilation + 1; }

/* The taps of output `out` that lie inside of the input: how many, from *first on, that one at *at. */
static inline int64_t window_taps(const window_axis *a, int64_t out, int64_t *first, int64_t *at) {
    const int64_t start = out * a->stride - a->begin;
    *first = start < 0 ? (-start + a->dilation - 1) / a->dilation : 0;
    *at = start + *first * a->dilation;
    if (*at >= a->in || *first >= a->kernel) return 0;
    const int64_t fit = (a->in - 1 - *at) / a->dilation + 1, left = a->kernel - *first;
    return fit < left ? fit : left;
}

#endif
