/* A resized tensor, read from the tensors and fields of a scout_op: its last three dimensions are interpolated, those
 * before them are planes. Header-only, shared by candidates and by plugins. */
#ifndef SCOUT_OP_RESIZE_H
#define SCOUT_OP_RESIZE_H

#include "scout/op/op.h"

#include <math.h>
#include <stdlib.h>

enum { RESIZE_AXES = 3, RESIZE_TAPS = 4 };

typedef enum resize_mode { RESIZE_NEAREST, RESIZE_LINEAR, RESIZE_CUBIC, RESIZE_MODES } resize_mode;
typedef enum resize_way {
    RESIZE_HALF_PIXEL,
    RESIZE_PYTORCH_HALF_PIXEL,
    RESIZE_ALIGN_CORNERS,
    RESIZE_ASYMMETRIC,
    RESIZE_WAYS
} resize_way;
typedef enum resize_rounding {
    RESIZE_PREFER_FLOOR,
    RESIZE_PREFER_CEIL,
    RESIZE_FLOOR,
    RESIZE_CEIL,
    RESIZE_ROUNDINGS
} resize_rounding;

typedef struct resize_problem {
    resize_mode mode; /* what is not known has the number behind the last one */
    resize_way way;
    resize_rounding rounding;
    int inside;   /* what lies beyond the input has no weight; else it is the edge */
    double cubic; /* its coefficient */
    int64_t planes, in[RESIZE_AXES], out[RESIZE_AXES];
    /* what `over` of the input becomes `under` of: the lengths, or 1 and a scale that is not their ratio */
    double over[RESIZE_AXES], under[RESIZE_AXES];
} resize_problem;

static inline int resize_is(const scout_op *op) { return op_is(op, "resize") || op_is(op, "upsample"); }

static inline int resize_named(const scout_op *op, const char *field, const char *const *names, int count) {
    const char *told = op_text(op, field);
    int k = 0;
    while (told && k < count && strcmp(told, names[k]) != 0) k++;
    return k;
}

/* A scale for each dimension, where they are told; returns how many there are, at most SCOUT_MAX_RANK. */
static inline int resize_scales(const scout_op *op, double *scales) {
    const char *at = op_text(op, "scales");
    int count = 0;
    while (at && *at && count < SCOUT_MAX_RANK) {
        char *behind;
        scales[count] = strtod(at, &behind);
        if (behind == at) break;
        count++;
        at = *behind == ',' ? behind + 1 : behind;
    }
    return count;
}

static inline resize_problem resize_problem_of(const scout_op *op, const int64_t *input) {
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const ways[] = {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
    resize_problem p;
    double scales[SCOUT_MAX_RANK];
    const int told = resize_scales(op, scales) == (int)op->rank;
    memset(&p, 0, sizeof p);
    p.mode = (resize_mode)resize_named(op, "mode", modes, RESIZE_MODES);
    p.way = (resize_way)resize_named(op, "coordinates", ways, RESIZE_WAYS);
    p.rounding = (resize_rounding)resize_named(op, "rounding", roundings, RESIZE_ROUNDINGS);
    p.inside = op_real(op, "exclude_outside", 0) != 0;
    p.cubic = op_real(op, "cubic_coeff_a", -0.75);
    p.planes = 1;
    for (int k = 0; k < RESIZE_AXES; k++) p.in[k] = p.out[k] = 1, p.over[k] = p.under[k] = 1;
    for (int d = 0; d < (int)op->rank; d++) {
        const int axis = d - (int)op->rank + RESIZE_AXES;
        if (axis < 0)
            p.planes *= input[d];
        else
            p.in[axis] = input[d], p.out[axis] = op->shape[d];
        if (axis >= 0)
            p.over[axis] = told ? 1 : (double)p.in[axis], p.under[axis] = told ? scales[d] : (double)p.out[axis];
    }
    return p;
}

/* Whether an axis stays as it is. */
static inline int resize_keeps(const resize_problem *p, int axis) {
    return p->in[axis] == p->out[axis] && p->over[axis] == p->under[axis];
}

/* Where output i along an axis lies in the input. */
static inline double resize_place(const resize_problem *p, int axis, int64_t i) {
    const double in = (double)p->in[axis], out = (double)p->out[axis], at = (double)i;
    const double over = p->over[axis], under = p->under[axis];
    switch (p->way) {
    case RESIZE_ALIGN_CORNERS: return out > 1 ? at * (in - 1) / (out - 1) : 0;
    case RESIZE_ASYMMETRIC: return at * over / under;
    case RESIZE_PYTORCH_HALF_PIXEL: return out > 1 ? (at + 0.5) * over / under - 0.5 : 0;
    default: return (at + 0.5) * over / under - 0.5;
    }
}

/* What output i is mixed from: places along the axis, kept inside of it, and their weights. Returns how many. */
static inline int resize_taps(const resize_problem *p, int axis, int64_t i, int64_t *places, double *weights) {
    const double x = resize_place(p, axis, i), below = floor(x), t = x - below, a = p->cubic;
    int count = 1, first = 0;
    double from = below, all = 0;
    weights[0] = 1;
    if (resize_keeps(p, axis)) {
        from = (double)i;
    } else if (p->mode == RESIZE_NEAREST) {
        from = p->rounding == RESIZE_FLOOR         ? below
               : p->rounding == RESIZE_CEIL        ? ceil(x)
               : p->rounding == RESIZE_PREFER_CEIL ? floor(x + 0.5)
                                                   : ceil(x - 0.5);
    } else if (p->mode == RESIZE_LINEAR) {
        count = 2;
        weights[0] = 1 - t, weights[1] = t;
    } else {
        count = 4, first = -1;
        weights[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
        weights[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
        weights[2] = ((a + 2) * (1 - t) - (a + 3)) * (1 - t) * (1 - t) + 1;
        weights[3] = ((a * (2 - t) - 5 * a) * (2 - t) + 8 * a) * (2 - t) - 4 * a;
    }
    for (int k = 0; k < count; k++) {
        const double at = from + first + k, last = (double)(p->in[axis] - 1);
        places[k] = (int64_t)(at < 0 ? 0 : at > last ? last : at);
        if (p->inside && count > 1 && (at < 0 || at > last)) weights[k] = 0;
        all += weights[k];
    }
    for (int k = 0; p->inside && k < count; k++) weights[k] /= all;
    return count;
}

#endif
