/* The general norms as a candidate: rows of any length that lie anywhere (group, instance and mvn norms, axes in the
 * middle), batch norms and norms over neighbouring channels, of any types. There is nothing that it refuses. */
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/cuda/own/own_rows.h"
#include "scout/op/norm.h"

#include <stdlib.h>

struct scout_plan {
    norm_problem p;
    norm_any_shape shape;
    norm_lrn_shape lrn;
    int threads;
};

static norm_any_shape shape_of(const scout_op *op, const norm_problem *p) {
    norm_any_shape s = {.k0 = p->k0, .r0 = p->r0, .k1 = p->k1, .r1 = p->r1, .k2 = p->k2};
    s.repeat = p->repeat, s.step_a = p->step_a, s.step_i = p->step_i, s.step_b = p->step_b, s.step_j = p->step_j;
    s.form = p->form == NORM_CENTRED ? NORM_FORM_CENTRED
             : p->form == NORM_RMS   ? NORM_FORM_RMS
             : p->power == 1         ? NORM_FORM_MAGNITUDE
                                     : NORM_FORM_LENGTH;
    s.activation = (int)p->activation;
    s.type_x = (int)op->input, s.type_y = (int)op->output;
    s.type_side = (int)(op->weight != SCOUT_NONE ? op->weight : op->input);
    s.epsilon = (float)p->epsilon;
    return s;
}

static norm_lrn_shape lrn_of(const scout_op *op, const norm_problem *p) {
    norm_lrn_shape s = {.images = p->k0, .channels = p->cols, .positions = p->k2, .size = p->size};
    s.type_x = (int)op->input, s.type_y = (int)op->output;
    s.alpha = (float)p->alpha, s.beta = (float)p->beta, s.offset = (float)p->offset;
    return s;
}

static int is_few(const scout_op *op, scout_device *device) {
    const norm_problem p = norm_problem_of(op);
    return p.form != NORM_BATCH && p.form != NORM_LRN && own_rows_few(device, p.rows, p.k2);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (norm_problem_of(op).form != NORM_NONE) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "feature", "norm_any does not know this form of norm");
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    (void)exhaustive, (void)why;
    own_rows_any_domain(is_few(op, device), out);
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                            scout_plan_needs *needs, scout_why *why) {
    scout_answer answer = supports(op, device, why);
    if (answer != SCOUT_OK) return answer;
    scout_plan *p = calloc(1, sizeof *p);
    if (!p) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a plan");
    p->p = norm_problem_of(op);
    p->shape = shape_of(op, &p->p);
    p->lrn = lrn_of(op, &p->p);
    p->threads = own_rows_any_threads(is_few(op, device), values);
    needs->packs = 0;
    needs->workspace_bytes = 0;
    *plan = p;
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const norm_tensors t = own_rows_norm_tensors(&plan->p, args);
    int error;
    if (plan->p.form == NORM_LRN)
        error = norm_lrn_launch(&plan->lrn, plan->threads, t.x, t.y, args->stream);
    else if (plan->p.form == NORM_BATCH)
        error = norm_batch_launch(&plan->shape, plan->threads, &t, args->stream);
    else
        error = norm_any_launch(&plan->shape, plan->threads, &t, args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching norm_any", why) : SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\":\"%s\",\"threads\":%d}",
                    plan->p.form == NORM_LRN     ? "norm_lrn"
                    : plan->p.form == NORM_BATCH ? "norm_batch"
                                                 : "norm_any",
                    plan->threads);
}

static void destroy(scout_plan *plan) { free(plan); }

static const char *const precisions[] = {"fp32", "fp16", "bf16", NULL};

const scout_candidate own_norm_any = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_NORM,
    .flags = SCOUT_BASELINE | SCOUT_OWN, /* of what norm_rows has not */
    .priority = 40,
    .name = "norm_any",
    .about = "own general kernels for every norm (group, instance, mvn, batch, lrn, long rows)",
    .approach = "CUSTOM_KERNEL",
    .precisions = precisions,
    .supports = supports,
    .domain = domain,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
};
