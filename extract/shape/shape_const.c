/* Operators that make a tensor out of attributes, of a shape, or of a few numbers. Most chains of values that shapes
 * depend on begin here. */
#include "common/checked.h"
#include "extract/infer/value_index.h"
#include "extract/read/read.h"
#include "extract/shape/shape.h"

#include <math.h>

static bool constant_number(infer *c) {
    const attr *one_int = infer_attr_of(c, "value_int", ATTR_INT),
               *one_float = infer_attr_of(c, "value_float", ATTR_FLOAT);
    const attr *ints = infer_attr_of(c, "value_ints", ATTR_INTS),
               *floats = infer_attr_of(c, "value_floats", ATTR_FLOATS);
    if (one_int) infer_set_ints(c, 0, DTYPE_INT64, 0, NULL, &one_int->i, 1);
    if (one_float) infer_set_floats(c, 0, DTYPE_FP32, 0, NULL, &one_float->f, 1);
    if (ints && ints->n <= INFO_MAX_VALUES)
        infer_set_ints(c, 0, DTYPE_INT64, 1, &ints->n, ints->ints, ints->n);
    else if (ints)
        infer_set(c, 0, DTYPE_INT64, 1, &ints->n);
    if (floats && floats->n <= INFO_MAX_VALUES)
        infer_set_floats(c, 0, DTYPE_FP32, 1, &floats->n, floats->floats, floats->n);
    else if (floats)
        infer_set(c, 0, DTYPE_FP32, 1, &floats->n);
    return one_int || one_float || ints || floats;
}

void shape_const_constant(infer *c) {
    const attr *dense = infer_attr_of(c, "value", ATTR_TENSOR), *sparse = infer_attr_of(c, "sparse_value", ATTR_TENSOR);
    const attr *texts = infer_attr_of(c, "value_strings", ATTR_STRINGS);
    if (dense && dense->t) {
        infer_set_info(c, 0, dense->t->info);
    } else if (sparse && sparse->t) { /* a dense tensor that is only stored sparsely */
        const info *x = sparse->t->info;
        value_index_set(c, 0, x->type, x->rank, x->dims, x->val);
    } else if (infer_attr_of(c, "value_string", ATTR_STRING)) {
        infer_set(c, 0, DTYPE_STRING, 0, NULL);
    } else if (texts) {
        infer_set(c, 0, DTYPE_STRING, 1, &texts->n);
    } else if (!constant_number(c)) {
        infer_fail(c, "has no value");
    }
}

/* Dims from a known input of integers. False, and the node marked, where they are not known. */
static bool dims_of_input(infer *c, int i, int *rank, const int64_t **dims) {
    int64_t n;
    if (!value_index_ints(c, i, dims, &n)) {
        infer_unresolved(c, "its shape is the value of input %d, which is not known", i);
        return false;
    }
    if (n > INFO_MAX_RANK) infer_fail(c, "asks for %lld dimensions", (long long)n);
    for (int64_t k = 0; k < n; k++)
        if ((*dims)[k] < 0) infer_fail(c, "asks for a dimension of %lld", (long long)(*dims)[k]);
    *rank = (int)n;
    return true;
}

void shape_const_of_shape(infer *c) {
    int rank;
    const int64_t *dims;
    if (!dims_of_input(c, 0, &rank, &dims)) return;
    const attr *fill = infer_attr_of(c, "value", ATTR_TENSOR);
    const value *one = NULL;
    dtype type = DTYPE_FP32;
    if (fill && fill->t) {
        type = fill->t->info->type;
        one = fill->t->info->val ? fill->t->info->val : read_values(c->model, fill->t, 1);
        if (!one || one->n < 1) {
            infer_set(c, 0, type, rank, dims);
            return;
        }
    }
    if (!value_index_small(rank, dims)) {
        infer_set(c, 0, type, rank, dims);
        return;
    }
    int64_t *i, n = value_index_count(rank, dims);
    double *f;
    const value *v = value_index_new(c->arena, type, n, &i, &f);
    for (int64_t k = 0; k < n; k++) {
        if (i)
            i[k] = one && one->i ? one->i[0] : 0;
        else
            f[k] = one && one->f ? one->f[0] : 0;
    }
    value_index_set(c, 0, type, rank, dims, v);
}

static int64_t clamp(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

void shape_const_shape(infer *c) {
    if (!value_index_need(c, 0)) return;
    int64_t rank = infer_rank(c, 0);
    int64_t start = infer_attr_int(c, "start", 0), end = infer_attr_int(c, "end", rank);
    start = clamp(start < 0 ? checked_add(start, rank) : start, 0, rank);
    end = clamp(end < 0 ? checked_add(end, rank) : end, start, rank);
    int64_t n = end - start;
    infer_set_ints(c, 0, DTYPE_INT64, 1, &n, infer_in(c, 0)->dims + (n > 0 ? start : 0), n);
}

void shape_const_size(infer *c) {
    if (!value_index_need(c, 0)) return;
    int64_t n = value_index_count(infer_rank(c, 0), infer_in(c, 0)->dims);
    infer_set_ints(c, 0, DTYPE_INT64, 0, NULL, &n, 1);
}

/* Elements of an integer range; the distance is taken unsigned because it may exceed the signed range. */
static int64_t range_count_int(int64_t start, int64_t limit, int64_t delta) {
    if (delta > 0 ? limit <= start : limit >= start) return 0;
    uint64_t distance = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    uint64_t step = delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta;
    uint64_t n = distance / step + (distance % step != 0);
    return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

static int64_t range_count(infer *c, dtype type, const value *start, const value *limit, const value *delta) {
    if (value_at(delta, 0) == 0) infer_fail(c, "counts in steps of 0");
    if (start->i && limit->i && delta->i) return range_count_int(start->i[0], limit->i[0], delta->i[0]);
    double distance = value_number_round(type, value_at(limit, 0) - value_at(start, 0));
    int64_t n = checked_from_double(ceil(distance / value_at(delta, 0)));
    return n < 0 ? 0 : n;
}

void shape_const_range(infer *c) {
    static const int64_t one_int = 1;
    static const double one_float = 1;
    static const value whole = {1, &one_int, NULL}, real = {1, NULL, &one_float};
    dtype type = infer_type(c, 0);
    const value *start = infer_value(c, 0), *limit = infer_value(c, 1), *delta = infer_value(c, 2);
    if (!infer_has(c, 2) && start) delta = start->i ? &whole : &real; /* com.microsoft's may leave it out */
    if (!start || !limit || !delta || start->n < 1 || limit->n < 1 || delta->n < 1) {
        infer_unresolved(c, "its length depends on start, limit or delta, which are not known");
        return;
    }
    int64_t n = range_count(c, type, start, limit, delta);
    if (n > INFO_MAX_VALUES) {
        infer_set(c, 0, type, 1, &n);
        return;
    }
    int64_t *i;
    double *f;
    const value *v = value_index_new(c->arena, type, n, &i, &f);
    for (int64_t k = 0; k < n; k++) {
        if (i && start->i && delta->i)
            i[k] = value_number_wrap(type, checked_add(start->i[0], checked_mul(k, delta->i[0])));
        else if (f)
            f[k] = value_number_round(type, value_at(start, 0) + (double)k * value_at(delta, 0));
    }
    value_index_set(c, 0, type, 1, &n, start->i && !delta->i ? NULL : v);
}

void shape_const_eye_like(infer *c) {
    if (!value_index_need(c, 0)) return;
    const info *x = infer_in(c, 0);
    dtype type = (dtype)infer_attr_int(c, "dtype", x->type);
    if (!dtype_known((int64_t)type)) infer_fail(c, "dtype %lld is not known", (long long)type);
    if (x->rank != 2) infer_fail(c, "needs a matrix, not %s", info_text(c->arena, x));
    if (!value_index_small(2, x->dims) || !value_number_tracked(type)) {
        infer_set(c, 0, type, 2, x->dims);
        return;
    }
    int64_t k = infer_attr_int(c, "k", 0), *i, n = value_index_count(2, x->dims);
    double *f;
    const value *v = value_index_new(c->arena, type, n, &i, &f);
    for (int64_t e = 0; e < n; e++) {
        bool on = e % x->dims[1] == checked_add(e / x->dims[1], k);
        if (i) i[e] = on;
        if (f) f[e] = on;
    }
    value_index_set(c, 0, type, 2, x->dims, v);
}

/* Which of values[0], values[1] each element is. */
static const value *one_hot_values(infer *c, int rank, const int64_t *dims, int axis) {
    if (!value_index_small(rank, dims) || !value_index_known(c, 0, 1) || !value_index_known(c, 2, 1)) return NULL;
    const value *at = infer_value(c, 0), *pair = infer_value(c, 2);
    if (!at || !pair || pair->n != 2) return NULL;
    int64_t n = value_index_count(rank, dims), depth = dims[axis];
    int64_t inner = value_index_count(rank - axis - 1, dims + axis + 1);
    int64_t *which = arena_array(c->arena, int64_t, n);
    for (int64_t k = 0; k < n; k++) {
        int64_t here = k / inner % depth, index = k / inner / depth * inner + k % inner;
        int64_t hot = checked_from_double(value_at(at, index));
        which[k] = (hot < 0 ? checked_add(hot, depth) : hot) == here;
    }
    return value_index_pick(c->arena, pair, which, n, NULL);
}

void shape_const_one_hot(infer *c) {
    int64_t depth, dims[INFO_MAX_RANK];
    if (!value_index_need(c, 0)) return;
    int rank = infer_rank(c, 0) + 1;
    if (rank > INFO_MAX_RANK) infer_fail(c, "would have %d dimensions", rank);
    int axis = infer_axis(c, infer_attr_int(c, "axis", -1), rank);
    if (!infer_int(c, 1, &depth)) {
        infer_unresolved(c, "depth is not known");
        return;
    }
    if (depth < 0) infer_fail(c, "depth is %lld", (long long)depth);
    for (int d = 0; d < rank; d++) dims[d] = d == axis ? depth : infer_dim(c, 0, d < axis ? d : d - 1);
    value_index_set(c, 0, infer_type(c, 2), rank, dims, one_hot_values(c, rank, dims, axis));
}
