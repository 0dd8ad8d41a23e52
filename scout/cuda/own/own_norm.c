/* The own norms as candidates. norm_rows and norm_long hold each row in the registers of one block, norm_long with a
 * number of threads that the compiler knows; norm_any takes rows of any length and layout (group, instance and mvn
 * norms, batch norms, norms over neighbouring channels) of any types. */
#include "scout/cuda/own/own_rows.h"
#include "scout/op/norm.h"

typedef struct kernel { /* that holds rows in registers */
    own_rows rows;
    int (*prepare)(const norm_rows_shape *shape, const row_config *config, norm_rows_plan *plan);
    int (*launch)(const norm_rows_plan *plan, const norm_tensors *tensors, void *stream);
} kernel;

static const kernel by_rows = {OWN_ROWS("norm_rows"), norm_rows_prepare, norm_rows_launch},
                    by_long_rows = {OWN_ROWS_LONG("norm_long"), norm_long_prepare, norm_long_launch};

struct scout_plan {
    norm_problem p;
    const kernel *kernel; /* NULL: the general one */
    norm_rows_plan rows;
    norm_any_shape any;
    norm_lrn_shape lrn;
    int threads; /* of the general one */
};

/* Whether each column has its own element of the vectors, or there are none. */
static int sides_by_column(const norm_problem *p) {
    if (p->scale < 0 && p->bias < 0 && p->input_bias < 0) return 1;
    return p->r0 == 1 && p->step_j == 1 && (p->repeat == 1 || p->step_a == 0);
}

static int form_of(const norm_problem *p) {
    return p->form == NORM_CENTRED ? NORM_FORM_CENTRED
           : p->form == NORM_RMS   ? NORM_FORM_RMS
           : p->power == 1         ? NORM_FORM_MAGNITUDE
                                   : NORM_FORM_LENGTH;
}

static int side_type(const scout_op *op) { return (int)(op->weight != SCOUT_NONE ? op->weight : op->input); }

static norm_rows_shape shape_of(const scout_op *op, const norm_problem *p) {
    return (norm_rows_shape){.rows = p->rows,
                             .cols = p->cols,
                             .form = form_of(p),
                             .activation = (int)p->activation,
                             .type = (int)op->input,
                             .type_side = side_type(op),
                             .has_residual = p->residual >= 0,
                             .sides = (p->scale >= 0) + (p->bias >= 0) + (p->input_bias >= 0),
                             .epsilon = (float)p->epsilon};
}

static scout_answer rows_supports(const scout_op *op, scout_device *device, scout_why *why) {
    const norm_problem p = norm_problem_of(op);
    (void)device;
    if (p.form != NORM_CENTRED && p.form != NORM_RMS && p.form != NORM_LP)
        return scout_say(why, SCOUT_NO, "feature", "norm_rows takes its statistics from rows");
    if (!sides_by_column(&p))
        return scout_say(why, SCOUT_NO, "layout", "norm_rows needs scale and bias for each column");
    return own_rows_hold(&by_rows.rows, op, p.cols, p.k1 == 1 && p.k2 == 1, why);
}

/* The kernel has no options at run time but a residual. */
static scout_answer long_supports(const scout_op *op, scout_device *device, scout_why *why) {
    const norm_problem p = norm_problem_of(op);
    const kernel *const k = &by_long_rows;
    (void)device;
    if (p.form != NORM_CENTRED && p.form != NORM_RMS)
        return scout_say(why, SCOUT_NO, "feature", "norm_long computes layer and rms norms");
    if (!sides_by_column(&p))
        return scout_say(why, SCOUT_NO, "layout", "norm_long needs scale and bias for each column");
    if (p.input_bias >= 0 || p.activation != NORM_LINEAR || (p.bias >= 0 && p.form != NORM_CENTRED) ||
        (p.sum >= 0 && p.residual < 0))
        return scout_say(why, SCOUT_NO, "feature",
                         "norm_long has no activation, and no bias before the norm or after an rms norm");
    const scout_answer answer = own_rows_hold(&k->rows, op, p.cols, p.k1 == 1 && p.k2 == 1, why);
    if (answer != SCOUT_OK) return answer;
    const norm_rows_shape shape = shape_of(op, &p);
    const row_config config = own_rows_config(&k->rows, shape.type, shape.cols, NULL);
    if (norm_long_fits(&shape, &config)) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "type", "norm_long needs scale and bias in the type of the rows");
}

static scout_answer any_supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (norm_problem_of(op).form != NORM_NONE) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "feature", "norm_any does not have this form of norm");
}

static int is_few(const scout_op *op, scout_device *device) {
    const norm_problem p = norm_problem_of(op);
    return p.form != NORM_BATCH && p.form != NORM_LRN && own_rows_few(device, p.rows, p.k2);
}

static scout_answer any_domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                               scout_why *why) {
    (void)exhaustive, (void)why;
    return own_rows_any_domain(is_few(op, device), out);
}

static scout_answer prepare(const kernel *k, const scout_op *op, const int64_t *values, scout_plan *p, scout_why *why) {
    p->kernel = k;
    p->p = norm_problem_of(op);
    const norm_rows_shape shape = shape_of(op, &p->p);
    const row_config config = own_rows_config(&k->rows, shape.type, shape.cols, values);
    return own_rows_answer(&k->rows, k->prepare(&shape, &config, &p->rows), why);
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
    const norm_problem p = norm_problem_of(op);
    scout_plan *const out = *plan;
    out->p = p;
    out->any = (norm_any_shape){.k0 = p.k0,
                                .r0 = p.r0,
                                .k1 = p.k1,
                                .r1 = p.r1,
                                .k2 = p.k2,
                                .repeat = p.repeat,
                                .step_a = p.step_a,
                                .step_i = p.step_i,
                                .step_b = p.step_b,
                                .step_j = p.step_j,
                                .form = form_of(&p),
                                .activation = (int)p.activation,
                                .type_x = (int)op->input,
                                .type_y = (int)op->output,
                                .type_side = side_type(op),
                                .epsilon = (float)p.epsilon};
    out->lrn = (norm_lrn_shape){.images = p.k0,
                                .channels = p.cols,
                                .positions = p.k2,
                                .size = p.size,
                                .type_x = (int)op->input,
                                .type_y = (int)op->output,
                                .alpha = (float)p.alpha,
                                .beta = (float)p.beta,
                                .offset = (float)p.offset};
    out->threads = own_rows_any_threads(is_few(op, device), values);
    return SCOUT_OK;
}

static void *tensor(const scout_args *args, int which) { return which < 0 ? NULL : args->tensors[which]; }

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const norm_problem *const p = &plan->p;
    const norm_tensors t = {.x = args->tensors[NORM_X],
                            .residual = tensor(args, p->residual),
                            .scale = tensor(args, p->scale),
                            .bias = tensor(args, p->bias),
                            .input_bias = tensor(args, p->input_bias),
                            .mean = tensor(args, p->mean),
                            .variance = tensor(args, p->variance),
                            .y = args->tensors[NORM_Y],
                            .sum = tensor(args, p->sum)};
    const int error = plan->kernel            ? plan->kernel->launch(&plan->rows, &t, args->stream)
                      : p->form == NORM_LRN   ? norm_lrn_launch(&plan->lrn, plan->threads, t.x, t.y, args->stream)
                      : p->form == NORM_BATCH ? norm_batch_launch(&plan->any, plan->threads, &t, args->stream)
                                              : norm_any_launch(&plan->any, plan->threads, &t, args->stream);
    return error ? cuda_device_answer((cudaError_t)error, plan->kernel ? plan->kernel->rows.name : "norm_any", why)
                 : SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    if (plan->kernel) return own_rows_describe(&plan->kernel->rows, &plan->rows.config, &plan->rows.launch, json, room);
    return snprintf(json, room, "{\"kernel\":\"%s\",\"threads\":%d}",
                    plan->p.form == NORM_LRN     ? "norm_lrn"
                    : plan->p.form == NORM_BATCH ? "norm_batch"
                                                 : "norm_any",
                    plan->threads);
}

#define CANDIDATE(functions, domain_)                                                                                  \
    .size = sizeof(scout_candidate), .kind = SCOUT_NORM, .approach = "CUSTOM_KERNEL",                                  \
    .precisions = (const char *const[]){"fp32", "fp16", "bf16", NULL}, .supports = functions##_supports,               \
    .domain = (domain_), .prepare = functions##_prepare, .launch = launch, .describe = describe,                       \
    .plan_bytes = sizeof(scout_plan)

const scout_candidate own_norm_rows = {
    CANDIDATE(rows, own_rows_domain),
    .flags = SCOUT_BASELINE | SCOUT_OWN, /* after cuDNN's batch norm */
    .priority = 60,
    .name = "norm_rows",
    .about = "own kernel for layer, rms, l2 and lp norms with residual, bias and activation: reads each row once",
};

const scout_candidate own_norm_long = {
    CANDIDATE(long, own_rows_long_domain),
    .flags = SCOUT_OWN,
    .priority = 62, /* where both fit, the faster one is measured first */
    .name = "norm_long",
    .about = "own kernel for layer and rms norms of long rows, with or without a residual: reads each row once",
};

const scout_candidate own_norm_any = {
    CANDIDATE(any, any_domain),
    .flags = SCOUT_BASELINE | SCOUT_OWN, /* where norm_rows does not fit */
    .priority = 40,
    .name = "norm_any",
    .about = "own general kernels for every norm (group, instance, mvn, batch, lrn, long rows)",
};
