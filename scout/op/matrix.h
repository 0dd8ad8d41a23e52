/* Determinants and inverses of small square matrices, one behind the other: "x" [..., n, n] and "y", which has a number
 * for each, or as many as x. Header-only, shared by candidates of all devices and by plugins. */
#ifndef SCOUT_OP_MATRIX_H
#define SCOUT_OP_MATRIX_H

#include "scout/op/op.h"

enum { MATRIX_X = 0, MATRIX_Y = 1, MATRIX_MOST = 64 }; /* rows, of what the devices' kernels hold */

typedef struct matrix_problem {
    int inverts; /* else determinants */
    int64_t count, n;
    uint32_t type;
} matrix_problem;

static inline int matrix_is(const scout_op *op) { return op_is(op, "det") || op_is(op, "inverse"); }

static inline matrix_problem matrix_problem_of(const scout_op *op) {
    const scout_tensor *x = &op->tensors[MATRIX_X];
    const int64_t n = x->dims[x->rank - 1];
    matrix_problem p = {op_is(op, "inverse"), op_elements(x) / n / n, n, x->type};
    return p;
}

/* Outputs of a matrix. */
static inline int64_t matrix_each(const scout_op *op) {
    const matrix_problem p = matrix_problem_of(op);
    return p.inverts ? p.n * p.n : 1;
}

#endif
