/* The reference of pools: every output in fp64 (cpu_whole.h). */
#include "scout/cpu/reference/cpu_whole.h"
#include "scout/op/pool.h"
#include "scout/op/resize.h"
#include "scout/op/sample.h"

#include <math.h>

static scout_answer open(const scout_op *op, void **state, scout_why *why) {
    pool_problem *p = malloc(sizeof *p);
    *state = p;
    if (!p) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for the reference of this pool");
    memset(p, 0, sizeof *p);
    if (!resize_is(op) && !sample_is(op)) *p = pool_problem_of(op);
    return SCOUT_OK;
}

static int64_t grain(const void *state, const scout_op *op, uint32_t output) {
    (void)state, (void)op, (void)output;
    return 1;
}

typedef struct window_sum {
    double sum, squares, powers, largest; /* powers: of a norm */
    int64_t at;                           /* the first of the largest, in its plane */
} window_sum;

/* `count` neighbouring taps of the last dimension. */
static void add_taps(window_sum *s, const pool_problem *p, const void *input, int64_t base, int64_t at, int64_t count) {
    const int64_t step = p->in_step * p->w.axes[2].dilation;
    double x[64];
    for (int64_t k = 0; k < count; k += 64) {
        const int64_t here = count - k < 64 ? count - k : 64;
        cpu_number_load(p->type, input, base + at * p->in_step + k * step, step, here, x);
        for (int64_t j = 0; j < here; j++) {
            if (x[j] > s->largest) s->largest = x[j], s->at = at + (k + j) * p->w.axes[2].dilation;
            s->sum += x[j] - p->quant.zero_in, s->squares += x[j] * x[j];
            if (p->order > 0) s->powers += pow(fabs(x[j]), p->order);
        }
    }
}

/* One output: `at` tells where its channel's input begins; plane: whose index of the largest is wanted, or -1. */
static void one(const pool_problem *p, const void *input, int64_t at, const int64_t *place, int64_t plane, double *want,
                double *spread) {
    int64_t first[WINDOW_AXES], from[WINDOW_AXES], taps[WINDOW_AXES];
    const window_axis *a = p->w.axes;
    window_sum s = {0, 0, 0, -INFINITY, 0};
    double divisor = 1;
    for (int d = 0; d < WINDOW_AXES; d++) {
        taps[d] = window_taps(&a[d], place[d], &first[d], &from[d]);
        divisor *= (double)pool_count(p, &a[d], place[d], taps[d]);
    }
    for (int64_t k = 0; k < taps[0]; k++)
        for (int64_t j = 0; j < taps[1]; j++) {
            const int64_t depth = from[0] + k * a[0].dilation, height = from[1] + j * a[1].dilation;
            add_taps(&s, p, input, at, (depth * a[1].in + height) * a[2].in + from[2], taps[2]);
        }
    if (p->quant.is) {
        *want = requantize_apply(&p->quant, &p->activation, s.sum / divisor);
        *spread = requantize_spread(&p->quant, *want);
        return;
    }
    *want = plane >= 0     ? (double)pool_index(p, plane, s.at)
            : p->order > 0 ? pow(s.powers, 1 / p->order)
            : p->average   ? s.sum / divisor
                           : s.largest;
    *spread = plane >= 0 ? 0 : p->average ? sqrt(s.squares) / divisor : fabs(*want);
}

/* One output of an interpolation, from its place in the output. */
static void interpolate(const scout_op *op, const resize_problem *p, const void *input, int64_t at, double *want,
                        double *spread) {
    int64_t places[RESIZE_AXES][RESIZE_TAPS], rest = at;
    double weights[RESIZE_AXES][RESIZE_TAPS], sum = 0, squares = 0;
    int counts[RESIZE_AXES];
    for (int axis = RESIZE_AXES - 1; axis >= 0; axis--) {
        counts[axis] = resize_taps(p, axis, rest % p->out[axis], places[axis], weights[axis]);
        rest /= p->out[axis];
    }
    for (int k = 0; k < counts[0] * counts[1] * counts[2]; k++) {
        const int w = k % counts[2], h = k / counts[2] % counts[1], d = k / counts[2] / counts[1];
        double x;
        cpu_number_load(op->input, input,
                        ((rest * p->in[0] + places[0][d]) * p->in[1] + places[1][h]) * p->in[2] + places[2][w], 1, 1,
                        &x);
        x *= weights[0][d] * weights[1][h] * weights[2][w];
        sum += x, squares += x * x;
    }
    *want = sum, *spread = sqrt(squares);
}

typedef struct taps_sum {
    double sum, squares, most;
    int64_t taps;
} taps_sum;

static void add_sample(taps_sum *s, const scout_op *op, const void *input, int64_t plane, const int64_t *places,
                       const double *weights, int count) {
    for (int k = 0; k < count; k++) {
        double x;
        cpu_number_load(op->input, input, plane + places[k], 1, 1, &x);
        x *= weights[k];
        s->most = s->taps == 0 ? x : fmax(s->most, x);
        s->sum += x, s->squares += x * x, s->taps++;
    }
}

/* One output of a grid's points or a region's bins, from its place in the output. */
static void sample(const scout_op *op, void *const *tensors, int64_t at, double *want, double *spread) {
    const sample_problem p = sample_problem_of(op, op->tensors[SAMPLE_INPUT].dims);
    const int64_t bin[2] = {at / p.out[1] % p.out[0], at % p.out[1]}, rest = at / p.out[1] / p.out[0];
    const int64_t channel = rest % p.channels, which = rest / p.channels;
    const uint32_t type = op->tensors[SAMPLE_GRID].type;
    int64_t image = which, places[SAMPLE_TAPS] = {0};
    double told[4], weights[SAMPLE_TAPS] = {0}, over = 1;
    taps_sum s = {0, 0, 0, 0};
    if (p.crops) {
        image = ((const int32_t *)tensors[SAMPLE_BATCHES])[which];
        cpu_number_load(type, tensors[SAMPLE_ROIS], 4 * which, 1, 4, told);
        const int64_t plane = (image * p.channels + channel) * p.in[0] * p.in[1];
        const int count = sample_crop_taps(&p, told, bin, places, weights);
        add_sample(&s, op, tensors[SAMPLE_INPUT], plane, places, weights, count);
        if (count == 0) s.sum = p.outside;
    } else if (!p.regions) {
        const int64_t point = (which * p.out[0] + bin[0]) * p.out[1] + bin[1];
        cpu_number_load(type, tensors[SAMPLE_GRID], 2 * point, 1, 2, told);
        const int64_t plane = (image * p.channels + channel) * p.in[0] * p.in[1];
        const int count = sample_taps(&p, told[0], told[1], places, weights);
        add_sample(&s, op, tensors[SAMPLE_INPUT], plane, places, weights, count);
    } else {
        image = ((const int64_t *)tensors[SAMPLE_BATCHES])[which];
        cpu_number_load(type, tensors[SAMPLE_ROIS], 4 * which, 1, 4, told);
        const sample_region r = sample_region_of(&p, told);
        const int64_t plane = (image * p.channels + channel) * p.in[0] * p.in[1];
        for (int64_t k = 0; r.points[1] > 0 && k < r.points[0] * r.points[1]; k++) {
            const int64_t point[2] = {k / r.points[1], k % r.points[1]};
            const int count = sample_point(&p, &r, bin, point, places, weights);
            add_sample(&s, op, tensors[SAMPLE_INPUT], plane, places, weights, count);
        }
        if (p.mode != SAMPLE_MAX) over = sample_points(&r);
    }
    *want = p.mode == SAMPLE_MAX ? s.most : s.sum / over;
    const double least = op->output == SCOUT_FP16 ? 0x1p-14 : 0; /* below, its steps grow no smaller */
    *spread = fmax(sqrt(s.squares) / over, least) + 0x1p-24;
}

static scout_answer compute(const void *state, const scout_op *op, void *const *tensors, uint32_t output, int64_t from,
                            int64_t count, double *want, double *spread, double *scratch) {
    const pool_problem *p = state;
    const int64_t height = p->w.axes[1].out, width = p->w.axes[2].out, places = window_out(&p->w);
    (void)scratch;
    if (resize_is(op)) {
        const resize_problem r = resize_problem_of(op, op->tensors[POOL_INPUT].dims);
        for (int64_t k = 0; k < count; k++) interpolate(op, &r, tensors[POOL_INPUT], from + k, &want[k], &spread[k]);
        return SCOUT_OK;
    }
    for (int64_t k = 0; sample_is(op) && k < count; k++) sample(op, tensors, from + k, &want[k], &spread[k]);
    if (sample_is(op)) return SCOUT_OK;
    for (int64_t k = 0; k < count; k++) {
        const int64_t at = from + k;
        const int64_t rest = p->w.last ? at / p->channels % places : at % places;
        const int64_t channel = p->w.last ? at % p->channels : at / places % p->channels;
        const int64_t image = at / places / p->channels;
        const int64_t place[WINDOW_AXES] = {rest / width / height, rest / width % height, rest % width};
        one(p, tensors[POOL_INPUT], image * p->in_n + channel * p->in_c, place,
            output == POOL_INDICES ? image * p->channels + channel : -1, &want[k], &spread[k]);
    }
    return SCOUT_OK;
}

static const cpu_whole whole = {.open = open, .grain = grain, .compute = compute};
CPU_WHOLE_REFERENCE(cpu_reference_pool, SCOUT_POOL, whole);
