/* What the files of parts share: parts.c lays the parts out and is the candidate, parts_plan.c makes and runs a
 * plan. */
#pragma once

#include "scout/device/choice.h"
#include "scout/measure/measure_internal.h"
#include "scout/measure/parts.h"

typedef enum parts_where {
    PARTS_FUSED,    /* a tensor of the fused operation */
    PARTS_BETWEEN,  /* what a part writes for others */
    PARTS_CONSTANT, /* a vector of one number */
} parts_where;

typedef struct parts_source {
    parts_where where;
    int at;               /* tensor, or part */
    const char *constant; /* its name in parts_plan.c's table */
    uint64_t offset;
} parts_source;

typedef struct parts_step { /* one part */
    scout_op op;
    const char *id, *candidate, *variant; /* wished for; NULL: the default */
    parts_source sources[SCOUT_MAX_TENSORS];
    uint64_t between_bytes; /* that it writes for others; 0: nothing */
} parts_step;

struct parts_layout {
    const scout_device_api *api;
    const scout_op *fused;
    arena *arena; /* also of plans: those of a lost device are given back with it */
    bool exhaustive, ahead;
    int count;
    parts_step steps[FUSION_PARTS];
    bool good;
    scout_why why; /* where it is not */
};

extern _Thread_local parts_layout *parts_current; /* that is in use */

/* -1: there is no such constant. */
int parts_constant(const char *name);

scout_answer parts_plan_prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                                scout_plan_needs *needs, scout_why *why);
scout_answer parts_plan_pack(scout_plan *plan, void *const *tensors, void *packed, void *stream, scout_why *why);
scout_answer parts_plan_launch(scout_plan *plan, const scout_args *args, scout_why *why);
int parts_plan_describe(const scout_plan *plan, char *json, size_t room);
void parts_plan_destroy(scout_plan *plan);
