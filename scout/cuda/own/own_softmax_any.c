/* The general softmax as a candidate: rows of any length, also along a middle dimension, of any types. There is nothing
 * that it refuses. */
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/cuda/own/own_rows.h"
#include "scout/op/softmax.h"

#include <stdlib.h>

struct scout_plan {
    int bias; /* a tensor; -1: none */
    softmax_any_shape shape;
    int threads;
};

static int is_few(const scout_op *op, scout_device *device) {
    const softmax_problem p = softmax_problem_of(op);
    return own_rows_few(device, p.rows, p.inner);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (op->kind == SCOUT_SOFTMAX) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "feature", "softmax_any computes softmax alone");
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    (void)exhaustive, (void)why;
    own_rows_any_domain(is_few(op, device), out);
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                            scout_plan_needs *needs, scout_why *why) {
    const softmax_problem p = softmax_problem_of(op);
    scout_answer answer = supports(op, device, why);
    if (answer != SCOUT_OK) return answer;
    scout_plan *out = calloc(1, sizeof *out);
    if (!out) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a plan");
    out->bias = p.bias;
    out->shape = (softmax_any_shape){.outer = p.outer,
                                     .cols = p.cols,
                                     .inner = p.inner,
                                     .type_x = (int)op->input,
                                     .type_y = (int)op->output,
                                     .logarithm = p.logarithm,
                                     .bias_rows = p.bias_rows,
                                     .scale = (float)p.scale,
                                     .bias_turn = p.bias_turn};
    out->threads = own_rows_any_threads(is_few(op, device), values);
    needs->packs = 0;
    needs->workspace_bytes = 0;
    *plan = out;
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    void *const *t = args->tensors;
    const int error = softmax_any_launch(&plan->shape, plan->threads, t[SOFTMAX_X],
                                         plan->bias < 0 ? NULL : t[plan->bias], t[SOFTMAX_Y], args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching softmax_any", why) : SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\":\"softmax_any\",\"threads\":%d}", plan->threads);
}

static void destroy(scout_plan *plan) { free(plan); }

static const char *const precisions[] = {"fp32", "fp16", "bf16", NULL};

const scout_candidate own_softmax_any = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_SOFTMAX,
    .flags = SCOUT_BASELINE | SCOUT_OWN, /* of what softmax_rows has not */
    .priority = 40,
    .name = "softmax_any",
    .about = "own general kernel for softmax and its logarithm: any rows, also along a middle dimension",
    .approach = "CUSTOM_KERNEL",
    .precisions = precisions,
    .supports = supports,
    .domain = domain,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
};
