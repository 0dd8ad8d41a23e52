/* Index maps between an output's elements and its inputs'. All maps are at most INFO_MAX_VALUES long, so they are
 * written out plainly instead of being computed on the fly. */
#include "extract/infer/value_index.h"

#include "common/checked.h"

enum { FLOATS_WORTH_READING = 256 };

int64_t value_index_count(int rank, const int64_t *dims) {
    int64_t n = 1;
    for (int d = 0; d < rank; d++) {
        if (dims[d] == 0) return 0;
        n = checked_mul(n, dims[d]);
    }
    return n;
}

bool value_index_small(int rank, const int64_t *dims) {
    for (int d = 0; d < rank; d++)
        if (dims[d] < 0 || dims[d] > INFO_MAX_VALUES)
            return false; /* maps are as long as an axis, even of an empty tensor */
    return value_index_count(rank, dims) <= INFO_MAX_VALUES;
}

void value_index_strides(int rank, const int64_t *dims, int64_t *strides) {
    int64_t stride = 1;
    for (int d = rank - 1; d >= 0; d--) {
        strides[d] = stride;
        stride = checked_mul(stride, dims[d]);
    }
}

bool value_index_known(const infer *c, int first, int count) {
    for (int i = first; i < first + count; i++) {
        if (!infer_has(c, i)) return false;
        const info *x = infer_in(c, i);
        if (x->val) continue;
        if (!c->node->in[i]->blob) return false;
        if (dtype_get(x->type)->cls != DTYPE_CLASS_INT && info_count(x) > FLOATS_WORTH_READING) return false;
    }
    return true;
}

void value_index_set(infer *c, int out, dtype type, int rank, const int64_t *dims, const value *v) {
    dtype_class cls = dtype_get(type)->cls;
    if (v && v->n == value_index_count(rank, dims)) {
        if (v->i && cls == DTYPE_CLASS_INT) {
            infer_set_ints(c, out, type, rank, dims, v->i, v->n);
            return;
        }
        if (v->f && cls == DTYPE_CLASS_FLOAT) {
            infer_set_floats(c, out, type, rank, dims, v->f, v->n);
            return;
        }
    }
    infer_set(c, out, type, rank, dims);
}

int64_t *value_index_axis(arena *a, int64_t dim, int64_t start, int64_t step) {
    int64_t *x = arena_array(a, int64_t, dim);
    for (int64_t k = 0; k < dim; k++) x[k] = checked_add(start, checked_mul(k, step));
    return x;
}

int64_t *value_index_map(arena *a, int rank, const int64_t *dims, int64_t *const *parts) {
    int64_t n = value_index_count(rank, dims);
    int64_t *from_of = arena_array(a, int64_t, n);
    int64_t at[INFO_MAX_RANK] = {0};
    for (int64_t k = 0; k < n; k++) {
        int64_t from = 0;
        for (int d = 0; d < rank && from >= 0; d++)
            from = parts[d][at[d]] < 0 ? -1 : checked_add(from, parts[d][at[d]]);
        from_of[k] = from;
        for (int d = rank - 1; d >= 0 && ++at[d] == dims[d]; d--) at[d] = 0;
    }
    return from_of;
}

int64_t *value_index_broadcast(arena *a, int rank, const int64_t *dims, int from_rank, const int64_t *from) {
    int64_t strides[INFO_MAX_RANK];
    int64_t *parts[INFO_MAX_RANK];
    value_index_strides(from_rank, from, strides);
    for (int d = 0; d < rank; d++) {
        int s = d - (rank - from_rank);
        parts[d] = value_index_axis(a, dims[d], 0, s < 0 || from[s] == 1 ? 0 : strides[s]);
    }
    return value_index_map(a, rank, dims, parts);
}

/* A value like v with room for n elements, filled by fill_picked. */
static value *picked(arena *a, const value *v, int64_t n) {
    value *r = arena_zalloc(a, sizeof *r);
    r->n = n;
    if (v->i)
        r->i = arena_array(a, int64_t, n);
    else
        r->f = arena_array(a, double, n);
    return r;
}

static void fill_picked(value *r, const value *v, const int64_t *from, const value *fill) {
    bool filled = fill && fill->n > 0;
    int64_t whole = !filled ? 0 : fill->i ? fill->i[0] : checked_from_double(fill->f[0]);
    double real = filled ? value_at(fill, 0) : 0;
    int64_t *i = (int64_t *)r->i;
    double *f = (double *)r->f;
    for (int64_t k = 0; k < r->n; k++) {
        bool inside = from[k] >= 0 && from[k] < v->n;
        if (i)
            i[k] = inside ? v->i[from[k]] : whole;
        else
            f[k] = inside ? v->f[from[k]] : real;
    }
}

const value *value_index_pick(arena *a, const value *v, const int64_t *from, int64_t n, const value *fill) {
    value *r = picked(a, v, n);
    fill_picked(r, v, from, fill);
    return r;
}

const value *value_index_move(arena *a, const value *v, int rank, const int64_t *dims, int64_t *const *parts,
                              const value *fill) {
    value *r = picked(a, v, value_index_count(rank, dims));
    arena_mark scratch = arena_save(a);
    fill_picked(r, v, value_index_map(a, rank, dims, parts), fill);
    arena_rewind(a, scratch);
    return r;
}

value *value_index_new(arena *a, dtype type, int64_t n, int64_t **i, double **f) {
    value *r = arena_zalloc(a, sizeof *r);
    r->n = n;
    *i = NULL;
    *f = NULL;
    if (dtype_get(type)->cls == DTYPE_CLASS_FLOAT)
        r->f = *f = arena_array(a, double, n);
    else
        r->i = *i = arena_array(a, int64_t, n);
    return r;
}

bool value_index_need(infer *c, int i) {
    if (infer_shaped(c, i)) return true;
    info_form form = infer_in(c, i)->form;
    if (!infer_has(c, i)) infer_fail(c, "input %d is missing", i);
    if (form != INFO_UNKNOWN && form != INFO_TENSOR && form != INFO_SPARSE)
        infer_fail(c, "input %d must be a tensor, it is %s", i, info_text(c->arena, infer_in(c, i)));
    infer_unresolved(c, "the shape of input %d is not known", i);
    return false;
}

bool value_index_ints(infer *c, int i, const int64_t **x, int64_t *n) {
    const info *list = infer_in(c, i);
    bool integers = list->type == DTYPE_NONE || dtype_get(list->type)->cls == DTYPE_CLASS_INT;
    if (!integers || list->rank > 1)
        infer_fail(c, "input %d must be a list of integers, not %s", i, info_text(c->arena, list));
    return infer_ints(c, i, x, n);
}
