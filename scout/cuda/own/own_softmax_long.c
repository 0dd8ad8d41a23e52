/* softmax_long as a candidate: softmax of long rows that lie together, with or without a bias added before. Its
 * variants: the threads of a row, hints for the caches. */
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/cuda/own/own_rows.h"
#include "scout/op/softmax.h"

#include <stdlib.h>

struct scout_plan {
    int bias; /* a tensor; -1: none */
    softmax_rows_plan rows;
};

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const softmax_problem p = softmax_problem_of(op);
    (void)device;
    if (p.inner != 1) return scout_say(why, SCOUT_NO, "layout", "softmax_long wants rows in one piece");
    if (p.logarithm || !((float)p.scale > 0))
        return scout_say(why, SCOUT_NO, "feature", "softmax_long has no logarithm and wants a scale above zero");
    return own_rows_long(op, p.cols, "softmax_long", why);
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    (void)device, (void)exhaustive, (void)why;
    own_rows_long_domain((int)op->input, op->shape[1], out);
    return SCOUT_OK;
}

static void destroy(scout_plan *plan) { free(plan); }

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                            scout_plan_needs *needs, scout_why *why) {
    const softmax_problem p = softmax_problem_of(op);
    const scout_answer answer = supports(op, device, why);
    if (answer != SCOUT_OK) return answer;
    scout_plan *out = calloc(1, sizeof *out);
    if (!out) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a plan");
    const softmax_rows_shape shape = {.rows = p.rows,
                                      .cols = p.cols,
                                      .type = (int)op->input,
                                      .scale = (float)p.scale,
                                      .bias_rows = p.bias_rows,
                                      .bias_turn = p.bias_turn};
    const row_config config = own_rows_long_config(shape.type, shape.cols, values);
    const int error = softmax_long_prepare(&shape, &config, &out->rows);
    if (error) {
        destroy(out);
        return cuda_device_answer((cudaError_t)error, "preparing softmax_long", why);
    }
    out->bias = p.bias;
    needs->packs = 0;
    needs->workspace_bytes = 0;
    *plan = out;
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    void *const *t = args->tensors;
    const int error = softmax_long_launch(&plan->rows, t[SOFTMAX_X], plan->bias < 0 ? NULL : t[plan->bias],
                                          t[SOFTMAX_Y], args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching softmax_long", why) : SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return own_rows_describe("softmax_long", &plan->rows.config, &plan->rows.launch, json, room);
}

static const char *const precisions[] = {"fp32", "fp16", "bf16", NULL};

const scout_candidate own_softmax_long = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_SOFTMAX,
    .flags = SCOUT_OWN,
    .priority = 62, /* of two that fit, the quicker one is looked at first */
    .name = "softmax_long",
    .about = "own kernel for softmax of long rows, with or without a bias added before: reads each row once",
    .approach = "CUSTOM_KERNEL",
    .precisions = precisions,
    .supports = supports,
    .domain = domain,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
};
