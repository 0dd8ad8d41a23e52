/* rotary_rows as a candidate. Its variants: threads of a block, and how many heads a thread turns with the same angles.
 */
#include "scout/cuda/own/own.h"
#include "scout/op/rotary.h"

enum { THREADS, PLANES, PARAMETERS };

struct scout_plan {
    rotary_rows rows;
};

static rotary_rows rows_of(const scout_op *op) {
    const rotary_problem p = rotary_problem_of(op);
    return (rotary_rows){.type = (int)p.type,
                         .interleaved = p.interleaved,
                         .tables = p.tables,
                         .planes = p.batch * p.heads / p.tables,
                         .steps = p.steps,
                         .dim = p.dim,
                         .rotated = p.rotated,
                         .angles = p.angles,
                         .planes_each = 4,
                         .config = {.threads = 256}};
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const rotary_rows rows = rows_of(op);
    (void)device;
    if (rotary_rows_fits(&rows)) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "type", "rotary_rows rotates pairs of fp32, fp16 and bf16");
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    (void)op, (void)device, (void)exhaustive, (void)why;
    out->count = PARAMETERS;
    out->parameters[THREADS] = (scout_parameter){.name = "threads", .count = 3, .values = {256, 128, 512}};
    out->parameters[PLANES] = (scout_parameter){.name = "planes", .count = 3, .values = {4, 2, 1}};
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)needs, (void)why;
    scout_plan *const p = *out;
    p->rows = rows_of(op);
    if (values) p->rows.config.threads = (int)values[THREADS], p->rows.planes_each = (int)values[PLANES];
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    void *const *t = args->tensors;
    const int error =
        rotary_rows_launch(&plan->rows, t[ROTARY_X], t[ROTARY_COS], t[ROTARY_SIN], t[ROTARY_Y], args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching rotary_rows", why) : SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\":\"rotary_rows\",\"mode\":\"%s\",\"threads\":%d,\"planes\":%d}",
                    rotary_rows_mode(&plan->rows), plan->rows.config.threads, plan->rows.planes_each);
}

const scout_candidate own_rotary = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_ROTARY,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "rotary_rows",
    .about = "own kernel, reads angles once for several heads; the baseline, as no library here has one",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", NULL},
    .supports = supports,
    .domain = domain,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
