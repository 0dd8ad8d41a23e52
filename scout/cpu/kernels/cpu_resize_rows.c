/* Interpolation by an own loop: the rows of the input that an output row is mixed from become one, in fp32, and that is
 * mixed along itself. Places and weights are computed once for each axis. The baseline, as oneDNN's resampling knows
 * one way to lay places alone. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_convert.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/op/pool.h"
#include "scout/op/resize.h"

#include <stdlib.h>

typedef struct taps { /* of one output along one axis */
    int64_t places[RESIZE_TAPS];
    float weights[RESIZE_TAPS];
    int count;
} taps;

struct scout_plan {
    resize_problem p;
    uint32_t type;
    int64_t size;
    taps *axes[RESIZE_AXES];
    float *rows; /* of every thread: one of the input, the mixed one, one of the output */
};

static taps *taps_of(const resize_problem *p, int axis) {
    taps *all = calloc((size_t)p->out[axis], sizeof *all);
    for (int64_t i = 0; all && i < p->out[axis]; i++) {
        double weights[RESIZE_TAPS];
        all[i].count = resize_taps(p, axis, i, all[i].places, weights);
        for (int k = 0; k < all[i].count; k++) all[i].weights[k] = (float)weights[k];
    }
    return all;
}

FAST static void mix_row(uint32_t type, const char *x, int64_t count, float weight, bool first, float *row,
                         float *mixed) {
    cpu_convert_load(type, x, count, row);
    if (first)
        for (int64_t k = 0; k < count; k++) mixed[k] = weight * row[k];
    else
        for (int64_t k = 0; k < count; k++) mixed[k] += weight * row[k];
}

FAST static void mix_along(const taps *t, int64_t count, const float *mixed, float *out) {
    for (int64_t i = 0; i < count; i++) {
        float sum = 0;
        for (int k = 0; k < t[i].count; k++) sum += t[i].weights[k] * mixed[t[i].places[k]];
        out[i] = sum;
    }
}

FAST static void store_row(uint32_t type, const float *row, int64_t count, char *y) {
    cpu_convert_store(type, row, count, y);
}

static void resize_share(void *context, int thread, int threads) {
    const cpu_job *job = context;
    const scout_plan *plan = job->plan;
    const int64_t *in = plan->p.in, *out = plan->p.out;
    float *row = plan->rows + thread * (2 * in[2] + out[2]), *mixed = row + in[2], *done = mixed + in[2];
    int64_t from, to;
    cpu_team_share(plan->p.planes * out[0] * out[1], thread, threads, &from, &to);
    for (int64_t unit = from; unit < to; unit++) {
        const taps *deep = &plan->axes[0][unit / out[1] % out[0]], *high = &plan->axes[1][unit % out[1]];
        const int64_t plane = unit / out[1] / out[0];
        for (int d = 0; d < deep->count; d++)
            for (int h = 0; h < high->count; h++) {
                const int64_t line = (plane * in[0] + deep->places[d]) * in[1] + high->places[h];
                mix_row(plan->type, (const char *)job->args->tensors[POOL_INPUT] + line * in[2] * plan->size, in[2],
                        deep->weights[d] * high->weights[h], d + h == 0, row, mixed);
            }
        mix_along(plan->axes[2], out[2], mixed, done);
        store_row(plan->type, done, out[2], (char *)job->args->tensors[POOL_OUTPUT] + unit * out[2] * plan->size);
    }
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (!resize_is(op)) return scout_say(why, SCOUT_NO, "feature", "only interpolation is its work");
    const resize_problem p = resize_problem_of(op, op->tensors[POOL_INPUT].dims);
    const double lines = (double)p.out[0] + (double)p.out[1] + (double)p.out[2]; /* what a plan keeps of them */
    if (lines * sizeof(taps) <= (double)op->workspace_limit) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "memory", "places and weights of so long an axis do not fit into the workspace");
}

static void destroy(scout_plan *plan) {
    for (int k = 0; k < RESIZE_AXES; k++) free(plan->axes[k]);
    free(plan->rows);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    (void)device, (void)values, (void)needs;
    plan->p = resize_problem_of(op, op->tensors[POOL_INPUT].dims);
    plan->type = op->input;
    plan->size = cpu_number_bits(plan->type) / 8;
    const int64_t room = 2 * plan->p.in[2] + plan->p.out[2];
    plan->rows = calloc((size_t)cpu_team_size() * (size_t)room, sizeof *plan->rows);
    bool whole = plan->rows != NULL;
    for (int k = 0; k < RESIZE_AXES; k++) whole = (plan->axes[k] = taps_of(&plan->p, k)) != NULL && whole;
    return whole ? SCOUT_OK : scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a plan");
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    (void)why;
    return cpu_team_launch(resize_share, plan, args);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    (void)plan;
    return snprintf(json, room, "{\"kernel\": \"resize\", \"threads\": \"%s\"}", cpu_team_about());
}

const scout_candidate cpu_resize_rows = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_POOL,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "resize_rows",
    .about = "interpolation by an own loop, row by row",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "fp16", "bf16", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
    .plan_bytes = sizeof(scout_plan),
};
