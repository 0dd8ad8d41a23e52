/* The order of a run: what needs what, and whether a sequence of groups is one that can be run. */
#include "scout/plan/plan.h"

#include "scout/plan/binding.h"

plan_needs plan_needs_of(const operation_flow *f, arena *a) {
    plan_needs to = {.needs = arena_array(a, int, f->edge_count),
                     .begins = arena_array(a, int, f->occurrence_count + 1),
                     .segments = arena_array(a, int, f->occurrence_count)};
    for (int k = 0; k < f->occurrence_count; k++) {
        const operation_occurrence *at = &f->occurrences[k];
        if (k > 0) to.segments[k] = to.segments[k - 1] + (at->times != at[-1].times);
        to.begins[k + 1] = to.begins[k];
        for (int e = at->read; e < at->made; e++) {
            const int producer = f->tensors[binding_owner(f, f->edges[e])].producer;
            if (producer >= 0 && producer < k) to.needs[to.begins[k + 1]++] = producer;
        }
    }
    return to;
}

/* Groups run one after another, and what a group needs was there before it, or is in it. */
bool plan_runs(const operation_flow *f, const plan_run *p, arena *a, status *st) {
    const plan_needs all = plan_needs_of(f, a);
    int *group_of = arena_array(a, int, f->occurrence_count), met = 0;
    for (int k = 0; k < f->occurrence_count; k++) group_of[k] = -1;
    for (int g = 0; g < p->group_count; g++) {
        const bool whole = p->groups[g].fusion >= 0 ? p->groups[g].count > 1 && p->groups[g].count <= FUSION_PARTS
                                                    : p->groups[g].count == 1;
        if (!whole)
            return status_fail(st, STATUS_INPUT, "group %d: a fusion has several occurrences, and what is none has one",
                               g);
        for (int k = 0; k < p->groups[g].count; k++, met++) {
            const int at = p->order[p->groups[g].first + k];
            if (group_of[at] >= 0)
                return status_fail(st, STATUS_INPUT, "group %d: occurrence %d stands in group %d before", g, at,
                                   group_of[at]);
            group_of[at] = g;
        }
    }
    if (met != f->occurrence_count)
        return status_fail(st, STATUS_INPUT, "its groups have %d of %d occurrences", met, f->occurrence_count);
    for (int k = 0, segment = 0; k < met; k++) {
        const int at = p->order[k];
        if (all.segments[at] < segment)
            return status_fail(st, STATUS_INPUT, "group %d: occurrence %d left its place before or behind a loop",
                               group_of[at], at);
        segment = all.segments[at];
        for (int n = all.begins[at]; n < all.begins[at + 1]; n++)
            if (group_of[all.needs[n]] > group_of[at])
                return status_fail(st, STATUS_INPUT,
                                   "group %d: occurrence %d needs what occurrence %d makes, in the later group %d",
                                   group_of[at], at, all.needs[n], group_of[all.needs[n]]);
    }
    return true;
}

void plan_lives(const operation_flow *f, const int *turns, place_item *lives) {
    const int end = f->occurrence_count;
    for (int t = 0; t < f->tensor_count; t++) lives[t] = (place_item){.from = end, .to = f->tensors[t].kept ? end : -1};
    for (int k = 0; k < f->occurrence_count; k++)
        for (int e = f->occurrences[k].read; e < f->occurrences[k].after; e++) {
            place_item *life = &lives[binding_owner(f, f->edges[e])];
            if (turns[k] < life->from) life->from = turns[k];
            if (turns[k] > life->to) life->to = turns[k];
        }
}

/* ---- between processes ---- */

json_t *plan_to_json(const plan_run *p, json_builder *b) {
    json_t *list = json_new_array(b);
    for (int g = 0; g < p->group_count; g++) {
        json_t *row = json_new_array(b);
        json_push_int(b, row, p->groups[g].fusion);
        for (int k = 0; k < p->groups[g].count; k++) json_push_int(b, row, p->order[p->groups[g].first + k]);
        json_push(b, list, row);
    }
    return list;
}

static int number(const json_t *row, size_t at, int least, int most, arena *a) {
    const json_t *x = json_array_get(row, at);
    if (!json_is_integer(x) || json_integer_value(x) < least || json_integer_value(x) > most)
        guard_fail(a->guard, STATUS_ENVIRONMENT, "a job with a plan that cannot be one");
    return (int)json_integer_value(x);
}

plan_run *plan_from_json(const json_t *from, const operation_flow *f, int fusions, arena *a) {
    plan_run *p = arena_array(a, plan_run, 1);
    status st = {0};
    p->groups = arena_array(a, plan_group, json_array_size(from));
    p->order = arena_array(a, int, f->occurrence_count);
    for (size_t g = 0; g < json_array_size(from); g++) {
        const json_t *row = json_array_get(from, g);
        plan_group *to = &p->groups[p->group_count++];
        *to = (plan_group){.fusion = number(row, 0, -1, fusions - 1, a), .first = p->occurrence_count};
        for (size_t k = 1; k < json_array_size(row) && p->occurrence_count < f->occurrence_count; k++, to->count++)
            p->order[p->occurrence_count++] = number(row, k, 0, f->occurrence_count - 1, a);
    }
    if (!plan_runs(f, p, a, &st)) guard_fail(a->guard, STATUS_ENVIRONMENT, "a job with a plan: %s", st.text);
    return p;
}
