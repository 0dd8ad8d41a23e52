/* Operators whose output's shape depends on data: exact where the data is known, else bounded above and listed. */
#include "common/checked.h"
#include "extract/infer/value_index.h"
#include "extract/shape/shape.h"

#include <stdlib.h>
#include <string.h>

static const value *small_value(infer *c, int i) {
    const info *x = infer_in(c, i);
    return value_index_small(x->rank, x->dims) && value_index_known(c, i, 1) ? infer_value(c, i) : NULL;
}

static int64_t count_true(const value *v) {
    int64_t n = 0;
    for (int64_t k = 0; k < v->n; k++) n += v->i ? v->i[k] != 0 : v->f[k] != 0;
    return n;
}

/* One row per dimension, one column per element that is not zero. */
void shape_data_nonzero(infer *c) {
    int64_t strides[INFO_MAX_RANK], *i;
    double *f;
    if (!value_index_need(c, 0)) return;
    const info *x = infer_in(c, 0);
    const value *v = small_value(c, 0);
    int64_t dims[2] = {x->rank, v ? count_true(v) : value_index_count(x->rank, x->dims)};
    if (!v) {
        infer_set_bound(c, 0, DTYPE_INT64, 2, (int64_t[]){x->rank, 0}, dims,
                        "the number of non-zero elements depends on data");
        return;
    }
    if (!value_index_small(2, dims)) {
        infer_set(c, 0, DTYPE_INT64, 2, dims);
        return;
    }
    value_index_strides(x->rank, x->dims, strides);
    const value *r = value_index_new(c->arena, DTYPE_INT64, value_index_count(2, dims), &i, &f);
    int64_t column = 0;
    for (int64_t k = 0; k < v->n; k++) {
        if (v->i ? v->i[k] == 0 : v->f[k] == 0) continue;
        for (int d = 0; d < x->rank; d++) i[d * dims[1] + column] = k / strides[d] % x->dims[d];
        column++;
    }
    value_index_set(c, 0, DTYPE_INT64, 2, dims, r);
}

/* Slices along an axis (or elements of the flattened input) whose condition holds. */
void shape_data_compress(infer *c) {
    if (!value_index_need(c, 0) || !value_index_need(c, 1)) return;
    const info *x = infer_in(c, 0), *chosen = infer_in(c, 1);
    bool flat = !infer_attr(c, "axis");
    int64_t whole = value_index_count(x->rank, x->dims), dims[INFO_MAX_RANK];
    const info line = {.form = INFO_TENSOR, .type = x->type, .rank = 1, .dims = &whole};
    const info *from = flat ? &line : x;
    int axis = infer_axis(c, infer_attr_int(c, "axis", 0), from->rank);
    if (chosen->rank != 1) infer_fail(c, "its condition must be a vector, not %s", info_text(c->arena, chosen));
    memcpy(dims, from->dims, sizeof *dims * (size_t)from->rank);
    const value *v = small_value(c, 1), *data = NULL;
    if (!v) {
        int64_t least[INFO_MAX_RANK];
        memcpy(least, dims, sizeof *dims * (size_t)from->rank);
        least[axis] = 0;
        if (chosen->dims[0] < dims[axis]) dims[axis] = chosen->dims[0];
        infer_set_bound(c, 0, x->type, from->rank, least, dims, "the number of elements that it keeps depends on data");
        return;
    }
    int64_t n = 0, old = dims[axis], *kept = arena_array(c->arena, int64_t, v->n);
    for (int64_t k = 0; k < v->n && k < old; k++)
        if (value_at(v, k) != 0) kept[n++] = k;
    dims[axis] = n;
    if (value_index_small(from->rank, dims)) data = small_value(c, 0);
    if (data && n > 0) {
        int64_t inner = value_index_count(from->rank - axis - 1, dims + axis + 1),
                total = value_index_count(from->rank, dims);
        int64_t *source = arena_array(c->arena, int64_t, total);
        for (int64_t e = 0; e < total; e++) source[e] = (e / inner / n * old + kept[e / inner % n]) * inner + e % inner;
        data = value_index_pick(c->arena, data, source, total, NULL);
    }
    value_index_set(c, 0, x->type, from->rank, dims, data);
}

/* [batch, class, box] of every box kept: at most the stated number per class. */
void shape_data_nms(infer *c) {
    int64_t most = 0;
    if (!value_index_need(c, 0) || !value_index_need(c, 1)) return;
    const info *boxes = infer_in(c, 0), *scores = infer_in(c, 1);
    if (boxes->rank != 3 || scores->rank != 3 || boxes->dims[0] != scores->dims[0] || boxes->dims[1] != scores->dims[2])
        infer_fail(c, "boxes %s and scores %s do not fit", info_text(c->arena, boxes), info_text(c->arena, scores));
    if (infer_has(c, 2) && !infer_int(c, 2, &most)) most = boxes->dims[1];
    if (most > boxes->dims[1]) most = boxes->dims[1];
    if (most < 0) most = 0;
    const int64_t dims[2] = {checked_mul(checked_mul(scores->dims[0], scores->dims[1]), most), 3};
    if (dims[0] == 0)
        infer_set(c, 0, DTYPE_INT64, 2, dims);
    else
        infer_set_bound(c, 0, DTYPE_INT64, 2, (int64_t[]){0, 3}, dims,
                        "the number of boxes that it keeps depends on data");
}

void shape_data_topk(infer *c) {
    int64_t k = infer_attr_int(c, "k", -1), dims[INFO_MAX_RANK];
    if (!value_index_need(c, 0)) return;
    const info *x = infer_in(c, 0);
    int axis = infer_axis(c, infer_attr_int(c, "axis", -1), x->rank);
    memcpy(dims, x->dims, sizeof *dims * (size_t)x->rank);
    if (infer_has(c, 1) && !infer_int(c, 1, &k)) {
        int64_t least[INFO_MAX_RANK];
        memcpy(least, dims, sizeof *dims * (size_t)x->rank);
        least[axis] = 0;
        infer_set_bound(c, 0, x->type, x->rank, least, dims, "k depends on data");
        infer_set_bound(c, 1, DTYPE_INT64, x->rank, least, dims, "k depends on data");
        return;
    }
    if (k < 0 || k > x->dims[axis])
        infer_fail(c, "k is %lld for axis %d of %s", (long long)k, axis, info_text(c->arena, x));
    dims[axis] = k;
    infer_set(c, 0, x->type, x->rank, dims);
    infer_set(c, 1, DTYPE_INT64, x->rank, dims);
}

/* ---- Unique ---- */

/* Slices of a tensor along an axis, to be ordered. */
typedef struct unique_slice {
    const value *v;
    int64_t at, dim, inner; /* which of dim slices, each in runs of inner elements */
} unique_slice;

static int compare_slices(const void *left, const void *right) {
    const unique_slice *p = left, *q = right;
    int64_t outer = p->v->n / p->dim / p->inner;
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t k = 0; k < p->inner; k++) {
            int64_t a = (o * p->dim + p->at) * p->inner + k, b = (o * p->dim + q->at) * p->inner + k;
            if (p->v->i && p->v->i[a] != p->v->i[b]) return p->v->i[a] < p->v->i[b] ? -1 : 1;
            if (p->v->f && p->v->f[a] != p->v->f[b]) return p->v->f[a] < p->v->f[b] ? -1 : 1;
        }
    }
    return 0;
}

/* How many different slices there are along the axis; -1 where not known. */
static int64_t count_unique(infer *c, int64_t dim, int64_t inner) {
    const value *v = small_value(c, 0);
    if (!v || dim <= 1 || inner == 0 || v->n == 0) return dim <= 1 ? dim : -1;
    for (int64_t k = 0; v->f && k < v->n; k++)
        if (v->f[k] != v->f[k]) return -1; /* not-a-number has no order */
    arena_mark scratch = arena_save(c->arena);
    unique_slice *slices = arena_array(c->arena, unique_slice, dim);
    for (int64_t k = 0; k < dim; k++) slices[k] = (unique_slice){v, k, dim, inner};
    qsort(slices, (size_t)dim, sizeof *slices, compare_slices);
    int64_t different = 1;
    for (int64_t k = 1; k < dim; k++) different += compare_slices(&slices[k - 1], &slices[k]) != 0;
    arena_rewind(c->arena, scratch);
    return different;
}

/* The vectors beside the unique elements: [different] and, at `inverse`, [dim]. */
static void set_unique(infer *c, int rank, const int64_t *dims, int axis, int64_t found, int64_t bound, int inverse) {
    static const char why[] = "the number of different elements depends on data";
    int64_t least[INFO_MAX_RANK];
    memcpy(least, dims, sizeof *dims * (size_t)rank);
    least[axis] = 0;
    dtype type = infer_type(c, 0);
    int64_t n = found < 0 ? bound : found;
    for (int k = 0; k < infer_out_count(c); k++) {
        dtype of = k == 0 ? type : DTYPE_INT64;
        int r = k == 0 ? rank : 1;
        const int64_t *d = k == 0 ? dims : k == inverse ? &bound : &n;
        if (found < 0 && k != inverse)
            infer_set_bound(c, k, of, r, k == 0 ? least : NULL, d, "%s", why);
        else
            infer_set(c, k, of, r, d);
    }
}

void shape_data_unique(infer *c) {
    int64_t dims[INFO_MAX_RANK];
    if (!value_index_need(c, 0)) return;
    const info *x = infer_in(c, 0);
    if (!infer_attr(c, "axis")) {
        int64_t whole = value_index_count(x->rank, x->dims), found = count_unique(c, whole, 1);
        dims[0] = found < 0 ? whole : found;
        set_unique(c, 1, dims, 0, found, whole, 2);
        return;
    }
    int axis = infer_axis(c, infer_attr_int(c, "axis", 0), x->rank);
    int64_t found = count_unique(c, x->dims[axis], value_index_count(x->rank - axis - 1, x->dims + axis + 1));
    memcpy(dims, x->dims, sizeof *dims * (size_t)x->rank);
    if (found >= 0) dims[axis] = found;
    set_unique(c, x->rank, dims, axis, found, x->dims[axis], 2);
}

/* com.microsoft's: unique elements of a vector, where each came to, how many there are of each. */
void shape_data_unique_ms(infer *c) {
    if (!value_index_need(c, 0)) return;
    int64_t whole = value_index_count(infer_rank(c, 0), infer_in(c, 0)->dims), found = count_unique(c, whole, 1);
    int64_t n = found < 0 ? whole : found;
    set_unique(c, 1, &n, 0, found, whole, 1);
}
