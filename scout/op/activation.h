/* The activation in the epilogue of a product or a convolution: a function of each sum, with its parameters. Read from
 * an operation's fields; header-only, so that candidates and references of all devices share it. */
#ifndef SCOUT_OP_ACTIVATION_H
#define SCOUT_OP_ACTIVATION_H

#include "scout/op/op.h"

#include <math.h>

typedef enum activation_function {
    ACTIVATION_PLAIN,       /* none */
    ACTIVATION_RELU,        /* x < 0: alpha * x */
    ACTIVATION_CLIP,        /* from alpha to beta */
    ACTIVATION_HARDSIGMOID, /* alpha * x + beta, from 0 to 1 */
    ACTIVATION_HARDSWISH,   /* x * hardsigmoid(x) with 1/6 and 1/2 */
    ACTIVATION_SIGMOID,
    ACTIVATION_TANH,
    ACTIVATION_SILU,      /* x * sigmoid(alpha * x) */
    ACTIVATION_GELU,      /* by the error function */
    ACTIVATION_GELU_TANH, /* by the hyperbolic tangent, which is another function: up to 5e-4 apart */
    ACTIVATION_UNKNOWN
} activation_function;

typedef struct op_activation {
    activation_function function;
    double alpha, beta;
} op_activation;

/* Values of the field "activation"; parameters are fields of their own or, as in ONNX Runtime, a list. */
typedef struct activation_row {
    const char *name;
    op_activation activation;
    const char *first, *second; /* fields of its parameters; NULL: it has none */
} activation_row;

/* NULL: it is not known. */
static inline const activation_row *activation_find(const char *name) {
    static const activation_row rows[] = {
        {"relu", {ACTIVATION_RELU, 0, 0}, NULL, NULL},
        {"relu6", {ACTIVATION_CLIP, 0, 6}, NULL, NULL},
        {"clip", {ACTIVATION_CLIP, -INFINITY, INFINITY}, "activation_min", "activation_max"},
        {"leakyrelu", {ACTIVATION_RELU, 0.01, 0}, "activation_alpha", NULL},
        {"hardsigmoid", {ACTIVATION_HARDSIGMOID, 0.2, 0.5}, "activation_alpha", "activation_beta"},
        {"hardswish", {ACTIVATION_HARDSWISH, 0, 0}, NULL, NULL},
        {"sigmoid", {ACTIVATION_SIGMOID, 0, 0}, NULL, NULL},
        {"tanh", {ACTIVATION_TANH, 0, 0}, NULL, NULL},
        {"silu", {ACTIVATION_SILU, 1, 0}, NULL, NULL},
        {"swish", {ACTIVATION_SILU, 1, 0}, "activation_alpha", NULL},
        {"quickgelu", {ACTIVATION_SILU, 1.702, 0}, "activation_alpha", NULL},
        {"gelu", {ACTIVATION_GELU, 0, 0}, NULL, NULL},
        {"gelu_tanh", {ACTIVATION_GELU_TANH, 0, 0}, NULL, NULL},
        {"fastgelu", {ACTIVATION_GELU_TANH, 0, 0}, NULL, NULL}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (strcmp(rows[k].name, name) == 0) return &rows[k];
    return NULL;
}

static inline op_activation activation_of(const scout_op *op) {
    const char *const name = op_text(op, "activation"), *const list = op_text(op, "activation_params");
    const activation_row *const row = name ? activation_find(name) : NULL;
    op_activation a = {name ? ACTIVATION_UNKNOWN : ACTIVATION_PLAIN, 0, 0};
    if (!row) return a;
    a = row->activation;
    if (row->first) a.alpha = op_real(op, row->first, a.alpha);
    if (row->second) a.beta = op_real(op, row->second, a.beta);
    if (row->first && !list) a.alpha = op_real(op, "activation_params", a.alpha); /* one may be a number */
    if (row->first && list) {
        char *end;
        a.alpha = strtod(list, &end);
        if (row->second && *end == ',') a.beta = strtod(end + 1, &end);
    }
    return a;
}

static inline double activation_apply(const op_activation *a, double x) {
    switch (a->function) {
    case ACTIVATION_RELU: return x < 0 ? a->alpha * x : x;
    case ACTIVATION_CLIP: return fmin(fmax(x, a->alpha), a->beta);
    case ACTIVATION_HARDSIGMOID: return fmin(fmax(a->alpha * x + a->beta, 0), 1);
    case ACTIVATION_HARDSWISH: return x * fmin(fmax(x / 6 + 0.5, 0), 1);
    case ACTIVATION_SIGMOID: return 1 / (1 + exp(-x));
    case ACTIVATION_TANH: return tanh(x);
    case ACTIVATION_SILU: return x / (1 + exp(-a->alpha * x));
    case ACTIVATION_GELU: return 0.5 * x * erfc(-x * 0.70710678118654752440);
    case ACTIVATION_GELU_TANH: return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    default: return x;
    }
}

/* Why it is not covered, NULL where it is: parameters that would make it steeper are refused. */
static inline const char *activation_refused(const op_activation *a) {
    if (a->function == ACTIVATION_UNKNOWN) return "this activation is not covered";
    if (!(a->alpha <= INFINITY) || !(a->beta <= INFINITY)) return "a parameter of the activation is no number";
    if (a->function == ACTIVATION_RELU && !(fabs(a->alpha) <= 1)) return "a slope above 1 below 0 is not covered";
    if (a->function == ACTIVATION_HARDSIGMOID && !(fabs(a->alpha) <= 1 && fabs(a->beta) <= 1))
        return "a hardsigmoid steeper or higher than 1 is not covered";
    if (a->function == ACTIVATION_SILU && !(a->alpha > 0 && a->alpha <= 16))
        return "a swish with a factor outside of 0 to 16 is not covered";
    return NULL;
}

/* An error grows by its slope, which is less than 2 for all of them (hardswish 1.5). */
static inline double activation_steepest(const op_activation *a) { return a->function == ACTIVATION_PLAIN ? 1 : 2; }

/* Whether it takes an exponential for each element. */
static inline int activation_is_special(const op_activation *a) {
    return a->function >= ACTIVATION_SIGMOID && a->function < ACTIVATION_UNKNOWN;
}

#endif
