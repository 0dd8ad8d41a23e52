/* Sequences and optionals. As long as it is known how many elements there are and which position is meant, each element
 * keeps its own info; where it is not, elements of one shape still tell what any of them looks like. */
#include "common/checked.h"
#include "extract/infer/shape_need.h"
#include "extract/shape/shape.h"

#include <inttypes.h>

/* Longer sequences are known by what an element looks like, not element by element. */
enum { MAX_ELEMENTS = 2048 };

/* A sequence that keeps the array it is given: a long chain of insertions makes many of them. */
static void set_sequence(infer *c, const info **elems, int64_t count, const info *like) {
    info *s = info_sequence(c->arena, NULL, -1, like);
    s->elem_count = count;
    s->elems = elems;
    for (int64_t k = 0; k < count; k++) s->inexact |= elems[k]->inexact;
    infer_set_info(c, 0, s);
}

static const info *sequence(infer *c, int i) {
    const info *s = infer_in(c, i);
    if (s->form == INFO_OPTIONAL && s->elem_count == 1) s = s->elems[0];
    if (s->form != INFO_SEQUENCE) infer_fail(c, "input %d must be a sequence, it is %s", i, shape_need_text(c, i));
    return s;
}

/* What any element looks like: exact where all are alike; otherwise only the type is said, or nothing. */
static const info *any_element(infer *c, const info *s) {
    const info *first = s->elem_count > 0 ? s->elems[0] : s->elem_like;
    for (int64_t k = 1; k < s->elem_count; k++) {
        const info *e = s->elems[k];
        if (e != first && (!info_same_shape(first, e) || first->type != e->type))
            return info_tensor(c->arena, first->type == e->type ? first->type : DTYPE_NONE, -1, NULL);
    }
    return first && first->form == INFO_TENSOR ? info_tensor_like(c->arena, first->type, first) : first;
}

/* Position given by input i, counted from the front; false where it is not known. `limit` is one past the last legal
 * one. */
static bool position(infer *c, int i, int64_t count, int64_t limit, int64_t *at) {
    if (count < 0 || !infer_int(c, i, at)) return false;
    int64_t given = *at;
    if (*at < 0) *at = checked_add(*at, count);
    if (*at < 0 || *at >= limit) infer_fail(c, "position %" PRId64 " is outside a sequence of %" PRId64, given, count);
    return true;
}

void shape_sequence_empty(infer *c) {
    int64_t type = infer_attr_int(c, "dtype", DTYPE_FP32);
    if (!dtype_known(type)) infer_fail(c, "attribute 'dtype' is %" PRId64 ", which is no data type", type);
    infer_set_info(c, 0, info_sequence(c->arena, NULL, 0, info_tensor(c->arena, (dtype)type, -1, NULL)));
}

void shape_sequence_construct(infer *c) {
    int n = infer_in_count(c);
    const info **elems = arena_array(c->arena, const info *, n);
    for (int k = 0; k < n; k++) elems[k] = infer_in(c, k);
    set_sequence(c, elems, n, elems[0]);
}

void shape_sequence_length(infer *c) {
    const info *s = sequence(c, 0);
    if (s->elem_count >= 0)
        infer_set_ints(c, 0, DTYPE_INT64, 0, NULL, &s->elem_count, 1);
    else
        infer_set(c, 0, DTYPE_INT64, 0, NULL);
}

void shape_sequence_at(infer *c) {
    const info *s = sequence(c, 0), *like = NULL;
    int64_t at;
    if (position(c, 1, s->elem_count, s->elem_count, &at))
        like = s->elems[at];
    else
        like = any_element(c, s);
    if (like && like->form == INFO_TENSOR && like->rank < 0) like = NULL;
    if (like)
        infer_set_info(c, 0, like);
    else
        infer_unresolved(c, "the chosen element of the sequence depends on data, and the elements differ");
}

void shape_sequence_insert(infer *c) {
    const info *s = sequence(c, 0), *added = infer_in(c, 1);
    if (!added) return;
    int64_t n = s->elem_count, at = n;
    bool known = n >= 0 && n < MAX_ELEMENTS;
    if (known && infer_has(c, 2)) known = position(c, 2, n, n + 1, &at);
    if (!known) {
        const info *any = n == 0 ? added : any_element(c, s);
        bool alike = any && info_same_shape(any, added);
        if (n < 0 || n >= MAX_ELEMENTS || !alike) {
            infer_set_info(
                c, 0, info_sequence(c->arena, NULL, -1, alike ? added : info_tensor(c->arena, added->type, -1, NULL)));
            return;
        }
        at = n; /* all are alike: the position does not matter */
    }
    const info **elems = arena_array(c->arena, const info *, n + 1);
    for (int64_t k = 0; k <= n; k++) elems[k] = k < at ? s->elems[k] : k == at ? added : s->elems[k - 1];
    set_sequence(c, elems, n + 1, s->elem_like && n > 0 ? s->elem_like : added);
}

void shape_sequence_erase(infer *c) {
    const info *s = sequence(c, 0);
    int64_t n = s->elem_count, at = n - 1;
    if (n == 0) infer_fail(c, "an empty sequence has no element to take");
    bool known = n > 0;
    if (known && infer_has(c, 1)) known = position(c, 1, n, n, &at);
    const info *any = any_element(c, s);
    if (!known && (n < 0 || !any || any->rank < 0)) {
        infer_set_info(c, 0, info_sequence(c->arena, NULL, -1, any));
        return;
    }
    if (!known) at = n - 1;
    const info **elems = arena_array(c->arena, const info *, n);
    for (int64_t k = 0; k < n - 1; k++) elems[k] = s->elems[k < at ? k : k + 1];
    set_sequence(c, elems, n - 1, s->elem_like);
}

/* Adds one element to the running shape of a concatenation. */
static void join(infer *c, const info *e, bool new_axis, int axis, int64_t *dims, const info *first) {
    if (!info_shaped(e) || e->rank != first->rank)
        infer_fail(c, "elements %s and %s cannot be joined", info_text(c->arena, first), info_text(c->arena, e));
    for (int k = 0; k < e->rank; k++)
        if ((new_axis || k != axis) && e->dims[k] != first->dims[k])
            infer_fail(c, "elements %s and %s cannot be joined along axis %d", info_text(c->arena, first),
                       info_text(c->arena, e), axis);
    dims[axis] = checked_add(dims[axis], new_axis ? 1 : e->dims[axis]);
}

void shape_sequence_concat(infer *c) {
    const info *s = sequence(c, 0);
    bool new_axis = infer_attr_int(c, "new_axis", 0) != 0;
    int64_t dims[INFO_MAX_RANK + 1];
    if (s->elem_count == 0) infer_fail(c, "an empty sequence cannot be joined");
    if (s->elem_count < 0) {
        infer_unresolved(c, "the number of joined tensors depends on data");
        return;
    }
    const info *first = s->elems[0];
    if (!info_shaped(first)) {
        infer_unresolved(c, "the elements of the sequence are not known");
        return;
    }
    if (!infer_attr(c, "axis")) infer_fail(c, "attribute 'axis' is missing");
    int rank = first->rank + new_axis, axis;
    if (rank > INFO_MAX_RANK) infer_fail(c, "the joined tensor would have %d dimensions", rank);
    axis = infer_axis(c, infer_attr_int(c, "axis", 0), rank);
    for (int k = 0; k < rank; k++) dims[k] = k == axis ? 0 : first->dims[new_axis && k > axis ? k - 1 : k];
    for (int64_t k = 0; k < s->elem_count; k++) join(c, s->elems[k], new_axis, axis, dims, first);
    infer_set(c, 0, first->type, rank, dims);
}

typedef struct pieces {
    const int64_t *sizes; /* NULL: all of `each` but perhaps the last */
    int64_t each, count;
} pieces;

/* Sizes along the axis: a scalar is the size of every piece, a vector lists them, without either each piece is 1. */
static bool read_pieces(infer *c, int64_t length, pieces *p) {
    int64_t sum = 0;
    *p = (pieces){NULL, 1, length};
    if (!infer_has(c, 1)) return true;
    if (shape_need_rank(c, 1, 0, 1) == 0) {
        if (!infer_int(c, 1, &p->each)) return false;
        if (p->each <= 0) infer_fail(c, "a piece has size %" PRId64 ", it must be at least 1", p->each);
        p->count = checked_ceil_div(length, p->each);
        return true;
    }
    if (!infer_ints(c, 1, &p->sizes, &p->count)) return false;
    for (int64_t k = 0; k < p->count; k++) {
        if (p->sizes[k] < 0) infer_fail(c, "a piece has size %" PRId64 ", it must not be negative", p->sizes[k]);
        sum = checked_add(sum, p->sizes[k]);
    }
    if (sum != length)
        infer_fail(c, "the pieces add up to %" PRId64 ", the axis of %s has %" PRId64, sum, shape_need_text(c, 0),
                   length);
    return true;
}

static const info *piece(infer *c, int axis, bool keep, int64_t size) {
    const info *x = infer_in(c, 0);
    int64_t dims[INFO_MAX_RANK];
    int rank = 0;
    for (int k = 0; k < x->rank; k++)
        if (k != axis)
            dims[rank++] = x->dims[k];
        else if (keep)
            dims[rank++] = size;
    return info_tensor(c->arena, x->type, rank, dims);
}

void shape_sequence_split(infer *c) {
    int rank = shape_need_rank(c, 0, 1, -1), axis = infer_axis(c, infer_attr_int(c, "axis", 0), rank);
    bool keep = infer_has(c, 1) || infer_attr_int(c, "keepdims", 1) != 0;
    int64_t length = infer_dim(c, 0, axis);
    pieces p;
    if (!read_pieces(c, length, &p)) {
        infer_set_info(c, 0, info_sequence(c->arena, NULL, -1, info_tensor(c->arena, infer_type(c, 0), -1, NULL)));
        infer_unresolved(c, "the sizes of the pieces are computed from data");
        return;
    }
    const info *full = piece(c, axis, keep, p.sizes ? 0 : p.each);
    if (p.count > MAX_ELEMENTS) {
        bool alike = !p.sizes && length % p.each == 0;
        infer_set_info(
            c, 0, info_sequence(c->arena, NULL, -1, alike ? full : info_tensor(c->arena, infer_type(c, 0), -1, NULL)));
        infer_unresolved(c, "it makes %" PRId64 " pieces, more than are followed one by one", p.count);
        return;
    }
    const info **elems = arena_array(c->arena, const info *, p.count);
    for (int64_t k = 0; k < p.count; k++) {
        int64_t rest = p.sizes ? 0 : length - k * p.each;
        if (p.sizes)
            elems[k] = piece(c, axis, keep, p.sizes[k]);
        else
            elems[k] = rest < p.each ? piece(c, axis, keep, rest) : full;
    }
    set_sequence(c, elems, p.count, p.count ? elems[0] : full);
}

static const info *optional_of(infer *c, const info *e, int64_t count) {
    info *o = arena_zalloc(c->arena, sizeof *o);
    const info **elems = arena_array(c->arena, const info *, 1);
    elems[0] = e;
    o->form = INFO_OPTIONAL;
    o->rank = -1;
    o->type = e ? e->type : DTYPE_NONE;
    o->elem_count = count;
    o->elems = count > 0 ? elems : NULL;
    o->elem_like = e;
    o->inexact = e && e->inexact;
    return o;
}

void shape_sequence_optional(infer *c) {
    const attr *type = infer_attr(c, "type");
    if (infer_has(c, 0))
        infer_set_info(c, 0, optional_of(c, infer_in(c, 0), 1));
    else
        infer_set_info(c, 0, optional_of(c, type ? type->type : NULL, 0));
}

/* Whether an element is there is a constant wherever it is known. */
void shape_sequence_optional_has(infer *c) {
    int64_t has = infer_has(c, 0);
    const info *o = infer_in(c, 0);
    if (has && o->form == INFO_OPTIONAL) has = o->elem_count;
    if (has >= 0)
        infer_set_ints(c, 0, DTYPE_BOOL, 0, NULL, &has, 1);
    else
        infer_set(c, 0, DTYPE_BOOL, 0, NULL);
}

void shape_sequence_optional_get(infer *c) {
    const info *o = infer_in(c, 0);
    if (o->form != INFO_OPTIONAL) {
        infer_set_info(c, 0, o);
        return;
    }
    if (o->elem_count == 0) infer_fail(c, "the optional holds nothing");
    const info *e = o->elem_count > 0 ? o->elems[0] : o->elem_like;
    if (e && e->form != INFO_UNKNOWN && !(e->form == INFO_TENSOR && e->rank < 0))
        infer_set_info(c, 0, e);
    else
        infer_unresolved(c, "what the optional holds is not known");
}
