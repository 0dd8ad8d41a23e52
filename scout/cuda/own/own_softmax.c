/* The own softmax kernels as candidates. softmax_rows and softmax_long hold each row in the registers of one block,
 * softmax_long with a number of threads that the compiler knows; softmax_any takes rows of any length, also along a
 * middle dimension, of any types. */
#include "scout/cuda/own/own_rows.h"
#include "scout/op/softmax.h"

typedef struct kernel { /* that holds rows in registers */
    own_rows rows;
    int (*prepare)(const softmax_rows_shape *shape, const row_config *config, softmax_rows_plan *plan);
    int (*launch)(const softmax_rows_plan *plan, const void *x, const void *bias, void *y, void *stream);
} kernel;

static const kernel by_rows = {OWN_ROWS("softmax_rows"), softmax_rows_prepare, softmax_rows_launch},
                    by_long_rows = {OWN_ROWS_LONG("softmax_long"), softmax_long_prepare, softmax_long_launch};

struct scout_plan {
    int bias;             /* a tensor; -1: none */
    const kernel *kernel; /* NULL: the general one */
    softmax_rows_plan rows;
    softmax_any_shape any;
    int threads; /* of the general one */
};

static scout_answer rows_supports(const scout_op *op, scout_device *device, scout_why *why) {
    const softmax_problem p = softmax_problem_of(op);
    (void)device;
    return own_rows_hold(&by_rows.rows, op, p.cols, p.inner == 1, why);
}

static scout_answer long_supports(const scout_op *op, scout_device *device, scout_why *why) {
    const softmax_problem p = softmax_problem_of(op);
    (void)device;
    if (p.logarithm || !((float)p.scale > 0))
        return scout_say(why, SCOUT_NO, "feature", "softmax_long has no logarithm and needs a scale above zero");
    return own_rows_hold(&by_long_rows.rows, op, p.cols, p.inner == 1, why);
}

static scout_answer any_supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (op->kind == SCOUT_SOFTMAX) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "feature", "softmax_any computes softmax alone");
}

static int is_few(const scout_op *op, scout_device *device) {
    const softmax_problem p = softmax_problem_of(op);
    return own_rows_few(device, p.rows, p.inner);
}

static scout_answer any_domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                               scout_why *why) {
    (void)exhaustive, (void)why;
    return own_rows_any_domain(is_few(op, device), out);
}

static scout_answer prepare(const kernel *k, const scout_op *op, const int64_t *values, scout_plan *plan,
                            scout_why *why) {
    const softmax_problem p = softmax_problem_of(op);
    const softmax_rows_shape shape = {.rows = p.rows,
                                      .cols = p.cols,
                                      .type = (int)op->input,
                                      .logarithm = p.logarithm,
                                      .bias_rows = p.bias_rows,
                                      .scale = (float)p.scale,
                                      .bias_turn = p.bias_turn};
    const row_config config = own_rows_config(&k->rows, shape.type, shape.cols, values);
    plan->kernel = k;
    plan->bias = p.bias;
    return own_rows_answer(&k->rows, k->prepare(&shape, &config, &plan->rows), why);
}

static scout_answer rows_prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                                 scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)needs;
    return prepare(&by_rows, op, values, *plan, why);
}

static scout_answer long_prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                                 scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)needs;
    return prepare(&by_long_rows, op, values, *plan, why);
}

static scout_answer any_prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                                scout_plan_needs *needs, scout_why *why) {
    (void)needs, (void)why;
    const softmax_problem p = softmax_problem_of(op);
    scout_plan *const out = *plan;
    out->bias = p.bias;
    out->any = (softmax_any_shape){.outer = p.outer,
                                   .cols = p.cols,
                                   .inner = p.inner,
                                   .type_x = (int)op->input,
                                   .type_y = (int)op->output,
                                   .logarithm = p.logarithm,
                                   .bias_rows = p.bias_rows,
                                   .scale = (float)p.scale,
                                   .bias_turn = p.bias_turn};
    out->threads = own_rows_any_threads(is_few(op, device), values);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    void *const *t = args->tensors;
    const void *const bias = plan->bias < 0 ? NULL : t[plan->bias];
    const int error =
        plan->kernel ? plan->kernel->launch(&plan->rows, t[SOFTMAX_X], bias, t[SOFTMAX_Y], args->stream)
                     : softmax_any_launch(&plan->any, plan->threads, t[SOFTMAX_X], bias, t[SOFTMAX_Y], args->stream);
    return error ? cuda_device_answer((cudaError_t)error, plan->kernel ? plan->kernel->rows.name : "softmax_any", why)
                 : SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    if (plan->kernel) return own_rows_describe(&plan->kernel->rows, &plan->rows.config, &plan->rows.launch, json, room);
    return snprintf(json, room, "{\"kernel\":\"softmax_any\",\"threads\":%d}", plan->threads);
}

#define CANDIDATE(functions, domain_)                                                                                  \
    .size = sizeof(scout_candidate), .kind = SCOUT_SOFTMAX, .approach = "CUSTOM_KERNEL",                               \
    .precisions = (const char *const[]){"fp32", "fp16", "bf16", NULL}, .supports = functions##_supports,               \
    .domain = (domain_), .prepare = functions##_prepare, .launch = launch, .describe = describe,                       \
    .plan_bytes = sizeof(scout_plan)

const scout_candidate own_softmax_rows = {
    CANDIDATE(rows, own_rows_domain),
    .flags = SCOUT_BASELINE | SCOUT_OWN,
    .priority = 60,
    .name = "softmax_rows",
    .about = "own kernel for softmax and its logarithm, with a bias added before: reads each row once",
};

const scout_candidate own_softmax_long = {
    CANDIDATE(long, own_rows_long_domain),
    .flags = SCOUT_OWN,
    .priority = 62, /* where both fit, the faster one is measured first */
    .name = "softmax_long",
    .about = "own kernel for softmax of long rows, with or without a bias added before: reads each row once",
};

const scout_candidate own_softmax_any = {
    CANDIDATE(any, any_domain),
    .flags = SCOUT_BASELINE | SCOUT_OWN, /* where softmax_rows does not fit */
    .priority = 40,
    .name = "softmax_any",
    .about = "own general kernel for softmax and its logarithm: any rows, also along a middle dimension",
};
