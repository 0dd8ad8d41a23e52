/* Reductions over axes, ArgMax and ArgMin, running sums and products. Products and maxima of dimensions are common in
 * chains that shapes depend on, so values are followed. */
#include "common/checked.h"
#include "extract/infer/value_index.h"
#include "extract/shape/shape.h"

#include <math.h>
#include <string.h>

typedef enum reduce_pre { PRE_NONE, PRE_ABS, PRE_SQUARE } reduce_pre;
typedef enum reduce_post { POST_NONE, POST_MEAN, POST_ROOT, POST_LOG } reduce_post;

/* A reduction is a step over elements, with something done to each before and to the result after. */
typedef struct reduce_row {
    const char *name, *step;
    reduce_pre pre;
    reduce_post post;
} reduce_row;

static const reduce_row reduce_rows[] = {
    {"ReduceSum", "Add", PRE_NONE, POST_NONE},   {"ReduceProd", "Mul", PRE_NONE, POST_NONE},
    {"ReduceMax", "Max", PRE_NONE, POST_NONE},   {"ReduceMin", "Min", PRE_NONE, POST_NONE},
    {"ReduceMean", "Add", PRE_NONE, POST_MEAN},  {"ReduceL1", "Add", PRE_ABS, POST_NONE},
    {"ReduceL2", "Add", PRE_SQUARE, POST_ROOT},  {"ReduceSumSquare", "Add", PRE_SQUARE, POST_NONE},
    {"ReduceLogSum", "Add", PRE_NONE, POST_LOG},
};

static int64_t pre_whole(reduce_pre pre, int64_t x) {
    return pre == PRE_SQUARE ? checked_mul(x, x) : pre == PRE_ABS && x < 0 ? checked_sub(0, x) : x;
}

static double pre_real(reduce_pre pre, double x) { return pre == PRE_SQUARE ? x * x : pre == PRE_ABS ? fabs(x) : x; }

/* Which element of the output each element of the input goes to. */
static int64_t *reduce_targets(infer *c, const bool *on) {
    const info *x = infer_in(c, 0);
    int64_t *parts[INFO_MAX_RANK], stride = 1;
    for (int d = x->rank - 1; d >= 0; d--) {
        parts[d] = value_index_axis(c->arena, x->dims[d], 0, on[d] ? 0 : stride);
        if (!on[d]) stride = checked_mul(stride, x->dims[d]);
    }
    return value_index_map(c->arena, x->rank, x->dims, parts);
}

static const value *reduced(infer *c, const bool *on, int64_t n) {
    const info *x = infer_in(c, 0);
    const reduce_row *row = NULL;
    for (size_t r = 0; r < sizeof reduce_rows / sizeof *reduce_rows && !row; r++)
        if (!strcmp(reduce_rows[r].name, c->node->op_type)) row = &reduce_rows[r];
    if (!row || !value_number_tracked(x->type) || !value_index_small(x->rank, x->dims) || !value_index_known(c, 0, 1))
        return NULL;
    const value *v = infer_value(c, 0);
    if (!v || n == 0 || v->n == 0) return NULL;
    if (v->i && row->post != POST_NONE && row->post != POST_MEAN) return NULL;
    const int64_t *to = reduce_targets(c, on);
    int64_t *i, *met = arena_array(c->arena, int64_t, n);
    double *f;
    const value *r = value_index_new(c->arena, x->type, n, &i, &f);
    if ((i != NULL) != (v->i != NULL)) return NULL;
    for (int64_t k = 0; k < v->n; k++) {
        int64_t t = to[k], whole = i ? pre_whole(row->pre, v->i[k]) : 0;
        double real = f ? pre_real(row->pre, v->f[k]) : 0;
        if (met[t]++ == 0) {
            if (i) i[t] = whole;
            if (f) f[t] = real;
        } else if (!value_elementwise_step(row->step, i != NULL, i ? &i[t] : &whole, f ? &f[t] : &real, whole, real)) {
            return NULL;
        }
    }
    for (int64_t t = 0; t < n; t++) {
        if (i) i[t] = value_number_wrap(x->type, row->post == POST_MEAN ? checked_div(i[t], met[t]) : i[t]);
        if (f && row->post == POST_MEAN) f[t] /= (double)met[t];
        if (f && row->post == POST_ROOT) f[t] = sqrt(f[t]);
        if (f && row->post == POST_LOG) f[t] = log(f[t]);
        if (f) f[t] = value_number_round(x->type, f[t]);
    }
    return r;
}

/* Marks the axes that are reduced: an input (since opset 13 or 18) or an attribute. False where they are not known. */
static bool reduce_axes(infer *c, bool *on) {
    const int64_t *axes = NULL;
    int64_t n = 0;
    int rank = infer_rank(c, 0);
    bool plain = !strcmp(c->node->domain, ""); /* com.microsoft's quantised mean has other inputs */
    if (plain && infer_has(c, 1)) {
        if (!value_index_ints(c, 1, &axes, &n)) return false;
    } else {
        infer_attr_ints(c, "axes", &axes, &n);
    }
    bool all = n == 0 && !(plain && infer_attr_int(c, "noop_with_empty_axes", 0));
    for (int d = 0; d < rank; d++) on[d] = all;
    for (int64_t k = 0; k < n; k++) on[infer_axis(c, axes[k], rank)] = true;
    return true;
}

void shape_reduce(infer *c) {
    bool on[INFO_MAX_RANK] = {false};
    int64_t dims[INFO_MAX_RANK];
    if (!value_index_need(c, 0)) return;
    const info *x = infer_in(c, 0);
    bool keep = infer_attr_int(c, "keepdims", 1) != 0;
    if (!reduce_axes(c, on)) {
        for (int d = 0; d < x->rank; d++)
            dims[d] = x->dims[d] == 0 ? 1 : x->dims[d]; /* nothing, reduced, is one element */
        if (keep)
            infer_set_bound(c, 0, x->type, x->rank, NULL, dims, "the axes that it reduces depend on data");
        else
            infer_unresolved(c, "the axes that it reduces depend on data");
        return;
    }
    int rank = 0;
    for (int d = 0; d < x->rank; d++) {
        if (!on[d])
            dims[rank++] = x->dims[d];
        else if (keep)
            dims[rank++] = 1;
    }
    value_index_set(c, 0, x->type, rank, dims, reduced(c, on, value_index_count(rank, dims)));
}

static const value *arg_values(infer *c, int axis, int64_t n) {
    const info *x = infer_in(c, 0);
    if (!value_index_small(x->rank, x->dims) || !value_index_known(c, 0, 1)) return NULL;
    const value *v = infer_value(c, 0);
    int64_t dim = x->dims[axis], inner = value_index_count(x->rank - axis - 1, x->dims + axis + 1);
    if (!v || dim == 0) return NULL;
    bool max = !strcmp(c->node->op_type, "ArgMax"), last = infer_attr_int(c, "select_last_index", 0) != 0;
    int64_t *i;
    double *f;
    const value *r = value_index_new(c->arena, DTYPE_INT64, n, &i, &f);
    for (int64_t t = 0; t < n; t++) {
        int64_t base = t / inner * dim * inner + t % inner, best = 0;
        for (int64_t k = 1; k < dim; k++) {
            int64_t a = base + k * inner, b = base + best * inner;
            bool more = v->i ? v->i[a] > v->i[b] : v->f[a] > v->f[b],
                 same = v->i ? v->i[a] == v->i[b] : v->f[a] == v->f[b];
            if (same ? last : more == max) best = k;
        }
        i[t] = best;
    }
    return r;
}

void shape_reduce_arg(infer *c) {
    int64_t dims[INFO_MAX_RANK];
    if (!value_index_need(c, 0)) return;
    const info *x = infer_in(c, 0);
    int axis = infer_axis(c, infer_attr_int(c, "axis", 0), x->rank), rank = 0;
    bool keep = infer_attr_int(c, "keepdims", 1) != 0;
    for (int d = 0; d < x->rank; d++) {
        if (d != axis)
            dims[rank++] = x->dims[d];
        else if (keep)
            dims[rank++] = 1;
    }
    value_index_set(c, 0, DTYPE_INT64, rank, dims, arg_values(c, axis, value_index_count(rank, dims)));
}

/* Running sum or product along an axis; `exclusive` leaves the element itself out, `reverse` starts at the end. */
static const value *running(infer *c, int axis) {
    const info *x = infer_in(c, 0);
    const value *v = infer_value(c, 0);
    if (!v || !value_number_tracked(x->type)) return NULL;
    bool product = !strcmp(c->node->op_type, "CumProd");
    bool exclusive = infer_attr_int(c, "exclusive", 0) != 0, reverse = infer_attr_int(c, "reverse", 0) != 0;
    int64_t dim = x->dims[axis], inner = value_index_count(x->rank - axis - 1, x->dims + axis + 1), *i;
    double *f;
    const value *r = value_index_new(c->arena, x->type, v->n, &i, &f);
    if ((i != NULL) != (v->i != NULL)) return NULL;
    for (int64_t e = 0; e < v->n; e++) {
        if (e / inner % dim != 0) continue; /* the first of each line */
        int64_t whole = product;
        double real = product;
        for (int64_t k = 0; k < dim; k++) {
            int64_t at = e + (reverse ? dim - 1 - k : k) * inner;
            if (exclusive && i) i[at] = whole;
            if (exclusive && f) f[at] = real;
            value_elementwise_step(product ? "Mul" : "Add", i != NULL, &whole, &real, i ? v->i[at] : 0,
                                   f ? v->f[at] : 0);
            whole = value_number_wrap(x->type, whole);
            real = value_number_round(x->type, real);
            if (!exclusive && i) i[at] = whole;
            if (!exclusive && f) f[at] = real;
        }
    }
    return r;
}

void shape_reduce_cumulative(infer *c) {
    int64_t axis;
    if (!value_index_need(c, 0)) return;
    const info *x = infer_in(c, 0);
    const value *v = NULL;
    if (infer_int(c, 1, &axis)) {
        int at = infer_axis(c, axis, x->rank);
        if (value_index_small(x->rank, x->dims) && value_index_known(c, 0, 1)) v = running(c, at);
    }
    value_index_set(c, 0, x->type, x->rank, x->dims, v);
}
