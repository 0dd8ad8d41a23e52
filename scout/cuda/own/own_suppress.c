/* suppress_pass as a candidate: boxes that overlap better ones are given up (scout/op/suppress.h). */
#include "kernels/pass/suppress_kernels.h"
#include "scout/cuda/own/own.h"
#include "scout/op/suppress.h"

struct scout_plan {
    suppress_pass pass;
};

static suppress_pass pass_of(const scout_op *op) {
    const suppress_problem p = suppress_problem_of(op);
    return (suppress_pass){p.images, p.classes, p.boxes, p.most, p.centred, p.overlap, p.threshold};
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (!suppress_is(op)) return scout_say(why, SCOUT_NO, "feature", "only the suppression of boxes is its work");
    const suppress_pass pass = pass_of(op);
    if (!suppress_pass_fits(&pass)) return scout_say(why, SCOUT_NO, "shape", "there are too many boxes");
    if (suppress_pass_workspace(&pass) <= op->workspace_limit) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "memory", "the scores of all classes do not fit into the workspace");
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)values, (void)why;
    scout_plan *const p = *out;
    p->pass = pass_of(op);
    needs->workspace_bytes = suppress_pass_workspace(&p->pass);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *p, const scout_args *args, scout_why *why) {
    void *const *t = args->tensors;
    const int error = suppress_pass_launch(&p->pass, t[SUPPRESS_BOXES], t[SUPPRESS_SCORES], t[SUPPRESS_Y],
                                           args->workspace, args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching suppress_pass", why) : SCOUT_OK;
}

const scout_candidate own_suppress = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_REDUCE,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "suppress_pass",
    .about = "own kernels that keep the best boxes and give up what overlaps them, a block for each class",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .plan_bytes = sizeof(scout_plan),
};
