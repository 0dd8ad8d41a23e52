/* The reference of interpolation: a thread adds up its element in fp64, with the weight of each neighbour from its
 * distance alone. */
#include "kernels/reference/whole.h"

#include "kernels/harness/values.cuh"
#include "kernels/reference/whole_each.cuh"

namespace {

/* In the order of scout/op/resize.h. */
enum { NEAREST, LINEAR, CUBIC };
enum { HALF_PIXEL, PYTORCH_HALF_PIXEL, ALIGN_CORNERS, ASYMMETRIC };
enum { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL };

__device__ double place_of(const whole_resize_problem &p, int axis, int64_t i) {
    const double in = (double)p.in[axis], out = (double)p.out[axis], at = (double)i;
    const double over = p.over[axis], under = p.under[axis];
    if (p.way == ALIGN_CORNERS) return out > 1 ? at * (in - 1) / (out - 1) : 0;
    if (p.way == ASYMMETRIC) return at * over / under;
    return p.way == PYTORCH_HALF_PIXEL && out <= 1 ? 0 : (at + 0.5) * over / under - 0.5;
}

__device__ double rounded(int rounding, double x) {
    const double below = floor(x), rest = x - below;
    if (rounding == FLOOR) return below;
    if (rounding == CEIL) return ceil(x);
    return rest > 0.5 || (rest == 0.5 && rounding == PREFER_CEIL) ? below + 1 : below;
}

__device__ double weight_of(const whole_resize_problem &p, double distance) {
    const double d = fabs(distance), a = p.cubic;
    if (p.mode == LINEAR) return d < 1 ? 1 - d : 0;
    if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
    return d < 2 ? a * (d * d * d - 5 * d * d + 8 * d - 4) : 0;
}

struct mix { /* of an output along an axis */
    int64_t first;
    int count;
    double weights[4];
};

__device__ mix mix_of(const whole_resize_problem &p, int axis, int64_t i) {
    const double x = place_of(p, axis, i);
    if (p.in[axis] == p.out[axis] && p.over[axis] == p.under[axis]) return {i, 1, {1}};
    if (p.mode == NEAREST) return {(int64_t)rounded(p.rounding, x), 1, {1}};
    mix m = {(int64_t)floor(x) - (p.mode == CUBIC), p.mode == CUBIC ? 4 : 2, {0}};
    double all = 0;
    for (int k = 0; k < m.count; k++) {
        const int64_t at = m.first + k;
        const bool beyond = at < 0 || at >= p.in[axis];
        m.weights[k] = p.inside && beyond ? 0 : weight_of(p, x - (double)at);
        all += m.weights[k];
    }
    for (int k = 0; p.inside && k < m.count; k++) m.weights[k] /= all;
    return m;
}

__device__ int64_t within(int64_t at, int64_t length) { return at < 0 ? 0 : at < length ? at : length - 1; }

__global__ void __launch_bounds__(whole_each_threads)
    resize(const whole_resize_problem p, int64_t count, double *__restrict__ want, float *__restrict__ spread) {
    for (int64_t k = whole_each_first(); k < count; k += whole_each_step()) {
        const int64_t column = k % p.out[2], row = k / p.out[2] % p.out[1], depth = k / p.out[2] / p.out[1] % p.out[0];
        const int64_t plane = k / p.out[2] / p.out[1] / p.out[0];
        const mix z = mix_of(p, 0, depth), y = mix_of(p, 1, row), x = mix_of(p, 2, column);
        double sum = 0, squares = 0;
        for (int a = 0; a < z.count; a++)
            for (int b = 0; b < y.count; b++)
                for (int c = 0; c < x.count; c++) {
                    const int64_t at =
                        ((plane * p.in[0] + within(z.first + a, p.in[0])) * p.in[1] + within(y.first + b, p.in[1])) *
                            p.in[2] +
                        within(x.first + c, p.in[2]);
                    const double term = z.weights[a] * y.weights[b] * x.weights[c] * values_at(p.input, p.type, at);
                    sum += term, squares += term * term;
                }
        want[k] = sum, spread[k] = (float)sqrt(squares);
    }
}

} // namespace

cudaError_t whole_resize(const whole_resize_problem *p, double *want, float *spread, cudaStream_t stream) {
    const int64_t count = p->planes * p->out[0] * p->out[1] * p->out[2];
    resize<<<whole_each_blocks(count), whole_each_threads, 0, stream>>>(*p, count, want, spread);
    return cudaGetLastError();
}
