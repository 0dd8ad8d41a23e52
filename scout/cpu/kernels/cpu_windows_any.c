/* Windows that models seldom have, by a plain loop in fp64: norms of any order, and maxima that tell their places.
 * Threads share the outputs. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/op/pool.h"

#include <math.h>

struct scout_plan {
    pool_problem p;
};

typedef struct found {
    double sum, most;
    int64_t at; /* of the greatest, in the plane; -1: nothing yet */
} found;

static void take(const pool_problem *p, double x, int64_t at, found *f) {
    if (f->at < 0 || x > f->most) f->most = x, f->at = at;
    if (p->order > 0) f->sum += p->order == 2 ? x * x : p->order == 1 ? fabs(x) : pow(fabs(x), p->order);
}

static found window_at(const pool_problem *p, const void *input, int64_t base, const int64_t *place) {
    int64_t first[WINDOW_AXES], from[WINDOW_AXES], taps[WINDOW_AXES];
    const window_axis *a = p->w.axes;
    found f = {0, 0, -1};
    for (int d = 0; d < WINDOW_AXES; d++) taps[d] = window_taps(&a[d], place[d], &first[d], &from[d]);
    for (int64_t k = 0; k < taps[0] * taps[1] * taps[2]; k++) {
        const int64_t z = from[0] + k / taps[2] / taps[1] * a[0].dilation,
                      y = from[1] + k / taps[2] % taps[1] * a[1].dilation, x = from[2] + k % taps[2] * a[2].dilation;
        const int64_t at = (z * a[1].in + y) * a[2].in + x;
        double value;
        cpu_number_load(p->type, input, base + at * p->in_step, 1, 1, &value);
        take(p, value, at, &f);
    }
    return f;
}

static void share(void *context, int thread, int threads) {
    const cpu_job *j = context;
    const pool_problem *p = &j->plan->p;
    const int64_t places = window_out(&p->w), height = p->w.axes[1].out, width = p->w.axes[2].out;
    int64_t from, to;
    cpu_team_share(p->n * p->channels * places, thread, threads, &from, &to);
    for (int64_t k = from; k < to; k++) {
        const int64_t plane = k / places, image = plane / p->channels, channel = plane % p->channels, at = k % places;
        const int64_t place[] = {at / width / height, at / width % height, at % width};
        const int64_t out = image * p->out_n + channel * p->out_c + at * p->out_step;
        const found f = window_at(p, j->args->tensors[POOL_INPUT], image * p->in_n + channel * p->in_c, place);
        cpu_number_store(p->type, j->args->tensors[POOL_OUTPUT], out, p->order > 0 ? pow(f.sum, 1 / p->order) : f.most);
        if (p->indices) ((int64_t *)j->args->tensors[POOL_INDICES])[out] = pool_index(p, plane, f.at);
    }
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (pool_is_rare(op)) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "feature", "only norms of windows and places of maxima are its work");
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)values, (void)needs, (void)why;
    (*out)->p = pool_problem_of(op);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    (void)why;
    return cpu_team_launch(share, plan, args);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    (void)plan;
    return snprintf(json, room, "{\"kernel\": \"windows_any\", \"threads\": \"%s\"}", cpu_team_about());
}

const scout_candidate cpu_windows_any = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_POOL,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 40,
    .name = "windows_any",
    .about = "norms of windows, and maxima that tell their places, by a plain loop",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "fp16", "bf16", "int8", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
