/* Reductions by oneDNN's primitive of that name, which keeps the rank: a reduced dimension becomes 1. */
#include "scout/cpu/onednn/cpu_onednn_single.h"
#include "scout/op/reduce.h"

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

static scout_answer describe(cpu_onednn_plan *p, const scout_op *op, scout_why *why) {
    reduce_id id = REDUCE_COUNT;
    if (!reduce_operator_of(op, &id) || !rows[id].there)
        return scout_say(why, SCOUT_NO, "feature", "oneDNN has no such reduction");
    const dnnl_status_t status = describe_primitive(op, id, p);
    if (status != dnnl_success) return cpu_onednn_plan_refuse(p, "reduction", status, why);
    return cpu_onednn_single_optimised(p, "reduction", why);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (!cpu_onednn_get(why)) return SCOUT_NO;
    if (op->input != SCOUT_FP32 && op->input != SCOUT_BF16 && op->input != SCOUT_FP16)
        return scout_say(why, SCOUT_NO, "type", "oneDNN's reductions do not wrap integers around");
    if (op_elements(&op->tensors[REDUCE_X]) == op_elements(&op->tensors[REDUCE_Y]))
        return scout_say(why, SCOUT_NO, "shape", "oneDNN has no reduction of rows of one element");
    return cpu_onednn_single_supports(describe, op, why);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)values;
    return cpu_onednn_single_prepare(describe, op, *out, needs, why);
}

const scout_candidate cpu_reduce_onednn = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_REDUCE,
    .flags = SCOUT_BASELINE,
    .priority = 100,
    .name = "onednn_reduce",
    .about = "oneDNN's reduction",
    .library = "onednn",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = cpu_onednn_single_launch,
    .describe = cpu_onednn_single_json,
    .destroy = cpu_onednn_single_destroy,
    .plan_bytes = sizeof(scout_plan),
};
