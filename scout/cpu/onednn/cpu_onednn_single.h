/* Candidates that are one primitive of oneDNN: a file describes it and takes the rest from here. */
#pragma once

#include "scout/cpu/onednn/cpu_onednn_plan.h"

struct scout_plan {
    cpu_onednn_plan p;
};

/* Adds the parts and fills p->pd, which asks the library and compiles nothing yet. */
typedef scout_answer cpu_onednn_single_describe(cpu_onednn_plan *p, const scout_op *op, scout_why *why);

/* A candidate's supports and prepare, but for the description. */
scout_answer cpu_onednn_single_supports(cpu_onednn_single_describe *how, const scout_op *op, scout_why *why);
scout_answer cpu_onednn_single_prepare(cpu_onednn_single_describe *how, const scout_op *op, scout_plan *plan,
                                       scout_plan_needs *needs, scout_why *why);
/* Refuses a described primitive for which the library has only its plain reference: it computes every index by
 * divisions, some 100 ns a number, and no model is run so. */
scout_answer cpu_onednn_single_optimised(const cpu_onednn_plan *p, const char *primitive, scout_why *why);
/* As they stand in a scout_candidate. */
scout_answer cpu_onednn_single_launch(scout_plan *plan, const scout_args *args, scout_why *why);
int cpu_onednn_single_json(const scout_plan *plan, char *json, size_t room);
void cpu_onednn_single_destroy(scout_plan *plan);
