/* Scatter operators: the data's shape with some elements replaced. Exporters patch shapes with ScatterND and
 * ScatterElements, so values are followed. */
#include "common/checked.h"
#include "extract/infer/value_index.h"
#include "extract/shape/shape.h"

#include <string.h>

/* The data's values with element to[k] replaced by (or, with a reduction, joined with) updates[k]. */
static const value *scattered(infer *c, const value *data, const value *updates, const int64_t *to, int64_t n) {
    static const char *const names[][2] = {{"add", "Add"}, {"mul", "Mul"}, {"max", "Max"}, {"min", "Min"}};
    const char *how = infer_attr_string(c, "reduction", "none"), *step = NULL;
    for (size_t r = 0; r < sizeof names / sizeof *names; r++)
        if (!strcmp(names[r][0], how)) step = names[r][1];
    if ((!step && strcmp(how, "none")) || (data->i != NULL) != (updates->i != NULL) || updates->n != n) return NULL;
    dtype type = infer_type(c, 0);
    int64_t *i;
    double *f;
    const value *r = value_index_new(c->arena, type, data->n, &i, &f);
    if ((i != NULL) != (data->i != NULL)) return NULL;
    if (i) memcpy(i, data->i, sizeof *i * (size_t)data->n);
    if (f) memcpy(f, data->f, sizeof *f * (size_t)data->n);
    for (int64_t k = 0; k < n; k++) {
        if (to[k] < 0 || to[k] >= data->n) return NULL;
        int64_t whole = i ? updates->i[k] : 0;
        double real = f ? updates->f[k] : 0;
        if (step) {
            int64_t had = i ? i[to[k]] : 0;
            double had_real = f ? f[to[k]] : 0;
            if (!value_elementwise_step(step, i != NULL, &had, &had_real, whole, real)) return NULL;
            whole = value_number_wrap(type, had);
            real = value_number_round(type, had_real);
        }
        if (i) i[to[k]] = whole;
        if (f) f[to[k]] = real;
    }
    return r;
}

static int64_t checked_index(infer *c, int64_t index, int64_t dim) {
    if (index < -dim || index >= dim)
        infer_fail(c, "index %lld is outside of %s", (long long)index, info_text(c->arena, infer_in(c, 0)));
    return index < 0 ? index + dim : index;
}

/* All three inputs' values, where the data is small and they are known. */
static bool inputs_known(infer *c, const value **data, const value **indices, const value **updates) {
    const info *x = infer_in(c, 0);
    if (!value_index_small(x->rank, x->dims) || !value_index_known(c, 0, 3)) return false;
    *indices = infer_value(c, 1);
    if (!*indices || !(*indices)->i) return false;
    *updates = infer_value(c, 2);
    *data = *updates ? infer_value(c, 0) : NULL;
    return *data != NULL;
}

static const value *scatter_elements(infer *c) {
    const value *data, *indices, *updates;
    const info *x = infer_in(c, 0), *at = infer_in(c, 1);
    int64_t strides[INFO_MAX_RANK], own[INFO_MAX_RANK];
    int axis = infer_axis(c, infer_attr_int(c, "axis", 0), x->rank);
    if (at->rank != x->rank || !info_same_shape(at, infer_in(c, 2)))
        infer_fail(c, "indices %s and updates %s do not fit data %s", info_text(c->arena, at),
                   info_text(c->arena, infer_in(c, 2)), info_text(c->arena, x));
    if (!inputs_known(c, &data, &indices, &updates)) return NULL;
    value_index_strides(x->rank, x->dims, strides);
    value_index_strides(at->rank, at->dims, own);
    int64_t *to = arena_array(c->arena, int64_t, indices->n);
    for (int64_t e = 0; e < indices->n; e++) {
        to[e] = checked_index(c, indices->i[e], x->dims[axis]) * strides[axis];
        for (int d = 0; d < x->rank; d++)
            if (d != axis) to[e] = checked_add(to[e], e / own[d] % at->dims[d] * strides[d]);
    }
    return scattered(c, data, updates, to, indices->n);
}

static const value *scatter_nd(infer *c) {
    const value *data, *indices, *updates;
    const info *x = infer_in(c, 0), *at = infer_in(c, 1), *with = infer_in(c, 2);
    int64_t strides[INFO_MAX_RANK], depth = at->rank > 0 ? at->dims[at->rank - 1] : -1;
    bool fits = depth >= 0 && depth <= x->rank && with->rank == at->rank - 1 + x->rank - (int)depth;
    for (int d = 0; fits && d < with->rank; d++)
        fits = with->dims[d] == (d < at->rank - 1 ? at->dims[d] : x->dims[depth + d - (at->rank - 1)]);
    if (!fits)
        infer_fail(c, "indices %s and updates %s do not fit data %s", info_text(c->arena, at),
                   info_text(c->arena, with), info_text(c->arena, x));
    if (!inputs_known(c, &data, &indices, &updates)) return NULL;
    value_index_strides(x->rank, x->dims, strides);
    int64_t slice = value_index_count(x->rank - (int)depth, x->dims + depth);
    int64_t *to = arena_array(c->arena, int64_t, updates->n);
    for (int64_t e = 0; e < updates->n; e++) {
        to[e] = e % slice;
        for (int d = 0; d < (int)depth; d++)
            to[e] += checked_index(c, indices->i[e / slice * depth + d], x->dims[d]) * strides[d];
    }
    return scattered(c, data, updates, to, updates->n);
}

/* TensorScatter: an update shorter along one axis only. */
static void check_cache(infer *c) {
    const info *x = infer_in(c, 0), *with = infer_in(c, 1);
    int axis = infer_axis(c, infer_attr_int(c, "axis", -2), x->rank);
    bool fits = with->rank == x->rank;
    for (int d = 0; fits && d < x->rank; d++)
        fits = d == axis ? with->dims[d] <= x->dims[d] : with->dims[d] == x->dims[d];
    if (!fits) infer_fail(c, "update %s does not fit cache %s", info_text(c->arena, with), info_text(c->arena, x));
}

void shape_scatter(infer *c) {
    const char *op = c->node->op_type;
    const value *v = NULL;
    bool cache = !strcmp(op, "TensorScatter");
    for (int k = 0; k < (cache ? 2 : 3); k++)
        if (!value_index_need(c, k)) return;
    const info *x = infer_in(c, 0);
    if (cache)
        check_cache(c);
    else
        v = !strcmp(op, "ScatterND") ? scatter_nd(c) : scatter_elements(c);
    value_index_set(c, 0, x->type, x->rank, x->dims, v);
}
