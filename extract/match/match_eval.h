/* A part of the graph tried out on numbers: two formulas are the same when they give the same results, in whatever
 * order and with whatever operators they are written. */
#pragma once

#include "extract/match/match_flow.h"

enum {
    EVAL_LANES = 6,
    EVAL_MAX_STEPS = 96,
    EVAL_MAX_DEPTH = 28,
    EVAL_MAX_INPUTS = 8 /* no formula has a node with more: it is not even walked */
};

/* x stands for a row of EVAL_LANES numbers, repeated as often as the real row is long: a mean over the row is a mean
 * over the lanes. Scalars are the same in all lanes. */
typedef struct eval_cone {
    match *m;
    const tensor *x;
    const double *lanes;
    bool rows;          /* reductions over rows are understood */
    int64_t cols;       /* set by the first reduction: how long the real row is */
    uint32_t axes;      /* and along which dimensions it lies: bit 0 the last one, bit 1 the one before it, … */
    int steps;          /* left; the caller sets EVAL_MAX_STEPS */
    flow_set *set;      /* gathers the nodes between x and the result; may be NULL */
    const tensor *also; /* another tensor whose lanes are known already; may be NULL */
    double also_lanes[EVAL_LANES];
} eval_cone;

/* The lanes of t; false where something other than x, known scalars and arithmetic feeds it. */
bool eval_lanes(eval_cone *c, tensor *t, int depth, double *out);
bool eval_follows(const node *n, bool rows);                        /* an operator that eval_lanes understands */
bool eval_near(const double *a, const double *b, double tolerance); /* lanes agree, absolutely and relatively */
