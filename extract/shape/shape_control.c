/* If, Loop, Scan and SequenceMap: what their bodies see, how often they run, and what comes out. A body's tensors keep
 * the infos of the last time it was inferred. */
#include "common/checked.h"
#include "extract/shape/infer_state.h"
#include "extract/shape/shape.h"

#include <inttypes.h>
#include <string.h>

enum {
    CONTROL_MAX_ITERATIONS = 1024, /* of a loop that is followed value by value */
    CONTROL_MAX_REPEATS = 200000   /* nodes inferred again, in the whole run */
};

static graph *body_of(infer *c, const char *name) {
    const attr *a = infer_attr(c, name);
    if (!a || a->kind != ATTR_GRAPH || !a->g) infer_fail(c, "has no body '%s'", name);
    return a->g;
}

/* Per run of its owner; infer_model multiplies along the nesting in the end. */
static void set_times(graph *g, double times, bool known) {
    g->times = times;
    g->times_known = known;
}

static bool may_repeat(infer *c, const graph *g) {
    infer_state *s = c->model->infer;
    if (s->repeats > CONTROL_MAX_REPEATS) return false;
    s->repeats += g->node_count + 1;
    return true;
}

static const info *without_values(infer *c, const info *x) {
    if (!x->val) return x;
    info *copy = arena_alloc(c->arena, sizeof *copy);
    *copy = *x;
    copy->val = NULL;
    return copy;
}

static bool same_values(const info *a, const info *b) {
    if (!a->val || !b->val) return !a->val && !b->val;
    if (a->val->n != b->val->n) return false;
    for (int64_t k = 0; k < a->val->n; k++)
        if (value_at(a->val, k) != value_at(b->val, k)) return false;
    return true;
}

static bool same_info(const info *a, const info *b) {
    if (a->form != b->form || a->type != b->type) return false;
    if (a->form == INFO_TENSOR || a->form == INFO_SPARSE) return info_same_shape(a, b);
    return a->form != INFO_SEQUENCE || a->elem_count == b->elem_count;
}

/* ---- If ---- */

/* One shape that covers both: equal ones stay, equal ranks give the larger of each dimension. */
static void set_either(infer *c, int i, const info *a, const info *b) {
    if (same_info(a, b) && !a->inexact && !b->inexact) {
        infer_set_info(c, i, same_values(a, b) ? a : without_values(c, a));
        return;
    }
    if (!info_shaped(a) || !info_shaped(b) || a->rank != b->rank) {
        infer_unresolved(c, "its branches give %s and %s, and which one runs is not known", info_text(c->arena, a),
                         info_text(c->arena, b));
        return;
    }
    int64_t dims[INFO_MAX_RANK];
    for (int k = 0; k < a->rank; k++) dims[k] = a->dims[k] > b->dims[k] ? a->dims[k] : b->dims[k];
    infer_set_bound(c, i, a->type, a->rank, dims, "its branches give %s and %s, and which one runs is not known",
                    info_text(c->arena, a), info_text(c->arena, b));
}

static void check_outputs(infer *c, const graph *g, int need) {
    if (g->output_count < need)
        infer_fail(c, "body '%s' has %d outputs where %d are needed", g->region, g->output_count, need);
}

void shape_control_if(infer *c) {
    graph *branches[2] = {body_of(c, "else_branch"), body_of(c, "then_branch")};
    const value *cond = infer_value(c, 0);
    int taken = cond && cond->n == 1 ? value_at(cond, 0) != 0 : -1;
    bool fits[2];
    int count = infer_out_count(c);
    for (int b = 0; b < 2; b++) {
        set_times(branches[b], taken < 0 || taken == b, taken >= 0);
        check_outputs(c, branches[b], count);
        fits[b] = true;
        if (taken == b)
            infer_graph(c->model, branches[b]);
        else
            fits[b] = infer_graph_soft(c->model, branches[b]);
    }
    for (int i = 0; i < count; i++) {
        if (taken >= 0)
            infer_set_info(c, i, branches[taken]->outputs[i]->info);
        else if (fits[0] != fits[1]) /* a branch whose shapes contradict each other can't be the one that runs */
            infer_set_info(c, i, branches[fits[1]]->outputs[i]->info);
        else
            set_either(c, i, branches[1]->outputs[i]->info, branches[0]->outputs[i]->info);
    }
}

/* ---- Loop ---- */

typedef struct loop {
    infer *c;
    graph *body;
    int carried;        /* loop-carried values */
    int64_t limit;      /* -1: none or not known */
    bool limit_known;   /* false: a limit is given whose value is not known */
    const info **state; /* carried infos entering the next iteration */
    int64_t trips;      /* iterations, -1: not known */
} loop;

static void enter_body(loop *l, const info *iteration) {
    static const info flag = {.form = INFO_TENSOR, .type = DTYPE_BOOL, .rank = 0, .dims = info_no_dims};
    l->body->inputs[0]->info = iteration;
    l->body->inputs[1]->info = &flag;
    for (int k = 0; k < l->carried; k++) l->body->inputs[2 + k]->info = l->state[k];
    infer_graph(l->c->model, l->body);
}

/* 1 true, 0 false, -1 not known. A condition handed through unchanged stays what it was. */
static int condition(const tensor *t, const graph *body) {
    const tensor *at = t;
    while (at->producer && graph_is(at->producer, "Identity")) at = at->producer->in[0];
    if (at == body->inputs[1]) return 1;
    const value *v = t->info->val;
    return v && v->n == 1 ? value_at(v, 0) != 0 : -1;
}

static bool leave_body(loop *l, bool *same_shapes) {
    bool same = true;
    *same_shapes = true;
    for (int k = 0; k < l->carried; k++) {
        const info *next = l->body->outputs[1 + k]->info;
        bool shapes = same_info(next, l->state[k]) && !next->inexact == !l->state[k]->inexact;
        *same_shapes &= shapes;
        same &= shapes && same_values(next, l->state[k]);
        l->state[k] = next;
    }
    return same;
}

/* Once without values: where the carried shapes stay as they are, one look says all. */
static bool loop_is_stable(loop *l, const info *iteration) {
    for (int k = 0; k < l->carried; k++) l->state[k] = without_values(l->c, l->state[k]);
    enter_body(l, iteration);
    bool shapes;
    leave_body(l, &shapes);
    for (int k = 0; k < l->body->node_count; k++)
        if (l->body->nodes[k]->unresolved) return false;
    return shapes && condition(l->body->outputs[0], l->body) == 1;
}

/* Follows the loop value by value until it ends, repeats itself, or can't be followed. */
static void loop_follow(loop *l) {
    infer *c = l->c;
    for (int64_t trip = 0; trip < CONTROL_MAX_ITERATIONS && may_repeat(c, l->body); trip++) {
        if (l->limit_known && l->limit >= 0 && trip >= l->limit) {
            l->trips = trip;
            return;
        }
        enter_body(l, info_of_ints(c->arena, DTYPE_INT64, 0, NULL, &trip, 1));
        bool shapes;
        leave_body(l, &shapes);
        int go_on = condition(l->body->outputs[0], l->body);
        if (go_on == 0) {
            l->trips = trip + 1;
            return;
        }
        if (go_on < 0 || !l->limit_known) return;
    }
}

static void loop_begin(loop *l) {
    for (int k = 0; k < l->carried; k++) l->state[k] = infer_in(l->c, 2 + k);
}

/* What a carried value is in any iteration: of a sequence that grows, how long it is stays open. */
static const info *any_iteration(loop *l, int k) {
    const info *before = infer_in(l->c, 2 + k), *after = l->body->outputs[1 + k]->info;
    if (same_info(before, after)) return without_values(l->c, before);
    if (before->form != INFO_SEQUENCE || after->form != INFO_SEQUENCE) return &info_unknown;
    return info_sequence(l->c->arena, NULL, -1, after->elem_like ? after->elem_like : before->elem_like);
}

/* A loop that cannot be followed: what it carries keeps its shape or is not known. */
static void loop_generalise(loop *l, const info *iteration) {
    loop_begin(l);
    if (loop_is_stable(l, iteration)) return;
    bool changed = false;
    for (int k = 0; k < l->carried; k++) {
        const info *x = any_iteration(l, k);
        changed |= !same_info(x, infer_in(l->c, 2 + k));
        l->state[k] = x;
    }
    if (changed) enter_body(l, iteration);
    for (int k = 0; k < l->carried; k++)
        if (l->state[k]->form != INFO_UNKNOWN) l->state[k] = without_values(l->c, l->body->outputs[1 + k]->info);
}

static void loop_set_scan(loop *l, int output, const info *each) {
    infer *c = l->c;
    if (!info_shaped(each) || each->rank >= INFO_MAX_RANK) {
        infer_unresolved(c, "what its iterations give has no known shape");
        return;
    }
    int64_t dims[INFO_MAX_RANK];
    for (int k = 0; k < each->rank; k++) dims[k + 1] = each->dims[k];
    if (l->trips >= 0) {
        dims[0] = l->trips;
        infer_set(c, output, each->type, each->rank + 1, dims);
    } else if (l->limit_known && l->limit >= 0) {
        dims[0] = l->limit;
        infer_set_bound(c, output, each->type, each->rank + 1, dims,
                        "ends on data, after at most %" PRId64 " iterations", l->limit);
    } else {
        infer_unresolved(c, "how often it runs depends on data");
    }
}

static void loop_outputs(loop *l) {
    infer *c = l->c;
    for (int k = 0; k < l->carried; k++) {
        const info *x = l->state[k];
        if (x->form == INFO_UNKNOWN)
            infer_unresolved(c, "the shape of what it carries changes with iterations whose number is not known");
        else
            infer_set_info(c, k, x);
    }
    for (int k = l->carried; k < infer_out_count(c); k++) loop_set_scan(l, k, l->body->outputs[1 + k]->info);
    set_times(l->body, l->trips >= 0 ? (double)l->trips : 1, l->trips >= 0);
}

void shape_control_loop(infer *c) {
    loop l = {.c = c, .body = body_of(c, "body"), .limit = -1, .limit_known = true, .trips = -1};
    l.carried = infer_in_count(c) > 2 ? infer_in_count(c) - 2 : 0;
    if (l.body->input_count != l.carried + 2)
        infer_fail(c, "its body takes %d inputs where %d are carried", l.body->input_count - 2, l.carried);
    check_outputs(c, l.body, 1 + (infer_out_count(c) > l.carried ? infer_out_count(c) : l.carried));
    l.state = arena_array(c->arena, const info *, l.carried + 1);
    if (infer_has(c, 0)) l.limit_known = infer_int(c, 0, &l.limit);
    if (l.limit_known && infer_has(c, 0) && l.limit < 0) l.limit = 0;
    const value *first = infer_has(c, 1) ? infer_value(c, 1) : NULL;
    bool starts = !infer_has(c, 1) || (first && first->n == 1 && value_at(first, 0) != 0);
    bool never = (first && first->n == 1 && value_at(first, 0) == 0) || (l.limit_known && l.limit == 0);
    set_times(l.body, 1, false);

    static const info counter = {.form = INFO_TENSOR, .type = DTYPE_INT64, .rank = 0, .dims = info_no_dims};
    loop_begin(&l);
    bool stable = loop_is_stable(&l, &counter);
    if (never) {
        loop_begin(&l);
        l.trips = 0;
    } else if (stable && starts && l.limit_known && l.limit >= 0) {
        l.trips = l.limit;
    } else if (starts) {
        loop_begin(&l);
        loop_follow(&l);
        if (l.trips < 0) loop_generalise(&l, &counter);
    } else if (!stable) {
        loop_generalise(&l, &counter);
    }
    loop_outputs(&l);
}

/* ---- Scan ---- */

typedef struct scan {
    infer *c;
    graph *body;
    int states, ins, outs;
    int lead;      /* dimensions before the scanned one in opset 8: the batch */
    int first;     /* input where the states begin */
    int64_t trips; /* -1 until the first scan input */
    int64_t batch;
} scan;

static int64_t axis_of(infer *c, const char *name, int k) {
    const int64_t *axes;
    int64_t n;
    return infer_attr_ints(c, name, &axes, &n) && k < n ? axes[k] : 0;
}

static const info *without_axis(infer *c, const info *x, int axis) {
    int64_t dims[INFO_MAX_RANK];
    int rank = 0;
    for (int k = 0; k < x->rank; k++)
        if (k != axis) dims[rank++] = x->dims[k];
    return info_tensor(c->arena, x->type, rank, dims);
}

static void scan_enter(scan *s) {
    infer *c = s->c;
    for (int k = 0; k < s->states; k++) {
        const info *x = infer_in(c, s->first + k);
        if (s->lead && x->rank < 1) infer_fail(c, "state %d has no batch dimension", k);
        s->body->inputs[k]->info = s->lead ? without_axis(c, x, 0) : without_values(c, x);
    }
    for (int k = 0; k < s->ins; k++) {
        const info *x = infer_in(c, s->first + s->states + k);
        if (x->rank < 1 + s->lead)
            infer_fail(c, "scan input %d is %s and has nothing to scan", k, info_text(c->arena, x));
        int axis = s->lead ? 1 : infer_axis(c, axis_of(c, "scan_input_axes", k), x->rank);
        if (s->trips >= 0 && x->dims[axis] != s->trips)
            infer_fail(c, "scan inputs have lengths %" PRId64 " and %" PRId64, s->trips, x->dims[axis]);
        s->trips = x->dims[axis];
        const info *slice = without_axis(c, x, axis);
        if (s->lead) s->batch = x->dims[0];
        s->body->inputs[s->states + k]->info = s->lead ? without_axis(c, slice, 0) : slice;
    }
}

static void scan_set_output(scan *s, int k) {
    infer *c = s->c;
    const info *each = s->body->outputs[s->states + k]->info;
    if (!info_shaped(each) || each->rank + 1 + s->lead > INFO_MAX_RANK) {
        infer_unresolved(c, "what its iterations give has no known shape");
        return;
    }
    int rank = each->rank + 1 + s->lead;
    int axis = s->lead ? 1 : infer_axis(c, axis_of(c, "scan_output_axes", k), rank);
    int64_t dims[INFO_MAX_RANK];
    for (int d = 0, from = 0; d < rank; d++) {
        if (d == axis)
            dims[d] = s->trips;
        else if (s->lead && d == 0)
            dims[d] = s->batch;
        else
            dims[d] = each->dims[from++];
    }
    infer_set(c, s->states + k, each->type, rank, dims);
}

void shape_control_scan(infer *c) {
    scan s = {.c = c, .body = body_of(c, "body"), .trips = -1, .lead = infer_opset(c) < 9, .first = infer_opset(c) < 9};
    int64_t ins = infer_attr_int(c, "num_scan_inputs", 1);
    int inputs = infer_in_count(c) - s.first;
    if (ins < 1 || ins > inputs) infer_fail(c, "num_scan_inputs is %" PRId64 " and it has %d inputs", ins, inputs);
    s.ins = (int)ins;
    s.states = inputs - s.ins;
    s.outs = infer_out_count(c) - s.states;
    if (s.body->input_count != inputs)
        infer_fail(c, "its body takes %d inputs where it has %d", s.body->input_count, inputs);
    if (s.outs < 0) infer_fail(c, "has fewer outputs than states");
    check_outputs(c, s.body, s.states + s.outs);
    scan_enter(&s);
    set_times(s.body, (double)s.trips * (s.lead ? (double)s.batch : 1), true);
    infer_graph(c->model, s.body);
    for (int k = 0; k < s.states; k++) {
        const info *after = s.body->outputs[k]->info;
        if (!same_info(after, s.body->inputs[k]->info))
            infer_unresolved(c, "state %d changes its shape from one iteration to the next", k);
        else
            infer_set_info(c, k, without_values(c, infer_in(c, s.first + k)));
    }
    for (int k = 0; k < s.outs; k++) scan_set_output(&s, k);
}

/* ---- SequenceMap ---- */

static const info *element(const info *x, int64_t k) {
    if (x->form != INFO_SEQUENCE) return x;
    if (x->elems && k < x->elem_count) return x->elems[k];
    return x->elem_like ? x->elem_like : &info_unknown;
}

void shape_control_sequence_map(infer *c) {
    graph *body = body_of(c, "body");
    const info *first = infer_in(c, 0);
    int count = infer_out_count(c);
    if (body->input_count != infer_in_count(c))
        infer_fail(c, "its body takes %d inputs where it has %d", body->input_count, infer_in_count(c));
    check_outputs(c, body, count);
    int64_t n = first->form == INFO_SEQUENCE ? first->elem_count : -1;
    int64_t runs = n > 0 && n <= CONTROL_MAX_ITERATIONS ? n : 1;
    const info **got = arena_array(c->arena, const info *, checked_mul(runs, count ? count : 1));
    for (int64_t r = 0; r < runs; r++) {
        for (int k = 0; k < body->input_count; k++) body->inputs[k]->info = element(infer_in(c, k), r);
        set_times(body, n >= 0 ? (double)n : 1, n >= 0);
        if (r == 0 || may_repeat(c, body)) infer_graph(c->model, body);
        for (int k = 0; k < count; k++) got[k * runs + r] = body->outputs[k]->info;
    }
    for (int k = 0; k < count; k++)
        infer_set_info(c, k, info_sequence(c->arena, got + k * runs, runs == n ? n : (n == 0 ? 0 : -1), got[k * runs]));
}
