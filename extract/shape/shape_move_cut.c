/* Operators that put tensors together and cut them up: Concat, Split, Slice, Pad and CenterCropPad. */
#include "common/checked.h"
#include "extract/infer/shape_need.h"
#include "extract/infer/value_index.h"
#include "extract/shape/shape.h"

#include <string.h>

static int64_t clamp(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

/* Values of input 0, whose outputs have `dims`; NULL where there are too many or they are not known. */
static const value *cut_value(infer *c, int rank, const int64_t *dims) {
    return value_index_small(rank, dims) && value_index_known(c, 0, 1) ? infer_value(c, 0) : NULL;
}

/* ---- Concat ---- */

static const value *concat_values(infer *c, int n, int rank, const int64_t *dims, int axis) {
    dtype type = infer_type(c, 0);
    if (!value_index_small(rank, dims) || !value_index_known(c, 0, n)) return NULL;
    int64_t *i, total = value_index_count(rank, dims), before = 0;
    double *f;
    const value *r = value_index_new(c->arena, type, total, &i, &f);
    int64_t row = value_index_count(rank - axis, dims + axis);
    for (int k = 0; k < n; k++) {
        const value *v = infer_value(c, k);
        if (!v || (v->i != NULL) != (i != NULL)) return NULL;
        int64_t part = value_index_count(rank - axis, infer_in(c, k)->dims + axis);
        for (int64_t e = 0; e < v->n; e++) {
            int64_t to = e / part * row + before + e % part;
            if (i)
                i[to] = v->i[e];
            else
                f[to] = v->f[e];
        }
        before += part;
    }
    return r;
}

void shape_move_concat(infer *c) {
    int64_t dims[INFO_MAX_RANK];
    int n = infer_in_count(c);
    shape_need_one_type(c, 0, n);
    for (int k = 0; k < n; k++)
        if (!value_index_need(c, k)) return;
    const info *first = infer_in(c, 0);
    if (infer_opset(c) >= 4 && !infer_attr(c, "axis")) infer_fail(c, "has no axis");
    int axis = infer_axis(c, infer_attr_int(c, "axis", 1), first->rank);
    memcpy(dims, first->dims, sizeof *dims * (size_t)first->rank);
    for (int k = 1; k < n; k++) {
        const info *x = infer_in(c, k);
        bool fits = x->rank == first->rank;
        for (int d = 0; fits && d < x->rank; d++) fits = d == axis || x->dims[d] == first->dims[d];
        if (!fits)
            infer_fail(c, "inputs %s and %s do not join along axis %d", info_text(c->arena, first),
                       info_text(c->arena, x), axis);
        dims[axis] = checked_add(dims[axis], x->dims[axis]);
    }
    value_index_set(c, 0, first->type, first->rank, dims, concat_values(c, n, first->rank, dims, axis));
}

/* ---- Split ---- */

/* Sizes of the parts; NULL (and the node marked) where not known. */
static const int64_t *split_sizes(infer *c, int parts, int64_t whole) {
    const int64_t *given;
    int64_t n;
    bool by_input = infer_has(c, 1);
    if (by_input && !value_index_ints(c, 1, &given, &n)) {
        infer_unresolved(c, "the sizes of its parts are the value of input 1, which is not known");
        return NULL;
    }
    if (by_input || (infer_attr_ints(c, "split", &given, &n) && n > 0)) {
        int64_t sum = 0;
        if (n != parts) infer_fail(c, "states %lld sizes for %d outputs", (long long)n, parts);
        for (int k = 0; k < parts; k++) {
            if (given[k] < 0) infer_fail(c, "asks for a part of %lld", (long long)given[k]);
            sum = checked_add(sum, given[k]);
        }
        if (sum != whole && !c->bound)
            infer_fail(c, "its parts have %lld of %lld elements", (long long)sum, (long long)whole);
        return given;
    }
    int64_t stated = infer_attr_int(c, "num_outputs", parts);
    if (stated != parts) infer_fail(c, "states %lld outputs and has %d", (long long)stated, parts);
    /* Uneven parts are allowed since opset 18, where only the last is smaller. */
    bool even = infer_opset(c) < 18;
    int64_t *sizes = arena_array(c->arena, int64_t, parts),
            each = even ? whole / parts : checked_ceil_div(whole, parts);
    if (even && whole % parts != 0 && !c->bound)
        infer_fail(c, "%lld elements are not %d equal parts", (long long)whole, parts);
    for (int k = 0; k < parts; k++) sizes[k] = clamp(whole - each * k, 0, each);
    return sizes;
}

void shape_move_split(infer *c) {
    int64_t dims[INFO_MAX_RANK], strides[INFO_MAX_RANK], *parts[INFO_MAX_RANK];
    if (!value_index_need(c, 0)) return;
    const info *x = infer_in(c, 0);
    int axis = infer_axis(c, infer_attr_int(c, "axis", 0), x->rank), outs = infer_out_count(c);
    if (outs < 1) return;
    const int64_t *sizes = split_sizes(c, outs, x->dims[axis]);
    if (!sizes) return;
    value_index_strides(x->rank, x->dims, strides);
    memcpy(dims, x->dims, sizeof *dims * (size_t)x->rank);
    const value *v = cut_value(c, x->rank, x->dims);
    int64_t start = 0;
    for (int k = 0; k < outs; k++) {
        dims[axis] = sizes[k];
        const value *part = NULL;
        if (v) {
            for (int d = 0; d < x->rank; d++)
                parts[d] =
                    value_index_axis(c->arena, dims[d], d == axis ? checked_mul(start, strides[d]) : 0, strides[d]);
            part = value_index_move(c->arena, v, x->rank, dims, parts, NULL);
        }
        value_index_set(c, k, x->type, x->rank, dims, part);
        start += sizes[k];
    }
}

/* ---- Slice ---- */

typedef struct slice_range {
    int64_t start, step, count;
} slice_range;

/* Numpy's rule: negative positions count from the end, then everything is clamped. Going backwards, runtimes take the
 * largest number (of 32 or 64 bits) as an end for "to the very end", which is the front. */
static slice_range slice_of(infer *c, int64_t dim, int64_t start, int64_t end, int64_t step) {
    slice_range r = {0, step, 0};
    if (step == 0) infer_fail(c, "slices in steps of 0");
    if (dim == 0) return r;
    if (step < 0 && (end == INT32_MAX || end == INT64_MAX)) end = INT64_MIN;
    if (start < 0) start = checked_add(start, dim);
    if (end < 0) end = checked_add(end, dim);
    if (step > 0) {
        r.start = clamp(start, 0, dim);
        r.count = checked_ceil_div(clamp(end, 0, dim) - r.start, step);
    } else {
        r.start = clamp(start, 0, dim - 1);
        r.count = checked_ceil_div(r.start - clamp(end, -1, dim - 1), checked_sub(0, step));
    }
    if (r.count < 0) r.count = 0;
    return r;
}

typedef struct slice_args {
    const int64_t *starts, *ends, *axes, *steps; /* axes and steps NULL: in order, and 1 */
    int64_t n, n_ends, n_axes, n_steps;
} slice_args;

/* False where a position is not known. Inputs since opset 10, attributes before. */
static bool slice_arguments(infer *c, slice_args *a) {
    if (!infer_has(c, 1)) {
        if (!infer_attr_ints(c, "starts", &a->starts, &a->n) || !infer_attr_ints(c, "ends", &a->ends, &a->n_ends))
            infer_fail(c, "has no starts or ends");
        infer_attr_ints(c, "axes", &a->axes, &a->n_axes);
        return true;
    }
    return value_index_ints(c, 1, &a->starts, &a->n) && value_index_ints(c, 2, &a->ends, &a->n_ends) &&
           (!infer_has(c, 3) || value_index_ints(c, 3, &a->axes, &a->n_axes)) &&
           (!infer_has(c, 4) || value_index_ints(c, 4, &a->steps, &a->n_steps));
}

/* The least and the most that is left of an axis of least to most elements: between the sizes at which an end of the
 * slice comes to lie inside, what is left grows or shrinks steadily. */
static void slice_between(infer *c, int64_t *least, int64_t *most, int64_t start, int64_t end, int64_t step) {
    int64_t from_start = start < 0 ? checked_sub(0, start) : start, from_end = end < 0 ? checked_sub(0, end) : end;
    const int64_t bends[] = {
        *most, 1, from_start, checked_add(from_start, 1), checked_sub(from_end, 1), from_end, checked_add(from_end, 1)};
    int64_t low = slice_of(c, *least, start, end, step).count, high = low;
    for (size_t k = 0; k < sizeof bends / sizeof *bends; k++) {
        if (bends[k] < *least || bends[k] > *most) continue;
        int64_t count = slice_of(c, bends[k], start, end, step).count;
        if (count < low) low = count;
        if (count > high) high = count;
    }
    *least = low;
    *most = high;
}

void shape_move_slice(infer *c) {
    int64_t dims[INFO_MAX_RANK], least[INFO_MAX_RANK], strides[INFO_MAX_RANK], *parts[INFO_MAX_RANK];
    slice_range ranges[INFO_MAX_RANK];
    bool seen[INFO_MAX_RANK] = {false};
    slice_args a = {0};
    if (!value_index_need(c, 0)) return;
    const info *x = infer_in(c, 0);
    if (!slice_arguments(c, &a)) {
        infer_set_bound(c, 0, x->type, x->rank, NULL, x->dims, "where it slices depends on data");
        return;
    }
    if (a.n_ends != a.n || (a.axes && a.n_axes != a.n) || (a.steps && a.n_steps != a.n) || a.n > x->rank)
        infer_fail(c, "starts, ends, axes and steps of %s are not of one length", info_text(c->arena, x));
    for (int d = 0; d < x->rank; d++) {
        ranges[d] = (slice_range){0, 1, x->dims[d]};
        dims[d] = x->dims[d];
        least[d] = x->inexact ? x->least->dims[d] : dims[d];
    }
    for (int k = 0; k < (int)a.n; k++) {
        int d = infer_axis(c, a.axes ? a.axes[k] : k, x->rank);
        if (seen[d]) infer_fail(c, "slices axis %d twice", d);
        seen[d] = true;
        ranges[d] = slice_of(c, x->dims[d], a.starts[k], a.ends[k], a.steps ? a.steps[k] : 1);
        slice_between(c, &least[d], &dims[d], a.starts[k], a.ends[k], a.steps ? a.steps[k] : 1);
    }
    if (x->inexact) {
        infer_set_between(c, 0, x->type, x->rank, least, dims);
        return;
    }
    const value *v = cut_value(c, x->rank, dims);
    if (v) {
        value_index_strides(x->rank, x->dims, strides);
        for (int d = 0; d < x->rank; d++)
            parts[d] = value_index_axis(c->arena, dims[d], checked_mul(ranges[d].start, strides[d]),
                                        checked_mul(ranges[d].step, strides[d]));
        v = value_index_move(c->arena, v, x->rank, dims, parts, NULL);
    }
    value_index_set(c, 0, x->type, x->rank, dims, v);
}

/* ---- Pad and CenterCropPad ---- */

/* Where position x of an axis comes from that is padded in front and behind; -1: from the constant. */
static int64_t pad_source(int64_t x, int64_t dim, const char *mode) {
    if (x >= 0 && x < dim) return x;
    if (!strcmp(mode, "edge")) return clamp(x, 0, dim - 1);
    if (!strcmp(mode, "wrap")) return (x % dim + dim) % dim;
    if (strcmp(mode, "reflect")) return -1;
    int64_t period = dim > 1 ? 2 * (dim - 1) : 1;
    x = (x % period + period) % period;
    return x < dim ? x : period - x;
}

/* For each position of a padded axis what it adds to the source's element. Negative pads take away first: what is left
 * is what the others repeat. NULL where nothing is left to repeat. */
static int64_t *pad_part(infer *c, int64_t dim, int64_t begin, int64_t end, int64_t stride, const char *mode) {
    int64_t cut = begin < 0 ? checked_sub(0, begin) : 0, front = begin > 0 ? begin : 0;
    int64_t left = checked_add(checked_sub(dim, cut), end < 0 ? end : 0);
    int64_t padded = checked_add(checked_add(dim, begin), end);
    if (left <= 0 && strcmp(mode, "constant")) return NULL;
    int64_t *part = value_index_axis(c->arena, padded, 0, 1);
    for (int64_t k = 0; k < padded; k++) {
        int64_t source = pad_source(k - front, left, mode);
        part[k] = source < 0 ? -1 : checked_mul(cut + source, stride);
    }
    return part;
}

static void set_padded(infer *c, const int64_t *dims, const int64_t *begin, const int64_t *end, const char *mode,
                       const value *fill) {
    const info *x = infer_in(c, 0);
    int64_t strides[INFO_MAX_RANK], *parts[INFO_MAX_RANK];
    const value *v = cut_value(c, x->rank, dims);
    value_index_strides(x->rank, x->dims, strides);
    for (int d = 0; v && d < x->rank; d++) {
        parts[d] = pad_part(c, x->dims[d], begin[d], end[d], strides[d], mode);
        if (!parts[d]) v = NULL;
    }
    if (v) v = value_index_move(c->arena, v, x->rank, dims, parts, fill);
    value_index_set(c, 0, x->type, x->rank, dims, v);
}

/* Adds up what is padded before and after each axis. False where it is not known. */
static bool pad_amounts(infer *c, int rank, int64_t *begin, int64_t *end) {
    const int64_t *pads, *axes = NULL;
    int64_t n, n_axes = rank;
    if (infer_has(c, 1) ? !infer_ints(c, 1, &pads, &n) : !infer_attr_ints(c, "pads", &pads, &n)) return false;
    if (infer_has(c, 3) && !value_index_ints(c, 3, &axes, &n_axes)) return false;
    if (n != checked_mul(2, n_axes) || n_axes > rank)
        infer_fail(c, "states %lld pads for %lld axes of %s", (long long)n, (long long)n_axes,
                   info_text(c->arena, infer_in(c, 0)));
    for (int d = 0; d < rank; d++) begin[d] = end[d] = 0;
    for (int k = 0; k < (int)n_axes; k++) {
        int d = infer_axis(c, axes ? axes[k] : k, rank);
        begin[d] = pads[k];
        end[d] = pads[n_axes + k];
    }
    return true;
}

/* The constant it pads with; false where that is not known. */
static bool pad_fill(infer *c, value *fill) {
    const attr *stated = infer_attr_of(c, "value", ATTR_FLOAT);
    const value *given = infer_has(c, 2) ? infer_value(c, 2) : NULL;
    if (infer_has(c, 2) && (!given || given->n != 1)) return false;
    if (given) *fill = *given;
    if (!given && stated) *fill = (value){.n = 1, .f = &stated->f};
    return true;
}

void shape_move_pad(infer *c) {
    int64_t dims[INFO_MAX_RANK], begin[INFO_MAX_RANK] = {0}, end[INFO_MAX_RANK] = {0};
    if (!value_index_need(c, 0)) return;
    const info *x = infer_in(c, 0);
    if (!pad_amounts(c, x->rank, begin, end)) {
        infer_unresolved(c, "the amount of padding is not known");
        return;
    }
    for (int d = 0; d < x->rank; d++) {
        dims[d] = checked_add(checked_add(x->dims[d], begin[d]), end[d]);
        if (dims[d] < 0) infer_fail(c, "removes more than axis %d of %s has", d, info_text(c->arena, x));
    }
    value fill = {0};
    const char *mode = infer_attr_string(c, "mode", "constant");
    if (pad_fill(c, &fill))
        set_padded(c, dims, begin, end, mode, &fill);
    else
        infer_set(c, 0, x->type, x->rank, dims);
}

void shape_move_center_crop_pad(infer *c) {
    const int64_t *asked, *axes = NULL;
    int64_t n, n_axes, dims[INFO_MAX_RANK], begin[INFO_MAX_RANK] = {0}, end[INFO_MAX_RANK] = {0};
    if (!value_index_need(c, 0)) return;
    const info *x = infer_in(c, 0);
    if (!value_index_ints(c, 1, &asked, &n)) {
        infer_unresolved(c, "its shape is the value of input 1, which is not known");
        return;
    }
    if (!infer_attr_ints(c, "axes", &axes, &n_axes)) n_axes = x->rank;
    if (n != n_axes || n > x->rank)
        infer_fail(c, "states %lld sizes for %lld axes of %s", (long long)n, (long long)n_axes, info_text(c->arena, x));
    memcpy(dims, x->dims, sizeof *dims * (size_t)x->rank);
    for (int k = 0; k < (int)n; k++) {
        int d = infer_axis(c, axes ? axes[k] : k, x->rank);
        if (asked[k] < 0) infer_fail(c, "asks for a dimension of %lld", (long long)asked[k]);
        dims[d] = asked[k];
        /* Half the difference, rounded down in both directions: the odd element is at the end. */
        begin[d] = (asked[k] - x->dims[d]) / 2;
        end[d] = asked[k] - x->dims[d] - begin[d];
    }
    set_padded(c, dims, begin, end, "constant", NULL);
}
