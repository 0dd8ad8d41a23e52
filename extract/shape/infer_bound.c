/* What follows from inputs of which only a least and a most are known, because they depend on data. Most shapes grow
 * with every dimension that they are made of: the shape function is asked twice, with every input at its least and at
 * its most, and what it says then lies between. Values are followed only through the operators of the table below,
 * where they grow or shrink steadily; to all others they are not known. */
#include "common/checked.h"
#include "extract/infer/infer.h"
#include "extract/infer/value_index.h"
#include "extract/shape/same_size.h"
#include "extract/shape/shape.h"

#include <math.h>
#include <string.h>

enum {
    LEAST,
    MOST,
    ENDS,
    FEW = 8,
    MOST_FOLLOWED = 64 /* what shapes are made of is short, and every node behind it costs several of its size */
};

/* One input at both ends: copies where they differ, else the input itself. */
typedef struct bound_input {
    tensor *at[ENDS], copies[ENDS];
    int choice; /* which bit says at which end it is; the first is that of all but those apart */
} bound_input;

typedef struct bound {
    infer *c;
    bound_input *in;
} bound;

typedef bool bound_fits_fn(const bound *b);

static const info *bound_info(const bound *b, int side, int i) {
    return infer_has(b->c, i) ? b->in[i].at[side]->info : &info_unknown;
}

/* The values of input i at an end; NULL where they are the same at both. */
static const value *bound_value(const bound *b, int side, int i) {
    return infer_has(b->c, i) && b->in[i].at[LEAST] != b->in[i].at[MOST] ? b->in[i].at[side]->info->val : NULL;
}

static bool open_dim(const bound *b, int i, int d) {
    return bound_info(b, LEAST, i)->dims[d] != bound_info(b, MOST, i)->dims[d];
}

/* ---- where an operator's shape or values do not grow or shrink steadily ---- */

/* No element of input i may be below `least` or cross it. */
static bool stays(const bound *b, int i, int64_t least, bool or_below) {
    const value *low = bound_value(b, LEAST, i), *high = bound_value(b, MOST, i);
    for (int64_t k = 0; low && high && k < low->n; k++)
        if (value_at(low, k) < (double)least && !(or_below && value_at(high, k) < (double)least)) return false;
    return true;
}

static bool not_at_all(const bound *b) { return !b; }

static bool fits_divisor(const bound *b) {
    const value *low = bound_value(b, LEAST, 1), *high = bound_value(b, MOST, 1);
    for (int64_t k = 0; low && high && k < low->n; k++)
        if (value_at(low, k) <= 0 && value_at(high, k) >= 0) return false;
    return true;
}

/* Numbers can be equal between their ends and at none of them: where one lies below at its least and above at its most.
 */
static bool crosses(const value *const x[ENDS], int64_t k, const value *const y[ENDS], int64_t j) {
    const double x_low = value_at(x[LEAST], k), x_high = value_at(x[MOST], k);
    const double y_low = value_at(y[LEAST], j), y_high = value_at(y[MOST], j);
    const bool apart = x_high < y_low || y_high < x_low;
    return !apart && x_low != y_low && x_low != y_high && x_high != y_low && x_high != y_high;
}

static bool fits_equal(const bound *b) {
    const value *v[2][ENDS];
    bool open = false;
    for (int i = 0; i < 2; i++)
        for (int side = 0; side < ENDS; side++) {
            v[i][side] = bound_value(b, side, i);
            open |= v[i][side] != NULL;
        }
    for (int i = 0; i < 2 && open; i++)
        if (!v[i][LEAST] && !v[i][MOST]) v[i][LEAST] = v[i][MOST] = infer_value(b->c, i);
    if (!v[0][LEAST] || !v[0][MOST] || !v[1][LEAST] || !v[1][MOST]) return true; /* nothing is followed */
    const int64_t x_step = v[0][MOST]->n > 1, y_step = v[1][MOST]->n > 1;
    if (x_step && y_step && !info_same_shape(bound_info(b, MOST, 0), bound_info(b, MOST, 1))) return false;
    for (int64_t k = 0; k < v[0][MOST]->n || k < v[1][MOST]->n; k++)
        if (crosses(v[0], k * x_step, v[1], k * y_step)) return false;
    return true;
}

static bool fits_range(const bound *b) {
    const value *low = bound_value(b, LEAST, 2), *high = bound_value(b, MOST, 2);
    return !low || !high || low->n < 1 || value_at(low, 0) > 0 || value_at(high, 0) < 0;
}

/* Beyond the range of a type numbers wrap; a truth is no number's size. */
static bool fits_cast(const bound *b) {
    const value *low = bound_value(b, LEAST, 0), *high = bound_value(b, MOST, 0);
    int64_t type = infer_attr_int(b->c, "to", 0);
    if (!dtype_known(type) || dtype_get((dtype)type)->cls != DTYPE_CLASS_INT) return true;
    const dtype_info *to = dtype_get((dtype)type);
    double most = type == DTYPE_BOOL ? HUGE_VAL : ldexp(1, to->bits - to->is_signed) - 1;
    double least = to->is_signed && type != DTYPE_BOOL ? -most : 0;
    for (int64_t k = 0; low && high && k < low->n; k++)
        if (value_at(low, k) < least || value_at(high, k) > most) return false;
    return true;
}

static bool fits_product(const bound *b) {
    const value *high = bound_value(b, MOST, 0);
    double product = 1;
    for (int64_t k = 0; high && k < high->n; k++) product *= fmax(1, value_at(high, k));
    return product < 2147483648.0 && stays(b, 0, 0, false);
}

static bool fits_positions(const bound *b) {
    return !b->c->node->in[0]->info->inexact && stays(b, 1, 0, true) && stays(b, 2, 0, true);
}

/* Without axes the rank depends on what is 1. */
static bool fits_squeeze(const bound *b) {
    if (infer_has(b->c, 1) || infer_attr(b->c, "axes")) return true;
    for (int d = 0; d < bound_info(b, MOST, 0)->rank; d++)
        if (open_dim(b, 0, d) && bound_info(b, LEAST, 0)->dims[d] <= 1 && bound_info(b, MOST, 0)->dims[d] >= 1)
            return false;
    return true;
}

/* With a third part, uneven parts shrink and grow. */
static bool fits_split(const bound *b) {
    const info *x = bound_info(b, MOST, 0);
    int axis = infer_axis(b->c, infer_attr_int(b->c, "axis", 0), x->rank);
    return infer_opset(b->c) < 18 || infer_has(b->c, 1) || infer_out_count(b->c) <= 2 || !open_dim(b, 0, axis);
}

static bool fits_resize(const bound *b) {
    const char *policy = infer_attr_string(b->c, "keep_aspect_ratio_policy", "stretch");
    return !strcmp(policy, "stretch") || !b->c->node->in[0]->info->inexact;
}

/* A larger kernel or window leaves less. */
static bool fits_second(const bound *b) { return !infer_has(b->c, 1) || !b->c->node->in[1]->info->inexact; }
static bool fits_third(const bound *b) { return !infer_has(b->c, 2) || !b->c->node->in[2]->info->inexact; }
static bool fits_fourth(const bound *b) { return !infer_has(b->c, 3) || !b->c->node->in[3]->info->inexact; }

/* The rank depends on how long the tuples are. */
static bool fits_tuples(const bound *b) {
    int rank = bound_info(b, MOST, 1)->rank;
    return rank < 1 || !open_dim(b, 1, rank - 1);
}

/* Whether t is put together from constants and the shape of x alone. */
static bool made_of_shape(const tensor *t, const tensor *x, int depth) {
    static const char *const movers[] = {"Concat", "Unsqueeze", "Squeeze", "Gather", "Slice", "Cast", "Identity"};
    const node *n = t->producer;
    if (!t->info->least) return true;
    if (!n || depth == 0) return false;
    if (graph_is(n, "Shape")) return n->in[0] == x;
    bool moves = false;
    for (size_t k = 0; k < sizeof movers / sizeof *movers; k++) moves |= graph_is(n, movers[k]);
    for (int k = 0; moves && k < n->in_count; k++)
        if (n->in[k]) moves = made_of_shape(n->in[k], x, depth - 1);
    return moves;
}

/* Whether all that is open of what a reshape asks for is a dimension of its input, each once. */
static bool asks_for_own(const bound *b) {
    const value *low = bound_value(b, LEAST, 1), *high = bound_value(b, MOST, 1);
    const info *least = bound_info(b, LEAST, 0), *most = bound_info(b, MOST, 0);
    uint64_t used = 0;
    for (int64_t k = 0; k < low->n; k++) {
        bool found = low->i[k] == high->i[k];
        for (int d = 0; d < most->rank && !found; d++) {
            found = !(used >> d & 1) && least->dims[d] == low->i[k] && most->dims[d] == high->i[k] &&
                    same_size(b->c->node->in[1], k, b->c->node->in[0], d);
            if (found) used |= (uint64_t)1 << d;
        }
        if (!found) return false;
    }
    return true;
}

/* A dimension of 0 stands for the input's own, and the one that is left open shrinks where another grows, but for one
 * that is the input's. */
static bool fits_reshape(const bound *b) {
    const value *low = bound_value(b, LEAST, 1), *high = bound_value(b, MOST, 1);
    const info *x = bound_info(b, MOST, 0);
    bool zero_is_zero = infer_attr_int(b->c, "allowzero", 0) != 0, rest = false;
    const int64_t *low_dims = bound_info(b, LEAST, 0)->dims;
    int open = 0;
    if (!low || !high || !low->i || !high->i) return true;
    for (int64_t k = 0; k < low->n; k++) {
        rest |= low->i[k] == -1;
        if (low->i[k] == high->i[k]) continue;
        bool held = zero_is_zero || low->i[k] > 0 || (k < x->rank && low_dims[k] <= 1 && x->dims[k] <= high->i[k]);
        if (low->i[k] < 0 || !held) return false;
        open++;
    }
    if (!rest || open == 0) return true;
    return (open == 1 && made_of_shape(b->c->node->in[1], b->c->node->in[0], 16)) || asks_for_own(b);
}

typedef struct bound_row {
    operator_shape_fn *shape;
    const char *name;    /* NULL: all of this shape function */
    unsigned values;     /* bits: the inputs whose values are followed */
    bool apart;          /* it shrinks with some values: every choice of their ends is looked at */
    bool alone;          /* its shape function reads itself what lies between, where it does not fit */
    bound_fits_fn *fits; /* NULL: always */
} bound_row;

enum { FIRST = 1, SECOND = 2, THIRD = 4, FOURTH = 8, ALL = -1 };

static const bound_row rows[] = {
    {shape_elementwise_binary, "Add", ALL, false, false, NULL},
    {shape_elementwise_binary, "Sub", ALL, true, false, NULL},
    {shape_elementwise_binary, "Mul", ALL, true, false, NULL},
    {shape_elementwise_binary, "Div", ALL, true, false, fits_divisor},
    {shape_elementwise_binary, "And", ALL, false, false, NULL},
    {shape_elementwise_binary, "Or", ALL, false, false, NULL},
    {shape_elementwise_binary, "Xor", ALL, true, false, NULL},
    {shape_elementwise_compare, "Equal", ALL, true, false, fits_equal},
    {shape_elementwise_compare, "Less", ALL, true, false, NULL},
    {shape_elementwise_compare, "LessOrEqual", ALL, true, false, NULL},
    {shape_elementwise_compare, "Greater", ALL, true, false, NULL},
    {shape_elementwise_compare, "GreaterOrEqual", ALL, true, false, NULL},
    {shape_elementwise_variadic, "Min", ALL, false, false, NULL},
    {shape_elementwise_variadic, "Max", ALL, false, false, NULL},
    {shape_elementwise_variadic, "Sum", ALL, false, false, NULL},
    {shape_elementwise_unary, "Neg", ALL, true, false, NULL},
    {shape_elementwise_unary, "Not", ALL, true, false, NULL},
    {shape_elementwise_unary, "Sign", ALL, false, false, NULL},
    {shape_elementwise_unary, "Relu", ALL, false, false, NULL},
    {shape_elementwise_unary, "Clip", ALL, false, false, NULL},
    {shape_elementwise_unary, "Ceil", ALL, false, false, NULL},
    {shape_elementwise_unary, "Floor", ALL, false, false, NULL},
    {shape_elementwise_unary, "Round", ALL, false, false, NULL},
    {shape_elementwise_unary, "Sqrt", ALL, false, false, NULL},
    {shape_elementwise_where, NULL, ALL, true, false, NULL},
    {shape_reduce, "ReduceSum", FIRST, false, false, NULL},
    {shape_reduce, "ReduceMax", FIRST, false, false, NULL},
    {shape_reduce, "ReduceMin", FIRST, false, false, NULL},
    {shape_reduce, "ReduceProd", FIRST, false, false, fits_product},
    {shape_move_cast, NULL, FIRST, false, false, fits_cast},
    {shape_move_identity, NULL, FIRST, false, true, NULL},
    {shape_move_concat, NULL, ALL, false, false, NULL},
    {shape_move_expand, NULL, FIRST | SECOND, false, false, NULL},
    {shape_move_pad, NULL, FIRST | SECOND, false, false, NULL},
    {shape_move_center_crop_pad, NULL, SECOND, false, false, NULL},
    {shape_move_slice, NULL, FIRST | SECOND | THIRD, true, true, fits_positions},
    {shape_move_split, NULL, FIRST, false, false, fits_split},
    {shape_move_tile, NULL, FIRST | SECOND, false, false, NULL},
    {shape_move_transpose, NULL, FIRST, false, false, NULL},
    {shape_gather, NULL, FIRST, false, false, NULL},
    {shape_gather_nd, NULL, FIRST, false, false, fits_tuples},
    {shape_view_expand_dims, NULL, FIRST, false, false, NULL},
    {shape_view_flatten, NULL, FIRST, false, false, NULL},
    {shape_view_reshape, NULL, FIRST | SECOND, false, false, fits_reshape},
    {shape_view_squeeze, NULL, FIRST, false, false, fits_squeeze},
    {shape_view_unsqueeze, NULL, FIRST, false, false, NULL},
    {shape_const_of_shape, NULL, FIRST, false, false, NULL},
    {shape_const_one_hot, NULL, SECOND, false, false, NULL},
    {shape_const_range, NULL, ALL, true, false, fits_range},
    {shape_data_topk, NULL, SECOND, false, false, NULL},
    {shape_image_resize, NULL, SECOND | THIRD | FOURTH, false, false, fits_resize},
    {shape_conv, NULL, 0, false, false, fits_second},
    {shape_conv_integer, NULL, 0, false, false, fits_second},
    {shape_conv_nhwc, NULL, 0, false, false, fits_second},
    {shape_conv_qlinear, NULL, 0, false, false, fits_fourth},
    {shape_signal_stft, NULL, 0, false, false, fits_third},
    {shape_control_if, NULL, 0, false, true, not_at_all},
    {shape_control_loop, NULL, 0, false, true, not_at_all},
    {shape_control_scan, NULL, 0, false, true, not_at_all},
    {shape_control_sequence_map, NULL, 0, false, true, not_at_all},
    {shape_sequence_at, NULL, 0, false, true, not_at_all},
    {shape_sequence_construct, NULL, 0, false, true, not_at_all},
    {shape_sequence_erase, NULL, 0, false, true, not_at_all},
    {shape_sequence_insert, NULL, 0, false, true, not_at_all},
    {shape_sequence_length, NULL, 0, false, true, not_at_all},
    {shape_sequence_optional, NULL, 0, false, true, not_at_all},
    {shape_sequence_optional_get, NULL, 0, false, true, not_at_all},
    {shape_sequence_optional_has, NULL, 0, false, true, not_at_all},
};

static const bound_row *row_of(const node *n) {
    static const bound_row plain = {0};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (rows[k].shape == n->def->shape && (!rows[k].name || !strcmp(rows[k].name, n->op_type))) return &rows[k];
    return &plain;
}

/* ---- both ends of an input ---- */

static const info *end_of(arena *a, const info *x, int side, bool values) {
    const info *end = side == LEAST ? x->least : x->most;
    if (end) return values || !end->val ? end : info_tensor_like(a, end->type, end);
    if (!x->inexact) return x;
    info *copy = arena_alloc(a, sizeof *copy);
    *copy = *x;
    copy->inexact = false;
    if (x->elem_like) copy->elem_like = end_of(a, x->elem_like, side, values);
    if (x->elems) {
        const info **elems = arena_array(a, const info *, x->elem_count);
        for (int64_t k = 0; k < x->elem_count; k++) elems[k] = end_of(a, x->elems[k], side, values);
        copy->elems = elems;
    }
    return copy;
}

static void set_ends(arena *a, bound_input *in, tensor *t, bool values) {
    bool open = t && (t->info->inexact || t->info->least);
    for (int side = 0; side < ENDS; side++) {
        in->at[side] = open ? &in->copies[side] : t;
        if (!open) continue;
        in->copies[side] = *t;
        in->copies[side].info = end_of(a, t->info, side, values);
    }
}

/* ---- what covers two outputs ---- */

/* Numbers between two of these neither wrap when they are added or multiplied nor lose their order. */
static bool may_lie_between(dtype type, const value *v) {
    double most = type == DTYPE_INT64 ? 2147483648.0 : type == DTYPE_INT32 ? 32768 : type == DTYPE_BOOL ? 1 : -1;
    if (v->f) most = 1e300;
    if (v->n > MOST_FOLLOWED) return false;
    for (int64_t k = 0; k < v->n; k++)
        if (!(fabs(value_at(v, k)) <= most)) return false;
    return true;
}

static bool fewer(const value *a, const value *b, int64_t k) { return a->i ? a->i[k] < b->i[k] : a->f[k] < b->f[k]; }

static const info *least_or_most(arena *a, const info *x, const info *y, int side, bool values) {
    int64_t dims[INFO_MAX_RANK], *i;
    double *f;
    bool is_x = !x->val, is_y = !y->val;
    for (int d = 0; d < x->rank; d++) {
        dims[d] = (x->dims[d] < y->dims[d]) == (side == LEAST) ? x->dims[d] : y->dims[d];
        is_x &= dims[d] == x->dims[d];
        is_y &= dims[d] == y->dims[d];
    }
    if (is_x || is_y) return is_x ? x : y;
    info *end = info_tensor(a, x->type, x->rank, dims);
    if (!values || !x->val || !y->val) return end;
    value *v = value_index_new(a, x->type, x->val->n, &i, &f);
    for (int64_t k = 0; k < v->n; k++) {
        const value *of = fewer(x->val, y->val, k) == (side == LEAST) ? x->val : y->val;
        if (i)
            i[k] = of->i[k];
        else
            f[k] = of->f[k];
    }
    end->val = v;
    return end;
}

static info *cover(arena *a, const info *x, const info *y);

static info *cover_sequences(arena *a, const info *x, const info *y) {
    bool open = x->elem_count < 0 && y->elem_count < 0 && x->elem_like && y->elem_like;
    const info *like = open ? cover(a, x->elem_like, y->elem_like) : NULL;
    info *s = info_sequence(a, NULL, -1, like ? like : info_tensor(a, x->type, -1, NULL));
    if (x->elem_count < 0 || x->elem_count != y->elem_count) return s;
    const info **elems = arena_array(a, const info *, x->elem_count);
    for (int64_t k = 0; k < x->elem_count; k++) {
        elems[k] = cover(a, x->elems[k], y->elems[k]);
        if (!elems[k]) return s;
    }
    return info_sequence(a, elems, x->elem_count, x->elem_count ? NULL : x->elem_like);
}

/* NULL where nothing is known that holds for both. */
static info *cover(arena *a, const info *x, const info *y) {
    if (x->form != y->form || x->type != y->type) return NULL;
    if (x->form == INFO_SEQUENCE) return cover_sequences(a, x, y);
    if (!info_shaped(x) || !info_shaped(y) || x->rank != y->rank) return NULL;
    const info *low_x = x->least ? x->least : x, *low_y = y->least ? y->least : y;
    const info *high_x = x->most ? x->most : x, *high_y = y->most ? y->most : y;
    const info *all[] = {low_x, low_y, high_x, high_y};
    bool values = true;
    for (int k = 0; k < 4; k++)
        values = values && all[k]->val && info_same_shape(all[k], x) && all[k]->val->n == low_x->val->n &&
                 (all[k]->val->i != NULL) == (low_x->val->i != NULL);
    info *between =
        info_between(a, least_or_most(a, low_x, low_y, LEAST, values), least_or_most(a, high_x, high_y, MOST, values));
    if (values && between->least &&
        !(may_lie_between(x->type, between->least->val) && may_lie_between(x->type, between->most->val)))
        return info_tensor_like(a, x->type, x);
    return between;
}

/* ---- the driver ---- */

/* Asks the shape function, with the inputs as they stand; false where they contradict each other. */
static bool ask(infer *c, info **out) {
    infer_state *s = c->model->infer;
    node *n = c->node;
    jmp_buf env, *outer = s->soft;
    c->out = out;
    memset(out, 0, sizeof(info *) * (size_t)n->out_count);
    n->unresolved = NULL;
    n->misfit = false;
    s->soft = &env;
    if (setjmp(env) == 0) {
        n->def->shape(c);
        for (int k = 0; k < n->out_count; k++)
            if (out[k]) infer_check_dims(c, k, out[k]);
    }
    s->soft = outer;
    return !n->misfit;
}

/* Where the least was not possible, anything from nothing on may be. */
static info *from_nothing(arena *a, const info *x) {
    static const int64_t nothing[INFO_MAX_RANK] = {0};
    if (!info_shaped(x)) return NULL;
    return info_between(a, info_tensor(a, x->type, x->rank, nothing),
                        info_tensor_like(a, x->type, x->most ? x->most : x));
}

/* Asks at all ends; false where one does not fit, or an output is not known at one. */
static bool look(infer *c, const bound_row *row, bool values, info **out) {
    node *n = c->node;
    bool few = n->in_count <= FEW;
    tensor *few_in[FEW], **given = n->in, **in = few ? few_in : arena_array(c->arena, tensor *, n->in_count);
    bound_input few_inputs[FEW];
    bound b = {c, few ? few_inputs : arena_array(c->arena, bound_input, n->in_count)};
    int choices = 1;
    bool grows = false, known = true, low = true;
    for (int k = 0; k < n->in_count; k++) {
        bool followed = values && row->values >> (k < 31 ? k : 31) & 1;
        bound_input *at = &b.in[k];
        set_ends(c->arena, at, given[k], followed);
        at->choice = 0;
        if (at->at[LEAST] == at->at[MOST]) continue;
        if (row->apart && at->at[LEAST]->info->val)
            at->choice = choices++;
        else
            grows = true;
    }
    n->misfit = true; /* until something has looked whether its attributes fit */
    if (row->fits && !row->fits(&b)) return false;
    info **now = arena_array(c->arena, info *, n->out_count);
    n->in = in;
    c->bound = true;
    for (int at = grows ? 0 : 1; at < 1 << choices && known; at += grows ? 1 : 2) {
        for (int k = 0; k < n->in_count; k++) in[k] = b.in[k].at[at >> b.in[k].choice & 1];
        if (!ask(c, now)) {
            known = grows && !(at & 1);
            low = false;
            continue;
        }
        for (int k = 0; k < n->out_count && known; k++) {
            if (!n->out[k]) continue;
            out[k] = now[k] && out[k] ? cover(c->arena, out[k], now[k]) : now[k];
            known = out[k] != NULL;
        }
    }
    n->in = given;
    c->bound = false;
    for (int k = 0; k < n->out_count && known && !low; k++)
        if (n->out[k]) out[k] = from_nothing(c->arena, out[k]);
    return known;
}

void infer_bound(infer *c) {
    node *n = c->node;
    const bound_row *row = row_of(n);
    info **out = arena_array(c->arena, info *, n->out_count);
    for (int values = 1; values >= 0; values--) {
        memset(out, 0, sizeof(info *) * (size_t)n->out_count);
        if (look(c, row, values, out)) {
            c->out = out;
            return;
        }
    }
    memset(out, 0, sizeof(info *) * (size_t)n->out_count);
    c->out = out;
    n->unresolved = NULL;
    if (!row->alone) return;
    n->misfit = false;
    n->def->shape(c);
}
