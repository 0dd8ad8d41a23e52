/* Convolutions as products by OpenBLAS: the windows of some rows of the output become columns (im2col), which are
 * multiplied with the weight as it is. A kernel of 1 without stride or padding is a product already. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_openblas.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/products/cpu_conv_epilogue.h"

#include <limits.h>

enum { COLUMN_BYTES = 4 << 20 }; /* a block of columns stays in the caches */

struct scout_plan {
    conv_problem p;
    const cpu_openblas *lib;
    bool direct;  /* no columns needed */
    int64_t rows; /* of the output that are laid out at once */
};

typedef struct lowered_job {
    const scout_plan *plan;
    void *const *tensors;
    float *columns;
    const float *input;     /* of the group */
    int64_t row, row_count; /* those laid out */
} lowered_job;

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0); } /* b > 0 */

/* One tap along a row of the output: zeros where it lies in the padding. */
static void lay_row(const window_axis *a, int64_t tap, const float *input, float *out) {
    const int64_t shift = tap * a->dilation - a->begin; /* in = out * stride + shift */
    int64_t from = ceil_div(-shift, a->stride), to = ceil_div(a->in - shift, a->stride);
    from = from < 0 ? 0 : from > a->out ? a->out : from;
    to = to < from ? from : to > a->out ? a->out : to;
    memset(out, 0, (size_t)from * sizeof *out);
    if (to > from && a->stride == 1) memcpy(out + from, input + from + shift, (size_t)(to - from) * sizeof *out);
    for (int64_t k = from; k < to && a->stride > 1; k++) out[k] = input[k * a->stride + shift];
    memset(out + to, 0, (size_t)(a->out - to) * sizeof *out);
}

static void lay_columns(void *context, int thread, int threads) {
    const lowered_job *job = context;
    const conv_problem *p = &job->plan->p;
    const window_axis *d = &p->w.axes[0], *h = &p->w.axes[1], *x = &p->w.axes[2];
    const int64_t taps = window_kernel(&p->w), plane = window_in(&p->w), wide = job->row_count * x->out;
    int64_t from, to;
    cpu_team_share(p->cin / p->group * taps, thread, threads, &from, &to);
    for (int64_t line = from; line < to; line++) {
        const int64_t tap = line % taps, kx = tap % x->kernel, kh = tap / x->kernel % h->kernel;
        const int64_t kd = tap / x->kernel / h->kernel;
        for (int64_t r = 0; r < job->row_count; r++) {
            const int64_t row = job->row + r;
            const int64_t in_d = row / h->out * d->stride - d->begin + kd * d->dilation;
            const int64_t in_h = row % h->out * h->stride - h->begin + kh * h->dilation;
            const bool inside = in_d >= 0 && in_d < d->in && in_h >= 0 && in_h < h->in;
            float *out = job->columns + line * wide + r * x->out;
            if (inside)
                lay_row(x, kx, job->input + line / taps * plane + (in_d * h->in + in_h) * x->in, out);
            else
                memset(out, 0, (size_t)x->out * sizeof *out);
        }
    }
}

static void finish_share(void *context, int thread, int threads) {
    const lowered_job *job = context;
    const conv_problem *p = &job->plan->p;
    const int64_t places = window_out(&p->w);
    int64_t from, to;
    cpu_team_share(p->n * p->cout, thread, threads, &from, &to);
    for (int64_t k = from; k < to; k++)
        cpu_conv_epilogue_row(&p->activation, p->bias >= 0 ? ((const float *)job->tensors[p->bias])[k % p->cout] : 0,
                              p->residual >= 0 ? (const float *)job->tensors[p->residual] + k * places : NULL,
                              (float *)job->tensors[CONV_OUTPUT] + k * places, places);
}

static void multiply(const scout_plan *plan, const float *weight, const float *columns, int64_t wide, int64_t ld,
                     float *out) {
    const conv_problem *p = &plan->p;
    const int k = (int)conv_depth(p);
    plan->lib->sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)(p->cout / p->group), (int)wide, k, 1.0F, weight,
                     k, columns, (int)ld, 0.0F, out, (int)window_out(&p->w));
}

static void convolve_group(lowered_job *job, const float *weight, float *out) {
    const scout_plan *plan = job->plan;
    const int64_t columns = plan->p.w.axes[2].out, rows = plan->p.w.axes[0].out * plan->p.w.axes[1].out;
    if (plan->direct) {
        multiply(plan, weight, job->input, rows * columns, rows * columns, out);
        return;
    }
    for (job->row = 0; job->row < rows; job->row += plan->rows) {
        const int64_t left = rows - job->row;
        job->row_count = left < plan->rows ? left : plan->rows;
        cpu_team_run(lay_columns, job);
        multiply(plan, weight, job->columns, job->row_count * columns, job->row_count * columns,
                 out + job->row * columns);
    }
}

/* --- the candidate --- */

static int64_t row_bytes(const conv_problem *p) { return conv_depth(p) * p->w.axes[2].out * (int64_t)sizeof(float); }

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const conv_problem p = conv_problem_of(op);
    (void)device;
    if (!cpu_openblas_get(why)) return SCOUT_NO;
    if (cpu_conv_epilogue_covers(&p, why) != SCOUT_OK) return SCOUT_NO;
    if (conv_depth(&p) > INT_MAX / 4 || window_out(&p.w) > INT_MAX / 4 || p.cout > INT_MAX / 4 ||
        row_bytes(&p) / (int64_t)sizeof(float) > INT_MAX)
        return scout_say(why, SCOUT_NO, "shape", "a dimension does not fit cblas's int");
    if (p.cin == p.group && p.group > 1)
        return scout_say(why, SCOUT_NO, "shape", "a depthwise convolution would be one product per channel");
    if ((uint64_t)row_bytes(&p) > op->workspace_limit)
        return scout_say(why, SCOUT_NO, "memory", "needs %.1f MB of workspace for a row of the output",
                         (double)row_bytes(&p) / 1e6);
    return SCOUT_OK;
}

static bool is_product(const conv_problem *p) {
    bool yes = true;
    for (int k = 0; k < WINDOW_AXES; k++) {
        const window_axis *a = &p->w.axes[k];
        yes = yes && a->kernel == 1 && a->stride == 1 && a->begin == 0 && a->end == 0;
    }
    return yes;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)values;
    const cpu_openblas *l = cpu_openblas_get(why);
    if (!l) return SCOUT_NO;
    scout_plan *const plan = *out;
    plan->p = conv_problem_of(op);
    plan->lib = l;
    plan->direct = is_product(&plan->p);
    const int64_t rows = plan->p.w.axes[0].out * plan->p.w.axes[1].out, each = row_bytes(&plan->p);
    const int64_t room = op->workspace_limit < COLUMN_BYTES ? (int64_t)op->workspace_limit : COLUMN_BYTES;
    plan->rows = each > room ? 1 : room / each < rows ? room / each : rows;
    needs->workspace_bytes = plan->direct ? 0 : (uint64_t)(plan->rows * each);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const conv_problem *p = &plan->p;
    lowered_job job = {.plan = plan, .tensors = args->tensors, .columns = args->workspace};
    (void)why;
    for (int64_t image = 0; image < p->n; image++)
        for (int64_t g = 0; g < p->group; g++) {
            job.input = (const float *)args->tensors[CONV_INPUT] + image * p->in_n + g * (p->cin / p->group) * p->in_c;
            convolve_group(&job, (const float *)args->tensors[CONV_WEIGHT] + g * p->w_g,
                           (float *)args->tensors[CONV_OUTPUT] + image * p->out_n +
                               g * (p->cout / p->group) * p->out_c);
        }
    if (p->bias >= 0 || p->residual >= 0 || p->activation.function != ACTIVATION_PLAIN)
        cpu_team_run(finish_share, &job);
    return SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room,
                    "{\"kernel\": \"lowered\", \"library\": \"openblas\", \"version\": \"%s\", \"columns\": \"%s\", "
                    "\"rows\": %lld, \"threads\": \"%s\"}",
                    plan->lib->version, plan->direct ? "the input" : "im2col", (long long)plan->rows, cpu_team_about());
}

const scout_candidate cpu_conv_lowered = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_CONV,
    .flags = SCOUT_OWN,
    .priority = 60,
    .name = "cpu_conv_lowered",
    .about = "windows laid out as columns (im2col), multiplied by OpenBLAS's sgemm; fp32, nchw",
    .library = "openblas",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "tf32", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
