/* Depthwise convolutions in fp32 by a direct loop: every output channel sees one input channel, so there is no product
 * to be made of it, and the work is bound by memory. A row of the output is built up from rows of the kernel, all taps
 * of one in a single pass where kernel and stride are common ones; only the edges look at padding. */
#include "scout/cpu/cpu_candidates.h"
#include "scout/cpu/cpu_conv_epilogue.h"
#include "scout/cpu/cpu_info.h"
#include "scout/cpu/cpu_team.h"
#include "scout/cpu/cpu_vector.h"

/* out[k] += sum over taps of w[tap] * in[k * stride + tap * dilation] */
typedef void add_taps(const float *in, const float *w, int64_t taps, int64_t stride, int64_t dilation, int64_t count,
                      float *out);

struct scout_plan {
    conv_problem p;
    add_taps *add;
    int64_t from, to; /* columns whose taps all lie inside */
};

typedef struct depthwise_job {
    const scout_plan *plan;
    void *const *tensors;
} depthwise_job;

FAST_BODY void taps_body(const float *in, const float *w, int taps, int64_t stride, int64_t count, float *out) {
    for (int64_t k = 0; k < count; k++) {
        float sum = out[k];
        for (int t = 0; t < taps; t++) sum += w[t] * in[k * stride + t];
        out[k] = sum;
    }
}

FAST_BODY void add_body(const float *in, const float *w, int64_t taps, int64_t stride, int64_t dilation, int64_t count,
                        float *out) {
    if (dilation == 1 && taps == 3 && stride == 1) {
        taps_body(in, w, 3, 1, count, out);
    } else if (dilation == 1 && taps == 5 && stride == 1) {
        taps_body(in, w, 5, 1, count, out);
    } else if (dilation == 1 && taps == 3 && stride == 2) {
        taps_body(in, w, 3, 2, count, out);
    } else if (dilation == 1 && taps == 5 && stride == 2) {
        taps_body(in, w, 5, 2, count, out);
    } else {
        for (int64_t t = 0; t < taps; t++)
            for (int64_t k = 0; k < count; k++) out[k] += w[t] * in[k * stride + t * dilation];
    }
}

#define ADD(name, wide)                                                                                                \
    FAST wide static void name(const float *in, const float *w, int64_t taps, int64_t stride, int64_t dilation,        \
                               int64_t count, float *out) {                                                            \
        add_body(in, w, taps, stride, dilation, count, out);                                                           \
    }
ADD(add_any, )
ADD(add_avx2, WIDE_AVX2)
ADD(add_avx512, WIDE_AVX512)

/* Columns [from, to) whose window may hang over an edge. */
static void add_edge(const window_axis *a, const float *in, const float *w, int64_t from, int64_t to, float *out) {
    for (int64_t k = from; k < to; k++) {
        int64_t first, at;
        const int64_t taps = window_taps(a, k, &first, &at);
        for (int64_t t = 0; t < taps; t++) out[k] += w[first + t] * in[at + t * a->dilation];
    }
}

/* A row of the output: `plane` is its channel's input. */
static void add_row(const scout_plan *plan, const float *plane, const float *weight, int64_t row, float *out) {
    const window_axis *d = &plan->p.w.axes[0], *h = &plan->p.w.axes[1], *x = &plan->p.w.axes[2];
    int64_t first_d, first_h, at_d, at_h;
    const int64_t taps_d = window_taps(d, row / h->out, &first_d, &at_d);
    const int64_t taps_h = window_taps(h, row % h->out, &first_h, &at_h);
    memset(out, 0, (size_t)x->out * sizeof *out);
    for (int64_t kd = 0; kd < taps_d; kd++)
        for (int64_t kh = 0; kh < taps_h; kh++) {
            const float *in = plane + ((at_d + kd * d->dilation) * h->in + at_h + kh * h->dilation) * x->in;
            const float *w = weight + ((first_d + kd) * h->kernel + first_h + kh) * x->kernel;
            add_edge(x, in, w, 0, plan->from, out);
            if (plan->to > plan->from)
                plan->add(in + (plan->from * x->stride - x->begin), w, x->kernel, x->stride, x->dilation,
                          plan->to - plan->from, out + plan->from);
            add_edge(x, in, w, plan->to, x->out, out);
        }
}

static void depthwise_share(void *context, int thread, int threads) {
    const depthwise_job *job = context;
    const conv_problem *p = &job->plan->p;
    const int64_t rows = p->w.axes[0].out * p->w.axes[1].out, columns = p->w.axes[2].out, each = p->cout / p->group;
    int64_t from, to;
    cpu_team_share(p->n * p->cout * rows, thread, threads, &from, &to);
    for (int64_t k = from; k < to; k++) {
        const int64_t row = k % rows, channel = k / rows % p->cout, image = k / rows / p->cout;
        const float *plane = (const float *)job->tensors[CONV_INPUT] + image * p->in_n + channel / each * p->in_c;
        float *out = (float *)job->tensors[CONV_OUTPUT] + k * columns;
        add_row(job->plan, plane, (const float *)job->tensors[CONV_WEIGHT] + channel * p->w_o, row, out);
        if (p->bias < 0 && p->residual < 0 && p->activation.function == CONV_PLAIN) continue;
        cpu_conv_epilogue_row(&p->activation, p->bias >= 0 ? ((const float *)job->tensors[p->bias])[channel] : 0,
                              p->residual >= 0 ? (const float *)job->tensors[p->residual] + k * columns : NULL, out,
                              columns);
    }
}

/* --- the candidate --- */

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const conv_problem p = conv_problem_of(op);
    (void)device;
    if (cpu_conv_epilogue_covers(&p, why) != SCOUT_OK) return SCOUT_NO;
    if (p.cin != p.group) return scout_say(why, SCOUT_NO, "shape", "wants groups of one input channel (depthwise)");
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *plan = calloc(1, sizeof *plan);
    const cpu_info *c = cpu_info_get();
    (void)device, (void)values, (void)needs;
    *out = plan;
    if (!plan) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a plan");
    plan->p = conv_problem_of(op);
    plan->add = c->avx512 ? add_avx512 : c->avx2 ? add_avx2 : add_any;
    const window_axis *x = &plan->p.w.axes[2];
    const int64_t from = (x->begin + x->stride - 1) / x->stride, room = x->in + x->begin - window_reach(x);
    plan->to = room < 0 ? 0 : room / x->stride + 1;
    if (plan->to > x->out) plan->to = x->out;
    plan->from = from < plan->to ? from : plan->to;
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    depthwise_job job = {plan, args->tensors};
    (void)why;
    cpu_team_run(depthwise_share, &job);
    return SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\": \"depthwise\", \"vectors\": \"%s\", \"threads\": \"%s\"}",
                    plan->add == add_avx512 ? "avx512"
                    : plan->add == add_avx2 ? "avx2"
                                            : "portable",
                    cpu_team_about());
}

static void destroy(scout_plan *plan) { free(plan); }

static const char *const precisions[] = {"fp32", "tf32", NULL};

const scout_candidate cpu_conv_depthwise = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_CONV,
    .flags = SCOUT_OWN,
    .priority = 70,
    .name = "cpu_conv_depthwise",
    .about = "own direct loop for depthwise convolutions in fp32, nchw",
    .approach = "CUSTOM_KERNEL",
    .precisions = precisions,
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
};
