/* The reference of convolutions, in fp64. Small ones are computed as a whole, and every output is compared. Large ones
 * have two checks, and a wrong output must pass neither:
 *
 * - samples: at least 4,096 outputs, spread over all images, channels and rows;
 * - projections: a convolution is linear in its filter, so the sum of x[o] * output[o] over a segment of channels is
 * one convolution, with the filter that is the sum of x[o] * filter[o]. Known beforehand, it costs one channel instead
 * of a segment's. Segments lie within a group; their width, the weights x and the bound of a projection are those of
 * products in cpu_cover.c: rows are places of the output, columns are channels.
 *
 * A residual and a bias are linear too. An activation is not: such a convolution is always computed as a whole, and
 * refused where that would take minutes. A whole output is the case of segments of one channel with the weight 1. */
#include "scout/cpu/device/cpu_candidates.h"

#include "common/mix.h"
#include "scout/cpu/device/cpu_cover.h"
#include "scout/cpu/device/cpu_fill.h"
#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/device/cpu_vector.h"
#include "scout/op/conv.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 8192, STRIP = 32, PIECE = 1024, CACHE = 512 << 10 };
static const double WHOLE_MACS = 1e9, LONGEST_MACS = 1e11; /* a second, and two minutes on few cores */

typedef struct strip { /* neighbouring outputs of a row, of one channel */
    int64_t image, channel, row, from, count;
    double want[STRIP], spread[STRIP];
} strip;

struct scout_check {
    conv_problem p;
    void *const *tensors; /* while begin runs */
    uint64_t seed;
    bool whole;
    uint32_t bias_type, scales_type;
    int64_t width, segments;   /* of a group */
    int64_t places, rows;      /* of the output of a channel */
    double *x;                 /* cout */
    double *filters, *squared; /* [group][segment][input channel][tap] */
    double *image;             /* the one that is at work: [cin][plane_of] */
    int64_t at;                /* its number */
    double *want;              /* [image][group][segment][place] */
    float *spread;
    strip *strips;
    int64_t strip_count;
    atomic_bool failed; /* a thread had no memory */
};

/* --- sums of a row, tap by tap. For every tap the columns with an input inside are one interval, so the inner loop has
 * no condition; of a transposed convolution these columns are `stride` apart instead of the inputs. --- */

enum { CONV_ROWS_BEHIND = 32 };

/* Outputs out + k * out_step from inputs in + k * in_step, k < count. */
typedef struct span {
    int64_t out, in, count;
} span;

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0); } /* b > 0 */

/* Place of the input that output `out` sees through a tap; -1: none. */
static int64_t seen(const window_axis *a, bool transposed, int64_t out, int64_t tap) {
    const int64_t at = transposed ? out + a->begin - tap * a->dilation : out * a->stride - a->begin + tap * a->dilation;
    if (at < 0 || (transposed && at % a->stride != 0)) return -1;
    const int64_t place = transposed ? at / a->stride : at;
    return place < a->in ? place : -1;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* The columns in [from, to) that see an input through this tap. */
static span columns(const window_axis *a, bool transposed, int64_t tap, int64_t from, int64_t to) {
    const int64_t shift =
        tap * a->dilation - a->begin; /* in = out * stride + shift; transposed: out = in * stride + … */
    span s = {0, 0, 0};
    if (transposed) {
        s.in = most(0, ceil_div(from - shift, a->stride));
        s.out = s.in * a->stride + shift;
        if (s.in < a->in && s.out < to) s.count = least(a->in - s.in, ceil_div(to - s.out, a->stride));
    } else {
        s.out = most(from, ceil_div(-shift, a->stride));
        s.in = s.out * a->stride + shift;
        if (s.out < to && s.in < a->in) s.count = least(to - s.out, ceil_div(a->in - s.in, a->stride));
    }
    return s;
}

/* From one channel of an image to the next: an odd number of lines, so that what is read of all of them one after
 * another lies in all sets of a cache, and not in a few. */
static int64_t plane_of(const conv_problem *p) { return ((window_in(&p->w) + 7) / 8 | 1) * 8; }

typedef double lanes __attribute__((vector_size(32), aligned(8), may_alias)); /* wider ones AVX2 takes apart */
enum { LANES = 4, WIDE = 4 }; /* so many vectors of sums are held at once */
_Static_assert(CONV_ROWS_BEHIND >= LANES * WIDE, "vectors read beyond a row");

/* The contribution of one tap of all channels to a row. */
typedef struct tap_row {
    const double *in, *w, *w2; /* of the first channel */
    int64_t plane, taps;       /* from one channel to the next */
    int64_t channels, in_step, out_step, count;
} tap_row;

/* So many vectors of columns from `at` on, of which `count` are kept: what is read behind them does no harm. */
FAST_BODY void add_vectors(const tap_row *t, int64_t at, int64_t count, int vectors, double *want, double *squares) {
    lanes sum[WIDE] = {{0}}, square[WIDE] = {{0}};
    for (int64_t c = 0; c < t->channels; c++) {
        const double w = t->w[c * t->taps], w2 = t->w2[c * t->taps];
        const lanes *in = (const lanes *)(const void *)(t->in + c * t->plane + at);
        for (int v = 0; v < vectors; v++) {
            const lanes x = in[v];
            sum[v] += w * x;
            square[v] += w2 * (x * x);
        }
    }
    for (int64_t k = 0; k < count; k++) {
        want[(at + k) * t->out_step] += sum[k / LANES][k % LANES];
        squares[(at + k) * t->out_step] += square[k / LANES][k % LANES];
    }
}

FAST_BODY void add_body(const tap_row *t, double *want, double *squares) {
    for (int64_t c = 0; c < t->channels && t->in_step > 1; c++) {
        const double w = t->w[c * t->taps], w2 = t->w2[c * t->taps];
        for (int64_t k = 0; k < t->count; k++) {
            const double x = t->in[c * t->plane + k * t->in_step];
            want[k * t->out_step] += w * x, squares[k * t->out_step] += w2 * (x * x);
        }
    }
    for (int64_t at = 0; at < t->count && t->in_step == 1; at += LANES * WIDE) {
        const int64_t left = t->count - at;
        if (left > 2 * LANES)
            add_vectors(t, at, left < LANES * WIDE ? left : LANES * WIDE, WIDE, want, squares);
        else if (left > LANES)
            add_vectors(t, at, left, 2, want, squares);
        else
            add_vectors(t, at, left, 1, want, squares);
    }
}

typedef void add_row(const tap_row *t, double *want, double *squares);

FAST_WIDTHS(add, (const tap_row *t, double *want, double *squares), (t, want, squares))

/* Columns [from, to) of the row (depth, height) of one output channel: want is increased by the sum of the products,
 * squares by the sum of their squares. `image`: the input channels of the group, dense, each in order of depth, height
 * and width, plane_of apart, and CONV_ROWS_BEHIND numbers of any kind behind all of them. weights, squared: of this
 * output channel, [input channel][tap]; squared are what the squares of the inputs are multiplied with. */
static void add_columns(const conv_problem *p, const double *image, const double *weights, const double *squared,
                        int64_t depth, int64_t height, int64_t from, int64_t to, double *want, double *squares) {
    const window_axis *d = &p->w.axes[0], *h = &p->w.axes[1], *x = &p->w.axes[2];
    const bool transposed = p->transposed != 0;
    const int64_t in_step = transposed ? 1 : x->stride, out_step = transposed ? x->stride : 1;
    const int64_t channels = p->cin / p->group, plane = plane_of(p), taps = window_kernel(&p->w);
    add_row *const add = FAST_WIDEST(add, cpu_info_get());
    for (int64_t kx = 0; kx < x->kernel; kx++) {
        const span s = columns(x, transposed, kx, from, to);
        if (s.count <= 0) continue;
        for (int64_t kd = 0; kd < d->kernel; kd++) {
            const int64_t in_d = seen(d, transposed, depth, kd);
            for (int64_t kh = 0; kh < h->kernel && in_d >= 0; kh++) {
                const int64_t in_h = seen(h, transposed, height, kh);
                if (in_h < 0) continue;
                const double *in = image + (in_d * h->in + in_h) * x->in + s.in;
                const int64_t tap = (kd * h->kernel + kh) * x->kernel + kx;
                const tap_row t = {.in = in,
                                   .w = weights + tap,
                                   .w2 = squared + tap,
                                   .plane = plane,
                                   .taps = taps,
                                   .channels = channels,
                                   .in_step = in_step,
                                   .out_step = out_step,
                                   .count = s.count};
                add(&t, want + (s.out - from), squares + (s.out - from));
            }
        }
    }
}

/* --- what is convolved --- */

static int64_t filter_size(const scout_check *c) { return conv_depth(&c->p); }
static int64_t all_segments(const scout_check *c) { return c->p.group * c->segments; }

static int64_t first_channel(const scout_check *c, int64_t segment) { /* of a segment among all groups' */
    return segment / c->segments * (c->p.cout / c->p.group) + segment % c->segments * c->width;
}

static int64_t width_of(const scout_check *c, int64_t segment) {
    const int64_t left = c->p.cout / c->p.group - segment % c->segments * c->width;
    return left < c->width ? left : c->width;
}

static double value(const scout_check *c, int tensor, uint32_t type, int64_t at) {
    double x;
    cpu_number_load(type, c->tensors[tensor], at, 1, 1, &x);
    return x;
}

/* The filter of one output channel times x is added to `sum`, its squares to `squares`. */
static void add_filter(const scout_check *c, int64_t channel, double x, double *sum, double *squares) {
    const conv_problem *p = &c->p;
    const int64_t each = p->cout / p->group, inputs = p->cin / p->group, taps = window_kernel(&p->w);
    const int64_t from = channel / each * p->w_g + channel % each * p->w_o;
    double piece[PIECE];
    if (p->scales >= 0) x *= value(c, p->scales, c->scales_type, channel);
    for (int64_t i = 0; i < inputs; i++)
        for (int64_t t = 0; t < taps; t += PIECE) {
            const int64_t count = taps - t < PIECE ? taps - t : PIECE;
            cpu_number_load(p->type_weight, c->tensors[CONV_WEIGHT], from + i * p->w_i + t, 1, count, piece);
            for (int64_t k = 0; k < count; k++) {
                const double term = x * (piece[k] - p->quant.zero_weight);
                sum[i * taps + t + k] += term;
                squares[i * taps + t + k] += term * term;
            }
        }
}

static void project_filters(void *context, int thread, int threads) {
    scout_check *c = context;
    int64_t from, to;
    cpu_team_share(all_segments(c), thread, threads, &from, &to);
    for (int64_t s = from; s < to; s++)
        for (int64_t k = 0; k < width_of(c, s); k++)
            add_filter(c, first_channel(c, s) + k, c->x[first_channel(c, s) + k], c->filters + s * filter_size(c),
                       c->squared + s * filter_size(c));
}

static void load_image(void *context, int thread, int threads) {
    const scout_check *c = context;
    const conv_problem *p = &c->p;
    const int64_t places = window_in(&p->w);
    int64_t from, to;
    cpu_team_share(p->cin, thread, threads, &from, &to);
    for (int64_t k = from; k < to; k++) {
        double *const channel = c->image + k * plane_of(p);
        cpu_number_load(p->type_in, c->tensors[CONV_INPUT], c->at * p->in_n + k * p->in_c, p->in_step, places, channel);
        for (int64_t at = 0; at < places && p->quant.zero_in; at++) channel[at] -= p->quant.zero_in;
    }
}

/* --- sums --- */

/* Bias and residual of one channel, times x, for `count` places from `place` on. */
static void add_rest(const scout_check *c, int64_t channel, double x, int64_t place, int64_t count, double *want,
                     double *squares) {
    const conv_problem *p = &c->p;
    const double bias = p->bias >= 0 ? x * value(c, p->bias, c->bias_type, channel) : 0;
    for (int64_t k = 0; k < count; k++) {
        const int64_t at = c->at * p->out_n + channel * p->out_c + (place + k) * p->out_step;
        const double residual = p->residual >= 0 ? x * value(c, p->residual, p->type_out, at) : 0;
        want[k] += bias + residual;
        squares[k] += bias * bias + residual * residual;
    }
}

/* An activation passes on an error times its slope. Sums that are rounded to bytes are always compared one by one. */
static void finish(const scout_check *c, int64_t count, double *want, double *squares) {
    const bool active = c->p.activation.function != ACTIVATION_PLAIN;
    const double steepest = activation_steepest(&c->p.activation);
    const requantize *const quant = &c->p.quant;
    for (int64_t k = 0; k < count && quant->is; k++) {
        want[k] = requantize_apply(quant, &c->p.activation, want[k]);
        squares[k] = requantize_spread(quant, want[k]);
    }
    for (int64_t k = 0; k < count && !quant->is; k++) {
        squares[k] = steepest * sqrt(squares[k]);
        if (active) want[k] = activation_apply(&c->p.activation, want[k]);
    }
}

/* Columns whose inputs of all channels stay in a core's cache for all segments. */
static int64_t block_of(const scout_check *c) {
    const window_axis *const axes = c->p.w.axes;
    const int64_t inputs = c->p.cin / c->p.group * axes[0].kernel * axes[1].kernel, columns = axes[2].out;
    const int64_t fit = CACHE / (int64_t)sizeof(double) / inputs / STRIP * STRIP;
    const int64_t block = fit > STRIP ? fit : STRIP;
    return block < columns ? block : columns;
}

/* Which of both comes again from memory: for each segment its whole image, or for each block the filters of all. */
static bool goes_by_blocks(const scout_check *c, int64_t blocks) {
    const int64_t inputs = c->p.cin / c->p.group;
    return (double)inputs * (double)plane_of(&c->p) > 2.0 * (double)filter_size(c) * (double)c->rows * (double)blocks;
}

static void sum_rows(void *context, int thread, int threads) {
    scout_check *c = context;
    const conv_problem *p = &c->p;
    const int64_t height = p->w.axes[1].out, columns = p->w.axes[2].out, all = all_segments(c);
    const int64_t inputs = p->cin / p->group * plane_of(p);
    const int64_t wide = (columns + block_of(c) - 1) / block_of(c);
    const bool by_blocks = goes_by_blocks(c, wide);
    const int64_t block = by_blocks ? block_of(c) : columns, blocks = by_blocks ? wide : 1, tiles = c->rows * blocks;
    double *squares = malloc((size_t)block * sizeof *squares);
    int64_t from, to;
    cpu_team_share(tiles * all, thread, threads, &from, &to);
    if (!squares) c->failed = true;
    for (int64_t k = from; k < to && squares; k++) {
        const int64_t s = by_blocks ? k % all : k / tiles, tile = by_blocks ? k / all : k % tiles;
        const int64_t row = tile / blocks, first = tile % blocks * block;
        const int64_t count = columns - first < block ? columns - first : block;
        const int64_t at = (c->at * all + s) * c->places + row * columns + first;
        memset(squares, 0, (size_t)count * sizeof *squares);
        add_columns(p, c->image + s / c->segments * inputs, c->filters + s * filter_size(c),
                    c->squared + s * filter_size(c), row / height, row % height, first, first + count, c->want + at,
                    squares);
        for (int64_t o = 0; o < width_of(c, s); o++)
            add_rest(c, first_channel(c, s) + o, c->x[first_channel(c, s) + o], row * columns + first, count,
                     c->want + at, squares);
        finish(c, count, c->want + at, squares);
        for (int64_t j = 0; j < count; j++) c->spread[at + j] = (float)squares[j];
    }
    free(squares);
}

static void sum_strips(void *context, int thread, int threads) {
    scout_check *c = context;
    const conv_problem *p = &c->p;
    const int64_t height = p->w.axes[1].out, columns = p->w.axes[2].out, size = filter_size(c);
    const int64_t inputs = p->cin / p->group * plane_of(p);
    double *filter = malloc(2 * (size_t)size * sizeof *filter);
    int64_t from, to;
    cpu_team_share(c->strip_count, thread, threads, &from, &to);
    if (!filter) c->failed = true;
    for (int64_t k = from; k < to && filter; k++) {
        strip *s = &c->strips[k];
        if (s->image != c->at) continue;
        memset(filter, 0, 2 * (size_t)size * sizeof *filter);
        add_filter(c, s->channel, 1, filter, filter + size);
        add_columns(p, c->image + s->channel / (p->cout / p->group) * inputs, filter, filter + size, s->row / height,
                    s->row % height, s->from, s->from + s->count, s->want, s->spread);
        add_rest(c, s->channel, 1, s->row * columns + s->from, s->count, s->want, s->spread);
        finish(c, s->count, s->want, s->spread);
    }
    free(filter);
}

/* --- begin --- */

/* One strip of each of as many equal parts of the output. */
static void choose_strips(scout_check *c) {
    const conv_problem *p = &c->p;
    const int64_t columns = p->w.axes[2].out, per_row = (columns + STRIP - 1) / STRIP;
    const int64_t all = p->n * p->cout * c->rows * per_row, part = c->strip_count > 0 ? all / c->strip_count : all;
    for (int64_t k = 0; k < c->strip_count; k++) {
        strip *s = &c->strips[k];
        const uint64_t jitter = mix_bits(c->seed ^ (uint64_t)k) % (uint64_t)part;
        const int64_t at = k * part + (int64_t)jitter, row = at / per_row;
        s->from = at % per_row * STRIP;
        s->count = columns - s->from < STRIP ? columns - s->from : STRIP;
        s->row = row % c->rows, s->channel = row / c->rows % p->cout, s->image = row / c->rows / p->cout;
    }
}

static void plan(scout_check *c) {
    const conv_problem *p = &c->p;
    const gemm_problem product = {.m = p->n * c->places,
                                  .n = p->cout / p->group,
                                  .k = conv_depth(p),
                                  .batch = p->group,
                                  .type_a = p->type_in,
                                  .type_b = p->type_weight,
                                  .type_c = p->type_out};
    const int64_t columns = p->w.axes[2].out, wide = columns < STRIP ? columns : STRIP;
    const int64_t strips = p->n * p->cout * c->rows * ((columns + STRIP - 1) / STRIP);
    const double macs = (double)product.m * (double)p->cout * (double)product.k;
    c->whole = p->activation.function != ACTIVATION_PLAIN || p->quant.is || macs <= WHOLE_MACS || product.n == 1;
    c->width = 1, c->segments = product.n;
    if (c->whole) return;
    cpu_cover_segments(&product, &c->width, &c->segments);
    if (c->width > product.n) c->width = product.n;
    c->strip_count = strips < SAMPLES / wide ? strips : SAMPLES / wide;
}

static bool allocate(scout_check *c) {
    const size_t sums = (size_t)(c->p.n * all_segments(c) * c->places);
    const size_t weights = (size_t)(all_segments(c) * filter_size(c));
    c->x = calloc((size_t)c->p.cout, sizeof *c->x);
    c->filters = calloc(weights, sizeof *c->filters);
    c->squared = calloc(weights, sizeof *c->squared);
    c->image = calloc((size_t)(c->p.cin * plane_of(&c->p)) + CONV_ROWS_BEHIND, sizeof *c->image);
    c->want = calloc(sums, sizeof *c->want);
    c->spread = calloc(sums, sizeof *c->spread);
    c->strips = calloc((size_t)c->strip_count + 1, sizeof *c->strips);
    return c->x && c->filters && c->squared && c->image && c->want && c->spread && c->strips;
}

static void drop_inputs(scout_check *c) {
    free(c->filters), free(c->squared), free(c->image);
    c->filters = c->squared = c->image = NULL;
    c->tensors = NULL;
}

static void end(scout_check *c) {
    if (!c) return;
    drop_inputs(c);
    free(c->x), free(c->want), free(c->spread), free(c->strips);
    free(c);
}

static void compute(scout_check *c) {
    for (int64_t o = 0; o < c->p.cout; o++) c->x[o] = c->whole ? 1 : cpu_cover_weight(c->seed, o);
    if (c->strips) choose_strips(c);
    cpu_team_run(project_filters, c);
    for (c->at = 0; c->at < c->p.n && !c->failed; c->at++) {
        cpu_team_run(load_image, c);
        cpu_team_run(sum_rows, c);
        if (c->strip_count > 0) cpu_team_run(sum_strips, c);
    }
}

/* What looks at one place at a time takes all places for one long row. */
static void join_rows(window *w) {
    window_axis *const x = &w->axes[WINDOW_AXES - 1];
    for (int k = 0; k < WINDOW_AXES; k++) {
        const window_axis *a = &w->axes[k];
        if (a->kernel != 1 || a->stride != 1 || a->begin != 0 || a->end != 0) return;
    }
    x->in = window_in(w), x->out = window_out(w);
    for (int k = 0; k < WINDOW_AXES - 1; k++) w->axes[k].in = w->axes[k].out = 1;
}

static scout_answer begin(scout_device *device, const scout_op *op, void *const *tensors, uint64_t seed,
                          scout_check **check, scout_why *why) {
    scout_check *c = calloc(1, sizeof *c);
    (void)device;
    *check = NULL;
    if (!c) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for the reference of this convolution");
    c->p = conv_problem_of(op);
    join_rows(&c->p.w);
    c->tensors = tensors;
    c->scales_type = c->p.scales >= 0 ? op->tensors[c->p.scales].type : c->p.type_in;
    c->bias_type = c->p.bias >= 0 ? op->tensors[c->p.bias].type : c->p.type_out;
    c->seed = mix_bits(seed ^ 0x636f6e76u);
    c->places = window_out(&c->p.w);
    c->rows = c->p.w.axes[0].out * c->p.w.axes[1].out;
    plan(c);
    const double macs = (double)(c->p.n * all_segments(c)) * (double)c->places * (double)filter_size(c);
    if (macs > LONGEST_MACS) {
        end(c);
        return scout_say(why, SCOUT_NO, "shape", "this convolution is too large to be checked: it would take minutes");
    }
    const bool room = allocate(c);
    if (room) compute(c);
    if (!room || c->failed) {
        end(c);
        return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for the reference of this convolution");
    }
    drop_inputs(c);
    *check = c;
    return SCOUT_OK;
}

/* --- compare --- */

typedef struct comparing {
    const scout_check *check;
    const void *output;
    double tolerance;
    scout_verdict *parts; /* one a thread */
} comparing;

static int64_t place_of(const conv_problem *p, int64_t image, int64_t channel, int64_t place) {
    return image * p->out_n + channel * p->out_c + place * p->out_step;
}

static void judge(scout_verdict *v, double tolerance, int64_t at, double got, double want, double spread) {
    const double error = cpu_cover_sample_error(got, want, spread);
    v->compared++;
    if (error > tolerance) v->wrong++;
    if (v->compared > 1 && error <= v->worst) return;
    v->worst = error, v->at = (uint64_t)at, v->got = got, v->want = want;
}

static void compare_strip(const comparing *w, const strip *s, scout_verdict *v) {
    const conv_problem *p = &w->check->p;
    const int64_t at = place_of(p, s->image, s->channel, s->row * p->w.axes[2].out + s->from);
    double got[STRIP];
    cpu_number_load(p->type_out, w->output, at, p->out_step, s->count, got);
    for (int64_t k = 0; k < s->count; k++)
        judge(v, w->tolerance, at + k * p->out_step, got[k], s->want[k], s->spread[k]);
}

/* `count` places of all channels of a segment. */
static void compare_piece(const comparing *w, int64_t image, int64_t segment, int64_t place, int64_t count,
                          scout_verdict *v) {
    const scout_check *c = w->check;
    const int64_t right = (image * all_segments(c) + segment) * c->places + place, first = first_channel(c, segment);
    double got[PIECE], sum[PIECE] = {0}, squares[PIECE] = {0};
    for (int64_t o = 0; o < width_of(c, segment); o++) {
        const double x = c->x[first + o];
        const int64_t at = place_of(&c->p, image, first + o, place);
        cpu_number_load(c->p.type_out, w->output, at, c->p.out_step, count, got);
        for (int64_t k = 0; k < count; k++) {
            if (c->whole)
                judge(v, w->tolerance, at + k * c->p.out_step, got[k], c->want[right + k],
                      (double)c->spread[right + k]);
            sum[k] += x * got[k], squares[k] += x * got[k] * x * got[k];
        }
    }
    for (int64_t k = 0; k < count && !c->whole; k++) {
        const double error =
            cpu_cover_projection_error(sum[k], squares[k], c->want[right + k], (double)c->spread[right + k]);
        if (error > w->tolerance) v->wrong++;
        if (error > v->worst_projected) v->worst_projected = error;
    }
}

static void compare_share(void *context, int thread, int threads) {
    const comparing *w = context;
    const scout_check *c = w->check;
    const int64_t pieces = (c->places + PIECE - 1) / PIECE;
    int64_t from, to;
    cpu_team_share(c->strip_count, thread, threads, &from, &to);
    for (int64_t k = from; k < to; k++) compare_strip(w, &c->strips[k], &w->parts[thread]);
    cpu_team_share(c->p.n * all_segments(c) * pieces, thread, threads, &from, &to);
    for (int64_t k = from; k < to; k++) {
        const int64_t place = k % pieces * PIECE, left = c->places - place, segment = k / pieces % all_segments(c);
        compare_piece(w, k / pieces / all_segments(c), segment, place, left < PIECE ? left : PIECE, &w->parts[thread]);
    }
}

static scout_answer compare(scout_check *check, const void *output, double tolerance, scout_verdict *verdict,
                            scout_why *why) {
    const int threads = cpu_team_size();
    comparing w = {check, output, tolerance, calloc((size_t)threads, sizeof(scout_verdict))};
    if (!w.parts) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory to compare an output");
    cpu_team_run(compare_share, &w);
    cpu_cover_sum(w.parts, threads, verdict);
    free(w.parts);
    return SCOUT_OK;
}

const scout_reference cpu_reference_conv = {
    .size = sizeof(scout_reference), .kind = SCOUT_CONV, .begin = begin, .compare = compare, .end = end};
