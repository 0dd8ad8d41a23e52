/* A run of the whole model, measured as one: every occurrence on memory as a runtime would lay it out. Two lanes take
 * turns: all operations in the model's order by the libraries' defaults, and the plan: its groups in its order, each by
 * what is proven to be faster. Runs in a worker. */
#pragma once

#include "scout/fusion/fusion.h"
#include "scout/measure/measure.h"
#include "scout/plan/plan.h"

#include <sched.h>

enum { REPLAY_LANES = 2, REPLAY_MOST_BESIDE = 8 };

typedef struct replay_row { /* NULL: the first of them leaves the operation out, the second is the first one again */
    const char *candidate, *variant;
} replay_row;

typedef struct replay_operation {
    operation operation;
    replay_row rows[REPLAY_LANES]; /* the default, and the best that is proven */
} replay_operation;

typedef struct replay_fusion {
    replay_operation of; /* the fused one, and what it runs as: its first row */
    int part_count;
    fusion_part *parts;
} replay_fusion;

typedef struct replay_beside { /* threads that prepare plans beside the one that measures */
    int threads;               /* 0: none may; REPLAY_MOST_BESIDE at most */
    int32_t ordinal;           /* of the device that each of them opens for itself */
    cpu_set_t cores;
} replay_beside;

typedef struct replay_request {    /* all borrowed */
    const operation_flow *flow;    /* its occurrences name `operations` */
    const operation_flow *planned; /* what `plan` is of: one with images turned and converted, whose tensors begin with
                                      the same ones; NULL: the same */
    const int *from;               /* by its occurrence: the same of `flow`, or -1 */
    const plan_run *plan;          /* of the second lane; NULL: the flow's order, each occurrence by itself */
    const replay_operation *operations;
    int operation_count;
    const replay_fusion *fusions; /* that the plan names */
    int fusion_count;
    regime regime;
    uint64_t workspace_limit;
    bool exhaustive;      /* the variants were found so */
    double plateau_bytes; /* that weights go through before one comes again, where they are to be cold; 0: not known */
    double clock_fall;    /* as lanes_rules has it */
    const char *only;     /* names of candidates, commas between: operations without one are left out; NULL: all */
    const measure_exclusion *exclusions; /* rows that must not be run */
    int exclusion_count;
    replay_beside beside;
} replay_request;

typedef struct replay_pass {
    int number;    /* from 1 */
    uint64_t seed; /* of what tensors hold and where they lie */
    double hold_s; /* as measure_pass has it */
    bool in_place; /* each launch is timed where it stands, too, if the device launches directly */
    bool exact;    /* nothing is timed: both lanes are held against fp32, behind a pass that was */
    bool trace;    /* nothing is timed: the kernels of a run are told, if the device has a tracer */
} replay_pass;

typedef struct replay replay;

/* The request must outlive it. NULL: no memory. */
replay *replay_open(const scout_device_api *api, scout_device *device, const scout_identity *identity,
                    const replay_request *request, const measure_watcher *watcher);
/* What a pass says, in the form of a measurement's (figures.h), whose rows are `default` and `best`; the caller's. The
 * first one holds every operation's best against its default, and every group against its parts by default, before
 * anything is timed. A group that fails is replaced by its parts. NULL: the device is lost
 * (SCOUT_LOST), memory does not hold the model (SCOUT_NO_MEMORY), or nothing of it can run, or no pass came before a
 * look (SCOUT_NO). */
json_t *replay_run(replay *r, const replay_pass *pass, scout_answer *answer, scout_why *why);
void replay_close(replay *r);
