/* Rotary embedding: pairs of the first `rotated` numbers of each head are rotated by an angle that depends on their
 * position. Read from the tensors and fields of a scout_op; header-only, shared by candidates of all devices and by
 * plugins. */
#ifndef SCOUT_OP_ROTARY_H
#define SCOUT_OP_ROTARY_H

#include "scout/op/op.h"

/* Places in op->tensors: x and y are [B, H, S, D], cos and sin [S, rotated / 2]. */
enum { ROTARY_X = 0, ROTARY_COS = 1, ROTARY_SIN = 2, ROTARY_Y = 3 };

typedef struct rotary_problem {
    int64_t batch, heads, steps, dim, rotated;
    int interleaved; /* pairs are neighbours; else one of each half */
    uint32_t type;   /* of all four */
} rotary_problem;

static inline rotary_problem rotary_problem_of(const scout_op *op) {
    rotary_problem p = {op->shape[0],
                        op->shape[1],
                        op->shape[2],
                        op->shape[3],
                        op_number(op, "rotary_dim", op->shape[3]),
                        op_number(op, "interleaved", 0) != 0,
                        op->input};
    return p;
}

#endif
