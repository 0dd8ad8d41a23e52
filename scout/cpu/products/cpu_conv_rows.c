/* Sums of a convolution, tap by tap along a row. For every tap the columns whose input lies inside are one interval, so
 * the inner loop has no condition; of a transposed convolution these columns are `stride` apart instead of the inputs.
 */
#include "scout/cpu/products/cpu_conv_rows.h"

#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_vector.h"

#include <stdbool.h>

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

typedef double lanes __attribute__((vector_size(64), aligned(8), may_alias));
enum { LANES = 8, WIDE = 4 }; /* so many vectors of sums are held at once */
_Static_assert(CONV_ROWS_BEHIND >= LANES * WIDE, "vectors read beyond a row");

/* What one tap of all channels adds to a row. */
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

#define ADD(name, wide)                                                                                                \
    FAST wide static void name(const tap_row *t, double *want, double *squares) { add_body(t, want, squares); }
ADD(add_any, )
ADD(add_avx2, WIDE_AVX2)
ADD(add_avx512, WIDE_AVX512)

static add_row *fastest(void) {
    const cpu_info *c = cpu_info_get();
    return c->avx512 ? add_avx512 : c->avx2 ? add_avx2 : add_any;
}

void cpu_conv_rows(const conv_problem *p, const double *image, const double *weights, const double *squared,
                   int64_t depth, int64_t height, int64_t from, int64_t to, double *want, double *squares) {
    const window_axis *d = &p->w.axes[0], *h = &p->w.axes[1], *x = &p->w.axes[2];
    const bool transposed = p->transposed != 0;
    const int64_t in_step = transposed ? 1 : x->stride, out_step = transposed ? x->stride : 1;
    const int64_t channels = p->cin / p->group, plane = window_in(&p->w), taps = window_kernel(&p->w);
    add_row *const add = fastest();
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
