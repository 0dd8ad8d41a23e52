/* Rotary embedding spelled out: x cos + rotated(x) sin, where rotated(x) is x with its halves (or its pairs) exchanged
 * and one of them negated; or both halves of the result computed apart and put together. */
#include "extract/match/match_patterns.h"

#include "common/checked.h"
#include "common/opcost.h"
#include "extract/ops/cost.h"

#include <string.h>

enum { ROTARY_MAX_STEPS = 12 };

/* Picks or regroups parts of one tensor. */
static bool is_part(const node *n) {
    return graph_is(n, "Slice") || graph_is(n, "Split") ||
           (graph_is(n, "Gather") && flow_in(n, 1) && flow_constant(flow_in(n, 1)));
}

/* What n negates: by Neg, or times -1. NULL where it negates nothing. */
static tensor *negated(match *m, const node *n) {
    int slot;
    double x;
    if (graph_is(n, "Neg")) return flow_in(n, 0);
    tensor *t = graph_is(n, "Mul") ? flow_operand(n, &slot) : NULL;
    return t && flow_scalar(m, n->in[1 - slot], &x) && x == -1 ? t : NULL;
}

/* How the two parts lie in a row: halves behind each other, or pairs side by side. */
typedef struct rotary_form {
    int64_t width; /* of the whole row */
    bool pairs;
} rotary_form;

/* What x is multiplied by, and how it turns. */
typedef struct rotary_turn {
    tensor *cosine, *sine;
    bool pairs;
    bool back;  /* the other way round: the second part is the one that loses */
    bool apart; /* each part has angles of its own */
} rotary_turn;

/* What n puts together from two equal parts. */
static bool form_of(const node *n, rotary_form *f) {
    const tensor *out = flow_out(n, 0), *a = flow_in(n, 0), *b = flow_in(n, 1);
    int rank = flow_rank(out);
    int64_t axis = graph_attr_int(n, "axis", INT64_MAX);
    if (rank < 2 || n->in_count != 2 || !flow_same_shape(a, b) || flow_rank(a) != rank) return false;
    if (axis >= 0) axis -= rank;
    *f = (rotary_form){.width = flow_dim(out, -1)};
    if (axis == -2 && flow_dim(a, -2) == 1) f->width = checked_mul(flow_dim(out, -1), 2);
    if (axis == -1 && flow_dim(a, -1) == 1 && flow_dim(out, -2) > 1)
        *f = (rotary_form){.width = checked_mul(flow_dim(out, -2), 2), .pairs = true};
    return f->width >= 2 && (axis == -1 || (axis == -2 && flow_dim(a, -2) == 1));
}

/* Elements start, start + step, … of one dimension. */
typedef struct rotary_pick {
    int64_t axis, start, step, count;
} rotary_pick;

static const int64_t *slice_ints(match *m, const node *n, int slot, const char *name, int64_t *count) {
    const attr *a = n->opset < 10 ? graph_attr(n, name, ATTR_INTS) : NULL;
    if (a) *count = a->n;
    return a ? a->ints : flow_in(n, slot) ? flow_ints(m, n->in[slot], count) : NULL;
}

/* The one dimension that a Slice cuts; those that it leaves whole may be named too. */
static bool slice_pick(match *m, const node *n, rotary_pick *p) {
    const tensor *in = flow_in(n, 0), *out = flow_out(n, 0);
    int64_t count = 0, axes_count = 0, steps_count = 0;
    const int64_t *starts = slice_ints(m, n, 1, "starts", &count), *axes = slice_ints(m, n, 3, "axes", &axes_count),
                  *steps = slice_ints(m, n, 4, "steps", &steps_count);
    bool found = false;
    if (!starts || flow_rank(out) != flow_rank(in) || (axes && axes_count != count) || (steps && steps_count != count))
        return false;
    for (int64_t k = 0; k < count && k < INFO_MAX_RANK; k++) {
        int64_t axis = axes ? axes[k] : k, step = steps ? steps[k] : 1, start = starts[k];
        if (axis < 0) axis += flow_rank(in);
        if (axis < 0 || axis >= flow_rank(in) || step < 1) return false;
        if (flow_dim(in, (int)axis) == flow_dim(out, (int)axis)) continue;
        if (start < 0) start += flow_dim(in, (int)axis);
        if (found) return false;
        found = true;
        *p = (rotary_pick){axis, start, step, flow_dim(out, (int)axis)};
    }
    return found;
}

static bool split_pick(const node *n, int slot, rotary_pick *p) {
    const tensor *in = flow_in(n, 0);
    int64_t axis = graph_attr_int(n, "axis", 0);
    if (axis < 0) axis += flow_rank(in);
    if (axis < 0 || axis >= flow_rank(in) || n->out_count != 2 || slot > 1 || !n->out[0]) return false;
    int64_t first = flow_dim(n->out[0], (int)axis), whole = flow_dim(in, (int)axis);
    *p = (rotary_pick){axis, slot ? first : 0, 1, slot ? whole - first : first};
    return first > 0;
}

static bool gather_pick(match *m, const node *n, rotary_pick *p) {
    int64_t count = 0, axis = graph_attr_int(n, "axis", 0), rank = flow_rank(flow_in(n, 0));
    const int64_t *at = flow_ints(m, flow_in(n, 1), &count);
    if (axis < 0) axis += rank;
    if (!at || count < 1 || axis < 0 || axis >= rank || flow_rank(flow_in(n, 1)) > 1) return false;
    int64_t whole = flow_dim(flow_in(n, 0), (int)axis), start = at[0] < 0 ? at[0] + whole : at[0];
    if (start < 0 || start >= whole) return false;
    *p = (rotary_pick){axis, start, 1, count};
    for (int64_t k = 1; k < count; k++) {
        int64_t place = at[k] < 0 ? at[k] + whole : at[k];
        if (place < 0 || place >= whole || place <= start) return false;
        if (k == 1) p->step = place - start;
        if (place != start + k * p->step) return false;
    }
    return true;
}

/* Which part of a row n picks: 0 or 1; -1: neither. A row is the last dimension, or the last two. */
static int part_of(match *m, const node *n, int slot, const rotary_form *form) {
    const tensor *in = flow_in(n, 0);
    rotary_pick p;
    bool picks = graph_is(n, "Slice")   ? slice_pick(m, n, &p)
                 : graph_is(n, "Split") ? split_pick(n, slot, &p)
                                        : gather_pick(m, n, &p);
    if (!picks) return -1;
    int64_t half = form->width / 2, rank = flow_rank(in), size = flow_dim(in, (int)p.axis);
    if (form->width != 2 * half || p.start < 0) return -1;
    if (p.axis == rank - 1 && size == form->width && p.count == half) {
        int64_t second = form->pairs ? 1 : half;
        bool step = half == 1 || p.step == (form->pairs ? 2 : 1);
        return step && (p.start == 0 || p.start == second) ? p.start != 0 : -1;
    }
    int64_t other = form->pairs ? rank - 2 : rank - 1; /* the dimension that counts pairs, or elements of a half */
    bool two = rank >= 2 && size == 2 && p.count == 1 && p.start < 2 && flow_dim(in, (int)other) == half;
    return two && p.axis == (form->pairs ? rank - 1 : rank - 2) ? (int)p.start : -1;
}

/* What one half is made from: up through Neg (counted), the pick of a part (which is *part), views and casts. NULL
 * where no part is picked. */
static tensor *half_source(match *m, tensor *t, const rotary_form *form, int *negations, int *part, flow_set *set) {
    for (int step = 0; t && t->producer && step < ROTARY_MAX_STEPS; step++) {
        node *n = t->producer;
        if (is_part(n)) {
            *part = part_of(m, n, t->producer_slot, form);
            flow_add(set, n);
            return *part < 0 ? NULL : flow_in(n, 0);
        }
        tensor *up = t->producer_slot == 0 ? negated(m, n) : NULL;
        if (up)
            *negations += 1;
        else if (t->producer_slot != 0 || !(flow_reshapes(n) || flow_renames(n)))
            return NULL;
        flow_add(set, n);
        t = up ? up : flow_in(n, 0);
    }
    return NULL;
}

/* A factor of the rotation: it does not come from x, and is no larger. */
static bool is_angle(const tensor *t, const tensor *x) {
    return t && !flow_is_scalar(t) && flow_count(t) <= flow_count(x) && flow_rank(t) >= 1;
}

/* Same numbers regrouped (pairs split off by a Reshape before the parts are picked). */
static tensor *before_views(tensor *t, const tensor *like, flow_set *set) {
    for (int step = 0; t && step < 4 && t != like; step++) {
        node *n = t->producer;
        if (!n || !(flow_reshapes(n) || graph_is(n, "Cast"))) break;
        flow_add(set, n);
        t = flow_in(n, 0);
    }
    return t;
}

/* t is x with halves or pairs exchanged and one negated; adds what makes it to the set. */
static bool is_rotated(match *m, tensor *t, tensor *x, rotary_turn *turn, flow_set *set) {
    int negations = 0;
    if (!flow_same_shape(t, x)) return false;
    for (int step = 0; t && t->producer && step < 4 && (flow_reshapes(t->producer) || flow_renames(t->producer));
         step++) {
        flow_add(set, t->producer);
        t = flow_in(t->producer, 0);
    }
    node *n = t ? t->producer : NULL;
    if (!n || !graph_is(n, "Concat") || n->in_count != 2) return false;
    rotary_form form;
    if (!form_of(n, &form) || form.width != flow_dim(x, -1)) return false;
    flow_add(set, n);
    for (int i = 0; i < 2; i++) {
        int part = -1;
        tensor *source = half_source(m, n->in[i], &form, &negations, &part, set);
        if (!source || part != 1 - i) return false; /* exchanged */
        if (source != x && before_views(source, x, set) != x) return false;
        if (i == 0) turn->back = negations == 0;
    }
    turn->pairs = form.pairs;
    return negations == 1;
}

/* A factor that has one row for each step of each table, in the places where x has its steps and its sequences. */
static tensor *rows_of(tensor *angle, int64_t tables, int64_t steps) {
    const int64_t rows = checked_mul(tables, steps);
    const bool fits = flow_count(angle) == checked_mul(rows, flow_dim(angle, -1)) &&
                      (steps == 1 || (flow_rank(angle) >= 2 && flow_dim(angle, -2) == steps)) &&
                      (tables == 1 || (flow_rank(angle) == 4 && flow_dim(angle, 0) == tables));
    return fits ? angle : NULL;
}

/* [B, H, S, D] from x, and from which of its dimensions the angles do not know: heads share them. */
static void fill_rotary(work *w, tensor *x, tensor *y, const rotary_turn *turn) {
    int rank = flow_rank(x);
    int64_t shape[4] = {1, 1, 1, flow_dim(x, -1)};
    bool heads_last = false;
    if (rank == 4) {
        const tensor *angle = turn->cosine;
        int64_t a1 = flow_rank(angle) >= 3 ? flow_dim(angle, -3) : 1, a2 = flow_dim(angle, -2);
        heads_last = a2 == 1 && a1 > 1;
        shape[0] = flow_dim(x, 0);
        shape[1] = flow_dim(x, heads_last ? 2 : 1);
        shape[2] = flow_dim(x, heads_last ? 1 : 2);
    } else if (rank == 3) {
        shape[1] = flow_dim(x, 0);
        shape[2] = flow_dim(x, 1);
    } else {
        shape[2] = flow_dim(x, -1) > 0 ? flow_count(x) / flow_dim(x, -1) : 0;
    }
    memset(&w->rec, 0, sizeof w->rec);
    w->rec.kind = OP_ROTARY;
    oprec_set_shape(&w->rec, w->arena, 4, shape);
    if (turn->pairs) oprec_set_int(&w->rec, "interleaved", 1);
    if (flow_dim(turn->cosine, -1) == shape[3]) oprec_set_int(&w->rec, "angle_dim", shape[3]);
    cost_set_types(w, x, y);
    cost_boundary(w);
    const int64_t tables = rank == 4 && flow_rank(turn->cosine) == 4 ? flow_dim(turn->cosine, 0) : 1;
    if (tables > 1 && tables == shape[0]) oprec_set_int(&w->rec, "angle_batch", tables);
    const bool plain = !turn->back && !turn->apart && !heads_last; /* as the operation turns rows that lie so */
    work_tell(w, "x", x);
    work_tell(w, "cos", plain ? rows_of(turn->cosine, tables, shape[2]) : NULL);
    work_tell(w, "sin", plain ? rows_of(turn->sine, tables, shape[2]) : NULL);
    work_tell_made(w, "y", y);
    w->rec.flops = checked_mul(flow_count(x), opcost_per_element(OP_ROTARY, NULL));
}

static bool join_rotary(match *m, flow_set *set, node *last, tensor *x, const rotary_turn *turn) {
    work *w = flow_join(m, set, last);
    if (!w) return false;
    fill_rotary(w, x, last->out[0], turn);
    return true;
}

bool match_rotary_add(match *m, node *sum) {
    if (sum->in_count != 2 || !flow_free(m, sum)) return false;
    for (int straight = 0; straight < 2; straight++) {
        node *a = flow_producer(sum->in[straight]), *b = flow_producer(sum->in[1 - straight]);
        if (!graph_is(a, "Mul") || !graph_is(b, "Mul") || a == b || !flow_same_shape(flow_out(a, 0), flow_out(b, 0)) ||
            a->in_count != 2 || b->in_count != 2)
            continue;
        for (int i = 0; i < 4; i++) {
            tensor *x = a->in[i & 1], *cosine = a->in[1 - (i & 1)], *rotated = b->in[i >> 1],
                   *sine = b->in[1 - (i >> 1)];
            flow_set set = {.count = 0};
            rotary_turn turn = {.cosine = cosine, .sine = sine};
            if (!x || !rotated || !rotated->producer || !is_angle(cosine, x) || !is_angle(sine, x)) continue;
            if (!flow_same_shape(x, a->out[0]) || !is_rotated(m, rotated, x, &turn, &set)) continue;
            flow_add(&set, a);
            flow_add(&set, b);
            flow_add(&set, sum);
            for (int k = 0; k < 2; k++) {
                if (sum->in[k]->producer != a && sum->in[k]->producer != b) flow_add(&set, sum->in[k]->producer);
            }
            if (join_rotary(m, &set, sum, x, &turn)) return true;
        }
    }
    return false;
}

/* One half of the result: two products of a part with an angle, put together by op_type. */
typedef struct rotary_half {
    tensor *source;    /* of both parts */
    tensor *angles[2]; /* what each part is multiplied by */
    int first;         /* the part in the first product */
} rotary_half;

/* One product: a part of the source, times an angle. */
static bool half_product(match *m, node *mul, const rotary_form *form, rotary_half *h, flow_set *set, int *part) {
    if (!mul || !graph_is(mul, "Mul") || mul->in_count != 2) return false;
    flow_add(set, mul);
    for (int k = 0; k < 2; k++) {
        int negations = 0, before = set->count;
        tensor *source = mul->in[k] && !flow_constant(mul->in[k]) && mul->in[1 - k]
                             ? half_source(m, mul->in[k], form, &negations, part, set)
                             : NULL;
        if (source && negations == 0 && (!h->source || h->source == source) && !h->angles[*part]) {
            h->source = source;
            h->angles[*part] = mul->in[1 - k];
            return true;
        }
        set->count = before;
    }
    return false;
}

static bool half_result(match *m, tensor *t, const char *op_type, const rotary_form *form, flow_set *set,
                        rotary_half *h) {
    *h = (rotary_half){0};
    for (int step = 0; t && t->producer && step < 3 && (flow_reshapes(t->producer) || flow_renames(t->producer));
         step++) {
        flow_add(set, t->producer);
        t = flow_in(t->producer, 0);
    }
    node *n = t ? t->producer : NULL;
    int part = 0;
    if (!n || !graph_is(n, op_type) || n->in_count != 2) return false;
    flow_add(set, n);
    if (!half_product(m, flow_producer(n->in[0]), form, h, set, &h->first)) return false;
    return half_product(m, flow_producer(n->in[1]), form, h, set, &part);
}

/* The same angle for both parts of one result, or for one part of both, is no rotation. */
static bool turns_alike(const rotary_half *a, const rotary_half *b) {
    for (int part = 0; part < 2; part++) {
        if (flow_origin(a->angles[part]) == flow_origin(b->angles[part])) return false;
    }
    return true;
}

/* Part i of the result is part i of x times one angle, less (or, in the other part, plus) the other part times another.
 */
bool match_rotary_concat(match *m, node *concat) {
    rotary_form form;
    if (concat->in_count != 2 || !flow_free(m, concat) || !form_of(concat, &form)) return false;
    for (int i = 0; i < 2; i++) {
        flow_set set = {.count = 0};
        rotary_half less, more;
        if (!half_result(m, concat->in[i], "Sub", &form, &set, &less) || less.first != i) continue;
        if (!half_result(m, concat->in[1 - i], "Add", &form, &set, &more) || more.source != less.source) continue;
        tensor *x = less.source;
        if (!turns_alike(&less, &more) || flow_count(x) != flow_count(concat->out[0])) continue;
        for (int step = 0; step < 4 && flow_dim(x, -1) != form.width && flow_reshapes(x->producer); step++) {
            if (!flow_in(x->producer, 0)) break;
            flow_add(&set, x->producer);
            x = x->producer->in[0];
        }
        flow_add(&set, concat);
        const rotary_turn turn = {.cosine = less.angles[i],
                                  .sine = less.angles[1 - i],
                                  .pairs = form.pairs,
                                  .back = i == 1,
                                  .apart =
                                      less.angles[i] != more.angles[1 - i] || less.angles[1 - i] != more.angles[i]};
        if (join_rotary(m, &set, concat, x, &turn)) return true;
    }
    return false;
}
