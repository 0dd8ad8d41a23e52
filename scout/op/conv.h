/* A convolution, read from the tensors and fields of a scout_op; header-only, shared by candidates of all devices and
 * by plugins. */
#ifndef SCOUT_OP_CONV_H
#define SCOUT_OP_CONV_H

#include "scout/op/requantize.h"
#include "scout/op/window.h"

/* Places in op->tensors. Bias and residual follow where the operation has them: op_tensor finds them by name. */
enum { CONV_INPUT = 0, CONV_WEIGHT = 1, CONV_OUTPUT = 2 };

typedef struct conv_problem {
    window w;
    int transposed;
    int64_t n, group, cin, cout; /* channels of all groups */
    /* Element (image, channel, place) lies at image * in_n + channel * in_c + place * in_step; places in order of
     * depth, height, width. */
    int64_t in_n, in_c, in_step, out_n, out_c, out_step;
    /* Of a group: element (output channel, input channel, tap) at group * w_g + output * w_o + input * w_i + tap. */
    int64_t w_g, w_o, w_i;
    uint32_t type_in, type_weight, type_out;
    int bias, residual;       /* their tensors; -1: none. The residual lies as the output. */
    int scales;               /* of a weight of bytes beside floats, for each output channel; -1: none */
    op_activation activation; /* of the sum of everything */
    requantize quant;         /* sums of bytes that become bytes again */
} conv_problem;

static inline conv_problem conv_problem_of(const scout_op *op) {
    const scout_tensor *in = &op->tensors[CONV_INPUT], *out = &op->tensors[CONV_OUTPUT];
    const scout_tensor *weight = &op->tensors[CONV_WEIGHT];
    conv_problem p;
    memset(&p, 0, sizeof p);
    p.w = window_of(op);
    p.transposed = op_number(op, "transposed", 0) != 0;
    const int64_t group = op_number(op, "group", 1);
    p.group = group > 0 ? group : 1;
    const int channel = p.w.last ? (int)op->rank - 1 : 1;
    p.n = out->dims[0], p.cin = in->dims[channel], p.cout = out->dims[channel];
    p.in_n = in->strides[0], p.in_c = in->strides[channel], p.in_step = p.w.last ? p.cin : 1;
    p.out_n = out->strides[0], p.out_c = out->strides[channel], p.out_step = p.w.last ? p.cout : 1;
    /* [output, input of the group, kernel]; of a transposed one [input, output of the group, kernel] */
    p.w_o = weight->strides[p.transposed ? 1 : 0], p.w_i = weight->strides[p.transposed ? 0 : 1];
    p.w_g = p.transposed ? p.cin / p.group * p.w_i : p.cout / p.group * p.w_o;
    p.type_in = in->type, p.type_weight = weight->type, p.type_out = out->type;
    p.bias = op_tensor(op, "bias"), p.residual = op_tensor(op, "residual");
    p.scales = op_tensor(op, "scales");
    p.activation = activation_of(op);
    p.quant = requantize_of(op, p.cin / p.group * window_kernel(&p.w));
    return p;
}

/* How many products an output is the sum of, at most. */
static inline int64_t conv_depth(const conv_problem *p) { return p->cin / p->group * window_kernel(&p->w); }

#endif
