/* Softmax by own loops: a thread takes whole rows, and passes over each three times (its largest, the exponentials with
 * their sum, the scaling) while it is in L1. Where rows run along the middle, neighbouring ones are taken together,
 * column by column. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/kernels/cpu_rows.h"
#include "scout/op/softmax.h"

#include <math.h>
#include <stdbool.h>

enum { SLAB = 256 };

struct scout_plan {
    softmax_problem p;
    const cpu_rows *v;
    uint32_t type_x, type_y;
    int64_t items, slabs;
    int64_t scratch; /* floats of one thread */
};

static const void *at_const(const void *data, uint32_t type, int64_t element) {
    return (const char *)data + element * (cpu_number_bits(type) / 8);
}

static void *at(void *data, uint32_t type, int64_t element) {
    return (char *)data + element * (cpu_number_bits(type) / 8);
}

/* --- rows that lie together --- */

/* scale * x + bias as floats: where it lies, or in `room`. */
static const float *load_row(const cpu_job *j, int64_t row, float *room) {
    const scout_plan *plan = j->plan;
    const softmax_problem *p = &plan->p;
    const void *x = at_const(j->args->tensors[SOFTMAX_X], plan->type_x, row * p->cols);
    if (plan->type_x == SCOUT_FP32 && p->bias < 0 && p->scale == 1) return x;
    plan->v->load(plan->type_x, x, p->cols, room);
    if (p->scale != 1) plan->v->affine(room, p->cols, 0, (float)p->scale, 0, room);
    if (p->bias >= 0) {
        const void *bias = at_const(j->args->tensors[p->bias], plan->type_x, softmax_bias_row(p, row) * p->cols);
        float *other = room + p->cols;
        if (plan->type_x != SCOUT_FP32) plan->v->load(plan->type_x, bias, p->cols, other);
        plan->v->add(room, plan->type_x == SCOUT_FP32 ? bias : other, p->cols, room);
    }
    return room;
}

static void do_row(const cpu_job *j, int64_t row, float *room) {
    const scout_plan *plan = j->plan;
    const softmax_problem *p = &plan->p;
    const int64_t cols = p->cols;
    const bool direct = plan->type_y == SCOUT_FP32;
    void *y = at(j->args->tensors[SOFTMAX_Y], plan->type_y, row * cols);
    const float *x = load_row(j, row, room);
    const float largest = plan->v->largest(x, cols);
    float *out = direct ? y : room;
    if (p->logarithm) { /* exponentials are needed for their sum alone: they do not overwrite x */
        const double sum = plan->v->exponentials(x, cols, largest, room + 2 * cols);
        plan->v->affine(x, cols, largest, 1, (float)-log(sum), out);
    } else {
        const double sum = plan->v->exponentials(x, cols, largest, out);
        plan->v->affine(out, cols, 0, (float)(1 / sum), 0, out);
    }
    if (!direct) plan->v->store(plan->type_y, out, cols, y);
}

/* --- rows side by side --- */

static const float *columns(const cpu_job *j, int64_t from, int64_t count, float *room) {
    const scout_plan *plan = j->plan;
    const void *x = at_const(j->args->tensors[SOFTMAX_X], plan->type_x, from);
    const float scale = (float)plan->p.scale;
    if (plan->type_x == SCOUT_FP32 && scale == 1) return x;
    plan->v->load(plan->type_x, x, count, room);
    if (scale != 1) plan->v->affine(room, count, 0, scale, 0, room);
    return room;
}

/* The exponentials are taken twice, first for their sums: the values kept for a slab need not fit into a cache. */
static void do_slab(const cpu_job *j, int64_t item, float *room) {
    const scout_plan *plan = j->plan;
    const softmax_problem *p = &plan->p;
    const cpu_rows *v = plan->v;
    const int64_t c = item % plan->slabs * SLAB, count = p->inner - c < SLAB ? p->inner - c : SLAB;
    const int64_t from = item / plan->slabs * p->cols * p->inner + c;
    float *most = room, *sums = room + SLAB, *x = room + 2 * SLAB, *out = room + 3 * SLAB;
    for (int64_t k = 0; k < count; k++) most[k] = -INFINITY, sums[k] = 0;
    for (int64_t i = 0; i < p->cols; i++) v->largest_columns(columns(j, from + i * p->inner, count, x), count, most);
    for (int64_t i = 0; i < p->cols; i++)
        v->exponential_columns(columns(j, from + i * p->inner, count, x), most, count, out, sums);
    for (int64_t k = 0; k < count; k++) {
        if (p->logarithm)
            most[k] += logf(sums[k]), sums[k] = 1;
        else
            sums[k] = 1 / sums[k];
    }
    for (int64_t i = 0; i < p->cols; i++) {
        const int64_t place = from + i * p->inner;
        const float *read = columns(j, place, count, x);
        void *y = at(j->args->tensors[SOFTMAX_Y], plan->type_y, place);
        float *to = plan->type_y == SCOUT_FP32 ? y : out;
        if (p->logarithm) {
            v->scale_columns(read, most, sums, count, to);
        } else {
            v->exponential_columns(read, most, count, to, out + SLAB);
            v->scale_columns(to, out + 2 * SLAB, sums, count, to);
        }
        if (plan->type_y != SCOUT_FP32) v->store(plan->type_y, to, count, y);
    }
}

/* --- threads --- */

static void share(void *context, int thread, int threads) {
    const cpu_job *j = context;
    float *room = (float *)j->args->workspace + thread * j->plan->scratch;
    int64_t from, to;
    cpu_team_share(j->plan->items, thread, threads, &from, &to);
    if (j->plan->p.inner > 1)
        for (int64_t k = 0; k < 2 * SLAB; k++) room[4 * SLAB + k] = 0; /* unused sums, and zeros to subtract */
    for (int64_t item = from; item < to; item++) {
        if (j->plan->p.inner > 1)
            do_slab(j, item, room);
        else
            do_row(j, item, room);
    }
}

/* --- the candidate --- */

static scout_plan plan_of(const scout_op *op) {
    scout_plan plan = {.p = softmax_problem_of(op), .v = cpu_rows_best()};
    const softmax_problem *p = &plan.p;
    plan.type_x = op->input, plan.type_y = op->output;
    plan.slabs = (p->inner + SLAB - 1) / SLAB;
    plan.items = p->outer * plan.slabs;
    plan.scratch = cpu_rows_scratch(p->inner > 1 ? 6 * SLAB : 3 * p->cols);
    return plan;
}

static uint64_t workspace_of(const scout_plan *plan) {
    return (uint64_t)cpu_team_size() * (uint64_t)plan->scratch * sizeof(float);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const scout_plan plan = plan_of(op);
    (void)device;
    return cpu_team_room(workspace_of(&plan), op->workspace_limit, why);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    (void)device, (void)values, (void)why;
    *plan = plan_of(op);
    needs->workspace_bytes = workspace_of(plan);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    (void)why;
    if (plan->items > 1) return cpu_team_launch(share, plan, args);
    share(&(cpu_job){plan, args}, 0, 1); /* nothing to share: no other thread is woken */
    return SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\": \"softmax_%s\", \"vectors\": \"%s\", \"threads\": \"%s\"}",
                    plan->p.inner > 1 ? "columns" : "rows", plan->v->name, cpu_team_about());
}

const scout_candidate cpu_softmax_rows = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_SOFTMAX,
    .flags = SCOUT_BASELINE | SCOUT_OWN, /* the baseline where no library has one */
    .priority = 50,
    .name = "cpu_softmax",
    .about = "own softmax, its logarithm, with a bias added before; needs no library",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
