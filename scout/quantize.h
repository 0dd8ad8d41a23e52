/* Quantising and back: y = round(x / scale) + zero point within the type's range, and y = (x - zero point) * scale.
 * Read from the tensors and fields of a scout_op; header-only, so that candidates of all devices and foreign plugins
 * share it. Tensors: x, scales, then zero_points where there are any, then y. */
#ifndef SCOUT_QUANTIZE_H
#define SCOUT_QUANTIZE_H

#include "scout/op.h"

typedef struct quantize_problem {
    int quantizes;                  /* else it goes back */
    int64_t outer, channels, inner; /* channels: how many scales there are */
    int scales, zero_points, y;     /* tensors; zero_points -1: none */
    uint32_t from, to, scale_type;
} quantize_problem;

static inline quantize_problem quantize_problem_of(const scout_op *op) {
    const int64_t axis = op_number(op, "axis", -1);
    quantize_problem p = {.quantizes = op_is(op, "quantize"), .outer = 1, .channels = 1, .inner = 1, .scales = 1};
    for (int64_t d = 0; d < (int64_t)op->rank; d++)
        *(axis < 0 || d > axis ? &p.inner : d < axis ? &p.outer : &p.channels) *= op->shape[d];
    p.zero_points = op_tensor(op, "zero_points"), p.y = (int)op->tensor_count - 1;
    p.from = op->tensors[0].type, p.to = op->tensors[p.y].type, p.scale_type = op->tensors[1].type;
    return p;
}

#endif
