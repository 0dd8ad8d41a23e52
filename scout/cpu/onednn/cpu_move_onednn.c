/* Transposes and casts by oneDNN's reorder: the same elements with other strides, or of another type. */
#include "scout/cpu/onednn/cpu_onednn_single.h"
#include "scout/op/move.h"

#include <stdlib.h>

/* Both sides in the output's order; a transposed input by its strides. */
static scout_answer describe(cpu_onednn_plan *p, const scout_op *op, scout_why *why) {
    int64_t perm[SCOUT_MAX_RANK] = {0};
    int order[SCOUT_MAX_RANK];
    cpu_onednn_md from = {.there = false}, to = {.there = false};
    const bool turned = op_is(op, "transpose");
    dnnl_status_t status = dnnl_invalid_arguments;
    if (turned) (void)op_ints(op, "perm", perm, SCOUT_MAX_RANK);
    for (uint32_t d = 0; turned && d < op->rank; d++) order[d] = (int)perm[d];
    if (cpu_onednn_plan_md(&from, &op->tensors[0], turned ? order : NULL) &&
        cpu_onednn_plan_md(&to, &op->tensors[1], NULL))
        status = cpu_onednn_reorder(&p->pd, &from, &to);
    if (cpu_onednn_plan_part(p, DNNL_ARG_FROM, 0, from) < 0 || cpu_onednn_plan_part(p, DNNL_ARG_TO, 1, to) < 0)
        status = dnnl_out_of_memory;
    return status == dnnl_success ? SCOUT_OK : cpu_onednn_plan_refuse(p, "reorder", status, why);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (!cpu_onednn_get(why)) return SCOUT_NO;
    if (!op_is(op, "transpose") && !op_is(op, "cast"))
        return scout_say(why, SCOUT_NO, "feature", "oneDNN's reorder transposes and casts");
    if (cpu_onednn_plan_type(op->input) == dnnl_data_type_undef ||
        cpu_onednn_plan_type(op->output) == dnnl_data_type_undef)
        return scout_say(why, SCOUT_NO, "type", "oneDNN does not support these types");
    /* it rounds to the nearest whole number where a cast truncates */
    if (op->input != op->output && (op->output == SCOUT_INT32 || op->output == SCOUT_INT8 || op->output == SCOUT_UINT8))
        return scout_say(why, SCOUT_NO, "type", "oneDNN's reorder rounds where a cast truncates");
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)values;
    const scout_answer answer = cpu_onednn_single_prepare(describe, op, *out, needs, why);
    return answer == SCOUT_OK ? cpu_onednn_single_optimised(&(*out)->p, "reorder", why) : answer;
}

const scout_candidate cpu_move_onednn = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_MOVE,
    .flags = SCOUT_BASELINE,
    .priority = 100,
    .name = "onednn_reorder",
    .about = "oneDNN's reorder: transposes and casts",
    .library = "onednn",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", "int8", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = cpu_onednn_single_launch,
    .describe = cpu_onednn_single_json,
    .destroy = cpu_onednn_single_destroy,
    .plan_bytes = sizeof(scout_plan),
};
