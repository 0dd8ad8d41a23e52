/* One primitive as a plan, from its description to its end. */
#include "scout/cpu/onednn/cpu_onednn_single.h"

#include <stdlib.h>

struct scout_plan {
    cpu_onednn_plan p;
};

void cpu_onednn_single_destroy(scout_plan *plan) {
    if (plan) cpu_onednn_plan_free(&plan->p);
    free(plan);
}

static scout_answer describe(cpu_onednn_single_describe *how, const scout_op *op, scout_plan **out, scout_why *why) {
    *out = NULL;
    scout_plan *plan = calloc(1, sizeof *plan);
    if (!plan) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a plan");
    scout_answer answer = cpu_onednn_plan_begin(&plan->p, why);
    if (answer != SCOUT_OK) {
        free(plan);
        return answer;
    }
    answer = how(&plan->p, op, why);
    if (answer == SCOUT_OK)
        *out = plan;
    else
        cpu_onednn_single_destroy(plan);
    return answer;
}

scout_answer cpu_onednn_single_supports(cpu_onednn_single_describe *how, const scout_op *op, scout_why *why) {
    scout_plan *plan = NULL;
    const scout_answer answer = describe(how, op, &plan, why);
    cpu_onednn_single_destroy(plan);
    return answer;
}

scout_answer cpu_onednn_single_prepare(cpu_onednn_single_describe *how, const scout_op *op, scout_plan **out,
                                       scout_plan_needs *needs, scout_why *why) {
    scout_answer answer = describe(how, op, out, why);
    if (answer == SCOUT_OK) answer = cpu_onednn_plan_finish(&(*out)->p, op->workspace_limit, needs, why);
    if (answer == SCOUT_OK) return answer;
    cpu_onednn_single_destroy(*out);
    *out = NULL;
    return answer;
}

scout_answer cpu_onednn_single_launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    return cpu_onednn_plan_launch(&plan->p, args, why);
}

int cpu_onednn_single_json(const scout_plan *plan, char *json, size_t room) {
    return cpu_onednn_plan_describe(&plan->p, json, room);
}
