/* One primitive as a plan, from its description to its end. */
#include "scout/cpu/onednn/cpu_onednn_single.h"

#include <string.h>

static scout_answer describe(cpu_onednn_single_describe *how, const scout_op *op, scout_plan *plan, scout_why *why) {
    const scout_answer answer = cpu_onednn_plan_begin(&plan->p, why);
    return answer == SCOUT_OK ? how(&plan->p, op, why) : answer;
}

scout_answer cpu_onednn_single_supports(cpu_onednn_single_describe *how, const scout_op *op, scout_why *why) {
    scout_plan plan;
    const scout_answer answer = describe(how, op, &plan, why);
    cpu_onednn_single_destroy(&plan);
    return answer;
}

scout_answer cpu_onednn_single_prepare(cpu_onednn_single_describe *how, const scout_op *op, scout_plan *plan,
                                       scout_plan_needs *needs, scout_why *why) {
    const scout_answer answer = describe(how, op, plan, why);
    return answer == SCOUT_OK ? cpu_onednn_plan_finish(&plan->p, op->workspace_limit, needs, why) : answer;
}

scout_answer cpu_onednn_single_optimised(const cpu_onednn_plan *p, const char *primitive, scout_why *why) {
    const char *const name = cpu_onednn_plan_implementation(p);
    if (!strstr(name, "ref") && !strstr(name, "simple:any")) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "library", "oneDNN has only its plain reference for this %s", primitive);
}

scout_answer cpu_onednn_single_launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    return cpu_onednn_plan_launch(&plan->p, args, why);
}

int cpu_onednn_single_json(const scout_plan *plan, char *json, size_t room) {
    return cpu_onednn_plan_describe(&plan->p, json, room);
}

void cpu_onednn_single_destroy(scout_plan *plan) { cpu_onednn_plan_free(&plan->p); }
