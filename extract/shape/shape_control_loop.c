/* Loop: its body is looked at once where what it carries keeps its shape; otherwise it is followed iteration by
 * iteration, and where that is not possible either, what it carries is what holds in any iteration. */
#include "extract/infer/infer_state.h"
#include "extract/shape/shape.h"
#include "extract/shape/shape_control.h"

#include <inttypes.h>

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
