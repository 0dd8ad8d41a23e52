/* Norms by oneDNN: layer norms of contiguous rows, batch norms in inference, and norms over neighbouring channels.
 * Scale, bias, mean and variance are fp32 there, whatever the type of the rows. */
#include "scout/cpu/onednn/cpu_onednn_single.h"
#include "scout/op/norm.h"

/* --- support --- */

/* Rows at the end, or channels: the shapes of the library's three norms. */
static bool has_form(const scout_op *op, const norm_problem *p, scout_why *why) {
    if ((!op_is(op, "layer") || p->form == NORM_NONE) && p->form != NORM_BATCH && p->form != NORM_LRN) {
        scout_say(why, SCOUT_NO, "feature", "oneDNN has layer norm, batch norm and lrn, no %.20s norm",
                  op->what ? op->what : "such");
        return false;
    }
    if (op_is(op, "layer") && (p->k2 > 1 || p->k1 > 1 || p->r0 > 1)) {
        scout_say(why, SCOUT_NO, "layout", "oneDNN's layer norm takes rows at the end of the dimensions");
        return false;
    }
    if (p->form == NORM_LRN && p->size % 2 == 0) {
        scout_say(why, SCOUT_NO, "feature", "oneDNN's lrn needs an odd number of channels");
        return false;
    }
    return true;
}

static scout_answer covers(const scout_op *op, const norm_problem *p, scout_why *why) {
    if (!has_form(op, p, why)) return SCOUT_NO;
    if (p->residual >= 0 || p->input_bias >= 0 || p->sum >= 0)
        return scout_say(why, SCOUT_NO, "feature", "oneDNN's norms add no residual");
    if (p->activation != NORM_LINEAR)
        return scout_say(why, SCOUT_NO, "epilogue", "no activation is fused with oneDNN's norms");
    if (op->input != op->output)
        return scout_say(why, SCOUT_NO, "type", "oneDNN's norms need input and output of one type");
    const int sides[] = {p->scale, p->bias, p->mean, p->variance};
    for (size_t k = 0; k < sizeof sides / sizeof sides[0]; k++)
        if (sides[k] >= 0 && op->tensors[sides[k]].type != SCOUT_FP32)
            return scout_say(why, SCOUT_NO, "type", "oneDNN needs scale, bias, mean and variance in fp32");
    return SCOUT_OK;
}

/* --- describing it --- */

static bool add(cpu_onednn_plan *p, const scout_op *op, int arg, int tensor) {
    cpu_onednn_md md = {.there = false};
    return tensor < 0 ||
           (cpu_onednn_plan_md(&md, &op->tensors[tensor], NULL) && cpu_onednn_plan_part(p, arg, tensor, md) >= 0);
}

/* The library normalises the last dimension alone: rows of several are one dimension to it. Images have two dimensions
 * of space, for which it has more implementations than for one. */
static bool add_data(cpu_onednn_plan *p, const scout_op *op, const norm_problem *n, int arg, int tensor) {
    const scout_tensor *t = &op->tensors[tensor];
    const bool image = n->form != NORM_CENTRED;
    const int64_t rows[] = {n->k0, n->r1}, steps[] = {n->r1, 1};
    const int64_t images[] = {t->dims[0], t->dims[1], 1, t->dims[2]},
                  apart[] = {t->strides[0], t->strides[1], t->dims[2], 1};
    const dnnl_data_type_t type = cpu_onednn_plan_type(t->type);
    cpu_onednn_md md = {.there = false};
    return type != dnnl_data_type_undef &&
           cpu_onednn_md_strided(&md, image ? 4 : 2, image ? images : rows, type, image ? apart : steps) &&
           cpu_onednn_plan_part(p, arg, tensor, md) >= 0;
}

/* The order of these is that of the plan's parts: source and destination first. */
static bool add_all(cpu_onednn_plan *p, const scout_op *op, const norm_problem *n) {
    return add_data(p, op, n, DNNL_ARG_SRC, NORM_X) && add_data(p, op, n, DNNL_ARG_DST, NORM_Y) &&
           add(p, op, DNNL_ARG_SCALE, n->scale) && add(p, op, DNNL_ARG_SHIFT, n->bias) &&
           add(p, op, DNNL_ARG_MEAN, n->mean) && add(p, op, DNNL_ARG_VARIANCE, n->variance);
}

static dnnl_status_t describe_norm(cpu_onednn_plan *p, const norm_problem *n) {
    const cpu_onednn_md *src = &p->parts[0].md, *dst = &p->parts[1].md;
    const unsigned flags = (n->scale >= 0 ? (unsigned)dnnl_use_scale : 0) |
                           (n->bias >= 0 ? (unsigned)dnnl_use_shift : 0) |
                           (n->form == NORM_BATCH ? (unsigned)dnnl_use_global_stats : 0);
    dnnl_primitive_attr_t attr = NULL;
    dnnl_status_t status = cpu_onednn_plan_attr(p, &attr);
    if (status != dnnl_success) {
        /* nothing to describe */
    } else if (n->form == NORM_LRN) {
        status = cpu_onednn_lrn(&p->pd, src, dst, n->size, (float)n->alpha, (float)n->beta, (float)n->offset, attr);
    } else if (n->form == NORM_BATCH) {
        status = cpu_onednn_batch_norm(&p->pd, src, dst, (float)n->epsilon, flags, attr);
    } else {
        status = cpu_onednn_layer_norm(&p->pd, src, dst, (float)n->epsilon, flags, attr);
    }
    if (attr) p->lib->dnnl_primitive_attr_destroy(attr);
    return status;
}

static scout_answer describe(cpu_onednn_plan *p, const scout_op *op, scout_why *why) {
    const norm_problem n = norm_problem_of(op);
    const scout_answer answer = covers(op, &n, why);
    if (answer != SCOUT_OK) return answer;
    const dnnl_status_t status = add_all(p, op, &n) ? describe_norm(p, &n) : dnnl_unimplemented;
    return status == dnnl_success ? SCOUT_OK : cpu_onednn_plan_refuse(p, "norm", status, why);
}

/* --- the candidate --- */

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    return cpu_onednn_single_supports(describe, op, why);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)values;
    return cpu_onednn_single_prepare(describe, op, *out, needs, why);
}

const scout_candidate cpu_norm_onednn = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_NORM,
    .flags = SCOUT_BASELINE,
    .priority = 100,
    .name = "onednn_norm",
    .about = "oneDNN's layer norm, batch norm and lrn",
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
