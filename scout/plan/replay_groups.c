/* The plan's groups: which of them stand, and what each lane runs in which order. A group falls with its fusion, and
 * with any of its parts, because both lanes do the same work. Its parts then run in its place. */
#include "scout/plan/replay_internal.h"

#include "scout/kinds/kind_tensors.h"
#include "scout/kinds/kinds.h"

#include <stdlib.h>

const replay_group *replay_group_of(const replay *r, const replay_step *s) {
    const int64_t at = s - r->steps;
    return at >= r->single_count ? &r->groups[at - r->single_count] : NULL;
}

const replay_fusion *replay_fusion_of(const replay *r, const replay_group *g) {
    return &r->request->fusions[g->of->fusion];
}

static int occurrence_of(const replay *r, const replay_group *g, int part) {
    return r->request->plan->order[g->of->first + part];
}

const replay_step *replay_part(const replay *r, const replay_group *g, int part) {
    const int at = r->step_of[1][occurrence_of(r, g, part)];
    return at >= 0 ? &r->steps[at] : NULL;
}

bool replay_takes_part(const replay *r, const replay_step *s) {
    const replay_group *g = replay_group_of(r, s);
    if (r->units[s->unit].out) return false;
    for (int k = 0; g && k < g->of->count; k++)
        if (r->units[replay_part(r, g, k)->unit].out) return false;
    return true;
}

int replay_groups_standing(const replay *r) {
    int standing = 0;
    for (int k = r->single_count; k < r->step_count; k++) standing += replay_takes_part(r, &r->steps[k]);
    return standing;
}

/* ---- opening ---- */

static bool bind(replay *r, const plan_group *of, const int *reads, replay_group *to, scout_why *why) {
    const replay_fusion *f = &r->request->fusions[of->fusion];
    const scout_op *ops[FUSION_PARTS];
    const int *occurrences = &r->request->plan->order[of->first];
    const binding_fusion about = {&r->units[r->request->operation_count + of->fusion].op, f->parts, ops, f->part_count,
                                  reads};
    *to = (replay_group){.of = of};
    if (of->count != f->part_count)
        return kind_tensors_refuse(why, "feature", "a group of %d has %d parts", of->count, f->part_count);
    for (int k = 0; k < of->count; k++) {
        const replay_step *part = replay_part(r, to, k);
        if (!part) return kind_tensors_refuse(why, "feature", "a part of it takes no part");
        ops[k] = &r->units[part->unit].op;
    }
    return binding_fused(replay_flow(r, 1), occurrences, &about, &to->site, why);
}

/* What it and its parts may be off by together. An exponent has the rounding of what it is taken of, up to 8. */
static void allow(replay *r, const replay_group *g, replay_unit *u) {
    if (u->op.kind == SCOUT_SOFTMAX) u->tolerance += 16 * kind_rounding(u->op.input);
    for (int k = 0; k < g->of->count; k++) u->tolerance += r->units[replay_part(r, g, k)->unit].tolerance;
}

void replay_groups_open(replay *r) {
    const plan_run *p = r->request->plan;
    const int *reads = p ? binding_reads(replay_flow(r, 1), &r->arena) : NULL;
    r->single_count = r->step_count;
    r->groups = arena_array(&r->arena, replay_group, p ? p->group_count : 0);
    for (int g = 0; p && g < p->group_count; g++) {
        const plan_group *of = &p->groups[g];
        const int unit = r->request->operation_count + of->fusion;
        replay_group *to = &r->groups[r->step_count - r->single_count];
        scout_why why = {.code = ""};
        if (of->fusion < 0 || r->units[unit].out) continue;
        if (!bind(r, of, reads, to, &why)) {
            replay_leave_out(&r->units[unit], &why);
            continue;
        }
        to->parts = arena_calloc(&r->arena, (size_t)of->count, sizeof *to->parts);
        const replay_step *first = replay_part(r, to, 0);
        if (!r->units[unit].allowed) allow(r, to, &r->units[unit]);
        r->units[unit].allowed = true;
        r->steps[r->step_count++] =
            (replay_step){.unit = unit, .occurrence = first->occurrence, .flow = first->flow, .times = first->times};
    }
}

/* ---- courses ---- */

static void add_step(replay *r, int lane, int step) {
    if (step < 0 || !replay_takes_part(r, &r->steps[step])) return;
    r->courses[lane].steps[r->courses[lane].count++] = step;
    if (lane == 1) r->steps[step].planned = r->units[r->steps[step].unit].planned = true;
}

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static void add_parts(replay *r, const int *occurrences, int count) {
    int sorted[FUSION_PARTS];
    for (int k = 0; k < count; k++) sorted[k] = occurrences[k];
    qsort(sorted, (size_t)count, sizeof *sorted, by_number);
    for (int k = 0; k < count; k++) add_step(r, 1, r->step_of[1][sorted[k]]);
}

/* Each occurrence of a dataflow by itself. */
static void one_by_one(replay *r, int order, int which, bool course) {
    const operation_flow *f = replay_flow(r, which);
    r->courses[order] = (replay_course){.steps = arena_array(&r->arena, int, r->step_count)};
    r->turns[order] = arena_array(&r->arena, int, f->occurrence_count);
    for (int k = 0; k < f->occurrence_count; k++) {
        r->turns[order][k] = k;
        if (course) add_step(r, order, r->step_of[which][k]);
    }
}

void replay_courses(replay *r) {
    const plan_run *p = r->request->plan;
    for (int k = 0; k < r->unit_count; k++) r->units[k].planned = false;
    for (int k = 0; k < r->step_count; k++) r->steps[k].planned = false;
    one_by_one(r, 0, 0, true);
    one_by_one(r, 1, 1, !p);
    if (replay_turns(r)) one_by_one(r, REPLAY_ALONE, 1, true);
    for (int g = 0, next = r->single_count; p && g < p->group_count; g++) {
        const plan_group *of = &p->groups[g];
        const bool whole = next < r->step_count && r->groups[next - r->single_count].of == of;
        for (int k = 0; k < of->count; k++) r->turns[1][p->order[of->first + k]] = g;
        if (whole && replay_takes_part(r, &r->steps[next]))
            add_step(r, 1, next);
        else
            add_parts(r, &p->order[of->first], of->count);
        next += whole;
    }
    r->standing = replay_groups_standing(r);
}
