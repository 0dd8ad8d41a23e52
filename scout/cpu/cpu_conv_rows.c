/* Sums of a convolution, tap by tap along a row. For every tap the columns whose input lies inside are one interval, so
 * the inner loop has no condition; of a transposed convolution these columns are `stride` apart instead of the inputs.
 */
#include "scout/cpu/cpu_conv_rows.h"

#include "scout/cpu/cpu_info.h"
#include "scout/cpu/cpu_vector.h"

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

FAST_BODY void add_body(double w, double w2, const double *in, int64_t in_step, int64_t count, double *want,
                        double *squares, int64_t out_step) {
    if (in_step == 1 && out_step == 1)
        for (int64_t k = 0; k < count; k++) want[k] += w * in[k], squares[k] += w2 * (in[k] * in[k]);
    else
        for (int64_t k = 0; k < count; k++) {
            const double x = in[k * in_step];
            want[k * out_step] += w * x, squares[k * out_step] += w2 * (x * x);
        }
}

typedef void add_row(double w, double w2, const double *in, int64_t in_step, int64_t count, double *want,
                     double *squares, int64_t out_step);

#define ADD(name, wide)                                                                                                \
    FAST wide static void name(double w, double w2, const double *in, int64_t in_step, int64_t count, double *want,    \
                               double *squares, int64_t out_step) {                                                    \
        add_body(w, w2, in, in_step, count, want, squares, out_step);                                                  \
    }
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
                for (int64_t c = 0; c < channels; c++)
                    add(weights[c * taps + tap], squared[c * taps + tap], in + c * plane, in_step, s.count,
                        want + (s.out - from), squares + (s.out - from), out_step);
            }
        }
    }
}
