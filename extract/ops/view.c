/* The moves that are strides, and the regrouping of factors to dimensions. */
#include "extract/ops/view.h"

#include "common/checked.h"
#include "extract/ops/cost.h"

#include <stdlib.h>
#include <string.h>

/* Of one move: the input's strides, and those of the output. */
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
    v->offset = checked_add(v->offset, checked_mul(*v->before, v->own[axis]));
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
    v->offset = checked_add(v->offset, checked_mul(at, v->own[axis]));
    return at >= 0 && at < dim_in(v, axis);
}

static const struct move_view_row {
    const char *op_type;
    move_view_fn *fn;
} rows[] = {
    {"Expand", view_repeat}, {"Gather", view_gather}, {"Slice", view_slice},
    {"Split", view_split},   {"Tile", view_repeat},
};

/* ---- factors ---- */

/* Row-major; false where no number holds them. */
static bool lay_out(view *v, int rank, const int64_t *dims) {
    int64_t stride = 1;
    *v = (view){.count = rank};
    for (int k = rank - 1; k >= 0; k--) {
        v->factors[k] = (view_factor){dims[k], stride};
        stride = checked_mul(stride, dims[k]);
    }
    v->elements = stride;
    return stride > 0 && stride < INT64_MAX;
}

static bool is_exact(const tensor *t) { return cost_shaped(t) && !t->info->inexact && t->info->rank <= INFO_MAX_RANK; }

bool view_whole(view *v, const tensor *t) { return is_exact(t) && lay_out(v, t->info->rank, t->info->dims); }

/* The factors by dimension: those of dimension k are begin[k] to begin[k + 1]. A factor may be cut in two. */
typedef struct grouping {
    view_factor factors[VIEW_FACTORS];
    int begin[INFO_MAX_RANK + 1];
} grouping;

/* From the innermost dimension to the outermost. */
static bool group(const view *v, int rank, const int64_t *dims, grouping *g) {
    int at = VIEW_FACTORS, left = v->count;
    int64_t rest = left > 0 ? v->factors[left - 1].size : 1; /* of the last factor that is left */
    if (rank > INFO_MAX_RANK) return false;
    g->begin[rank] = at;
    for (int k = rank - 1; k >= 0; k--) {
        int64_t size = dims[k];
        while (left > 0 && (size > 1 || (size == 1 && at == g->begin[k + 1] && rest == 1))) {
            const view_factor *f = &v->factors[left - 1];
            const int64_t taken = rest <= size ? rest : size;
            if (taken < 1 || at == 0 || size % taken != 0 || rest % taken != 0) return false;
            if (taken > 1 || dims[k] == 1)
                g->factors[--at] = (view_factor){taken, checked_mul(f->stride, f->size / rest)};
            size /= taken, rest /= taken;
            if (rest > 1) continue;
            left--;
            rest = left > 0 ? v->factors[left - 1].size : 1;
        }
        if (size != 1) return false;
        g->begin[k] = at;
    }
    while (left > 0 && rest == 1) rest = --left > 0 ? v->factors[left - 1].size : 1;
    return left == 0;
}

bool view_cut(view *v, int rank, const int64_t *dims) {
    grouping g;
    if (!group(v, rank, dims, &g)) return false;
    view made = {.offset = v->offset, .elements = v->elements, .count = rank};
    for (int k = 0; k < rank; k++) {
        view_factor all = {1, 0};
        for (int at = g.begin[k + 1] - 1; at >= g.begin[k]; at--) {
            const view_factor *f = &g.factors[at];
            if (all.size > 1 && f->stride != checked_mul(all.size, all.stride)) return false;
            if (all.size == 1) all.stride = f->stride;
            all.size *= f->size;
        }
        made.factors[k] = all;
    }
    *v = made;
    return true;
}

typedef struct turned_factor {
    view_factor of;
    int64_t stride; /* in what is turned to */
} turned_factor;

static int by_stride(const void *a, const void *b) {
    const turned_factor *x = a, *y = b;
    return (x->of.stride < y->of.stride) - (x->of.stride > y->of.stride);
}

bool view_turn(view *v) {
    turned_factor all[VIEW_FACTORS];
    int count = 0;
    int64_t stride = 1, dense = 1;
    for (int k = v->count - 1; k >= 0; k--) {
        if (v->factors[k].size == 1) continue;
        all[count++] = (turned_factor){v->factors[k], stride};
        stride = checked_mul(stride, v->factors[k].size);
    }
    qsort(all, (size_t)count, sizeof *all, by_stride);
    for (int k = count - 1; k >= 0; k--) {
        if (all[k].of.stride != dense) return false;
        dense = checked_mul(dense, all[k].of.size);
        v->factors[k] = (view_factor){all[k].of.size, all[k].stride};
    }
    v->count = count;
    return v->offset == 0 && dense == v->elements;
}

/* ---- a move ---- */

/* Its first and its last element lie inside the source. */
static bool is_inside(const move_view *v, int64_t elements) {
    int64_t first = v->offset, last = v->offset;
    for (int k = 0; k < v->out_rank; k++) {
        const int64_t reach = checked_mul(checked_sub(dim_out(v, k), 1), v->strides[k]);
        if (dim_out(v, k) < 1 || v->strides[k] == INT64_MIN) return false;
        if (reach < 0)
            first = checked_add(first, reach);
        else
            last = checked_add(last, reach);
    }
    return first >= 0 && last < elements;
}

static bool is_told(const move_view *v) {
    return v->w->node_count == 1 && !v->n->domain[0] && is_exact(v->in) && is_exact(v->out) &&
           cost_type(v->w, v->in) == cost_type(v->w, v->out);
}

/* Whatever factors a dimension has change places together. */
static bool transpose(view *v, const move_view *m) {
    const attr *perm = graph_attr(m->n, "perm", ATTR_INTS);
    const int rank = m->in->info->rank;
    grouping g;
    if (m->out->info->rank != rank || (perm && perm->n != rank) || !group(v, rank, m->in->info->dims, &g)) return false;
    v->count = 0;
    for (int k = 0; k < rank; k++) {
        const int axis = axis_of(m, perm ? perm->ints[k] : rank - 1 - k);
        if (axis < 0) return false;
        for (int at = g.begin[axis]; at < g.begin[axis + 1]; at++) {
            if (v->count == VIEW_FACTORS) return false;
            v->factors[v->count++] = g.factors[at];
        }
    }
    return true;
}

bool view_move(view *v, const work *w, int k, int64_t *before) {
    move_view m = {.w = w, .n = w->node, .in = cost_in(w, 0), .out = cost_out(w, k), .before = before};
    const struct move_view_row *row = graph_row(rows, sizeof rows / sizeof *rows, sizeof *rows, w->node->op_type);
    if (!is_told(&m)) *before = -1;
    if (*before < 0) return false;
    m.rank = m.in->info->rank;
    m.out_rank = m.out->info->rank;
    if (graph_is(m.n, "Transpose")) return transpose(v, &m);
    if (!row || !view_cut(v, m.rank, m.in->info->dims)) return false;
    m.offset = v->offset;
    for (int d = 0; d < m.rank; d++) m.own[d] = v->factors[d].stride;
    if (!row->fn(&m) || !is_inside(&m, v->elements)) return false;
    v->offset = m.offset;
    v->count = m.out_rank;
    for (int d = 0; d < m.out_rank; d++) v->factors[d] = (view_factor){dim_out(&m, d), m.strides[d]};
    return true;
}
