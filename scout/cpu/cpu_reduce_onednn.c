/* Reductions by oneDNN's primitive of that name, which keeps the rank: a reduced dimension is 1 behind it. */
#include "scout/cpu/cpu_candidates.h"
#include "scout/cpu/cpu_onednn_plan.h"
#include "scout/reduce.h"

#include <stdlib.h>

struct scout_plan {
    cpu_onednn_plan p;
};

/* norm_lp_max: (sum of |x|^p)^(1/p), norm_lp_power_p_max without the root. */
static const struct {
    bool there;
    dnnl_alg_kind_t algorithm;
    float p;
} rows[REDUCE_COUNT] = {
    [REDUCE_sum] = {true, dnnl_reduction_sum, 0},
    [REDUCE_mean] = {true, dnnl_reduction_mean, 0},
    [REDUCE_max] = {true, dnnl_reduction_max, 0},
    [REDUCE_min] = {true, dnnl_reduction_min, 0},
    [REDUCE_prod] = {true, dnnl_reduction_mul, 0},
    [REDUCE_l1] = {true, dnnl_reduction_norm_lp_power_p_max, 1},
    [REDUCE_l2] = {true, dnnl_reduction_norm_lp_max, 2},
    [REDUCE_sumsquare] = {true, dnnl_reduction_norm_lp_power_p_max, 2},
};

static void destroy(scout_plan *plan) {
    if (!plan) return;
    cpu_onednn_plan_free(&plan->p);
    free(plan);
}

static dnnl_status_t describe_primitive(const scout_op *op, reduce_id id, cpu_onednn_plan *p) {
    static const int args[] = {DNNL_ARG_SRC, DNNL_ARG_DST};
    dnnl_primitive_attr_t attr = NULL;
    for (int k = 0; k < 2; k++) {
        cpu_onednn_md md = {.there = false};
        if (!cpu_onednn_plan_md(&md, &op->tensors[k], NULL)) return dnnl_invalid_arguments;
        if (cpu_onednn_plan_part(p, args[k], k, md) < 0) return dnnl_invalid_arguments;
    }
    dnnl_status_t status = cpu_onednn_plan_attr(p, &attr);
    if (status == dnnl_success)
        status = cpu_onednn_reduction(&p->pd, rows[id].algorithm, &p->parts[0].md, &p->parts[1].md, rows[id].p, attr);
    if (attr) p->lib->dnnl_primitive_attr_destroy(attr);
    return status;
}

static scout_answer describe_plan(const scout_op *op, scout_plan **out, scout_why *why) {
    reduce_id id = REDUCE_COUNT;
    *out = NULL;
    if (!reduce_operator_of(op, &id) || !rows[id].there)
        return scout_say(why, SCOUT_NO, "feature", "oneDNN has no such reduction");
    scout_plan *plan = calloc(1, sizeof *plan);
    if (!plan) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a plan");
    scout_answer answer = cpu_onednn_plan_begin(&plan->p, why);
    if (answer != SCOUT_OK) {
        free(plan);
        return answer;
    }
    const dnnl_status_t status = describe_primitive(op, id, &plan->p);
    if (status == dnnl_success) {
        *out = plan;
        return SCOUT_OK;
    }
    answer = cpu_onednn_plan_refuse(&plan->p, "reduction", status, why);
    destroy(plan);
    return answer;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    scout_plan *plan = NULL;
    (void)device;
    if (!cpu_onednn_get(why)) return SCOUT_NO;
    if (op->input != SCOUT_FP32 && op->input != SCOUT_BF16 && op->input != SCOUT_FP16)
        return scout_say(why, SCOUT_NO, "type", "oneDNN's reductions do not wrap integers around");
    if (op_elements(&op->tensors[REDUCE_X]) == op_elements(&op->tensors[REDUCE_Y]))
        return scout_say(why, SCOUT_NO, "shape", "oneDNN has no reduction of rows of one element");
    const scout_answer answer = describe_plan(op, &plan, why); /* asks the library; compiles nothing yet */
    destroy(plan);
    return answer;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *plan = NULL;
    (void)device, (void)values;
    *out = NULL;
    scout_answer answer = describe_plan(op, &plan, why);
    if (answer == SCOUT_OK) answer = cpu_onednn_plan_finish(&plan->p, op->workspace_limit, needs, why);
    if (answer != SCOUT_OK)
        destroy(plan);
    else
        *out = plan;
    return answer;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    return cpu_onednn_plan_launch(&plan->p, args, why);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return cpu_onednn_plan_describe(&plan->p, json, room);
}

static const char *const precisions[] = {"fp32", "bf16", "fp16", NULL};

const scout_candidate cpu_reduce_onednn = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_REDUCE,
    .flags = SCOUT_BASELINE,
    .priority = 100,
    .name = "onednn_reduce",
    .about = "oneDNN's reduction",
    .library = "onednn",
    .approach = "LIBRARY_TUNE",
    .precisions = precisions,
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
};
