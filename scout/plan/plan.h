/* What a run of the model does, in which order and what at once: all occurrences in groups, each of one by itself or of
 * several that a fusion does. */
#pragma once

#include "common/json.h"
#include "scout/input/operation.h"
#include "scout/plan/place.h"

typedef struct plan_group {
    int fusion;       /* in a list of fusions; -1: one occurrence by itself */
    int first, count; /* of plan.order */
} plan_group;

typedef struct plan_run {
    int *order; /* occurrences */
    plan_group *groups;
    int occurrence_count, group_count;
} plan_run;

/* What an occurrence needs before it: of occurrence k needs[begins[k]] to needs[begins[k + 1]]. Segments: neighbours
 * that run as often, as the body of a loop does; nothing changes places with what is in another one. */
typedef struct plan_needs {
    int *needs, *begins, *segments;
} plan_needs;

/* Everything is in the arena. */
plan_needs plan_needs_of(const operation_flow *flow, arena *a);

/* Whether it can be run so: every occurrence once, behind what it needs; members of a group do not wait for what
 * stands between them. False: st says which occurrence cannot. */
bool plan_runs(const operation_flow *flow, const plan_run *p, arena *a, status *st);

/* How long each tensor is needed where occurrence k has its turn at turns[k]: from and to of lives[t], by tensor that
 * has memory of its own; `to` before `from`: nothing needs it. What is kept is needed one turn longer than any other.
 */
void plan_lives(const operation_flow *flow, const int *turns, place_item *lives);

/* A list of a row per group: its fusion, then its occurrences. plan_from_json fails through the guard. */
json_t *plan_to_json(const plan_run *p, json_builder *b);
plan_run *plan_from_json(const json_t *from, const operation_flow *flow, int fusions, arena *a);
