/* Quantising and back: y = round(x / scale) + zero point within the type's range, and y = (x - zero point) * scale.
 * With a block size there is a scale (and a zero point) for so many elements along the axis, at every other place.
 * Read from the tensors and fields of a scout_op; header-only, shared by candidates of all devices and by plugins.
 * Tensors: x, scales, then zero_points where there are any, then y.
 *
 * Dynamic quantising computes scale and zero point itself; its tensors are x, y, and the outputs "scale" (fp32) and
 * "zero". With x from least to greatest, and 0 among them, the scale is (greatest - least) / 255, in fp32 as ONNX has
 * it, and the zero point -least / scale, rounded. */
#ifndef SCOUT_OP_QUANTIZE_H
#define SCOUT_OP_QUANTIZE_H

#include "scout/op/op.h"

#include <math.h>

typedef struct quantize_problem {
    int quantizes;                  /* else it dequantises */
    int dynamic;                    /* scales and zero_points are outputs, one each */
    int64_t outer, channels, inner; /* channels: along the axis */
    int64_t block;                  /* of elements along it that share a scale; 0: all else shares it */
    int scales, zero_points, y;     /* tensors; zero_points -1: none */
    uint32_t from, to, scale_type;
} quantize_problem;

static inline quantize_problem quantize_problem_of(const scout_op *op) {
    const int64_t axis = op_number(op, "axis", -1);
    quantize_problem p = {.quantizes = op_is(op, "quantize"), .outer = 1, .channels = 1, .inner = 1, .scales = 1};
    for (int64_t d = 0; d < (int64_t)op->rank; d++)
        *(axis < 0 || d > axis ? &p.inner : d < axis ? &p.outer : &p.channels) *= op->shape[d];
    if (op_is(op, "dynamic")) {
        p.quantizes = p.dynamic = 1;
        p.y = 1, p.scales = 2, p.zero_points = 3;
        p.from = op->tensors[0].type, p.to = op->tensors[1].type, p.scale_type = SCOUT_FP32;
        return p;
    }
    p.block = op_number(op, "block_size", 0);
    p.zero_points = op_tensor(op, "zero_points"), p.y = (int)op->tensor_count - 1;
    p.from = op->tensors[0].type, p.to = op->tensors[p.y].type, p.scale_type = op->tensors[1].type;
    return p;
}

/* How many scales there are. */
static inline int64_t quantize_sides(const quantize_problem *p) {
    return p->block > 0 ? p->outer * ((p->channels + p->block - 1) / p->block) * p->inner : p->channels;
}

/* Which of them belongs to an element. */
static inline int64_t quantize_side(const quantize_problem *p, int64_t at) {
    const int64_t along = at / p->inner % p->channels, outer = at / p->inner / p->channels;
    if (p->block == 0) return along;
    return (outer * ((p->channels + p->block - 1) / p->block) + along / p->block) * p->inner + at % p->inner;
}

/* Of numbers from least to greatest, 0 among them. */
static inline float quantize_scale(float least, float greatest) {
    return greatest > least ? (greatest - least) / 255.0f : 1.0f;
}
static inline float quantize_zero(float least, float scale) {
    return rintf(fminf(fmaxf(0.0f - least / scale, 0.0f), 255.0f));
}

#endif
