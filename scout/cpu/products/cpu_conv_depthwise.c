/* Depthwise convolutions in fp32 by a direct loop: every output channel sees one input channel, so it is no matrix
 * product. The input of a channel is laid out anew in a thread's scratch memory, which stays in its cache: with its
 * padding, and with the places that a stride brings together beside each other (one plane for each phase of the
 * stride). There every tap is the same distance away from every output, so that the whole channel is one long loop
 * without edges, whatever kernel, stride and dilation are. */
#include "common/checked.h"
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/device/cpu_vector.h"
#include "scout/cpu/products/cpu_conv_epilogue.h"

enum { LANES = 16, BLOCK = 4 * LANES };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

/* out[k] = sum over taps of w[tap] * in[offsets[tap] + k], for whole blocks. */
typedef void add_taps(const float *in, const int64_t *offsets, const float *w, int64_t taps, int64_t count, float *out);

struct scout_plan {
    conv_problem p;
    add_taps *add;
    int64_t size[WINDOW_AXES];     /* of a plane: outputs and what the last tap reaches beyond */
    int64_t plane, planes, spread; /* elements of a plane, how many, and from the first to the last output in one */
    int64_t room;                  /* floats of a thread: planes and outputs */
    int64_t *offsets;              /* of the taps; owned */
};

/* The whole body in the macro: gcc splits vectors to the width of the function where they are written, before it
 * inlines that into a wider one. */
#define ADD(name, wide)                                                                                                \
    FAST wide static void name(const float *in, const int64_t *offsets, const float *w, int64_t taps, int64_t count,   \
                               float *out) {                                                                           \
        for (int64_t k = 0; k < count; k += BLOCK) {                                                                   \
            lanes a = {0}, b = {0}, c = {0}, d = {0}, x;                                                               \
            for (int64_t t = 0; t < taps; t++) {                                                                       \
                const float *from = in + offsets[t] + k;                                                               \
                memcpy(&x, from, sizeof x);                                                                            \
                a += x * w[t];                                                                                         \
                memcpy(&x, from + LANES, sizeof x);                                                                    \
                b += x * w[t];                                                                                         \
                memcpy(&x, from + 2 * LANES, sizeof x);                                                                \
                c += x * w[t];                                                                                         \
                memcpy(&x, from + 3 * LANES, sizeof x);                                                                \
                d += x * w[t];                                                                                         \
            }                                                                                                          \
            memcpy(out + k, &a, sizeof a);                                                                             \
            memcpy(out + k + LANES, &b, sizeof b);                                                                     \
            memcpy(out + k + 2 * LANES, &c, sizeof c);                                                                 \
            memcpy(out + k + 3 * LANES, &d, sizeof d);                                                                 \
        }                                                                                                              \
    }
ADD(add_any, )
ADD(add_avx2, WIDE_AVX2)
ADD(add_avx512, WIDE_AVX512)

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0); } /* b > 0 */

/* Every stride-th place of a row of the input, from `phase` places into its padding on. */
static void lay_row(const window_axis *a, int64_t phase, const float *input, int64_t size, float *out) {
    const int64_t shift = phase - a->begin; /* in = out * stride + shift */
    int64_t from = ceil_div(-shift, a->stride), to = ceil_div(a->in - shift, a->stride);
    from = from < 0 ? 0 : from > size ? size : from;
    to = to < from ? from : to > size ? size : to;
    memset(out, 0, (size_t)from * sizeof *out);
    if (to > from && a->stride == 1) memcpy(out + from, input + from + shift, (size_t)(to - from) * sizeof *out);
    for (int64_t k = from; k < to && a->stride > 1; k++) out[k] = input[k * a->stride + shift];
    memset(out + to, 0, (size_t)(size - to) * sizeof *out);
}

/* All planes of a channel: phases of depth, height and width; the last varies fastest. */
static void lay_planes(const scout_plan *plan, const float *input, float *out) {
    const window_axis *d = &plan->p.w.axes[0], *h = &plan->p.w.axes[1], *x = &plan->p.w.axes[2];
    const int64_t rows = plan->size[0] * plan->size[1];
    for (int64_t k = 0; k < plan->planes; k++) {
        const int64_t phase_x = k % x->stride, phase_h = k / x->stride % h->stride;
        const int64_t phase_d = k / x->stride / h->stride;
        for (int64_t r = 0; r < rows; r++, out += plan->size[2]) {
            const int64_t at_d = r / plan->size[1] * d->stride + phase_d - d->begin;
            const int64_t at_h = r % plan->size[1] * h->stride + phase_h - h->begin;
            const bool inside = at_d >= 0 && at_d < d->in && at_h >= 0 && at_h < h->in;
            if (inside)
                lay_row(x, phase_x, input + (at_d * h->in + at_h) * x->in, plan->size[2], out);
            else
                memset(out, 0, (size_t)plan->size[2] * sizeof *out);
        }
    }
}

static void finish_channel(const cpu_job *job, int64_t channel, const float *sums) {
    const scout_plan *plan = job->plan;
    const conv_problem *p = &plan->p;
    const int64_t columns = p->w.axes[2].out, rows = p->w.axes[0].out * p->w.axes[1].out;
    const bool more = p->bias >= 0 || p->residual >= 0 || p->activation.function != ACTIVATION_PLAIN;
    void *const *tensors = job->args->tensors;
    float *out = (float *)tensors[CONV_OUTPUT] + channel * rows * columns;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t row = r / p->w.axes[1].out * plan->size[1] + r % p->w.axes[1].out;
        memcpy(out + r * columns, sums + row * plan->size[2], (size_t)columns * sizeof *out);
    }
    if (more)
        cpu_conv_epilogue_row(&p->activation, p->bias >= 0 ? ((const float *)tensors[p->bias])[channel % p->cout] : 0,
                              p->residual >= 0 ? (const float *)tensors[p->residual] + channel * rows * columns : NULL,
                              out, rows * columns);
}

static void depthwise_share(void *context, int thread, int threads) {
    const cpu_job *job = context;
    const scout_plan *plan = job->plan;
    const conv_problem *p = &plan->p;
    const int64_t each = p->cout / p->group, taps = window_kernel(&p->w);
    float *planes = (float *)job->args->workspace + thread * plan->room, *sums = planes + plan->room - plan->spread;
    const int64_t laid_out = plan->plane * plan->planes;
    int64_t from, to, laid = -1;
    cpu_team_share(p->n * p->cout, thread, threads, &from, &to);
    /* what blocks read behind the planes is added to no output, but must not slow down the sums as odd numbers would */
    memset(planes + laid_out, 0, (size_t)(plan->room - plan->spread - laid_out) * sizeof *planes);
    for (int64_t k = from; k < to; k++) {
        const int64_t image = k / p->cout, channel = k % p->cout, input = image * p->cin + channel / each;
        if (input != laid) lay_planes(plan, (const float *)job->args->tensors[CONV_INPUT] + input * p->in_c, planes);
        laid = input;
        plan->add(planes, plan->offsets, (const float *)job->args->tensors[CONV_WEIGHT] + channel * p->w_o, taps,
                  plan->spread, sums);
        finish_channel(job, k, sums);
    }
}

/* --- the candidate --- */

/* What a launch needs, without the taps' offsets; false: more than could be counted or had. */
static bool measure(const conv_problem *p, scout_plan *plan) {
    int64_t elements = 1, planes = 1, last = 0;
    for (int k = 0; k < WINDOW_AXES; k++) {
        const window_axis *a = &p->w.axes[k];
        plan->size[k] = a->out + (a->kernel - 1) * a->dilation / a->stride;
        elements = checked_mul(elements, plan->size[k]);
        planes = checked_mul(planes, a->stride);
        last = checked_add(checked_mul(last, plan->size[k]), a->out - 1);
    }
    const int64_t all = checked_mul(elements, planes);
    if (all > (int64_t)1 << 40) return false;
    plan->p = *p;
    plan->plane = elements, plan->planes = planes;
    plan->spread = (last + BLOCK) / BLOCK * BLOCK;            /* whole blocks */
    plan->room = (all + BLOCK + 15) / 16 * 16 + plan->spread; /* the last block reads beyond the planes */
    return true;
}

static uint64_t workspace_bytes(const scout_plan *plan) {
    return (uint64_t)(cpu_team_size() * plan->room) * sizeof(float);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const conv_problem p = conv_problem_of(op);
    scout_plan plan;
    (void)device;
    if (cpu_conv_epilogue_covers(&p, why) != SCOUT_OK) return SCOUT_NO;
    if (p.cin != p.group) return scout_say(why, SCOUT_NO, "shape", "needs groups of one input channel (depthwise)");
    if (!measure(&p, &plan) || workspace_bytes(&plan) > op->workspace_limit)
        return scout_say(why, SCOUT_NO, "memory", "a channel's planes do not fit into the workspace");
    return SCOUT_OK;
}

static void set_offsets(scout_plan *plan) {
    const window_axis *a = plan->p.w.axes;
    for (int64_t t = 0; t < window_kernel(&plan->p.w); t++) {
        const int64_t at[WINDOW_AXES] = {t / a[2].kernel / a[1].kernel * a[0].dilation,
                                         t / a[2].kernel % a[1].kernel * a[1].dilation,
                                         t % a[2].kernel * a[2].dilation};
        int64_t phase = 0, place = 0;
        for (int k = 0; k < WINDOW_AXES; k++) {
            phase = phase * a[k].stride + at[k] % a[k].stride;
            place = place * plan->size[k] + at[k] / a[k].stride;
        }
        plan->offsets[t] = phase * plan->plane + place;
    }
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    const conv_problem p = conv_problem_of(op);
    scout_plan *const plan = *out;
    const cpu_info *c = cpu_info_get();
    (void)device, (void)values;
    if (!measure(&p, plan))
        return scout_say(why, SCOUT_NO, "memory", "a channel's planes do not fit into the workspace");
    plan->offsets = calloc((size_t)window_kernel(&p.w), sizeof *plan->offsets);
    if (!plan->offsets) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a plan");
    set_offsets(plan);
    plan->add = c->avx512 ? add_avx512 : c->avx2 ? add_avx2 : add_any;
    needs->workspace_bytes = workspace_bytes(plan);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    (void)why;
    return cpu_team_launch(depthwise_share, plan, args);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\": \"depthwise\", \"vectors\": \"%s\", \"threads\": \"%s\"}",
                    plan->add == add_avx512 ? "avx512"
                    : plan->add == add_avx2 ? "avx2"
                                            : "portable",
                    cpu_team_about());
}

static void destroy(scout_plan *plan) { free(plan->offsets); }

const scout_candidate cpu_conv_depthwise = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_CONV,
    .flags = SCOUT_OWN,
    .priority = 70,
    .name = "cpu_conv_depthwise",
    .about = "own direct loop for depthwise convolutions in fp32, nchw",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "tf32", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
    .plan_bytes = sizeof(scout_plan),
};
