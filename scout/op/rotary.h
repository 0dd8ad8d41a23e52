/* Rotary embedding: pairs of the first `rotated` numbers of each head are rotated by an angle that depends on their
 * position. Read from the tensors and fields of a scout_op; header-only, shared by candidates of all devices and by
 * plugins. */
#ifndef SCOUT_OP_ROTARY_H
#define SCOUT_OP_ROTARY_H

#include "scout/op/op.h"

#ifdef __CUDACC__
#define ROTARY_ANYWHERE __host__ __device__
#else
#define ROTARY_ANYWHERE
#endif

/* Places in op->tensors: x and y are [B, H, S, D], cos and sin [S, angles], or [B, S, angles]. */
enum { ROTARY_X = 0, ROTARY_COS = 1, ROTARY_SIN = 2, ROTARY_Y = 3 };

typedef struct rotary_problem {
    int64_t batch, heads, steps, dim, rotated;
    int64_t angles;  /* of a step: one for each pair, or one for each number that is rotated */
    int64_t tables;  /* of angles: one, or one for each sequence of the batch */
    int interleaved; /* pairs are neighbours; else one of each half */
    uint32_t type;   /* of all four */
} rotary_problem;

static inline rotary_problem rotary_problem_of(const scout_op *op) {
    const int64_t rotated = op_number(op, "rotary_dim", op->shape[3]);
    rotary_problem p = {op->shape[0],
                        op->shape[1],
                        op->shape[2],
                        op->shape[3],
                        rotated,
                        op_number(op, "angle_dim", rotated / 2),
                        op_number(op, "angle_batch", 1),
                        op_number(op, "interleaved", 0) != 0,
                        op->input};
    return p;
}

/* The row of the angles that turns a row of x. */
static inline ROTARY_ANYWHERE int64_t rotary_step(const rotary_problem *p, int64_t row) {
    return (p->tables > 1 ? row / (p->heads * p->steps) * p->steps : 0) + row % p->steps;
}

#endif
