/* Gather, GatherElements and GatherND: elements chosen by index. Where indices are known they are checked, because an
 * index outside (a position beyond a table) means that the bound sizes do not fit the model. */
#include "common/checked.h"
#include "extract/infer/value_index.h"
#include "extract/shape/shape.h"

#include <string.h>

/* An index as it counts from the front; fails where it is outside. */
static int64_t checked_index(infer *c, int64_t index, int64_t dim) {
    if (index < -dim || index >= dim)
        infer_fail(c, "index %lld is outside of %s", (long long)index, info_text(c->arena, infer_in(c, 0)));
    return index < 0 ? index + dim : index;
}

/* Both inputs are tensors of known shape, and the indices are integers. */
static bool inputs_fit(infer *c) {
    if (!value_index_need(c, 0) || !value_index_need(c, 1)) return false;
    const info *at = infer_in(c, 1);
    if (at->type != DTYPE_NONE && dtype_get(at->type)->cls != DTYPE_CLASS_INT)
        infer_fail(c, "indices must be integers, not %s", info_text(c->arena, at));
    return true;
}

/* Known integer indices (input 1), else NULL. */
static const value *known_indices(infer *c) {
    const value *v = value_index_known(c, 1, 1) ? infer_value(c, 1) : NULL;
    return v && v->i ? v : NULL;
}

/* Values of the data where the output is small enough to have values. */
static const value *known_data(infer *c, int rank, const int64_t *dims) {
    return value_index_small(rank, dims) && value_index_known(c, 0, 1) ? infer_value(c, 0) : NULL;
}

void shape_gather(infer *c) {
    int64_t dims[INFO_MAX_RANK];
    if (!inputs_fit(c)) return;
    const info *x = infer_in(c, 0), *at = infer_in(c, 1);
    int axis = infer_axis(c, infer_attr_int(c, "axis", 0), x->rank), rank = x->rank - 1 + at->rank, n = 0;
    if (rank > INFO_MAX_RANK) infer_fail(c, "would have %d dimensions", rank);
    for (int d = 0; d < axis; d++) dims[n++] = x->dims[d];
    for (int d = 0; d < at->rank; d++) dims[n++] = at->dims[d];
    for (int d = axis + 1; d < x->rank; d++) dims[n++] = x->dims[d];
    const value *indices = known_indices(c), *data = NULL;
    for (int64_t k = 0; indices && k < indices->n; k++) checked_index(c, indices->i[k], x->dims[axis]);
    if (indices) data = known_data(c, rank, dims);
    if (data) {
        int64_t total = value_index_count(rank, dims),
                inner = value_index_count(x->rank - axis - 1, x->dims + axis + 1);
        int64_t *from = arena_array(c->arena, int64_t, total);
        for (int64_t e = 0; e < total; e++) {
            int64_t outer = e / inner / indices->n, chosen = e / inner % indices->n;
            from[e] = (outer * x->dims[axis] + checked_index(c, indices->i[chosen], x->dims[axis])) * inner + e % inner;
        }
        data = value_index_pick(c->arena, data, from, total, NULL);
    }
    value_index_set(c, 0, x->type, rank, dims, data);
}

void shape_gather_elements(infer *c) {
    if (!inputs_fit(c)) return;
    const info *x = infer_in(c, 0), *at = infer_in(c, 1);
    int64_t strides[INFO_MAX_RANK], own[INFO_MAX_RANK];
    int axis = infer_axis(c, infer_attr_int(c, "axis", 0), x->rank);
    bool fits = at->rank == x->rank;
    for (int d = 0; fits && d < x->rank; d++) fits = d == axis || at->dims[d] <= x->dims[d];
    if (!fits) infer_fail(c, "indices %s do not fit data %s", info_text(c->arena, at), info_text(c->arena, x));
    const value *indices = known_indices(c), *data = NULL;
    for (int64_t k = 0; indices && k < indices->n; k++) checked_index(c, indices->i[k], x->dims[axis]);
    if (indices) data = known_data(c, at->rank, at->dims);
    if (data) {
        value_index_strides(x->rank, x->dims, strides);
        value_index_strides(at->rank, at->dims, own);
        int64_t *from = arena_array(c->arena, int64_t, indices->n);
        for (int64_t e = 0; e < indices->n; e++) {
            from[e] = checked_index(c, indices->i[e], x->dims[axis]) * strides[axis];
            for (int d = 0; d < x->rank; d++)
                if (d != axis) from[e] += e / own[d] % at->dims[d] * strides[d];
        }
        data = value_index_pick(c->arena, data, from, indices->n, NULL);
    }
    value_index_set(c, 0, x->type, at->rank, at->dims, data);
}

/* Where each of the tuples of indices points to, as an element of the data. */
static const value *gather_nd_values(infer *c, const value *indices, int batch, int depth, int rank,
                                     const int64_t *dims) {
    const info *x = infer_in(c, 0), *at = infer_in(c, 1);
    int64_t strides[INFO_MAX_RANK], tuples = value_index_count(at->rank - 1, at->dims);
    int64_t batches = value_index_count(batch, x->dims),
            slice = value_index_count(x->rank - batch - depth, x->dims + batch + depth);
    value_index_strides(x->rank, x->dims, strides);
    int64_t *start = arena_array(c->arena, int64_t, tuples);
    for (int64_t t = 0; t < tuples; t++) {
        int64_t per_batch = tuples / batches, whole = value_index_count(x->rank - batch, x->dims + batch);
        start[t] = checked_mul(t / per_batch, whole);
        for (int d = 0; d < depth; d++)
            start[t] =
                checked_add(start[t], checked_mul(checked_index(c, indices->i[t * depth + d], x->dims[batch + d]),
                                                  strides[batch + d]));
    }
    const value *data = known_data(c, rank, dims);
    if (!data) return NULL;
    int64_t total = value_index_count(rank, dims), *from = arena_array(c->arena, int64_t, total);
    for (int64_t e = 0; e < total; e++) from[e] = start[e / slice] + e % slice;
    return value_index_pick(c->arena, data, from, total, NULL);
}

void shape_gather_nd(infer *c) {
    int64_t dims[INFO_MAX_RANK];
    if (!inputs_fit(c)) return;
    const info *x = infer_in(c, 0), *at = infer_in(c, 1);
    int64_t batch = infer_attr_int(c, "batch_dims", 0);
    if (at->rank < 1 || batch < 0 || batch >= at->rank || batch >= x->rank)
        infer_fail(c, "indices %s with %lld batch dimensions do not fit data %s", info_text(c->arena, at),
                   (long long)batch, info_text(c->arena, x));
    int64_t depth = at->dims[at->rank - 1];
    if (depth < 1 || depth > x->rank - batch)
        infer_fail(c, "indices %s are too deep for data %s", info_text(c->arena, at), info_text(c->arena, x));
    for (int d = 0; d < (int)batch; d++)
        if (x->dims[d] != at->dims[d])
            infer_fail(c, "batches of indices %s and data %s differ", info_text(c->arena, at), info_text(c->arena, x));
    int rank = at->rank - 1 + x->rank - (int)(batch + depth);
    if (rank > INFO_MAX_RANK) infer_fail(c, "would have %d dimensions", rank);
    for (int d = 0; d < rank; d++)
        dims[d] = d < at->rank - 1 ? at->dims[d] : x->dims[batch + depth + d - (at->rank - 1)];
    const value *indices = known_indices(c);
    value_index_set(c, 0, x->type, rank, dims,
                    indices && indices->n > 0 ? gather_nd_values(c, indices, (int)batch, (int)depth, rank, dims)
                                              : NULL);
}
