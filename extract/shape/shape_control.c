/* If, Scan, SequenceMap and Loop: what their bodies see, how often they run, and what comes out. A body's tensors keep
 * the infos of the last time it was inferred. */
#include "common/checked.h"
#include "extract/infer/infer.h"
#include "extract/shape/shape.h"

#include <inttypes.h>
#include <string.h>

enum {
    CONTROL_MAX_ITERATIONS = 1024, /* of a loop that is followed value by value */
    CONTROL_MAX_REPEATS = 200000   /* nodes inferred again, in the whole run */
};

/* Nodes of a body that is inferred several times and gives other shapes from one time to the next: they have no one
 * shape to be listed with, which shape_control_say writes down as their reason. */
typedef struct shape_control_changes {
    graph *body;
    const info **before; /* by output of the body's nodes; NULL before the first time */
    bool *changed;       /* by node */
} shape_control_changes;

/* the body in that attribute; fails where there is none */
static graph *shape_control_body(infer *c, const char *name) {
    const attr *a = infer_attr(c, name);
    if (!a || a->kind != ATTR_GRAPH || !a->g) infer_fail(c, "has no body '%s'", name);
    return a->g;
}

/* How often a body runs per run of its owner; infer_model multiplies along the nesting in the end. */
static void shape_control_times(graph *g, double times, bool known) {
    g->times = times;
    g->times_known = known;
}

/* Whether bodies may be inferred once more: bounds the repetitions of a whole run. To infer one adds its nodes to
 * infer_state's repeats. */
static bool shape_control_may_repeat(const infer *c) { return c->model->infer->repeats <= CONTROL_MAX_REPEATS; }

static const info *shape_control_without_values(infer *c, const info *x) {
    if (!x->val && !x->least) return x;
    info *copy = info_tensor_like(c->arena, x->type, x);
    copy->form = x->form;
    return copy;
}

static bool shape_control_same_values(const info *a, const info *b) {
    if (!a->val || !b->val) return !a->val && !b->val && !a->least && !b->least;
    if (a->val->n != b->val->n) return false;
    for (int64_t k = 0; k < a->val->n; k++)
        if (value_at(a->val, k) != value_at(b->val, k)) return false;
    return true;
}

/* form, type and shape; of sequences, the length */
static bool shape_control_same(const info *a, const info *b) {
    if (a->form != b->form || a->type != b->type) return false;
    if (a->form == INFO_TENSOR || a->form == INFO_SPARSE) return info_same_shape(a, b);
    return a->form != INFO_SEQUENCE || a->elem_count == b->elem_count;
}

static shape_control_changes shape_control_watch(infer *c, graph *body) {
    int64_t outputs = 1;
    for (int k = 0; k < body->node_count; k++) outputs += body->nodes[k]->out_count;
    return (shape_control_changes){.body = body,
                                   .before = arena_array(c->arena, const info *, outputs),
                                   .changed = arena_array(c->arena, bool, body->node_count + 1)};
}

/* after each time */
static void shape_control_note(shape_control_changes *w) {
    for (int k = 0, at = 0; k < w->body->node_count; k++) {
        const node *n = w->body->nodes[k];
        for (int o = 0; o < n->out_count; o++, at++) {
            if (!n->out[o]) continue;
            const info *now = n->out[o]->info; /* that a sequence grows changes no work */
            if (w->before[at] && info_shaped(now) && !shape_control_same(w->before[at], now)) w->changed[k] = true;
            w->before[at] = now;
        }
    }
}

const char infer_changing[] = "its shape changes from one iteration to the next; the last one's shape is given";

static void shape_control_say(const shape_control_changes *w) {
    for (int k = 0; k < w->body->node_count; k++)
        if (w->changed[k] && !w->body->nodes[k]->unresolved) w->body->nodes[k]->unresolved = infer_changing;
}

/* ---- If ---- */

/* One shape that covers both: equal ones stay, equal ranks give the smaller and the larger of each dimension. */
static void set_either(infer *c, int i, const info *a, const info *b) {
    if (shape_control_same(a, b) && !a->inexact && !b->inexact) {
        infer_set_info(c, i, shape_control_same_values(a, b) ? a : shape_control_without_values(c, a));
        return;
    }
    if (!info_shaped(a) || !info_shaped(b) || a->rank != b->rank) {
        infer_unresolved(c, "its branches give %s and %s, and the branch that runs is not known",
                         info_text(c->arena, a), info_text(c->arena, b));
        return;
    }
    int64_t least[INFO_MAX_RANK], most[INFO_MAX_RANK];
    const int64_t *low_a = (a->least ? a->least : a)->dims, *low_b = (b->least ? b->least : b)->dims;
    for (int k = 0; k < a->rank; k++) {
        least[k] = low_a[k] < low_b[k] ? low_a[k] : low_b[k];
        most[k] = a->dims[k] > b->dims[k] ? a->dims[k] : b->dims[k];
    }
    infer_set_bound(c, i, a->type, a->rank, least, most,
                    "its branches give %s and %s, and the branch that runs is not known", info_text(c->arena, a),
                    info_text(c->arena, b));
}

static void shape_control_check_outputs(infer *c, const graph *g, int need) {
    if (g->output_count < need)
        infer_fail(c, "body '%s' has %d outputs where %d are needed", g->region, g->output_count, need);
}

void shape_control_if(infer *c) {
    graph *branches[2] = {shape_control_body(c, "else_branch"), shape_control_body(c, "then_branch")};
    const value *cond = infer_value(c, 0);
    int taken = cond && cond->n == 1 ? value_at(cond, 0) != 0 : -1;
    bool fits[2];
    int count = infer_out_count(c);
    for (int b = 0; b < 2; b++) {
        shape_control_times(branches[b], taken < 0 || taken == b, taken >= 0);
        shape_control_check_outputs(c, branches[b], count);
        fits[b] = true;
        if (taken == b)
            infer_graph(c->model, branches[b]);
        else
            fits[b] = infer_graph_soft(c->model, branches[b]);
    }
    if (taken < 0 && fits[0] != fits[1]) { /* a branch whose shapes contradict each other can't be the one that runs */
        taken = fits[1];
        for (int b = 0; b < 2; b++) shape_control_times(branches[b], taken == b, true);
    }
    for (int i = 0; i < count; i++) {
        if (taken >= 0)
            infer_set_info(c, i, branches[taken]->outputs[i]->info);
        else
            set_either(c, i, branches[1]->outputs[i]->info, branches[0]->outputs[i]->info);
    }
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
    int64_t least_trips, least_batch; /* where these are an upper bound */
} scan;

static int64_t axis_of(infer *c, const char *name, int k) {
    const int64_t *axes;
    int64_t n;
    return infer_attr_ints(c, name, &axes, &n) && k < n ? axes[k] : 0;
}

static const info *without_axis(infer *c, const info *x, int axis) {
    int64_t dims[INFO_MAX_RANK];
    int rank = 0;
    if (x->inexact && x->least)
        return info_between(c->arena, without_axis(c, x->least, axis), without_axis(c, x->most, axis));
    for (int k = 0; k < x->rank; k++)
        if (k != axis) dims[rank++] = x->dims[k];
    return info_tensor(c->arena, x->type, rank, dims);
}

static void scan_enter(scan *s) {
    infer *c = s->c;
    for (int k = 0; k < s->states; k++) {
        const info *x = infer_in(c, s->first + k);
        if (s->lead && x->rank < 1) infer_fail(c, "state %d has no batch dimension", k);
        s->body->inputs[k]->info = s->lead ? without_axis(c, x, 0) : shape_control_without_values(c, x);
    }
    for (int k = 0; k < s->ins; k++) {
        const info *x = infer_in(c, s->first + s->states + k);
        if (x->rank < 1 + s->lead)
            infer_fail(c, "scan input %d is %s and has nothing to scan", k, info_text(c->arena, x));
        int axis = s->lead ? 1 : infer_axis(c, axis_of(c, "scan_input_axes", k), x->rank);
        if (s->trips >= 0 && x->dims[axis] != s->trips)
            infer_fail(c, "scan inputs have lengths %" PRId64 " and %" PRId64, s->trips, x->dims[axis]);
        const int64_t *least = (x->least ? x->least : x)->dims;
        s->trips = x->dims[axis];
        s->least_trips = least[axis];
        const info *slice = without_axis(c, x, axis);
        if (s->lead) s->batch = x->dims[0], s->least_batch = least[0];
        s->body->inputs[s->states + k]->info = s->lead ? without_axis(c, slice, 0) : slice;
    }
}

static void scan_set_output(scan *s, int k) {
    infer *c = s->c;
    const info *each = s->body->outputs[s->states + k]->info;
    if (!info_shaped(each) || each->rank + 1 + s->lead > INFO_MAX_RANK) {
        infer_unresolved(c, "the shape of an iteration's output is not known");
        return;
    }
    int rank = each->rank + 1 + s->lead;
    int axis = s->lead ? 1 : infer_axis(c, axis_of(c, "scan_output_axes", k), rank);
    int64_t least[INFO_MAX_RANK], most[INFO_MAX_RANK];
    const int64_t *low = (each->least ? each->least : each)->dims;
    for (int d = 0, from = 0; d < rank; d++) {
        bool trips = d == axis, batch = s->lead && d == 0;
        least[d] = trips ? s->least_trips : batch ? s->least_batch : low[from];
        most[d] = trips ? s->trips : batch ? s->batch : each->dims[from];
        from += !trips && !batch;
    }
    infer_set_between(c, s->states + k, each->type, rank, least, most);
}

void shape_control_scan(infer *c) {
    scan s = {.c = c,
              .body = shape_control_body(c, "body"),
              .trips = -1,
              .lead = infer_opset(c) < 9,
              .first = infer_opset(c) < 9};
    int64_t ins = infer_attr_int(c, "num_scan_inputs", 1);
    int inputs = infer_in_count(c) - s.first;
    if (ins < 1 || ins > inputs) infer_fail(c, "num_scan_inputs is %" PRId64 " and it has %d inputs", ins, inputs);
    s.ins = (int)ins;
    s.states = inputs - s.ins;
    s.outs = infer_out_count(c) - s.states;
    if (s.body->input_count != inputs)
        infer_fail(c, "its body takes %d inputs where it has %d", s.body->input_count, inputs);
    if (s.outs < 0) infer_fail(c, "has fewer outputs than states");
    shape_control_check_outputs(c, s.body, s.states + s.outs);
    scan_enter(&s);
    shape_control_times(s.body, (double)s.trips * (s.lead ? (double)s.batch : 1), true);
    if (s.trips == 0) /* what never runs may contradict itself */
        infer_graph_soft(c->model, s.body);
    else
        infer_graph(c->model, s.body);
    for (int k = 0; k < s.states; k++) {
        const info *after = s.body->outputs[k]->info;
        if (s.trips > 0 && !shape_control_same(after, s.body->inputs[k]->info))
            infer_unresolved(c, "state %d changes its shape from one iteration to the next", k);
        else
            infer_set_info(c, k, shape_control_without_values(c, infer_in(c, s.first + k)));
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
    graph *body = shape_control_body(c, "body");
    const info *first = infer_in(c, 0);
    int count = infer_out_count(c);
    if (body->input_count != infer_in_count(c))
        infer_fail(c, "its body takes %d inputs where it has %d", body->input_count, infer_in_count(c));
    shape_control_check_outputs(c, body, count);
    int64_t n = first->form == INFO_SEQUENCE ? first->elem_count : -1;
    int64_t runs = n > 0 && n <= CONTROL_MAX_ITERATIONS ? n : 1;
    const info **got = arena_array(c->arena, const info *, checked_mul(runs, count ? count : 1));
    shape_control_changes seen = shape_control_watch(c, body);
    for (int64_t r = 0; r < runs; r++) {
        for (int k = 0; k < body->input_count; k++) body->inputs[k]->info = element(infer_in(c, k), r);
        shape_control_times(body, n >= 0 ? (double)n : 1, n >= 0);
        if (r == 0 || shape_control_may_repeat(c)) {
            c->model->infer->repeats += body->node_count + 1;
            infer_graph(c->model, body);
        }
        shape_control_note(&seen);
        for (int k = 0; k < count; k++) got[k * runs + r] = body->outputs[k]->info;
    }
    shape_control_say(&seen);
    for (int k = 0; k < count; k++)
        infer_set_info(c, k, info_sequence(c->arena, got + k * runs, runs == n ? n : (n == 0 ? 0 : -1), got[k * runs]));
}

/* Loop: its body is looked at once where what it carries keeps its shape; otherwise it is followed iteration by
 * iteration, and where that is not possible either, what it carries is what holds in any iteration. */
typedef struct loop {
    infer *c;
    graph *body;
    int carried;        /* loop-carried values */
    int64_t limit;      /* -1: none or not known */
    bool limit_known;   /* false: a limit is given whose value is not known */
    const info **state; /* carried infos entering the next iteration */
    int64_t trips;      /* iterations, -1: not known */
    bool surely;        /* it runs at least once, so that a body that contradicts itself makes the model wrong */
    bool misfit;        /* the body contradicts itself: it can only run not at all */
} loop;

static bool enter_body(loop *l, const info *iteration) {
    static const info flag = {.form = INFO_TENSOR, .type = DTYPE_BOOL, .rank = 0, .dims = info_no_dims};
    l->body->inputs[0]->info = iteration;
    l->body->inputs[1]->info = &flag;
    for (int k = 0; k < l->carried; k++) l->body->inputs[2 + k]->info = l->state[k];
    l->c->model->infer->repeats += l->body->node_count + 1;
    if (!l->surely) return infer_graph_soft(l->c->model, l->body);
    infer_graph(l->c->model, l->body);
    return true;
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
        bool shapes = shape_control_same(next, l->state[k]);
        *same_shapes &= shapes;
        same &= shapes && shape_control_same_values(next, l->state[k]);
        l->state[k] = next;
    }
    return same;
}

/* Once without values: where the carried shapes stay as they are, one look says all. */
static bool loop_is_stable(loop *l, const info *iteration) {
    for (int k = 0; k < l->carried; k++) l->state[k] = shape_control_without_values(l->c, l->state[k]);
    l->misfit = !enter_body(l, iteration);
    if (l->misfit) return false;
    bool shapes;
    leave_body(l, &shapes);
    for (int k = 0; k < l->body->node_count; k++)
        if (l->body->nodes[k]->unresolved) return false;
    return shapes && condition(l->body->outputs[0], l->body) == 1;
}

/* Follows the loop value by value until it ends, repeats itself, or can't be followed. */
static void loop_follow(loop *l) {
    infer *c = l->c;
    shape_control_changes seen = shape_control_watch(c, l->body);
    int go_on = 1;
    int64_t trip = 0;
    for (; go_on == 1 && trip != l->limit; trip++) {
        if (trip == CONTROL_MAX_ITERATIONS || !shape_control_may_repeat(c)) return;
        if (!enter_body(l, info_of_ints(c->arena, DTYPE_INT64, 0, NULL, &trip, 1))) return;
        shape_control_note(&seen);
        bool shapes;
        leave_body(l, &shapes);
        go_on = condition(l->body->outputs[0], l->body);
        if (go_on < 0 || (go_on == 1 && !l->limit_known)) return;
    }
    l->trips = trip;
    shape_control_say(&seen);
}

static void loop_begin(loop *l) {
    for (int k = 0; k < l->carried; k++) l->state[k] = infer_in(l->c, 2 + k);
}

/* What a carried value is in any iteration: of a sequence that grows, how long it is stays open. */
static const info *any_iteration(loop *l, int k) {
    const info *before = infer_in(l->c, 2 + k), *after = l->body->outputs[1 + k]->info;
    if (shape_control_same(before, after)) return shape_control_without_values(l->c, before);
    if (before->form != INFO_SEQUENCE || after->form != INFO_SEQUENCE) return &info_unknown;
    return info_sequence(l->c->arena, NULL, -1, after->elem_like ? after->elem_like : before->elem_like);
}

/* A loop that cannot be followed: what it carries keeps its shape or is not known. */
static void loop_generalise(loop *l, const info *iteration) {
    loop_begin(l);
    const bool again = shape_control_may_repeat(l->c); /* else what the last look showed has to do */
    if (again && loop_is_stable(l, iteration)) return;
    bool changed = false;
    for (int k = 0; k < l->carried; k++) {
        const info *x = any_iteration(l, k);
        changed |= !shape_control_same(x, infer_in(l->c, 2 + k));
        l->state[k] = x;
    }
    if (!changed || !again || !enter_body(l, iteration)) return;
    for (int k = 0; k < l->carried; k++)
        if (l->state[k]->form != INFO_UNKNOWN)
            l->state[k] = shape_control_without_values(l->c, l->body->outputs[1 + k]->info);
}

static void loop_set_scan(loop *l, int output, const info *each) {
    infer *c = l->c;
    if (!info_shaped(each) || each->rank >= INFO_MAX_RANK) {
        infer_unresolved(c, "the shape of an iteration's output is not known");
        return;
    }
    int64_t least[INFO_MAX_RANK], most[INFO_MAX_RANK];
    for (int k = 0; k < each->rank; k++) {
        least[k + 1] = (each->least ? each->least : each)->dims[k];
        most[k + 1] = each->dims[k];
    }
    if (l->trips >= 0) {
        least[0] = most[0] = l->trips;
        infer_set_between(c, output, each->type, each->rank + 1, least, most);
    } else if (l->limit_known && l->limit >= 0) {
        least[0] = 0;
        most[0] = l->limit;
        infer_set_bound(c, output, each->type, each->rank + 1, least, most,
                        "ends on data, after at most %" PRId64 " iterations", l->limit);
    } else {
        infer_unresolved(c, "the number of iterations depends on data");
    }
}

static void loop_outputs(loop *l) {
    infer *c = l->c;
    for (int k = 0; k < l->carried; k++) {
        const info *x = l->state[k];
        if (x->form == INFO_UNKNOWN)
            infer_unresolved(c,
                             "the shape of a carried value changes with the iterations, and their number is not known");
        else /* it may run not at all */
            infer_set_info(c, k, l->trips < 0 ? shape_control_without_values(c, x) : x);
    }
    for (int k = l->carried; k < infer_out_count(c); k++) loop_set_scan(l, k, l->body->outputs[1 + k]->info);
    shape_control_times(l->body, l->trips >= 0 ? (double)l->trips : 1, l->trips >= 0);
}

void shape_control_loop(infer *c) {
    loop l = {.c = c, .body = shape_control_body(c, "body"), .limit = -1, .limit_known = true, .trips = -1};
    l.carried = infer_in_count(c) > 2 ? infer_in_count(c) - 2 : 0;
    if (l.body->input_count != l.carried + 2)
        infer_fail(c, "its body takes %d inputs where %d are carried", l.body->input_count - 2, l.carried);
    shape_control_check_outputs(c, l.body, 1 + (infer_out_count(c) > l.carried ? infer_out_count(c) : l.carried));
    l.state = arena_array(c->arena, const info *, l.carried + 1);
    if (infer_has(c, 0)) l.limit_known = infer_int(c, 0, &l.limit);
    if (l.limit_known && infer_has(c, 0) && l.limit < 0) l.limit = 0;
    const value *first = infer_has(c, 1) ? infer_value(c, 1) : NULL;
    bool starts = !infer_has(c, 1) || (first && first->n == 1 && value_at(first, 0) != 0);
    bool never = (first && first->n == 1 && value_at(first, 0) == 0) || (l.limit_known && l.limit == 0);
    l.surely = starts && l.limit_known && l.limit != 0;
    shape_control_times(l.body, 1, false);

    static const info counter = {.form = INFO_TENSOR, .type = DTYPE_INT64, .rank = 0, .dims = info_no_dims};
    loop_begin(&l);
    bool stable = loop_is_stable(&l, &counter);
    if (never || l.misfit) {
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
