/* Reductions: the operator, and the strides of reduced dimensions in the input. Header-only, shared by candidates of
 * all devices and by plugins. The input is tensor 0 with its dimensions, the output tensor 1 with the same number of
 * them: 1 where they were reduced. */
#ifndef SCOUT_OP_REDUCE_H
#define SCOUT_OP_REDUCE_H

#include "scout/op/op.h"

enum { REDUCE_X = 0, REDUCE_Y = 1, REDUCE_PLACES = 2 };

/* Name; whether integers have it; whether the result is a place (int64); whether it is exact: chooses and adds nothing;
 * whether the input must be positive (it is filled so then). */
#define REDUCE_OPERATORS(X)                                                                                            \
    X(sum, 1, 0, 0, 0)                                                                                                 \
    X(mean, 1, 0, 0, 0)                                                                                                \
    X(max, 1, 0, 1, 0)                                                                                                 \
    X(min, 1, 0, 1, 0)                                                                                                 \
    X(prod, 1, 0, 0, 0)                                                                                                \
    X(l1, 1, 0, 0, 0)                                                                                                  \
    X(l2, 0, 0, 0, 0)                                                                                                  \
    X(sumsquare, 1, 0, 0, 0)                                                                                           \
    X(logsum, 0, 0, 0, 1)                                                                                              \
    X(argmax, 1, 1, 1, 0)                                                                                              \
    X(argmin, 1, 1, 1, 0)                                                                                              \
    X(logsumexp, 0, 0, 0, 0)

typedef enum reduce_id {
#define REDUCE_ID(name, wholes, place, exact, positive) REDUCE_##name,
    REDUCE_OPERATORS(REDUCE_ID)
#undef REDUCE_ID
        REDUCE_COUNT
} reduce_id;

typedef struct reduce_operator {
    const char *what;
    int wholes, place, exact, positive;
} reduce_operator;

/* NULL: not one of the table. id may be NULL. */
static inline const reduce_operator *reduce_operator_of(const scout_op *op, reduce_id *id) {
#define REDUCE_ROW(name, wholes, place, exact, positive) {#name, wholes, place, exact, positive},
    static const reduce_operator rows[REDUCE_COUNT] = {REDUCE_OPERATORS(REDUCE_ROW)};
#undef REDUCE_ROW
    for (int k = 0; k < REDUCE_COUNT; k++) {
        if (!op_is(op, rows[k].what)) continue;
        if (id) *id = (reduce_id)k;
        return &rows[k];
    }
    return NULL;
}

/* The input's dimensions, innermost first, kept and reduced ones apart; neighbours of one sort are one. A list without
 * dimensions has one of 1. */
typedef struct reduce_side {
    int rank;
    int64_t count;
    int64_t dims[SCOUT_MAX_RANK], strides[SCOUT_MAX_RANK];
} reduce_side;

typedef struct reduce_problem {
    reduce_side kept, reduced;
    int last; /* of equal places: the last one, not the first */
} reduce_problem;

static inline void reduce_add(reduce_side *s, int64_t dim, int64_t stride) {
    const int last = s->rank - 1;
    s->count *= dim;
    if (dim == 1) return;
    if (s->rank > 0 && stride == s->strides[last] * s->dims[last]) {
        s->dims[last] *= dim;
        return;
    }
    s->dims[s->rank] = dim, s->strides[s->rank] = stride;
    s->rank++;
}

static inline reduce_problem reduce_problem_of(const scout_op *op) {
    const scout_tensor *x = &op->tensors[REDUCE_X], *y = &op->tensors[REDUCE_Y];
    reduce_problem p;
    memset(&p, 0, sizeof p);
    p.kept.count = p.reduced.count = 1;
    p.last = op_real(op, "select_last_index", 0) != 0;
    for (uint32_t d = x->rank; d-- > 0;)
        reduce_add(y->dims[d] == x->dims[d] ? &p.kept : &p.reduced, x->dims[d], x->strides[d]);
    reduce_side *const sides[] = {&p.kept, &p.reduced};
    for (int k = 0; k < 2; k++)
        if (sides[k]->rank == 0) sides[k]->rank = 1, sides[k]->dims[0] = 1, sides[k]->strides[0] = 1;
    return p;
}

/* What goes along lines of one dimension and brings them down to `kept` numbers: running sums and products (cumsum,
 * cumprod), whose output has them all, and searches (topk): the best ones, in order, with their places in a third
 * tensor. Of equal ones the first comes first. */
typedef struct reduce_lines {
    int64_t outer, length, inner, kept; /* inner: elements between neighbours of a line */
    int searches, largest;
    int products;            /* running ones, not sums */
    int exclusive, backward; /* of running sums: without the element itself; from the end */
} reduce_lines;

static inline int reduce_goes_along(const scout_op *op) {
    return op_is(op, "cumsum") || op_is(op, "cumprod") || op_is(op, "topk");
}

/* The dimension of its input that the lines go along: the last one where nothing is said. */
static inline int reduce_line_axis(const scout_op *op, int rank) {
    int64_t axis = rank - 1;
    if (op_is(op, "topk"))
        axis = op_number(op, "axis", axis);
    else
        (void)op_ints(op, "axes", &axis, 1);
    return axis >= 0 && axis < rank ? (int)axis : -1;
}

static inline reduce_lines reduce_lines_of(const scout_op *op) {
    const scout_tensor *x = &op->tensors[REDUCE_X], *y = &op->tensors[REDUCE_Y];
    const int axis = reduce_line_axis(op, (int)x->rank);
    reduce_lines l;
    l.outer = l.inner = 1, l.length = x->dims[axis], l.kept = y->dims[axis];
    for (int d = 0; d < axis; d++) l.outer *= x->dims[d];
    for (int d = axis + 1; d < (int)x->rank; d++) l.inner *= x->dims[d];
    l.searches = op_is(op, "topk"), l.largest = op_number(op, "largest", 1) != 0;
    l.products = op_is(op, "cumprod");
    l.exclusive = op_number(op, "exclusive", 0) != 0, l.backward = op_number(op, "reverse", 0) != 0;
    return l;
}

/* Where element `at` of a side lies; returns how many follow it along the innermost dimension, itself included. */
static inline int64_t reduce_to(const reduce_side *s, int64_t at, int64_t *offset) {
    const int64_t run = s->dims[0] - at % s->dims[0];
    *offset = 0;
    for (int d = 0; d < s->rank; d++) {
        *offset += at % s->dims[d] * s->strides[d];
        at /= s->dims[d];
    }
    return run;
}

#endif
