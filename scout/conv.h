/* A convolution as every candidate needs it, read from the tensors and fields of a scout_op; header-only, so that
 * candidates of all devices and foreign plugins share it. */
#ifndef SCOUT_CONV_H
#define SCOUT_CONV_H

#include "scout/window.h"

#include <math.h>

/* Places in op->tensors. Bias and residual follow where the operation has them: op_tensor finds them by name. */
enum { CONV_INPUT = 0, CONV_WEIGHT = 1, CONV_OUTPUT = 2 };

typedef enum conv_function {
    CONV_PLAIN,       /* no activation */
    CONV_RELU,        /* x < 0: alpha * x */
    CONV_CLIP,        /* from alpha to beta */
    CONV_HARDSIGMOID, /* alpha * x + beta, from 0 to 1 */
    CONV_HARDSWISH,   /* x * hardsigmoid(x) with 1/6 and 1/2 */
    CONV_SIGMOID,
    CONV_TANH,
    CONV_SILU, /* x * sigmoid(x) */
    CONV_UNKNOWN
} conv_function;

typedef struct conv_activation {
    conv_function function;
    double alpha, beta;
} conv_activation;

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
    int bias, residual;         /* their tensors; -1: none. The residual lies as the output. */
    conv_activation activation; /* of the sum of everything */
} conv_problem;

/* What stands in "activation", with parameters under their own names or, as ONNX Runtime has them, in a list. */
static inline conv_activation conv_activation_of(const scout_op *op) {
    static const struct {
        const char *name;
        conv_activation activation;
    } rows[] = {{"relu", {CONV_RELU, 0, 0}},
                {"relu6", {CONV_CLIP, 0, 6}},
                {"clip", {CONV_CLIP, -INFINITY, INFINITY}},
                {"leakyrelu", {CONV_RELU, 0.01, 0}},
                {"hardsigmoid", {CONV_HARDSIGMOID, 0.2, 0.5}},
                {"hardswish", {CONV_HARDSWISH, 0, 0}},
                {"sigmoid", {CONV_SIGMOID, 0, 0}},
                {"tanh", {CONV_TANH, 0, 0}},
                {"silu", {CONV_SILU, 0, 0}}};
    const char *name = op_text(op, "activation"), *list = op_text(op, "activation_params");
    conv_activation a = {name ? CONV_UNKNOWN : CONV_PLAIN, 0, 0};
    for (size_t k = 0; name && k < sizeof rows / sizeof rows[0]; k++)
        if (strcmp(rows[k].name, name) == 0) a = rows[k].activation;
    const int one = (name && strcmp(name, "leakyrelu") == 0), two = a.function == CONV_HARDSIGMOID;
    const int bounded = name && strcmp(name, "clip") == 0;
    if (bounded) a.alpha = op_real(op, "activation_min", a.alpha), a.beta = op_real(op, "activation_max", a.beta);
    if (one || two) a.alpha = op_real(op, "activation_alpha", a.alpha);
    if (two) a.beta = op_real(op, "activation_beta", a.beta);
    if (one && !list) a.alpha = op_real(op, "activation_params", a.alpha); /* a single one may be a number */
    if (list && (one || two || bounded)) {
        char *end;
        a.alpha = strtod(list, &end);
        if (!one && *end == ',') a.beta = strtod(end + 1, &end);
    }
    return a;
}

static inline double conv_activate(const conv_activation *a, double x) {
    switch (a->function) {
    case CONV_RELU: return x < 0 ? a->alpha * x : x;
    case CONV_CLIP: return fmin(fmax(x, a->alpha), a->beta);
    case CONV_HARDSIGMOID: return fmin(fmax(a->alpha * x + a->beta, 0), 1);
    case CONV_HARDSWISH: return x * fmin(fmax(x / 6 + 0.5, 0), 1);
    case CONV_SIGMOID: return 1 / (1 + exp(-x));
    case CONV_TANH: return tanh(x);
    case CONV_SILU: return x / (1 + exp(-x));
    default: return x;
    }
}

static inline conv_problem conv_problem_of(const scout_op *op) {
    const scout_tensor *in = &op->tensors[CONV_INPUT], *out = &op->tensors[CONV_OUTPUT];
    const scout_tensor *weight = &op->tensors[CONV_WEIGHT];
    conv_problem p;
    memset(&p, 0, sizeof p);
    p.w = window_of(op);
    p.transposed = op_number(op, "transposed", 0) != 0;
    p.group = op_number(op, "group", 1);
    const int channel = p.w.last ? (int)op->rank - 1 : 1;
    p.n = out->dims[0], p.cin = in->dims[channel], p.cout = out->dims[channel];
    p.in_n = in->strides[0], p.in_c = in->strides[channel], p.in_step = p.w.last ? p.cin : 1;
    p.out_n = out->strides[0], p.out_c = out->strides[channel], p.out_step = p.w.last ? p.cout : 1;
    /* [output, input of the group, kernel]; of a transposed one [input, output of the group, kernel] */
    p.w_o = weight->strides[p.transposed ? 1 : 0], p.w_i = weight->strides[p.transposed ? 0 : 1];
    p.w_g = p.transposed ? p.cin / p.group * p.w_i : p.cout / p.group * p.w_o;
    p.type_in = in->type, p.type_weight = weight->type, p.type_out = out->type;
    p.bias = op_tensor(op, "bias"), p.residual = op_tensor(op, "residual");
    p.activation = conv_activation_of(op);
    return p;
}

/* How many products an output is the sum of, at most. */
static inline int64_t conv_depth(const conv_problem *p) { return p->cin / p->group * window_kernel(&p->w); }

#endif
