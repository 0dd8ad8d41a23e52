/* A norm. Rows may be any of the dimensions, so a tensor is described by five levels: element (a, i, b, j, c) lies at
 * (((a * r0 + i) * k1 + b) * r1 + j) * k2 + c; (a, b, c) are the row, (i, j) the place in it. Rows at the end of the
 * dimensions have k1 = r0 = k2 = 1. Header-only, shared by candidates of all devices and by plugins. */
#ifndef SCOUT_OP_NORM_H
#define SCOUT_OP_NORM_H

#include "scout/op/op.h"

/* Places in op->tensors. scale, bias, mean, variance, residual, input_bias and sum follow where the operation has them:
 * op_tensor finds them by name. */
enum { NORM_X = 0, NORM_Y = 1 };

typedef enum norm_form {
    NORM_NONE,
    NORM_CENTRED, /* layer, group, instance, mvn: less its mean, over its deviation */
    NORM_RMS,     /* over the root of the mean of its squares */
    NORM_LP,      /* l2, lp: over its length */
    NORM_BATCH,   /* by a mean and a variance that are given, for each channel */
    NORM_LRN      /* over a power of the squares of neighbouring channels */
} norm_form;

typedef enum norm_activation { NORM_LINEAR, NORM_RELU, NORM_SILU } norm_activation;

typedef struct norm_problem {
    norm_form form;
    int64_t rows, cols;
    int64_t k0, r0, k1, r1, k2;
    /* where scale, bias and input_bias of an element stand: (a % repeat) * step_a + i * step_i + b * step_b + j *
     * step_j, of `sides` all together */
    int64_t repeat, step_a, step_i, step_b, step_j, sides;
    int scale, bias, mean, variance, residual, input_bias, sum; /* tensors; -1: none */
    norm_activation activation;
    int power; /* lp: 1 or 2 */
    double epsilon;
    double alpha, beta, offset; /* lrn */
    int64_t size;
} norm_problem;

/* An operation of a report does not carry the values of its model; these are the usual ones. One that is launched on a
 * caller's tensors may: the field "epsilon". */
static inline double norm_epsilon(const char *what) {
    if (!what || strcmp(what, "l2") == 0 || strcmp(what, "lp") == 0) return 0;
    return strcmp(what, "mvn") == 0 ? 1e-18 : 1e-5;
}

static inline norm_form norm_form_of(const char *what) {
    static const struct {
        const char *what;
        norm_form form;
    } rows[] = {{"layer", NORM_CENTRED}, {"rms", NORM_RMS},          {"l2", NORM_LP},
                {"lp", NORM_LP},         {"group", NORM_CENTRED},    {"mvn", NORM_CENTRED},
                {"batch", NORM_BATCH},   {"instance", NORM_CENTRED}, {"lrn", NORM_LRN}};
    for (size_t k = 0; what && k < sizeof rows / sizeof rows[0]; k++)
        if (strcmp(rows[k].what, what) == 0) return rows[k].form;
    return NORM_NONE;
}

/* Images are as large as the operation lets them be: how many groups a group norm has is told by its rows alone, so
 * the most that divide both rows and channels are taken (all of them, where there is one image). 0: none fits. */
static inline int64_t norm_groups(int64_t rows, int64_t cols, int64_t channels) {
    int64_t a = rows, b = channels;
    while (b > 0) {
        const int64_t rest = a % b;
        a = b, b = rest;
    }
    for (int64_t part = 1; a > 0 && part <= a && part <= 1 << 16; part++)
        if (a % part == 0 && cols % (channels / (a / part)) == 0) return a / part;
    return 0;
}

static inline void norm_channels(norm_problem *p, const scout_op *op) {
    const int64_t channels = op_number(op, "channels", 1);
    const int64_t groups = op_is(op, "group") ? norm_groups(p->rows, p->cols, channels) : channels;
    if (groups < 1 || channels < groups) {
        p->form = NORM_NONE;
        return;
    }
    const int64_t each = channels / groups, space = p->cols / each;
    p->sides = channels;
    if (op->layout && strcmp(op->layout, "nhwc") == 0) { /* [images, space, groups, channels of one] */
        p->k0 = p->rows / groups, p->r0 = space, p->k1 = groups, p->r1 = each;
        p->step_b = each, p->step_j = 1;
    } else if (p->form == NORM_BATCH) { /* no statistics of rows: [images, channels, space] */
        p->k0 = p->rows / channels, p->r0 = space > 1 ? channels : 1, p->r1 = space > 1 ? space : channels;
        p->step_i = space > 1, p->step_j = space <= 1;
    } else { /* [images * groups, channels of one, space] */
        p->k0 = p->rows, p->r0 = each, p->r1 = space;
        p->repeat = groups, p->step_a = each, p->step_i = 1;
    }
}

/* Reduced dimensions and others as they take turns; 0: more turns than there are levels. */
static inline int norm_levels(norm_problem *p, const int64_t *dims, int rank, const int64_t *axes, int count) {
    int64_t *const levels[] = {&p->k0, &p->r0, &p->k1, &p->r1, &p->k2};
    int at = 4, reduced[SCOUT_MAX_RANK] = {0};
    for (int k = 0; k < count; k++)
        if (axes[k] >= 0 && axes[k] < rank) reduced[axes[k]] = 1;
    for (int d = rank - 1; d >= 0; d--) { /* from the end: rows at the end need r1 alone */
        if (dims[d] == 1) continue;
        while (at >= 0 && (at % 2 == 1) != reduced[d]) at--;
        if (at < 0) return 0;
        *levels[at] *= dims[d];
    }
    if (p->r0 == 1) p->k0 *= p->k1, p->k1 = 1; /* nothing lies between them */
    return 1;
}

static inline norm_problem norm_problem_of(const scout_op *op) {
    const char *activation = op_text(op, "activation");
    int64_t axes[SCOUT_MAX_RANK], dims[SCOUT_MAX_RANK];
    norm_problem p;
    memset(&p, 0, sizeof p);
    p.form = norm_form_of(op->what);
    p.rows = op->shape[0], p.cols = op->shape[1];
    p.k0 = p.r0 = p.k1 = p.r1 = p.k2 = p.repeat = 1;
    p.epsilon = op_real(op, "epsilon", norm_epsilon(op->what));
    p.power = (int)op_number(op, "p", 2);
    p.size = op_number(op, "size", 1);
    p.alpha = op_real(op, "alpha", 1e-4), p.beta = op_real(op, "beta", 0.75), p.offset = op_real(op, "offset", 1);
    p.activation = !activation ? NORM_LINEAR : strcmp(activation, "relu") == 0 ? NORM_RELU : NORM_SILU;
    p.scale = op_tensor(op, "scale"), p.bias = op_tensor(op, "bias");
    p.mean = op_tensor(op, "mean"), p.variance = op_tensor(op, "variance");
    p.residual = op_tensor(op, "residual"), p.input_bias = op_tensor(op, "input_bias"), p.sum = op_tensor(op, "sum");
    const int rank = op_ints(op, "input", dims, SCOUT_MAX_RANK), count = op_ints(op, "axes", axes, SCOUT_MAX_RANK);
    if (op_is(op, "group") || op_is(op, "instance") || op_is(op, "batch")) {
        norm_channels(&p, op);
    } else if (p.form == NORM_LRN) { /* [channels, positions] */
        p.r1 = p.cols, p.k2 = p.rows;
    } else if (rank > 0 && rank <= SCOUT_MAX_RANK && count > 0 && count <= SCOUT_MAX_RANK) {
        if (!norm_levels(&p, dims, rank, axes, count)) p.form = NORM_NONE;
        p.sides = p.cols, p.step_i = p.r1, p.step_j = 1;
    } else {
        p.k0 = p.rows, p.r1 = p.cols, p.sides = p.cols, p.step_j = 1;
    }
    return p;
}

static inline int64_t norm_side(const norm_problem *p, int64_t a, int64_t i, int64_t b, int64_t j) {
    return a % p->repeat * p->step_a + i * p->step_i + b * p->step_b + j * p->step_j;
}

#endif
