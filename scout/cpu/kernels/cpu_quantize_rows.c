/* Quantising and back in blocks by all threads, in fp32 whatever the type. The baseline: oneDNN's reorder takes scales
 * when it is created, an operation has them as tensors. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_convert.h"
#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/op/quantize.h"

enum { BLOCK = 2048 };

typedef void block_kernel(const quantize_problem *p, const char *from, char *to, int64_t count, float scale,
                          float zero);

typedef void range_kernel(uint32_t type, const char *from, int64_t count, float *least, float *greatest);

enum { MOST_THREADS = 1024, LANES = 16 };

struct scout_plan {
    quantize_problem p;
    block_kernel *kernel;
    range_kernel *range;
    int64_t count;
    float least[MOST_THREADS], greatest[MOST_THREADS]; /* that each thread found: of a dynamic quantiser */
};

/* Adding 1.5 * 2^23 rounds to a whole number, ties to even, within +-2^22; the bounds come first, moved by the zero
 * point, which is a whole number. */
FAST_BODY void block_body(const quantize_problem *p, const char *from, char *to, int64_t count, float scale,
                          float zero) {
    float row[BLOCK];
    const float magic = 0x1.8p23f;
    if (p->quantizes) {
        const float low = (p->to == SCOUT_INT8 ? -128.0f : 0.0f) - zero, high = low + 255.0f;
        cpu_convert_load(p->from, from, count, row);
        for (int64_t k = 0; k < count; k++) {
            float q = row[k] / scale;
            q = q < low ? low : q > high ? high : q;
            ((uint8_t *)to)[k] = (uint8_t)(int32_t)((q + magic) - magic + zero);
        }
        return;
    }
    for (int64_t k = 0; p->from == SCOUT_INT8 && k < count; k++)
        row[k] = ((float)((const int8_t *)from)[k] - zero) * scale;
    for (int64_t k = 0; p->from != SCOUT_INT8 && k < count; k++)
        row[k] = ((float)((const uint8_t *)from)[k] - zero) * scale;
    cpu_convert_store(p->to, row, count, to);
}

FAST_WIDTHS(block, (const quantize_problem *p, const char *from, char *to, int64_t count, float scale, float zero),
            (p, from, to, count, scale, zero))

/* Extends the range by a block's, in lanes, so that compilers vectorise it. */
FAST_BODY void range_body(uint32_t type, const char *from, int64_t count, float *least, float *greatest) {
    float row[BLOCK], low[LANES], high[LANES];
    int64_t k = 0;
    cpu_convert_load(type, from, count, row);
    for (int u = 0; u < LANES; u++) low[u] = *least, high[u] = *greatest;
    for (; k + LANES <= count; k += LANES)
        for (int u = 0; u < LANES; u++) {
            low[u] = row[k + u] < low[u] ? row[k + u] : low[u];
            high[u] = row[k + u] > high[u] ? row[k + u] : high[u];
        }
    for (; k < count; k++) low[0] = fminf(low[0], row[k]), high[0] = fmaxf(high[0], row[k]);
    for (int u = 0; u < LANES; u++) *least = fminf(*least, low[u]), *greatest = fmaxf(*greatest, high[u]);
}

FAST_WIDTHS(range, (uint32_t type, const char *from, int64_t count, float *least, float *greatest),
            (type, from, count, least, greatest))

static float side(const scout_args *args, int tensor, uint32_t type, int64_t at) {
    double x = 0;
    if (tensor >= 0) cpu_number_load(type, args->tensors[tensor], at, 1, 1, &x);
    return (float)x;
}

/* A unit is a block of what shares a scale. */
static void share(void *context, int thread, int threads) {
    const cpu_job *j = context;
    const quantize_problem *p = &j->plan->p;
    const int64_t blocks = (p->inner + BLOCK - 1) / BLOCK, from_size = cpu_number_bits(p->from) / 8,
                  to_size = cpu_number_bits(p->to) / 8;
    const uint32_t zero_type = p->quantizes ? p->to : p->from;
    int64_t from, to;
    cpu_team_share(p->outer * p->channels * blocks, thread, threads, &from, &to);
    for (int64_t unit = from; unit < to; unit++) {
        const int64_t line = unit / blocks, at = unit % blocks * BLOCK, place = line * p->inner + at;
        const int64_t channel = line % p->channels, here = p->inner - at < BLOCK ? p->inner - at : BLOCK;
        j->plan->kernel(
            p, (const char *)j->args->tensors[0] + place * from_size, (char *)j->args->tensors[p->y] + place * to_size,
            here, side(j->args, p->scales, p->scale_type, channel), side(j->args, p->zero_points, zero_type, channel));
    }
}

static void range_share(void *context, int thread, int threads) {
    const cpu_job *j = context;
    scout_plan *const plan = j->plan;
    const int64_t size = cpu_number_bits(plan->p.from) / 8;
    int64_t from, to;
    float least = 0, greatest = 0;
    cpu_team_share(plan->count, thread, threads, &from, &to);
    for (int64_t at = from; at < to; at += BLOCK)
        plan->range(plan->p.from, (const char *)j->args->tensors[0] + at * size, to - at < BLOCK ? to - at : BLOCK,
                    &least, &greatest);
    plan->least[thread] = least, plan->greatest[thread] = greatest;
}

/* Scale and zero point are outputs first, and then what the rows are quantised by. */
static void find_range(const cpu_job *j) {
    const scout_plan *const plan = j->plan;
    float least = 0, greatest = 0;
    for (int k = 0; k < cpu_team_size(); k++)
        least = fminf(least, plan->least[k]), greatest = fmaxf(greatest, plan->greatest[k]);
    const float scale = quantize_scale(least, greatest);
    *(float *)j->args->tensors[plan->p.scales] = scale;
    *(uint8_t *)j->args->tensors[plan->p.zero_points] = (uint8_t)quantize_zero(least, scale);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const quantize_problem p = quantize_problem_of(op);
    (void)device;
    if (cpu_team_size() > MOST_THREADS) return scout_say(why, SCOUT_NO, "hardware", "too many threads");
    const uint32_t bytes = p.quantizes ? p.to : p.from;
    if (p.block > 0) return scout_say(why, SCOUT_NO, "feature", "blocks are not its work");
    if (cpu_convert_known(p.quantizes ? p.from : p.to) && (bytes == SCOUT_INT8 || bytes == SCOUT_UINT8))
        return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "type", "takes fp32, fp16 and bf16 to 8 bits, and back");
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    const cpu_info *c = cpu_info_get();
    scout_plan *const plan = *out;
    (void)device, (void)values, (void)needs, (void)why;
    plan->p = quantize_problem_of(op);
    plan->count = op_elements(&op->tensors[0]);
    plan->range = FAST_WIDEST(range, c);
    plan->kernel = FAST_WIDEST(block, c);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    cpu_job j = {plan, args};
    (void)why;
    if (plan->p.dynamic) {
        cpu_team_run(range_share, &j);
        find_range(&j);
    }
    cpu_team_run(share, &j);
    return SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\": \"%s\", \"scales\": %lld, \"threads\": \"%s\"}",
                    plan->p.dynamic     ? "dynamic"
                    : plan->p.quantizes ? "quantize"
                                        : "dequantize",
                    (long long)plan->p.channels, cpu_team_about());
}

const scout_candidate cpu_quantize_rows = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_QUANTIZE,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "quantize_rows",
    .about = "to 8 bits and back, also dynamically, by all threads",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
