/* Random numbers by all threads: words of counters in vectors, and what is made of them in blocks. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_convert.h"
#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_math.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/op/random.h"

#include <math.h>

enum { QUADS = 128, BLOCK = 4 * QUADS };

/* `count` elements from `at` on, which is a multiple of BLOCK. */
typedef void block_kernel(const random_problem *p, int64_t at, int64_t count, const void *from, void *to);

struct scout_plan {
    random_problem p;
    block_kernel *kernel;
};

/* Word l of counter first + k is w[l][k]. */
FAST_BODY void block_words(uint64_t first, uint64_t key, uint32_t w[4][QUADS]) {
    for (int k = 0; k < QUADS; k++) {
        const uint64_t counter = first + (uint64_t)k;
        uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = 0, c3 = 0;
        uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
        for (int round = 0; round < 10; round++) {
            const uint64_t a = (uint64_t)0xd2511f53u * c0, b = (uint64_t)0xcd9e8d57u * c2;
            c0 = (uint32_t)(b >> 32) ^ c1 ^ k0, c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
            c1 = (uint32_t)b, c3 = (uint32_t)a;
            k0 += 0x9e3779b9u, k1 += 0xbb67ae85u;
        }
        w[0][k] = c0, w[1][k] = c1, w[2][k] = c2, w[3][k] = c3;
    }
}

FAST_BODY float block_fraction(uint32_t word) { return (float)(int32_t)(word >> 8) * 0x1p-24F; }

FAST_BODY void block_uniform(const random_problem *p, uint32_t w[4][QUADS], float *row) {
    const float least = (float)p->alpha, range = (float)(p->beta - p->alpha);
    for (int l = 0; l < 4; l++)
        for (int k = 0; k < QUADS; k++) row[4 * k + l] = least + block_fraction(w[l][k]) * range;
}

FAST_BODY void block_normal(const random_problem *p, uint32_t w[4][QUADS], float *row) {
    const float mean = (float)p->alpha, scale = (float)p->beta;
    for (int l = 0; l < 4; l += 2)
        for (int k = 0; k < QUADS; k++) {
            const float far = -2 * cpu_math_log_inside(block_fraction(w[l][k]) + 0x1p-24F);
            const float angle = block_fraction(w[l + 1][k]) * 6.28318531F, size = scale * __builtin_sqrtf(far);
            row[4 * k + l] = mean + size * cpu_math_sine(angle, 1);
            row[4 * k + l + 1] = mean + size * cpu_math_sine(angle, 0);
        }
}

FAST_BODY void block_body(const random_problem *p, int64_t at, int64_t count, const void *from, void *to) {
    uint32_t w[4][QUADS];
    float row[BLOCK];
    (void)from;
    block_words((uint64_t)at / 4, RANDOM_KEY, w);
    if (p->how == RANDOM_NORMAL)
        block_normal(p, w, row);
    else
        block_uniform(p, w, row);
    cpu_convert_store(p->to, row, count, (char *)to + at * cpu_convert_size(p->to));
}

FAST_WIDTHS(block, (const random_problem *p, int64_t at, int64_t count, const void *from, void *to),
            (p, at, count, from, to))

/* Probabilities of any type, to ones and zeros of any type. */
static void flips(const random_problem *p, int64_t at, int64_t count, const void *from, void *to) {
    uint32_t w[4][QUADS];
    double probabilities[BLOCK];
    block_words((uint64_t)at / 4, RANDOM_KEY, w);
    cpu_number_load(p->from, from, at, 1, count, probabilities);
    for (int64_t k = 0; k < count; k++)
        cpu_number_store(p->to, to, at + k, (double)block_fraction(w[k % 4][k / 4]) < probabilities[k]);
}

/* As random_fraction has it, by conversions that all widths have. */
FAST_BODY double wide_fraction(uint32_t high, uint32_t low) {
    return ((double)(int32_t)(high >> 5) * 0x1p26 + (double)(int32_t)(low >> 6)) * 0x1p-53;
}

/* Two numbers of each counter. */
FAST_BODY void wide_uniform(const random_problem *p, uint32_t w[4][QUADS], double *row) {
    const double least = p->alpha, range = p->beta - p->alpha;
    for (int l = 0; l < 2; l++)
        for (int k = 0; k < QUADS; k++) row[2 * k + l] = least + wide_fraction(w[2 * l][k], w[2 * l + 1][k]) * range;
}

/* One of each. */
FAST_BODY void wide_normal(const random_problem *p, uint32_t w[4][QUADS], double *row) {
    for (int k = 0; k < QUADS; k++) {
        const double first = wide_fraction(w[0][k], w[1][k]), second = wide_fraction(w[2][k], w[3][k]);
        row[k] = p->alpha + p->beta * sqrt(-2 * log(first + 0x1p-53)) * cos(6.283185307179586 * second);
    }
}

FAST_BODY void wide_body(const random_problem *p, int64_t at, int64_t count, const void *from, void *to) {
    const int each = p->how == RANDOM_NORMAL ? 1 : 2;
    uint32_t w[4][QUADS];
    double row[BLOCK];
    (void)from;
    for (int64_t k = 0; k < count; k += each * QUADS) {
        block_words((uint64_t)((at + k) / each), RANDOM_KEY, w);
        if (p->how == RANDOM_NORMAL)
            wide_normal(p, w, row + k);
        else
            wide_uniform(p, w, row + k);
    }
    memcpy((double *)to + at, row, (size_t)count * sizeof *row);
}

FAST_WIDTHS(wide, (const random_problem *p, int64_t at, int64_t count, const void *from, void *to),
            (p, at, count, from, to))

static void share(void *context, int thread, int threads) {
    const cpu_job *j = context;
    const random_problem *p = &j->plan->p;
    void *const y = j->args->tensors[p->how == RANDOM_BERNOULLI];
    int64_t from, to;
    cpu_team_share((p->count + BLOCK - 1) / BLOCK, thread, threads, &from, &to);
    for (int64_t at = from * BLOCK; at < to * BLOCK && at < p->count; at += BLOCK)
        j->plan->kernel(p, at, p->count - at < BLOCK ? p->count - at : BLOCK, j->args->tensors[0], y);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (random_how_of(op) == RANDOM_HOWS)
        return scout_say(why, SCOUT_NO, "feature", "only random numbers are its work");
    const random_problem p = random_problem_of(op);
    if (cpu_number_bits(p.to) >= 8 && cpu_number_bits(p.from) >= 8) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "type", "random numbers are of whole bytes");
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    (void)device, (void)values, (void)needs, (void)why;
    plan->p = random_problem_of(op);
    plan->kernel = plan->p.how == RANDOM_BERNOULLI ? flips
                   : plan->p.to == SCOUT_FP64      ? FAST_WIDEST(wide, cpu_info_get())
                                                   : FAST_WIDEST(block, cpu_info_get());
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    (void)why;
    return cpu_team_launch(share, plan, args);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    (void)plan;
    return snprintf(json, room, "{\"kernel\": \"random\", \"generator\": \"philox4x32-10\", \"threads\": \"%s\"}",
                    cpu_team_about());
}

const scout_candidate cpu_random = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_ELEMENTWISE,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "random_numbers",
    .about = "own generator that counts (Philox4x32-10), by all threads; the baseline, as no library here has one",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", "fp64", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
