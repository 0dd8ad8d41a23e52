/* Values between the places of images, by an own loop: what a point is mixed from is found once, and then used for
 * channel after channel. Threads share the points. The baseline, as no library here has it. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/op/sample.h"

enum { CHANNELS = 64 }; /* at a time */

struct scout_plan {
    sample_problem p;
    uint32_t type, side_type;
    int output;
};

/* Of some channels: what was added up, or is the greatest, so far. */
typedef struct found {
    double values[CHANNELS];
    int64_t taps;
} found;

static void take(const cpu_job *j, int64_t image, int64_t channel, int64_t channels, const int64_t *places,
                 const double *weights, int count, found *f) {
    const sample_problem *p = &j->plan->p;
    const int64_t plane = p->in[0] * p->in[1];
    for (int k = 0; k < count; k++)
        for (int64_t c = 0; c < channels; c++) {
            double x;
            cpu_number_load(j->plan->type, j->args->tensors[SAMPLE_INPUT],
                            (image * p->channels + channel + c) * plane + places[k], 1, 1, &x);
            x *= weights[k];
            f->values[c] = p->mode != SAMPLE_MAX ? f->values[c] + x : f->taps + k == 0 ? x : fmax(f->values[c], x);
        }
    f->taps += count;
}

static void put(const cpu_job *j, const int64_t *place, int64_t channel, int64_t channels, double over,
                const found *f) {
    const sample_problem *p = &j->plan->p;
    for (int64_t c = 0; c < channels; c++)
        cpu_number_store(j->plan->type, j->args->tensors[j->plan->output],
                         ((place[0] * p->channels + channel + c) * p->out[0] + place[1]) * p->out[1] + place[2],
                         f->values[c] / over);
}

static void side(const cpu_job *j, int64_t at, int64_t count, double *out) {
    cpu_number_load(j->plan->side_type, j->args->tensors[SAMPLE_GRID], at * count, 1, count, out);
}

/* place: region, row, column. */
static void crop(const cpu_job *j, const int64_t *place, int64_t channel, int64_t channels) {
    const sample_problem *p = &j->plan->p;
    const int64_t image = ((const int32_t *)j->args->tensors[SAMPLE_BATCHES])[place[0]];
    int64_t places[SAMPLE_TAPS] = {0};
    double weights[SAMPLE_TAPS] = {0}, told[4];
    found f = {{0}, 0};
    side(j, place[0], 4, told);
    const int count = sample_crop_taps(p, told, place + 1, places, weights);
    take(j, image, channel, channels, places, weights, count, &f);
    for (int64_t c = 0; count == 0 && c < channels; c++) f.values[c] = p->outside;
    put(j, place, channel, channels, 1, &f);
}

/* place: image or region, row, column. */
static void sample(const cpu_job *j, const int64_t *place, int64_t channel, int64_t channels) {
    const sample_problem *p = &j->plan->p;
    int64_t places[SAMPLE_TAPS];
    double weights[SAMPLE_TAPS], told[4];
    found f = {{0}, 0};
    if (!p->regions) {
        side(j, (place[0] * p->out[0] + place[1]) * p->out[1] + place[2], 2, told);
        const int count = sample_taps(p, told[0], told[1], places, weights);
        take(j, place[0], channel, channels, places, weights, count, &f);
        put(j, place, channel, channels, 1, &f);
        return;
    }
    side(j, place[0], 4, told);
    const sample_region r = sample_region_of(p, told);
    const int64_t image = ((const int64_t *)j->args->tensors[SAMPLE_BATCHES])[place[0]];
    for (int64_t row = 0; row < r.points[0]; row++)
        for (int64_t col = 0; col < r.points[1]; col++) {
            const int count = sample_point(p, &r, place + 1, (const int64_t[]){row, col}, places, weights);
            take(j, image, channel, channels, places, weights, count, &f);
        }
    put(j, place, channel, channels, p->mode == SAMPLE_MAX ? 1 : sample_points(&r), &f);
}

static void share(void *context, int thread, int threads) {
    const cpu_job *j = context;
    const sample_problem *p = &j->plan->p;
    int64_t from, to;
    cpu_team_share(p->count * p->out[0] * p->out[1], thread, threads, &from, &to);
    for (int64_t at = from; at < to; at++) {
        const int64_t place[] = {at / p->out[1] / p->out[0], at / p->out[1] % p->out[0], at % p->out[1]};
        for (int64_t c = 0; c < p->channels; c += CHANNELS)
            (p->crops ? crop : sample)(j, place, c, p->channels - c < CHANNELS ? p->channels - c : CHANNELS);
    }
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (sample_is(op)) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "feature", "only points and regions of images are its work");
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    (void)device, (void)values, (void)needs, (void)why;
    plan->p = sample_problem_of(op, op->tensors[SAMPLE_INPUT].dims);
    plan->type = op->input, plan->side_type = op->tensors[SAMPLE_GRID].type;
    plan->output = (int)op->tensor_count - 1;
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    (void)why;
    return cpu_team_launch(share, plan, args);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\": \"%s\", \"threads\": \"%s\"}",
                    plan->p.regions ? "roi_align" : "gridsample", cpu_team_about());
}

const scout_candidate cpu_sample_points = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_POOL,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "sample_points",
    .about = "points of a grid and bins of regions, by an own loop",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "fp16", "bf16", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
