/* Softmax and its logarithm by oneDNN, along any axis. */
#include "scout/cpu/onednn/cpu_onednn_single.h"
#include "scout/op/softmax.h"

/* A row at the end has no dimension of 1 after it for the library, either. */
static bool add(cpu_onednn_plan *p, const scout_op *op, int arg, int tensor) {
    const scout_tensor *t = &op->tensors[tensor];
    const dnnl_data_type_t type = cpu_onednn_plan_type(t->type);
    const int rank = t->dims[2] > 1 ? 3 : 2;
    const int64_t flat[] = {t->dims[1], 1};
    cpu_onednn_md md = {.there = false};
    return type != dnnl_data_type_undef &&
           cpu_onednn_md_strided(&md, rank, t->dims, type, rank == 3 ? t->strides : flat) &&
           cpu_onednn_plan_part(p, arg, tensor, md) >= 0;
}

static dnnl_status_t describe_softmax(cpu_onednn_plan *p, const scout_op *op) {
    const softmax_problem s = softmax_problem_of(op);
    dnnl_primitive_attr_t attr = NULL;
    if (!add(p, op, DNNL_ARG_SRC, SOFTMAX_X) || !add(p, op, DNNL_ARG_DST, SOFTMAX_Y)) return dnnl_unimplemented;
    dnnl_status_t status = cpu_onednn_plan_attr(p, &attr);
    if (status == dnnl_success)
        status = cpu_onednn_softmax(&p->pd, s.logarithm ? dnnl_softmax_log : dnnl_softmax_accurate, &p->parts[0].md,
                                    &p->parts[1].md, 1, attr);
    if (attr) p->lib->dnnl_primitive_attr_destroy(attr);
    return status;
}

static scout_answer describe(cpu_onednn_plan *p, const scout_op *op, scout_why *why) {
    if (op_real(op, "scale", 1) != 1)
        return scout_say(why, SCOUT_NO, "feature", "oneDNN's softmax does not scale its input");
    if (op_tensor(op, "bias") >= 0) return scout_say(why, SCOUT_NO, "feature", "oneDNN's softmax adds no bias");
    const dnnl_status_t status = describe_softmax(p, op);
    return status == dnnl_success ? SCOUT_OK : cpu_onednn_plan_refuse(p, "softmax", status, why);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    return cpu_onednn_single_supports(describe, op, why);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)values;
    return cpu_onednn_single_prepare(describe, op, *out, needs, why);
}

const scout_candidate cpu_softmax_onednn = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_SOFTMAX,
    .flags = SCOUT_BASELINE,
    .priority = 100,
    .name = "onednn_softmax",
    .about = "oneDNN's softmax and logarithm of it, along any axis",
    .library = "onednn",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"fp32", "bf16", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = cpu_onednn_single_launch,
    .describe = cpu_onednn_single_json,
    .destroy = cpu_onednn_single_destroy,
    .plan_bytes = sizeof(scout_plan),
};
