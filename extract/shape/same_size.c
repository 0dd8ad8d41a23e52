#include "extract/shape/same_size.h"

#include "extract/graph/operators.h"
#include "extract/shape/shape.h"

#include <string.h>

enum {
    MOST_STEPS = 2000, /* of one question */
    REMEMBERED = 256   /* a power of two; broadcasting asks for each of its inputs, and they share what they are from */
};

/* Dimension `at` of a tensor, or that element of its values. */
typedef struct number {
    struct search *search;
    const tensor *t;
    int64_t at;
    bool value;
} number;

typedef struct search {
    int steps; /* that are left */
    struct {
        number asked, found;
    } origins[REMEMBERED]; /* by hash; a later one takes an earlier one's place */
} search;

/* Makes x a number that it equals and that was there before it. False: there is none. */
typedef bool step_fn(number *x, const node *n);

static number origin(number x);

static bool is_same(number x, number y) { return x.t == y.t && x.at == y.at && x.value == y.value; }

/* -1 where it is not known. */
static int rank_of(const node *n, int i) {
    return i < n->in_count && n->in[i] && info_shaped(n->in[i]->info) ? n->in[i]->info->rank : -1;
}

static bool go_dim(number *x, const node *n, int i, int64_t d) {
    if (d < 0 || d >= rank_of(n, i)) return false;
    *x = (number){x->search, n->in[i], d, false};
    return true;
}

static bool go_value(number *x, const node *n, int i, int64_t k) {
    if (k < 0 || rank_of(n, i) < 0) return false;
    *x = (number){x->search, n->in[i], k, true};
    return true;
}

/* Counted from the front. */
static int64_t axis_of(const node *n, int64_t otherwise, int rank) {
    const int64_t axis = graph_attr_int(n, "axis", otherwise);
    return axis < 0 ? axis + rank : axis;
}

static const value *ints_of(const node *n, int i) {
    const value *v = i < n->in_count && n->in[i] ? n->in[i]->info->val : NULL;
    return v && v->i ? v : NULL;
}

static bool is_one(const tensor *t, int64_t d) {
    const info *low = t->info->least ? t->info->least : t->info;
    return low->dims[d] == 1 && t->info->dims[d] == 1;
}

/* ---- dimensions ---- */

static bool step_same(number *x, const node *n) { return go_dim(x, n, 0, x->at); }

static bool step_broadcast(number *x, const node *n) {
    const int rank = x->t->info->rank;
    number from = {.t = NULL}, first = from;
    if (!n->domain[0] && n->opset < 7) return false; /* an attribute said how */
    for (int i = 0; i < n->in_count; i++) {
        const int64_t d = x->at - (rank - rank_of(n, i));
        if (rank_of(n, i) < 0) return false;
        if (d < 0 || is_one(n->in[i], d)) continue;
        const number one = {x->search, n->in[i], d, false}, root = origin(one);
        if (!from.t) {
            from = one;
            first = root;
        }
        if (!is_same(root, first)) return false;
    }
    if (from.t) *x = from;
    return from.t != NULL;
}

static bool step_gemm(number *x, const node *n) {
    const bool turned = graph_attr_int(n, x->at == 0 ? "transA" : "transB", 0) != 0;
    return go_dim(x, n, x->at == 0 ? 0 : 1, turned ? 1 - x->at : x->at);
}

static bool step_matmul(number *x, const node *n) {
    const int rank = x->t->info->rank, left = rank_of(n, 0), right = rank_of(n, 1);
    if (left < 2 || right < 2 || x->at < rank - 2) return false;
    return x->at == rank - 2 ? go_dim(x, n, 0, left - 2) : go_dim(x, n, 1, right - 1);
}

static bool step_flatten(number *x, const node *n) {
    return axis_of(n, 1, rank_of(n, 0)) == 1 && x->at == 0 && go_dim(x, n, 0, 0);
}

static bool step_transpose(number *x, const node *n) {
    const attr *perm = graph_attr(n, "perm", ATTR_INTS);
    const int rank = rank_of(n, 0);
    if (perm && perm->n != rank) return false;
    return go_dim(x, n, 0, perm ? perm->ints[x->at] : rank - 1 - x->at);
}

static bool step_gather(number *x, const node *n) {
    const int rank = rank_of(n, 0), places = rank_of(n, 1);
    const int64_t axis = axis_of(n, 0, rank);
    if (rank < 1 || places < 0) return false;
    if (x->at < axis) return go_dim(x, n, 0, x->at);
    return x->at < axis + places ? go_dim(x, n, 1, x->at - axis) : go_dim(x, n, 0, x->at - places + 1);
}

/* All but the axis along which it joins or cuts. */
static bool step_beside_axis(number *x, const node *n) {
    const bool whole = n->in_count == 1 && n->out_count == 1;
    const int64_t otherwise = graph_is(n, "Concat") && n->opset < 4 ? 1 : 0;
    return (whole || x->at != axis_of(n, otherwise, x->t->info->rank)) && go_dim(x, n, 0, x->at);
}

static bool step_batch(number *x, const node *n) { return x->at == 0 && go_dim(x, n, 0, 0); }

static bool step_regions(number *x, const node *n) { return x->at == 0 && go_dim(x, n, 1, 0); }

static bool step_filled(number *x, const node *n) { return go_value(x, n, 0, x->at); }

/* Axes as an attribute or an input; false where they are not known. Bit d: dimension d of the larger tensor. */
static bool marked_axes(const node *n, int input, int rank, uint64_t *bits) {
    const attr *stated = graph_attr(n, "axes", ATTR_INTS);
    const value *given = ints_of(n, input);
    const int64_t *axes = stated  ? stated->ints
                          : given ? given->i
                                  : NULL,
                  count = stated  ? stated->n
                          : given ? given->n
                                  : 0;
    *bits = 0;
    for (int64_t k = 0; axes && k < count; k++) {
        const int64_t d = axes[k] < 0 ? axes[k] + rank : axes[k];
        if (d < 0 || d >= rank || d >= 64) return false;
        *bits |= (uint64_t)1 << d;
    }
    return axes != NULL;
}

/* Of a Slice what is not cut; without axes the first ones are. */
static bool step_uncut(number *x, const node *n) {
    uint64_t bits = 0;
    const value *starts = ints_of(n, 1);
    if (n->in_count > 3 && n->in[3] ? !marked_axes(n, 3, x->t->info->rank, &bits) : !starts) return false;
    const bool cut = bits ? bits >> x->at & 1 : x->at < starts->n;
    return !cut && go_dim(x, n, 0, x->at);
}

static bool step_unsqueeze(number *x, const node *n) {
    uint64_t bits;
    int64_t d = 0;
    if (!marked_axes(n, 1, x->t->info->rank, &bits) || bits >> x->at & 1) return false;
    for (int64_t k = 0; k < x->at; k++) d += !(bits >> k & 1);
    return go_dim(x, n, 0, d);
}

static bool step_squeeze(number *x, const node *n) {
    uint64_t bits;
    const int rank = rank_of(n, 0);
    int64_t left = x->at;
    if (!marked_axes(n, 1, rank, &bits)) return false;
    for (int d = 0; d < rank; d++)
        if (!(bits >> d & 1) && left-- == 0) return go_dim(x, n, 0, d);
    return false;
}

/* A dimension that is asked for by its number; 0 is the input's own. */
static bool step_reshape(number *x, const node *n) {
    if (n->in_count < 2 || !n->in[0] || !n->in[1]) return false;
    const info *asked = n->in[1]->info, *low = asked->least ? asked->least : asked;
    if (!low->val || !low->val->i || x->at >= low->val->n) return false;
    const number given = {x->search, n->in[1], x->at, true}, own = {x->search, n->in[0], x->at, false};
    const int64_t least = low->val->i[x->at];
    const bool fits = least > 0 || (least == 0 && graph_attr_int(n, "allowzero", 0)) ||
                      (least == 0 && x->at < rank_of(n, 0) && is_same(origin(given), origin(own)));
    if (fits) *x = given;
    return fits;
}

/* ---- values ---- */

static bool step_elements(number *x, const node *n) { return go_value(x, n, 0, x->at); }

static bool holds_sizes(dtype type) { return type == DTYPE_INT64 || type == DTYPE_INT32; }

static bool step_cast(number *x, const node *n) {
    return holds_sizes(x->t->info->type) && n->in[0] && holds_sizes(n->in[0]->info->type) && step_elements(x, n);
}

static bool step_shape(number *x, const node *n) {
    const int64_t start = graph_attr_int(n, "start", 0);
    return go_dim(x, n, 0, x->at + (start < 0 ? start + rank_of(n, 0) : start));
}

static bool step_joined(number *x, const node *n) {
    int64_t k = x->at;
    for (int i = 0; i < n->in_count; i++) {
        if (rank_of(n, i) != 1 || n->in[i]->info->inexact) return false;
        if (k < n->in[i]->info->dims[0]) return go_value(x, n, i, k);
        k -= n->in[i]->info->dims[0];
    }
    return false;
}

static bool step_picked(number *x, const node *n) {
    const value *places = ints_of(n, 1);
    if (rank_of(n, 0) != 1 || n->in[0]->info->inexact || !places || x->at >= places->n) return false;
    const int64_t at = places->i[x->at];
    return go_value(x, n, 0, at < 0 ? at + n->in[0]->info->dims[0] : at);
}

static bool step_chosen(number *x, const node *n) {
    const value *chosen = ints_of(n, 0);
    if (!chosen || n->in_count < 3) return false;
    const int side = chosen->i[chosen->n == 1 ? 0 : x->at] ? 1 : 2;
    return chosen->n > (chosen->n == 1 ? 0 : x->at) && info_same_shape(n->in[side]->info, x->t->info) &&
           go_value(x, n, side, x->at);
}

/* ---- the table ---- */

static const struct {
    operator_shape_fn *shape;
    step_fn *dim, *value; /* NULL: the number is its own */
} rows[] = {
    {shape_elementwise_unary, step_same, NULL},
    {shape_elementwise_test, step_same, NULL},
    {shape_elementwise_dropout, step_same, NULL},
    {shape_elementwise_binary, step_broadcast, NULL},
    {shape_elementwise_compare, step_broadcast, NULL},
    {shape_elementwise_variadic, step_broadcast, NULL},
    {shape_elementwise_where, step_broadcast, step_chosen},
    {shape_softmax, step_same, NULL},
    {shape_norm_same, step_same, NULL},
    {shape_scatter, step_same, NULL},
    {shape_move_cast, step_same, step_cast},
    {shape_move_identity, step_same, step_elements},
    {shape_move_transpose, step_transpose, NULL},
    {shape_move_concat, step_beside_axis, step_joined},
    {shape_move_slice, step_uncut, NULL},
    {shape_move_split, step_beside_axis, NULL},
    {shape_gather, step_gather, step_picked},
    {shape_matmul, step_matmul, NULL},
    {shape_matmul_gemm, step_gemm, NULL},
    {shape_conv, step_batch, NULL},
    {shape_conv_transpose, step_batch, NULL},
    {shape_pool, step_batch, NULL},
    {shape_pool_global, step_batch, NULL},
    {shape_pool_roi_align, step_regions, NULL},
    {shape_view_flatten, step_flatten, NULL},
    {shape_view_reshape, step_reshape, step_elements},
    {shape_view_squeeze, step_squeeze, step_elements},
    {shape_view_unsqueeze, step_unsqueeze, step_elements},
    {shape_const_of_shape, step_filled, NULL},
    {shape_const_shape, NULL, step_shape},
};

static step_fn *step_of(number x) {
    const node *n = x.t->producer;
    for (size_t k = 0; n && n->def && !n->unknown && k < sizeof rows / sizeof *rows; k++)
        if (rows[k].shape == n->def->shape) return x.value ? rows[k].value : rows[k].dim;
    return NULL;
}

/* The first number of those that x equals. */
static number origin(number x) {
    search *s = x.search;
    const size_t slot = ((size_t)x.t->place * 7 + (size_t)x.at * 2 + x.value) % REMEMBERED;
    const number asked = x;
    if (s->origins[slot].asked.t && is_same(s->origins[slot].asked, x)) return s->origins[slot].found;
    for (step_fn *step; (step = step_of(x)) && s->steps-- > 0 && step(&x, x.t->producer);) {
    }
    s->origins[slot].asked = asked;
    s->origins[slot].found = x;
    return x;
}

bool same_size(const tensor *asked, int64_t k, const tensor *x, int d) {
    search s = {.steps = MOST_STEPS};
    return is_same(origin((number){&s, asked, k, true}), origin((number){&s, x, d, false}));
}
