/* A softmax of scale * x + bias, where x is [outer, cols, inner] and each of the outer * inner rows runs along the
 * middle. Header-only, shared by candidates of all devices and by plugins. */
#ifndef SCOUT_OP_SOFTMAX_H
#define SCOUT_OP_SOFTMAX_H

#include "scout/op/op.h"

enum { SOFTMAX_X = 0, SOFTMAX_Y = 1 };

typedef struct softmax_problem {
    int64_t rows, cols, outer, inner;
    int logarithm;
    int bias; /* the tensor that is added before, [bias_rows, cols]; -1: none */
    int64_t bias_rows;
    int64_t bias_turn; /* so many of its rows come in turn, for as many rows as make up the next ones' */
    double scale;
} softmax_problem;

static inline softmax_problem softmax_problem_of(const scout_op *op) {
    softmax_problem p;
    memset(&p, 0, sizeof p);
    p.rows = op->shape[0], p.cols = op->shape[1];
    p.inner = op_number(op, "inner", 1);
    p.outer = p.rows / p.inner;
    p.logarithm = op_is(op, "log");
    p.bias = op_tensor(op, "bias");
    p.bias_rows = p.bias >= 0 ? op->tensors[p.bias].dims[0] : 0;
    p.bias_turn = op_number(op, "inner_broadcast", 0);
    if (p.bias_turn == 0) p.bias_turn = p.bias_rows; /* all of them, over and over */
    p.scale = op_real(op, "scale", 1);
    return p;
}

/* The row of the bias that belongs to a row. */
static inline int64_t softmax_bias_row(const softmax_problem *p, int64_t row) {
    if (p->bias_rows < 1) return 0;
    const int64_t serves = p->rows / (p->bias_rows / p->bias_turn); /* neighbours that one turn is for */
    return row / serves * p->bias_turn + row % serves % p->bias_turn;
}

#endif
