/* Operators that give the same elements another shape; values pass through. */
#include "common/checked.h"
#include "extract/infer/value_index.h"
#include "extract/shape/shape.h"

#include <string.h>

/* Sets the output to the input's elements under new dims. */
static void view(infer *c, int rank, const int64_t *dims) {
    const info *x = infer_in(c, 0);
    const value *v = value_index_small(x->rank, x->dims) && value_index_known(c, 0, 1) ? infer_value(c, 0) : NULL;
    value_index_set(c, 0, x->type, rank, dims, v);
}

/* Fills in the dimension that is -1. What is only an upper bound need not divide: the next whole number below bounds
 * it. */
static void reshape_rest(infer *c, int rank, int64_t *dims, int rest) {
    const info *x = infer_in(c, 0);
    int64_t total = value_index_count(x->rank, x->dims), others = 1;
    for (int d = 0; d < rank; d++)
        if (d != rest) others = checked_mul(others, dims[d]);
    const info as = {.form = INFO_TENSOR, .type = x->type, .rank = rank, .dims = dims};
    if (rest < 0) {
        if (others != total && !c->bound)
            infer_fail(c, "cannot give %s the shape %s", info_text(c->arena, x), info_text(c->arena, &as));
        return;
    }
    if (others == 0) {
        /* Nothing divided by nothing: runtimes agree on 0. */
        if (total != 0) infer_fail(c, "cannot give %s the shape %s", info_text(c->arena, x), info_text(c->arena, &as));
        dims[rest] = 0;
        return;
    }
    if (total % others != 0 && !c->bound)
        infer_fail(c, "cannot give %s the shape %s", info_text(c->arena, x), info_text(c->arena, &as));
    dims[rest] = total / others;
}

/* An input of unknown shape still gets a known one where every dimension is given. */
static bool reshape_blind(infer *c, int rank, const int64_t *asked, bool zero_is_zero) {
    if (infer_shaped(c, 0)) return false;
    for (int d = 0; d < rank; d++)
        if (asked[d] < 0 || (asked[d] == 0 && !zero_is_zero)) return false;
    infer_set(c, 0, infer_type(c, 0), rank, asked);
    return true;
}

void shape_view_reshape(infer *c) {
    const int64_t *asked;
    int64_t n, dims[INFO_MAX_RANK];
    if (infer_has(c, 1) ? !value_index_ints(c, 1, &asked, &n) : !infer_attr_ints(c, "shape", &asked, &n)) {
        infer_unresolved(c, "its shape is the value of input 1, which is not known");
        return;
    }
    if (n > INFO_MAX_RANK) infer_fail(c, "asks for %lld dimensions", (long long)n);
    bool zero_is_zero = infer_attr_int(c, "allowzero", 0) != 0;
    int rank = (int)n, rest = -1;
    if (reshape_blind(c, rank, asked, zero_is_zero) || !value_index_need(c, 0)) return;
    for (int d = 0; d < rank; d++) {
        dims[d] = asked[d];
        if (asked[d] == 0 && !zero_is_zero) {
            if (d >= infer_rank(c, 0))
                infer_fail(c, "keeps dimension %d of %s", d, info_text(c->arena, infer_in(c, 0)));
            dims[d] = infer_dim(c, 0, d);
        } else if (asked[d] == -1) {
            if (rest >= 0) infer_fail(c, "leaves two dimensions (%d and %d) open", rest, d);
            rest = d;
        } else if (asked[d] < 0) {
            infer_fail(c, "asks for a dimension of %lld", (long long)asked[d]);
        }
    }
    reshape_rest(c, rank, dims, rest);
    view(c, rank, dims);
}

/* Axes of Squeeze and Unsqueeze: an input since opset 13, an attribute before. Marks them in `on`; how many, -1 where
 * the operator has none, -2 where they are not known (the node is marked then). */
static int64_t axes_of(infer *c, int rank, bool *on) {
    const int64_t *axes;
    int64_t n;
    if (infer_has(c, 1)) {
        if (!value_index_ints(c, 1, &axes, &n)) {
            infer_unresolved(c, "its axes are the value of input 1, which is not known");
            return -2;
        }
    } else if (!infer_attr_ints(c, "axes", &axes, &n)) {
        return -1;
    }
    memset(on, 0, sizeof *on * INFO_MAX_RANK);
    for (int64_t k = 0; k < n; k++) {
        int axis = infer_axis(c, axes[k], rank);
        if (on[axis]) infer_fail(c, "names axis %d twice", axis);
        on[axis] = true;
    }
    return n;
}

void shape_view_squeeze(infer *c) {
    bool on[INFO_MAX_RANK];
    int64_t dims[INFO_MAX_RANK];
    if (!value_index_need(c, 0)) return;
    int rank = infer_rank(c, 0), kept = 0;
    const info *x = infer_in(c, 0);
    int64_t n = axes_of(c, rank, on);
    if (n == -2) return;
    for (int d = 0; d < rank; d++) {
        if (n == -1 ? x->dims[d] != 1 : !on[d])
            dims[kept++] = x->dims[d];
        else if (x->dims[d] != 1 && !c->bound)
            infer_fail(c, "cannot drop axis %d of %s", d, info_text(c->arena, x));
    }
    view(c, kept, dims);
}

void shape_view_unsqueeze(infer *c) {
    bool on[INFO_MAX_RANK] = {false};
    const int64_t *axes;
    int64_t dims[INFO_MAX_RANK], n;
    if (!value_index_need(c, 0)) return;
    if (infer_has(c, 1) ? !value_index_ints(c, 1, &axes, &n) : !infer_attr_ints(c, "axes", &axes, &n)) {
        if (!infer_has(c, 1)) infer_fail(c, "has no axes");
        infer_unresolved(c, "its axes are the value of input 1, which is not known");
        return;
    }
    if (n > INFO_MAX_RANK - infer_rank(c, 0)) infer_fail(c, "would have more than %d dimensions", INFO_MAX_RANK);
    int rank = infer_rank(c, 0) + (int)n, from = 0;
    axes_of(c, rank, on);
    for (int d = 0; d < rank; d++) dims[d] = on[d] ? 1 : infer_dim(c, 0, from++);
    view(c, rank, dims);
}

void shape_view_expand_dims(infer *c) {
    int64_t axis, dims[INFO_MAX_RANK];
    if (!value_index_need(c, 0)) return;
    int rank = infer_rank(c, 0) + 1, from = 0;
    if (rank > INFO_MAX_RANK) infer_fail(c, "would have %d dimensions", rank);
    if (!infer_int(c, 1, &axis)) {
        infer_unresolved(c, "its axis is the value of input 1, which is not known");
        return;
    }
    int at = infer_axis(c, axis, rank);
    for (int d = 0; d < rank; d++) dims[d] = d == at ? 1 : infer_dim(c, 0, from++);
    view(c, rank, dims);
}

void shape_view_flatten(infer *c) {
    if (!value_index_need(c, 0)) return;
    const info *x = infer_in(c, 0);
    int64_t axis = infer_attr_int(c, "axis", 1);
    if (axis < 0) axis = checked_add(axis, x->rank);
    if (axis < 0 || axis > x->rank) infer_fail(c, "axis is outside of %s", info_text(c->arena, x));
    int64_t dims[2] = {value_index_count((int)axis, x->dims), value_index_count(x->rank - (int)axis, x->dims + axis)};
    view(c, 2, dims);
}
