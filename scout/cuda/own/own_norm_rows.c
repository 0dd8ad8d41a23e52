/* norm_rows as a candidate: layer, RMS and length norms of rows that lie together and fit into the registers of one
 * block. Its variants: the threads of a row, hints for the caches. */
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/cuda/own/own_rows.h"
#include "scout/op/norm.h"

#include <stdlib.h>

struct scout_plan {
    norm_problem p;
    norm_rows_plan rows;
};

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const norm_problem p = norm_problem_of(op);
    (void)device;
    if (p.form != NORM_CENTRED && p.form != NORM_RMS && p.form != NORM_LP)
        return scout_say(why, SCOUT_NO, "feature", "norm_rows takes its statistics from rows");
    if (p.k1 != 1 || p.k2 != 1) return scout_say(why, SCOUT_NO, "layout", "norm_rows wants rows in one piece");
    if (!own_rows_sides_by_column(&p))
        return scout_say(why, SCOUT_NO, "layout", "norm_rows wants scale and bias for each column");
    if (op->input != op->output) return scout_say(why, SCOUT_NO, "type", "norm_rows writes the type that it reads");
    return own_rows_hold((int)op->input, p.cols, why);
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    (void)device, (void)why;
    own_rows_domain((int)op->input, op->shape[1], exhaustive, out);
    return SCOUT_OK;
}

static void destroy(scout_plan *plan) { free(plan); }

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                            scout_plan_needs *needs, scout_why *why) {
    scout_answer answer = supports(op, device, why);
    if (answer != SCOUT_OK) return answer;
    scout_plan *p = calloc(1, sizeof *p);
    if (!p) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a plan");
    p->p = norm_problem_of(op);
    const norm_rows_shape shape = own_rows_norm_shape(op, &p->p);
    const row_config config = own_rows_config(shape.type, shape.cols, values);
    const int error = norm_rows_prepare(&shape, &config, &p->rows);
    if (error) {
        destroy(p);
        return cuda_device_answer((cudaError_t)error, "preparing norm_rows", why);
    }
    needs->packs = 0;
    needs->workspace_bytes = 0;
    *plan = p;
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const norm_tensors tensors = own_rows_norm_tensors(&plan->p, args);
    const int error = norm_rows_launch(&plan->rows, &tensors, args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching norm_rows", why) : SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return own_rows_describe("norm_rows", &plan->rows.config, &plan->rows.launch, json, room);
}

static const char *const precisions[] = {"fp32", "fp16", "bf16", NULL};

const scout_candidate own_norm_rows = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_NORM,
    .flags = SCOUT_BASELINE | SCOUT_OWN, /* cuDNN's batch norm comes before it */
    .priority = 60,
    .name = "norm_rows",
    .about = "own kernel for layer, rms, l2 and lp norms with residual, bias and activation: reads each row once",
    .approach = "CUSTOM_KERNEL",
    .precisions = precisions,
    .supports = supports,
    .domain = domain,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
};
