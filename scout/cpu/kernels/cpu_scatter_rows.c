/* Scatters by an own loop: the input is copied, then updates are written to, or combined with, the places that indices
 * name. No two threads write to one place and all of them go through the updates in order, so that an output does not
 * depend on how many threads there are. The baseline, as no library here has one. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/op/move.h"

enum { LINE = 64 }; /* columns that a thread has at least: no two of them write to one line of the cache for long */

struct scout_plan {
    move_scatter s;
    move_combine combine;
    uint32_t type;
    int64_t size, elements;
};

/* Columns [from, to) of one row of updates, where their index is in [low, high). */
typedef struct part {
    int64_t from, to, low, high;
} part;

#define SCATTER(type, combined)                                                                                        \
    for (int64_t j = p->from; j < p->to; j++) {                                                                        \
        const int64_t index = s->each ? move_scatter_index(s, indices, row * s->cols + j) : own;                       \
        if (index < p->low || index >= p->high) continue;                                                              \
        type *const y = (type *)to + base + index * s->step + j * s->along;                                            \
        const type u = ((const type *)updates)[row * s->cols + j];                                                     \
        *y = combined;                                                                                                 \
    }                                                                                                                  \
    break

#define COMBINE(type)                                                                                                  \
    switch (plan->combine) {                                                                                           \
    case MOVE_ADD: SCATTER(type, (type)(*y + u));                                                                      \
    case MOVE_MUL: SCATTER(type, (type)(*y * u));                                                                      \
    case MOVE_MAX: SCATTER(type, *y > u ? *y : u);                                                                     \
    default: SCATTER(type, *y < u ? *y : u);                                                                           \
    }                                                                                                                  \
    break

#define COMBINE_SHORT(widen, narrow)                                                                                   \
    switch (plan->combine) {                                                                                           \
    case MOVE_ADD: SCATTER(uint16_t, narrow(widen(*y) + widen(u)));                                                    \
    case MOVE_MUL: SCATTER(uint16_t, narrow(widen(*y) * widen(u)));                                                    \
    case MOVE_MAX: SCATTER(uint16_t, widen(*y) > widen(u) ? *y : u);                                                   \
    default: SCATTER(uint16_t, widen(*y) < widen(u) ? *y : u);                                                         \
    }                                                                                                                  \
    break

static void scatter_row(const scout_plan *plan, const void *indices, const void *updates, void *to, int64_t row,
                        int64_t base, const part *p) {
    const move_scatter *s = &plan->s;
    const int64_t own = s->each ? 0 : move_scatter_index(s, indices, row);
    if (plan->combine != MOVE_WRITE) {
        switch (plan->type) { /* wholes wrap around */
        case SCOUT_FP32: COMBINE(float);
        case SCOUT_FP64: COMBINE(double);
        case SCOUT_FP16: COMBINE_SHORT(cpu_number_from_fp16, cpu_number_to_fp16);
        case SCOUT_BF16: COMBINE_SHORT(cpu_number_from_bf16, cpu_number_to_bf16);
        default: break;
        }
        return;
    }
    switch (plan->size) {
    case 1: SCATTER(uint8_t, u);
    case 2: SCATTER(uint16_t, u);
    case 4: SCATTER(uint32_t, u);
    default: SCATTER(uint64_t, u);
    }
}

static void copy_share(void *context, int thread, int threads) {
    const cpu_job *job = context;
    int64_t from, to;
    cpu_team_share(job->plan->elements * job->plan->size, thread, threads, &from, &to);
    memcpy((char *)job->args->tensors[3] + from, (const char *)job->args->tensors[0] + from, (size_t)(to - from));
}

/* Threads share what never meets: rows that have places of their own, else columns, else the places themselves. */
static void scatter_share(void *context, int thread, int threads) {
    const cpu_job *job = context;
    const move_scatter *s = &job->plan->s;
    int64_t row = 0, end = s->rows;
    part p = {0, s->cols, 0, s->length};
    if (s->apart && s->rows >= threads)
        cpu_team_share(s->rows, thread, threads, &row, &end);
    else if (!s->apart && s->cols >= (int64_t)threads * LINE)
        cpu_team_share(s->cols, thread, threads, &p.from, &p.to);
    else
        cpu_team_share(s->length, thread, threads, &p.low, &p.high);
    for (; row < end; row++)
        scatter_row(job->plan, job->args->tensors[1], job->args->tensors[2], job->args->tensors[3], row,
                    move_scatter_base(s, row), &p);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (!move_scatters(op)) return scout_say(why, SCOUT_NO, "feature", "only scatters are its work");
    if (cpu_number_bits(op->tensors[0].type) < 8) return scout_say(why, SCOUT_NO, "type", "moves types of whole bytes");
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    (void)device, (void)values, (void)needs, (void)why;
    plan->s = move_scatter_of(op);
    plan->combine = move_combine_of(op);
    plan->type = op->tensors[0].type;
    plan->size = cpu_number_bits(plan->type) / 8;
    plan->elements = op_elements(&op->tensors[0]);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    (void)why;
    cpu_job job = {plan, args};
    cpu_team_run(copy_share, &job);
    cpu_team_run(scatter_share, &job);
    return SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    (void)plan;
    return snprintf(json, room, "{\"kernel\": \"scatter\", \"threads\": \"%s\"}", cpu_team_about());
}

const scout_candidate cpu_scatter_rows = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_MOVE,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "scatter_rows",
    .about = "scatters by own loops, in the order of their updates",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", "int8", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
