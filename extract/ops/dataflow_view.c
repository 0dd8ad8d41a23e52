/* Moves as strides: what a reader that takes strides can do without. */
#include "extract/ops/dataflow.h"

#include "common/checked.h"
#include "extract/ops/cost.h"

#include <string.h>

/* Of one move: the input's own strides, and those of the output over it. */
typedef struct move_view {
    const work *w;
    const node *n;
    const tensor *in, *out;
    int64_t *before; /* of Split: how much of its axis the outputs before it have; -1: not known */
    int rank, out_rank;
    int64_t own[INFO_MAX_RANK], strides[INFO_MAX_RANK], offset;
} move_view;

typedef bool move_view_fn(move_view *v);

static int64_t dim_in(const move_view *v, int k) { return v->in->info->dims[k]; }
static int64_t dim_out(const move_view *v, int k) { return v->out->info->dims[k]; }

static int axis_of(const move_view *v, int64_t axis) {
    if (axis < 0) axis += v->rank;
    return axis >= 0 && axis < v->rank ? (int)axis : -1;
}

/* Integers that came as an attribute, or as an input since. */
static bool ints_of(const move_view *v, const char *name, int slot, const int64_t **x, int64_t *count) {
    const attr *given = graph_attr(v->n, name, ATTR_INTS);
    const value *known = given ? NULL : cost_values(v->w, cost_in(v->w, slot));
    *x = given ? given->ints : known ? known->i : NULL;
    *count = given ? given->n : known ? known->n : 0;
    return *x != NULL;
}

static bool view_transpose(move_view *v) {
    const attr *perm = graph_attr(v->n, "perm", ATTR_INTS);
    if (v->out_rank != v->rank || (perm && perm->n != v->rank)) return false;
    for (int k = 0; k < v->rank; k++) {
        const int axis = axis_of(v, perm ? perm->ints[k] : v->rank - 1 - k);
        if (axis < 0) return false;
        v->strides[k] = v->own[axis];
    }
    return true;
}

static bool view_slice(move_view *v) {
    const int64_t *starts, *axes = NULL, *steps = NULL;
    int64_t count, axis_count = 0, step_count = 0;
    if (v->out_rank != v->rank || !ints_of(v, "starts", 1, &starts, &count)) return false;
    if (!ints_of(v, "axes", 3, &axes, &axis_count) && cost_in(v->w, 3)) return false;
    if (!ints_of(v, "steps", 4, &steps, &step_count) && cost_in(v->w, 4)) return false;
    if (count > v->rank || (axes && axis_count != count) || (steps && step_count != count)) return false;
    memcpy(v->strides, v->own, (size_t)v->rank * sizeof *v->strides);
    for (int64_t k = 0; k < count; k++) {
        const int axis = axis_of(v, axes ? axes[k] : k);
        const int64_t step = steps ? steps[k] : 1;
        if (axis < 0 || step == 0) return false;
        const int64_t most = step > 0 ? dim_in(v, axis) : dim_in(v, axis) - 1;
        int64_t start = starts[k] < 0 ? checked_add(starts[k], dim_in(v, axis)) : starts[k];
        start = start < 0 ? 0 : start > most ? most : start;
        v->offset = checked_add(v->offset, checked_mul(start, v->own[axis]));
        v->strides[axis] = checked_mul(step, v->own[axis]);
    }
    return true;
}

static bool view_split(move_view *v) {
    const int axis = axis_of(v, graph_attr_int(v->n, "axis", 0));
    if (axis < 0 || v->out_rank != v->rank) return false;
    memcpy(v->strides, v->own, (size_t)v->rank * sizeof *v->strides);
    v->offset = checked_mul(*v->before, v->own[axis]);
    *v->before = checked_add(*v->before, dim_out(v, axis));
    return true;
}

/* Of Expand and Tile: what was of size 1, or not there, is the same everywhere. */
static bool view_repeat(move_view *v) {
    const int added = v->out_rank - v->rank;
    if (added < 0) return false;
    for (int k = added; k < v->out_rank; k++) {
        const int64_t size = dim_in(v, k - added);
        if (size != dim_out(v, k) && size != 1) return false;
        v->strides[k] = size == dim_out(v, k) ? v->own[k - added] : 0;
    }
    return true;
}

/* Of one known index: one of the tensors along the axis. */
static bool view_gather(move_view *v) {
    const tensor *index = cost_in(v->w, 1);
    const value *known = cost_values(v->w, index);
    const int axis = axis_of(v, graph_attr_int(v->n, "axis", 0));
    if (axis < 0 || !known || !known->i || known->n != 1 || cost_rank(index) != v->out_rank - v->rank + 1) return false;
    const int64_t at = known->i[0] < 0 ? checked_add(known->i[0], dim_in(v, axis)) : known->i[0];
    const int ones = cost_rank(index);
    for (int k = 0; k < v->out_rank; k++)
        v->strides[k] = k < axis ? v->own[k] : k < axis + ones ? 0 : v->own[k - ones + 1];
    v->offset = checked_mul(at, v->own[axis]);
    return at >= 0 && at < dim_in(v, axis);
}

static const struct move_view_row {
    const char *op_type;
    move_view_fn *fn;
} rows[] = {
    {"Expand", view_repeat}, {"Gather", view_gather}, {"Slice", view_slice},
    {"Split", view_split},   {"Tile", view_repeat},   {"Transpose", view_transpose},
};

/* Row-major; false where no number holds them. */
static bool lay_out(move_view *v) {
    int64_t stride = 1;
    for (int k = v->rank - 1; k >= 0; k--) {
        v->own[k] = stride;
        stride = checked_mul(stride, dim_in(v, k));
    }
    return stride > 0 && stride < INT64_MAX;
}

/* Its first and its last element lie inside the input. */
static bool is_inside(const move_view *v) {
    int64_t first = v->offset, last = v->offset;
    for (int k = 0; k < v->out_rank; k++) {
        const int64_t reach = checked_mul(checked_sub(dim_out(v, k), 1), v->strides[k]);
        if (dim_out(v, k) < 1 || v->strides[k] == INT64_MIN) return false;
        if (reach < 0)
            first = checked_add(first, reach);
        else
            last = checked_add(last, reach);
    }
    return first >= 0 && last < info_count(v->in->info);
}

static bool is_told(const move_view *v) {
    return v->w->node_count == 1 && !v->n->domain[0] && cost_shaped(v->in) && cost_shaped(v->out) &&
           !v->in->info->inexact && !v->out->info->inexact && cost_type(v->w, v->in) == cost_type(v->w, v->out);
}

const dataflow_strides *dataflow_view(const work *w, int k, int64_t *before) {
    move_view v = {.w = w, .n = w->node, .in = cost_in(w, 0), .out = cost_out(w, k), .before = before};
    if (!is_told(&v)) *before = -1;
    if (*before < 0) return NULL;
    const struct move_view_row *row = graph_row(rows, sizeof rows / sizeof *rows, sizeof *rows, w->node->op_type);
    v.rank = v.in->info->rank;
    v.out_rank = v.out->info->rank;
    if (!row || v.rank > INFO_MAX_RANK || v.out_rank > INFO_MAX_RANK || !lay_out(&v)) return NULL;
    if (!row->fn(&v) || !is_inside(&v)) return NULL;
    const size_t bytes = (size_t)v.out_rank * sizeof *v.strides;
    dataflow_strides *made = arena_zalloc(w->arena, sizeof *made + bytes);
    made->offset = v.offset;
    memcpy(made->strides, v.strides, bytes);
    return made;
}
