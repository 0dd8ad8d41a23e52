/* Operators that copy every element: type conversions, reordering, repetition. Values move by index maps. */
#include "common/checked.h"
#include "extract/infer/value_index.h"
#include "extract/shape/shape.h"

#include <string.h>

static const value *small_value(infer *c, int i, int rank, const int64_t *dims) {
    return value_index_small(rank, dims) && value_index_known(c, i, 1) ? infer_value(c, i) : NULL;
}

/* Sets the output to elements of input 0: along each axis d its element at x adds parts[d][x]. */
static void set_moved(infer *c, int rank, const int64_t *dims, int64_t *const *parts, const value *v) {
    value_index_set(c, 0, infer_type(c, 0), rank, dims, value_index_move(c->arena, v, rank, dims, parts, NULL));
}

static void cast(infer *c, dtype type) {
    if (!value_index_need(c, 0)) return;
    const info *x = infer_in(c, 0);
    const value *v = small_value(c, 0, x->rank, x->dims);
    value_index_set(c, 0, type, x->rank, x->dims, value_number_cast(c->arena, v, x->type, type));
}

static dtype target_type(infer *c) {
    int64_t to = infer_attr_int(c, "to", 0);
    if (!dtype_known(to)) infer_fail(c, "has no known target type (%lld)", (long long)to);
    return (dtype)to;
}

void shape_move_cast(infer *c) { cast(c, target_type(c)); }

void shape_move_cast_like(infer *c) { cast(c, infer_type(c, 1)); }

/* The same bits: between integers a wrap, anything else loses its value. */
void shape_move_bitcast(infer *c) {
    if (!value_index_need(c, 0)) return;
    dtype type = target_type(c);
    const info *x = infer_in(c, 0);
    if (dtype_get(type)->bits != dtype_get(x->type)->bits)
        infer_fail(c, "cannot read %s as %s: the sizes differ", info_text(c->arena, x), dtype_get(type)->name);
    bool integers = dtype_get(type)->cls == DTYPE_CLASS_INT && dtype_get(x->type)->cls == DTYPE_CLASS_INT;
    const value *v = integers ? small_value(c, 0, x->rank, x->dims) : NULL;
    value_index_set(c, 0, type, x->rank, x->dims, v ? value_number_cast(c->arena, v, x->type, type) : NULL);
}

/* Whatever it is: tensors, sequences and optionals pass. */
void shape_move_identity(infer *c) {
    const info *x = infer_in(c, 0);
    if (x->form == INFO_TENSOR && x->rank >= 0)
        value_index_set(c, 0, x->type, x->rank, x->dims, small_value(c, 0, x->rank, x->dims));
    else
        infer_set_info(c, 0, x);
}

void shape_move_transpose(infer *c) {
    const int64_t *perm;
    int64_t n, dims[INFO_MAX_RANK], strides[INFO_MAX_RANK];
    bool seen[INFO_MAX_RANK] = {false};
    if (!value_index_need(c, 0)) return;
    const info *x = infer_in(c, 0);
    bool given = infer_attr_ints(c, "perm", &perm, &n) && (n > 0 || x->rank == 0);
    if (given && n != x->rank) infer_fail(c, "permutes %lld axes of %s", (long long)n, info_text(c->arena, x));
    int64_t source[INFO_MAX_RANK];
    for (int d = 0; d < x->rank; d++) {
        source[d] = given ? infer_axis(c, perm[d], x->rank) : x->rank - 1 - d;
        if (seen[source[d]]) infer_fail(c, "permutes axis %lld twice", (long long)source[d]);
        seen[source[d]] = true;
        dims[d] = x->dims[source[d]];
    }
    const value *v = small_value(c, 0, x->rank, dims);
    if (!v) {
        infer_set(c, 0, x->type, x->rank, dims);
        return;
    }
    int64_t *parts[INFO_MAX_RANK];
    value_index_strides(x->rank, x->dims, strides);
    for (int d = 0; d < x->rank; d++) parts[d] = value_index_axis(c->arena, dims[d], 0, strides[source[d]]);
    set_moved(c, x->rank, dims, parts, v);
}

void shape_move_tile(infer *c) {
    const int64_t *repeats;
    int64_t n, dims[INFO_MAX_RANK], strides[INFO_MAX_RANK];
    if (!value_index_need(c, 0)) return;
    const info *x = infer_in(c, 0);
    if (!value_index_ints(c, 1, &repeats, &n)) {
        infer_unresolved(c, "the number of repeats is the value of input 1, which is not known");
        return;
    }
    if (n != x->rank) infer_fail(c, "repeats %lld axes of %s", (long long)n, info_text(c->arena, x));
    for (int d = 0; d < x->rank; d++) {
        if (repeats[d] < 0) infer_fail(c, "repeats axis %d %lld times", d, (long long)repeats[d]);
        dims[d] = checked_mul(x->dims[d], repeats[d]);
    }
    const value *v = small_value(c, 0, x->rank, dims);
    if (!v) {
        infer_set(c, 0, x->type, x->rank, dims);
        return;
    }
    int64_t *parts[INFO_MAX_RANK];
    value_index_strides(x->rank, x->dims, strides);
    for (int d = 0; d < x->rank; d++) {
        parts[d] = value_index_axis(c->arena, dims[d], 0, 1);
        for (int64_t k = 0; k < dims[d]; k++) parts[d][k] = checked_mul(k % x->dims[d], strides[d]);
    }
    set_moved(c, x->rank, dims, parts, v);
}

void shape_move_expand(infer *c) {
    const int64_t *asked;
    int64_t n, dims[INFO_MAX_RANK];
    if (!value_index_need(c, 0)) return;
    const info *x = infer_in(c, 0);
    if (!value_index_ints(c, 1, &asked, &n)) {
        infer_unresolved(c, "its shape is the value of input 1, which is not known");
        return;
    }
    if (n > INFO_MAX_RANK) infer_fail(c, "asks for %lld dimensions", (long long)n);
    for (int64_t d = 0; d < n; d++)
        if (asked[d] < 0) infer_fail(c, "asks for a dimension of %lld", (long long)asked[d]);
    int rank = infer_broadcast(c, x->rank, x->dims, (int)n, asked, dims);
    const value *v = small_value(c, 0, rank, dims);
    if (v) {
        const int64_t *from = value_index_broadcast(c->arena, rank, dims, x->rank, x->dims);
        v = value_index_pick(c->arena, v, from, value_index_count(rank, dims), NULL);
    }
    value_index_set(c, 0, x->type, rank, dims, v);
}

void shape_move_trilu(infer *c) {
    int64_t k = 0;
    if (!value_index_need(c, 0)) return;
    const info *x = infer_in(c, 0);
    if (x->rank < 2) infer_fail(c, "needs matrices, not %s", info_text(c->arena, x));
    bool known = !infer_has(c, 1) || infer_int(c, 1, &k);
    const value *v = known ? small_value(c, 0, x->rank, x->dims) : NULL;
    if (v) {
        bool upper = infer_attr_int(c, "upper", 1) != 0;
        int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
        int64_t *from = arena_array(c->arena, int64_t, v->n);
        for (int64_t e = 0; e < v->n; e++) {
            int64_t diagonal = checked_add(e / columns % rows, k), column = e % columns;
            from[e] = (upper ? column >= diagonal : column <= diagonal) ? e : -1;
        }
        v = value_index_pick(c->arena, v, from, v->n, NULL);
    }
    value_index_set(c, 0, x->type, x->rank, x->dims, v);
}

static int64_t blocksize(infer *c) {
    const info *x = infer_in(c, 0);
    int64_t b = infer_attr_int(c, "blocksize", 0);
    if (x->rank != 4) infer_fail(c, "needs 4 dimensions, not %s", info_text(c->arena, x));
    if (b <= 0) infer_fail(c, "blocksize is %lld", (long long)b);
    return b;
}

void shape_move_depth_to_space(infer *c) {
    if (!value_index_need(c, 0)) return;
    int64_t b = blocksize(c), block = checked_mul(b, b);
    const info *x = infer_in(c, 0);
    if (x->dims[1] % block != 0) infer_fail(c, "%s has no whole blocks of %lld", info_text(c->arena, x), (long long)b);
    const int64_t dims[4] = {x->dims[0], x->dims[1] / block, checked_mul(x->dims[2], b), checked_mul(x->dims[3], b)};
    infer_set(c, 0, x->type, 4, dims);
}

void shape_move_space_to_depth(infer *c) {
    if (!value_index_need(c, 0)) return;
    int64_t b = blocksize(c), block = checked_mul(b, b);
    const info *x = infer_in(c, 0);
    if (x->dims[2] % b != 0 || x->dims[3] % b != 0)
        infer_fail(c, "%s has no whole blocks of %lld", info_text(c->arena, x), (long long)b);
    const int64_t dims[4] = {x->dims[0], checked_mul(x->dims[1], block), x->dims[2] / b, x->dims[3] / b};
    infer_set(c, 0, x->type, 4, dims);
}

void shape_move_reverse_sequence(infer *c) {
    if (!value_index_need(c, 0) || !value_index_need(c, 1)) return;
    const info *x = infer_in(c, 0), *lengths = infer_in(c, 1);
    if (x->rank < 2) infer_fail(c, "needs at least 2 dimensions, not %s", info_text(c->arena, x));
    int batch = infer_axis(c, infer_attr_int(c, "batch_axis", 1), x->rank);
    int time = infer_axis(c, infer_attr_int(c, "time_axis", 0), x->rank);
    if (batch == time) infer_fail(c, "batch and time are the same axis");
    if (lengths->rank != 1 || lengths->dims[0] != x->dims[batch])
        infer_fail(c, "lengths %s do not fit %s", info_text(c->arena, lengths), info_text(c->arena, x));
    infer_set(c, 0, x->type, x->rank, x->dims);
}
