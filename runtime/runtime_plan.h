/* What the files of a plan share: runtime_plan_open.c makes its steps, runtime_plan_step.c one of them, runtime_plan.c
 * binds and launches. */
#pragma once

#include "runtime/runtime_internal.h"
#include "scout/fusion/fusion.h"
#include "scout/plan/binding.h"

/* Steps that are no occurrence: a copy to an output; what is formed for the next step. */
enum { PLAN_COPY = -1, PLAN_FORMED = -2 };

typedef struct plan_step {
    const scout_run_op *op;
    int occurrence;                      /* or one of PLAN_COPY and PLAN_FORMED */
    int tensors[SCOUT_MAX_TENSORS];      /* of the dataflow; -1: memory for what nothing reads */
    uint64_t offsets[SCOUT_MAX_TENSORS]; /* of it in that which has memory, or in the activations */
    void *data[SCOUT_MAX_TENSORS];       /* for the next launch */
    int formed;                          /* which of its tensors the step before makes for it; -1: none */
    scout_run_weight *packed;            /* owned; NULL: as it is */
} plan_step;

/* How an occurrence is to run, by plan.json; candidate NULL: it does not say. */
typedef struct plan_wish {
    const char *candidate, *variant;
} plan_wish;

typedef struct plan_group_wish { /* of plan.json */
    const char *of;              /* an operation or a fusion, by its id */
    plan_wish by;
    int occurrences[FUSION_PARTS], count;
    plan_step step; /* of several: made by plan_step_fuse */
} plan_group_wish;

struct scout_run_plan {
    scout_run *run;
    guard guard;
    arena arena;
    operation_list list;
    const operation_flow *flow;
    fusion_list fusions;
    plan_group_wish *wishes;
    int wish_count;
    plan_group_wish **group_of; /* by occurrence; NULL: plan.json says nothing of it that can run here */
    plan_step *steps;
    int step_count;
    int *slots; /* tensors that a caller binds */
    int slot_count;
    void **data;  /* by tensor with memory of its own: where; NULL: it is not bound yet */
    int *claimed; /* by such a tensor: the output that lies in its place, as another view of it; -1: none */
    char *activations, *constants; /* owned */
    bool resolved, packed;         /* the steps have their data; their weights */
};

/* Adds a step, and one before it where an operand is formed, but for what nothing reads (tensor -1). In a frame with a
 * guard. */
int32_t plan_step_make(scout_run_plan *plan, int occurrence, const plan_wish *wish, scout_run_error *error);
/* The step of a group of several; false: it runs as its parts. */
bool plan_step_fuse(scout_run_plan *plan, plan_group_wish *group);
/* One that copies what an output is a view of, and where it lies densely. */
int32_t plan_step_copy(scout_run_plan *plan, int output, plan_step *step, scout_run_error *error);
/* The name of the node that an occurrence is, for complaints. */
const char *plan_node(const scout_run_plan *plan, int occurrence);
