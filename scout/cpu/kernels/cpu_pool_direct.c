/* Pools by a direct loop: an alternative to the library, and the baseline where that refuses (fp16, overhanging
 * averages). Rows of the input are combined into a row of the output, tap by tap; where the output is narrow (global
 * pools) each window is gone through along the input instead, and where channels lie last (nhwc) all of them at once.
 * Types other than fp32 are widened row by row. */
#include "scout/cpu/device/cpu_blocks.h"
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/device/cpu_vector.h"
#include "scout/op/pool.h"

#include <math.h>
#include <stdbool.h>

/* out[k] becomes the sum or the larger one of itself and in[k * step]. */
typedef void combine(const float *in, int64_t step, int64_t count, bool average, float *out);
/* The sum or the largest of in[k * step] and `start`. */
typedef float reduce(const float *in, int64_t step, int64_t count, bool average, float start);

struct scout_plan {
    pool_problem p;
    combine *combine;
    reduce *reduce;
    int64_t lanes; /* of a piece of input that is widened, and of a row of results */
    bool along;    /* each window by itself */
    cpu_blocks blocks;
    float least, most; /* of a quantised average, before the zero point is added */
};

FAST_BODY void combine_body(const float *in, int64_t step, int64_t count, bool average, float *out) {
    if (average && step == 1)
        for (int64_t k = 0; k < count; k++) out[k] += in[k];
    else if (average)
        for (int64_t k = 0; k < count; k++) out[k] += in[k * step];
    else if (step == 1)
        for (int64_t k = 0; k < count; k++) out[k] = in[k] > out[k] ? in[k] : out[k];
    else if (step == 2)
        for (int64_t k = 0; k < count; k++) out[k] = in[k * 2] > out[k] ? in[k * 2] : out[k];
    else
        for (int64_t k = 0; k < count; k++) out[k] = in[k * step] > out[k] ? in[k * step] : out[k];
}

/* In lanes, so that it becomes vector code although sums may not be reordered. */
enum { LANES = 16 };
FAST_BODY float reduce_body(const float *in, int64_t step, int64_t count, bool average, float start) {
    float lanes[LANES];
    int64_t k = 0;
    for (int j = 0; j < LANES; j++) lanes[j] = average ? 0 : start;
    for (; step == 1 && k + LANES <= count; k += LANES)
        for (int j = 0; j < LANES; j++) {
            const float x = in[k + j];
            lanes[j] = average ? lanes[j] + x : x > lanes[j] ? x : lanes[j];
        }
    for (int j = 0; j < LANES; j++) start = average ? start + lanes[j] : lanes[j] > start ? lanes[j] : start;
    for (; k < count; k++) start = average ? start + in[k * step] : in[k * step] > start ? in[k * step] : start;
    return start;
}

#define KERNELS(suffix, wide)                                                                                          \
    FAST wide static void combine_##suffix(const float *in, int64_t step, int64_t count, bool average, float *out) {   \
        combine_body(in, step, count, average, out);                                                                   \
    }                                                                                                                  \
    FAST wide static float reduce_##suffix(const float *in, int64_t step, int64_t count, bool average, float start) {  \
        return reduce_body(in, step, count, average, start);                                                           \
    }
KERNELS(any, )
KERNELS(avx2, WIDE_AVX2)
KERNELS(avx512, WIDE_AVX512)

/* --- reading and writing --- */

static const float *widened(const scout_plan *plan, const void *data, int64_t at, int64_t count, float *room) {
    if (plan->blocks.plain) return (const float *)data + at;
    plan->blocks.load(data, at, count, room);
    return room;
}

/* A maximum of unsigned bytes is computed around their middle, as an average is. */
static void store(const scout_plan *plan, void *data, int64_t at, int64_t count, float *results) {
    const float factor = (float)plan->p.quant.factor, least = plan->least, most = plan->most;
    for (int64_t k = 0; k < count && plan->p.quant.is; k++) {
        const float y = results[k] * factor;
        results[k] = y < least ? least : y > most ? most : y;
    }
    plan->blocks.store(results, count, data, at);
}

/* --- rows of nchw --- */

typedef struct pool_row { /* the taps of a row along depth and height */
    int64_t at[2], taps[2];
    double count; /* of the places an average divides by, along both */
} pool_row;

static pool_row row_of(const pool_problem *p, int64_t row) {
    const int64_t place[2] = {row / p->w.axes[1].out, row % p->w.axes[1].out};
    pool_row r = {.count = 1};
    for (int d = 0; d < 2; d++) {
        int64_t first;
        r.taps[d] = window_taps(&p->w.axes[d], place[d], &first, &r.at[d]);
        r.count *= (double)pool_count(p, &p->w.axes[d], place[d], r.taps[d]);
    }
    return r;
}

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0); } /* b > 0 */

/* One row of the input into all columns of the output. */
static void add_line(const scout_plan *plan, const float *in, float *out) {
    const window_axis *a = &plan->p.w.axes[2];
    const bool average = plan->p.average != 0;
    if (plan->along) {
        for (int64_t k = 0; k < a->out; k++) {
            int64_t first, at;
            const int64_t taps = window_taps(a, k, &first, &at);
            out[k] = plan->reduce(in + at, a->dilation, taps, average, out[k]);
        }
        return;
    }
    for (int64_t tap = 0; tap < a->kernel; tap++) {
        const int64_t shift = tap * a->dilation - a->begin; /* in = out * stride + shift */
        int64_t from = ceil_div(-shift, a->stride), to = ceil_div(a->in - shift, a->stride);
        from = from < 0 ? 0 : from, to = to > a->out ? a->out : to;
        if (to > from) plan->combine(in + from * a->stride + shift, a->stride, to - from, average, out + from);
    }
}

static void do_row(const cpu_job *job, int64_t index, float *room) {
    const scout_plan *plan = job->plan;
    const pool_problem *p = &plan->p;
    const window_axis *d = &p->w.axes[0], *h = &p->w.axes[1], *x = &p->w.axes[2];
    const int64_t rows = d->out * h->out, channel = index / rows; /* among all images' */
    const pool_row r = row_of(p, index % rows);
    float *out = room + plan->lanes;
    for (int64_t k = 0; k < x->out; k++) out[k] = p->average ? 0 : -INFINITY;
    for (int64_t i = 0; i < r.taps[0]; i++)
        for (int64_t j = 0; j < r.taps[1]; j++) {
            const int64_t line = (r.at[0] + i * d->dilation) * h->in + r.at[1] + j * h->dilation;
            add_line(
                plan,
                widened(plan, job->args->tensors[POOL_INPUT], channel * window_in(&p->w) + line * x->in, x->in, room),
                out);
        }
    for (int64_t k = 0; k < x->out && p->average; k++) {
        int64_t first, at;
        const int64_t taps = window_taps(x, k, &first, &at);
        out[k] /= (float)(r.count * (double)pool_count(p, x, k, taps));
    }
    store(plan, job->args->tensors[POOL_OUTPUT], index * x->out, x->out, out);
}

/* --- places of nhwc: all channels at once --- */

static void do_place(const cpu_job *job, int64_t index, float *room) {
    const scout_plan *plan = job->plan;
    const pool_problem *p = &plan->p;
    const window_axis *a = p->w.axes;
    const int64_t place = index % window_out(&p->w), image = index / window_out(&p->w);
    const pool_row r = row_of(p, place / a[2].out);
    int64_t first, at;
    const int64_t taps = window_taps(&a[2], place % a[2].out, &first, &at);
    const double count = r.count * (double)pool_count(p, &a[2], place % a[2].out, taps);
    float *out = room + plan->lanes;
    for (int64_t c = 0; c < p->channels; c++) out[c] = p->average ? 0 : -INFINITY;
    for (int64_t i = 0; i < r.taps[0]; i++)
        for (int64_t j = 0; j < r.taps[1]; j++)
            for (int64_t k = 0; k < taps; k++) {
                const int64_t line = (r.at[0] + i * a[0].dilation) * a[1].in + r.at[1] + j * a[1].dilation;
                const int64_t from = image * p->in_n + (line * a[2].in + at + k * a[2].dilation) * p->channels;
                plan->combine(widened(plan, job->args->tensors[POOL_INPUT], from, p->channels, room), 1, p->channels,
                              p->average != 0, out);
            }
    for (int64_t c = 0; c < p->channels && p->average; c++) out[c] /= (float)count;
    store(plan, job->args->tensors[POOL_OUTPUT], index * p->channels, p->channels, out);
}

static void pool_share(void *context, int thread, int threads) {
    const cpu_job *job = context;
    const pool_problem *p = &job->plan->p;
    float *room = (float *)job->args->workspace + thread * 2 * job->plan->lanes;
    int64_t from, to;
    const int64_t places = p->n * window_out(&p->w);
    cpu_team_share(p->w.last ? places : places / p->w.axes[2].out * p->channels, thread, threads, &from, &to);
    for (int64_t k = from; k < to; k++) (p->w.last ? do_place : do_row)(job, k, room);
}

/* --- the candidate --- */

static int64_t lanes_of(const pool_problem *p) {
    const window_axis *x = &p->w.axes[2];
    const int64_t widest = p->w.last ? p->channels : x->in > x->out ? x->in : x->out;
    return (widest + 15) / 16 * 16;
}

static uint64_t workspace_bytes(const pool_problem *p) {
    return (uint64_t)(cpu_team_size() * 2 * lanes_of(p)) * sizeof(float);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    if (!pool_has_windows(op)) return scout_say(why, SCOUT_NO, "feature", "interpolation is not its work");
    const pool_problem p = pool_problem_of(op);
    (void)device;
    return cpu_team_room(workspace_bytes(&p), op->workspace_limit, why);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    const cpu_info *c = cpu_info_get();
    (void)device, (void)values;
    plan->p = pool_problem_of(op);
    plan->combine = c->avx512 ? combine_avx512 : c->avx2 ? combine_avx2 : combine_any;
    plan->reduce = c->avx512 ? reduce_avx512 : c->avx2 ? reduce_avx2 : reduce_any;
    plan->lanes = lanes_of(&plan->p);
    if (!cpu_blocks_of(plan->p.type, CPU_BLOCKS_FLOATS, &plan->blocks))
        return scout_say(why, SCOUT_NO, "type", "there is no loop for pools of this type");
    if (plan->p.quant.is) {
        double least, most;
        requantize_bounds(&plan->p.quant, &plan->p.activation, &least, &most);
        plan->least = (float)least, plan->most = (float)most;
    }
    plan->along = plan->p.w.axes[2].out < plan->p.w.axes[2].kernel;
    needs->workspace_bytes = workspace_bytes(&plan->p);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    (void)why;
    return cpu_team_launch(pool_share, plan, args);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\": \"pool\", \"loop\": \"%s\", \"threads\": \"%s\"}",
                    plan->p.w.last ? "channels"
                    : plan->along  ? "windows"
                                   : "rows",
                    cpu_team_about());
}

const scout_candidate cpu_pool_direct = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_POOL,
    .flags = SCOUT_OWN | SCOUT_BASELINE, /* where the library refuses */
    .priority = 50,
    .name = "cpu_pool",
    .about = "own direct loop for maximum and average",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "fp16", "bf16", "int8", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
