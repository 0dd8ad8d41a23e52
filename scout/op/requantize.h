/* Requantising: the epilogue of an operation between DequantizeLinear and QuantizeLinear (`quant` qdq), from sums of
 * bytes to bytes or fp32. Header-only, shared by kinds, candidates and references of all devices.
 *
 *     y = activation(factor * (sum of (x - zero_in) * (w - zero_weight) + bias)), for bytes + zero_out, rounded, and
 * clipped to them
 *
 * That is a product or convolution; element by element the sum is that of the operands x - zero_in (or their product,
 * or what relu leaves), of a pool their average over the window.
 *
 * Scales and zero points of a model are constants, and ops.json has no values. One factor replaces them: a power of 2
 * near which the outputs of normal inputs use their range. The zero point of unsigned bytes is 128. So it is for a
 * convolution whose input's scale and zero point are found at run time (`quant` dynamic): the work is the same. */
#ifndef SCOUT_OP_REQUANTIZE_H
#define SCOUT_OP_REQUANTIZE_H

#include "scout/op/activation.h"

typedef struct requantize {
    int is;                             /* 0: there is none, and all else is 0 */
    int rounds;                         /* y is bytes */
    int zero_in, zero_weight, zero_out; /* zero points of x, w and y */
    double factor, least, most;
} requantize;

/* With that factor. */
static inline requantize requantize_by(const scout_op *op, double factor) {
    const char *const quant = op_text(op, "quant");
    requantize r = {0, 0, 0, 0, 0, 0, 0, 0};
    if (!quant || (strcmp(quant, "qdq") != 0 && (op->kind != SCOUT_CONV || strcmp(quant, "dynamic") != 0))) return r;
    r.is = 1;
    r.rounds = op->output == SCOUT_INT8 || op->output == SCOUT_UINT8;
    r.zero_in = op->input == SCOUT_UINT8 ? 128 : 0;
    r.zero_weight = op->weight == SCOUT_UINT8 || (op->weight == SCOUT_NONE && op->input == SCOUT_UINT8) ? 128 : 0;
    r.zero_out = op->output == SCOUT_UINT8 ? 128 : 0;
    r.factor = factor;
    r.least = op->output == SCOUT_UINT8 ? 0 : -128;
    r.most = op->output == SCOUT_UINT8 ? 255 : 127;
    return r;
}

/* Products of two normal bytes (32 times normal numbers) are about 1024 large, and `depth` of them that times its
 * root: an output is to be about 32. */
static inline requantize requantize_of(const scout_op *op, int64_t depth) {
    return requantize_by(op, exp2(rint(-5 - log2((double)depth) / 2)));
}

/* An average of `taps` bytes is smaller by its root. */
static inline requantize requantize_average(const scout_op *op, int64_t taps) {
    return requantize_by(op, exp2(rint(log2((double)taps) / 2)));
}

/* Element by element: half of a sum of two bytes is one, so that something is rounded. factor 0: not covered. */
static inline requantize requantize_elements(const scout_op *op) {
    static const struct {
        const char *what;
        double factor;
    } rows[] = {{"add", 0x1p-1}, {"mul", 0x1p-5}, {"relu", 1}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (op_is(op, rows[k].what)) return requantize_by(op, rows[k].factor);
    return requantize_by(op, 0);
}

/* The largest bias and 1: about as large as the sums. */
static inline int64_t requantize_bias(int64_t depth) { return (int64_t)exp2(rint(log2((double)depth) / 2) + 10); }

/* The result of a sum with its bias, before rounding. */
static inline double requantize_apply(const requantize *r, const op_activation *a, double sum) {
    const double y = activation_apply(a, r->factor * sum) + r->zero_out;
    return r->rounds ? fmin(r->most, fmax(r->least, y)) : y;
}

/* Rounding may go either way where it is close: `tolerance` of want and spread is half a step and a little. */
static inline double requantize_spread(const requantize *r, double want) {
    return r->rounds ? (0.5 + 0x1p-9) * 0x1p10 - fabs(want) : r->factor;
}
static inline double requantize_tolerance(const requantize *r) { return r->rounds ? 0x1p-10 : 0x1p-22; }

/* Activations that are bounds, in fp32 as in bytes. */
static inline int requantize_activation(const op_activation *a) {
    return a->function == ACTIVATION_PLAIN || a->function == ACTIVATION_RELU || a->function == ACTIVATION_CLIP;
}

/* Activation (none, relu, clip) and range as bounds of factor * sum, before zero_out is added to it: for kernels
 * without activations. */
static inline void requantize_bounds(const requantize *r, const op_activation *a, double *least, double *most) {
    const double from = r->least - r->zero_out, to = r->most - r->zero_out;
    *least = a->function == ACTIVATION_RELU ? 0 : a->function == ACTIVATION_CLIP ? a->alpha : from;
    *most = a->function == ACTIVATION_CLIP ? a->beta : to;
    *least = fmin(to, fmax(from, *least));
    *most = fmin(to, fmax(from, *most));
}

#endif
