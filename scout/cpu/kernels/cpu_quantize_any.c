/* Quantising to integers of 4 and 16 bits and to fp8, and back, also with a scale for each block: a plain loop by all
 * threads, which share pairs of elements, so that no two write to one byte. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/op/quantize.h"

#include <stdbool.h>

enum { BLOCK = 512 }; /* even */

struct scout_plan {
    quantize_problem p;
    int64_t count;
    bool whole; /* what it is quantised to are integers */
};

static double side(const cpu_job *j, int tensor, uint32_t type, int64_t at) {
    double x = 0;
    if (tensor >= 0) cpu_number_load(type, j->args->tensors[tensor], at, 1, 1, &x);
    return x;
}

/* In fp32, as all others; a store rounds and keeps what the type has. */
static double value_of(const cpu_job *j, double x, int64_t at) {
    const quantize_problem *p = &j->plan->p;
    const int64_t place = quantize_side(p, at);
    const float scale = (float)side(j, p->scales, p->scale_type, place);
    const float zero = (float)side(j, p->zero_points, p->quantizes ? p->to : p->from, place);
    if (!p->quantizes) return (double)(((float)x - zero) * scale);
    const float quotient = (float)x / scale;
    return (double)((j->plan->whole ? rintf(quotient) : quotient) + zero);
}

static void share(void *context, int thread, int threads) {
    const cpu_job *j = context;
    const quantize_problem *p = &j->plan->p;
    const int64_t count = j->plan->count, blocks = (count + BLOCK - 1) / BLOCK;
    double block[BLOCK];
    int64_t from, to;
    cpu_team_share(blocks, thread, threads, &from, &to);
    for (int64_t b = from; b < to; b++) {
        const int64_t at = b * BLOCK, here = count - at < BLOCK ? count - at : BLOCK;
        cpu_number_load(p->from, j->args->tensors[0], at, 1, here, block);
        for (int64_t k = 0; k < here; k++)
            cpu_number_store(p->to, j->args->tensors[p->y], at + k, value_of(j, block[k], at + k));
    }
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    const quantize_problem p = quantize_problem_of(op);
    const uint32_t few = p.quantizes ? p.to : p.from;
    if (p.block > 0 || (few != SCOUT_INT8 && few != SCOUT_UINT8)) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "type", "8 bits without blocks are the work of quantize_rows");
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    (void)device, (void)values, (void)needs, (void)why;
    plan->p = quantize_problem_of(op);
    plan->count = op_elements(&op->tensors[0]);
    plan->whole = cpu_number_whole(plan->p.to);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    (void)why;
    return cpu_team_launch(share, plan, args);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    (void)plan;
    return snprintf(json, room, "{\"kernel\": \"quantize_any\", \"threads\": \"%s\"}", cpu_team_about());
}

const scout_candidate cpu_quantize_any = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_QUANTIZE,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 40,
    .name = "quantize_any",
    .about = "to 4 and 16 bits, fp8, and by blocks, and back: a plain loop by all threads",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
