/* The reference of pools: a warp for each output, whose threads share the window, so that a global pool of a large
 * input is not one thread's work. */
#include "kernels/reference/whole.h"

#include "kernels/harness/values.cuh"
#include "kernels/reference/whole_each.cuh"

#include <math.h>

namespace {

constexpr int lanes = 32;

struct taps { /* of a window along one dimension, those inside of the input */
    int64_t from, count;
    double divisor; /* what an average divides by */
};

struct sums {
    double sum, squares, powers, largest;
    long long at; /* the first of the largest, in its plane */
};

__device__ taps taps_of(const whole_pool_axis &a, int64_t out, int padded) {
    const int64_t start = out * a.stride - a.begin;
    const int64_t before = start < 0 ? (-start + a.dilation - 1) / a.dilation : 0; /* taps in the padding */
    taps t = {start + before * a.dilation, 0, 0};
    if (t.from < a.in && before < a.kernel) {
        const int64_t fit = (a.in - 1 - t.from) / a.dilation + 1, left = a.kernel - before;
        t.count = fit < left ? fit : left;
    }
    const int64_t room = a.in + a.begin + a.end - out * a.stride; /* to the end of the padding: what hangs over it */
    const int64_t fit = (room + a.dilation - 1) / a.dilation;     /* is not counted */
    t.divisor = (double)(!padded ? t.count : fit < a.kernel ? fit : a.kernel);
    return t;
}

__device__ sums window(const whole_pool_problem &p, int64_t input, const taps &d, const taps &h, const taps &w) {
    const whole_pool_axis *a = p.axes;
    const int64_t count = d.count * h.count * w.count;
    sums s = {0, 0, 0, -INFINITY, 0};
    for (int64_t k = threadIdx.x % lanes; k < count; k += lanes) {
        const int64_t x = w.from + k % w.count * a[2].dilation, rest = k / w.count;
        const int64_t y = h.from + rest % h.count * a[1].dilation, z = d.from + rest / h.count * a[0].dilation;
        const long long at = (z * a[1].in + y) * a[2].in + x;
        const double value = values_at(p.input, p.type, input + at * p.in_step);
        if (value > s.largest) s.largest = value, s.at = at;
        s.sum += value - p.zero, s.squares += value * value;
        if (p.order > 0) s.powers += pow(fabs(value), p.order);
    }
    for (int half = lanes / 2; half > 0; half /= 2) {
        s.sum += __shfl_xor_sync(~0u, s.sum, half);
        s.squares += __shfl_xor_sync(~0u, s.squares, half);
        s.powers += __shfl_xor_sync(~0u, s.powers, half);
        const double largest = __shfl_xor_sync(~0u, s.largest, half);
        const long long other = __shfl_xor_sync(~0u, s.at, half);
        if (largest > s.largest || (largest == s.largest && other < s.at)) s.largest = largest, s.at = other;
    }
    return s;
}

__global__ void __launch_bounds__(whole_each_threads)
    pool(const whole_pool_problem p, int64_t places, double *__restrict__ want, float *__restrict__ spread) {
    const int64_t count = p.images * p.channels * places;
    for (int64_t k = whole_each_first() / lanes; k < count; k += whole_each_step() / lanes) {
        const int64_t rest = k % (p.channels * places), image = k / (p.channels * places);
        const int64_t channel = p.last ? rest % p.channels : rest / places;
        const int64_t place = p.last ? rest / p.channels : rest % places;
        const int64_t width = p.axes[2].out, height = p.axes[1].out;
        const taps d = taps_of(p.axes[0], place / width / height, p.padded);
        const taps h = taps_of(p.axes[1], place / width % height, p.padded);
        const taps w = taps_of(p.axes[2], place % width, p.padded);
        const sums s = window(p, image * p.in_n + channel * p.in_c, d, h, w);
        const double divisor = d.divisor * h.divisor * w.divisor;
        const int64_t at = image * p.out_n + channel * p.out_c + place * p.out_step;
        if (threadIdx.x % lanes > 0) continue;
        want[at] = p.average ? s.sum / divisor : p.order > 0 ? pow(s.powers, 1 / p.order) : s.largest;
        if (p.index) {
            const int64_t rows = p.axes[1].in, columns = p.axes[2].in, all = p.axes[0].in * rows * columns;
            const int64_t turned = (s.at / columns / rows * columns + s.at % columns) * rows + s.at / columns % rows;
            want[at] = (double)((image * p.channels + channel) * all + (p.columns ? turned : s.at));
        }
        if (p.quantised) want[at] = fmin(p.most, fmax(p.least, p.factor * want[at])) + p.zero;
        spread[at] = (float)(p.quantised ? (0.5 + 0x1p-9) * 0x1p10 - fabs(want[at])
                             : p.average ? sqrt(s.squares) / divisor
                             : p.index   ? 0
                                         : fabs(want[at]));
    }
}

} // namespace

cudaError_t whole_pool(const whole_pool_problem *p, double *want, float *spread, cudaStream_t stream) {
    const int64_t places = p->axes[0].out * p->axes[1].out * p->axes[2].out;
    const unsigned blocks = whole_each_blocks(p->images * p->channels * places * lanes);
    pool<<<blocks, whole_each_threads, 0, stream>>>(*p, places, want, spread);
    return cudaGetLastError();
}
