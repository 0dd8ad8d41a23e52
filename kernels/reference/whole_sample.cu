/* The reference of points and regions of images: every tap in fp64, as scout/op/sample.h has it. */
#include "kernels/reference/whole.h"

#include "kernels/harness/values.cuh"
#include "kernels/reference/whole_each.cuh"

namespace {

/* In the order of scout/op/sample.h. */
enum { LINEAR, NEAREST, CUBIC, MAX };
enum { ZEROS, BORDER, REFLECTION };
enum { MOST_POINTS = 1 << 15 }; /* of a bin along an axis */

struct sums {
    double sum, squares, most;
    int64_t taps;
};

__device__ void take(sums *s, double term) {
    s->most = s->taps == 0 ? term : fmax(s->most, term);
    s->sum += term, s->squares += term * term, s->taps++;
}

/* Walks to and fro until it is between the ends. */
__device__ double reflected(double x, double least, double most) {
    if (most <= least) return least;
    const double round = 2 * (most - least);
    double at = fmod(x - least, round);
    if (at < 0) at += round;
    return least + (at <= most - least ? at : round - at);
}

__device__ double value_of(const whole_sample_problem &p, int64_t plane, double row, double col) {
    double at[2] = {row, col};
    for (int d = 0; d < 2; d++) {
        const double last = (double)(p.in[d] - 1), edge = p.corners ? 0 : 0.5;
        if (p.beyond == ZEROS && !(at[d] >= 0 && at[d] <= last)) return 0;
        if (p.beyond == REFLECTION && (at[d] < -edge || at[d] > last + edge))
            at[d] = reflected(at[d], -edge, last + edge);
        at[d] = floor(fmin(fmax(at[d], 0.0), last));
    }
    return values_at(p.input, p.type, (plane * p.in[0] + (int64_t)at[0]) * p.in[1] + (int64_t)at[1]);
}

__device__ double weight_of(int mode, double distance) {
    const double d = fabs(distance), a = -0.75;
    if (mode == NEAREST) return 1;
    if (mode == LINEAR) return d < 1 ? 1 - d : 0;
    if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
    return d < 2 ? a * (d * d * d - 5 * d * d + 8 * d - 4) : 0;
}

__device__ sums point(const whole_sample_problem &p, int64_t image, int64_t plane, int64_t row, int64_t col) {
    double at[2], first[2];
    const int64_t told = ((image * p.out[0] + row) * p.out[1] + col) * 2;
    const int count = p.mode == NEAREST ? 1 : p.mode == LINEAR ? 2 : 4;
    for (int d = 0; d < 2; d++) {
        const double length = (double)p.in[d], edge = p.corners ? 0 : 0.5, x = values_at(p.side, p.side_type, told + 1 - d);
        at[d] = p.corners ? (x + 1) / 2 * (length - 1) : ((x + 1) * length - 1) / 2;
        if (p.mode == NEAREST) at[d] = rint(at[d]);
        const bool beyond = at[d] < -edge || at[d] > length - 1 + edge;
        if (beyond && p.beyond == BORDER) at[d] = fmin(fmax(at[d], 0.0), length - 1);
        if (beyond && p.beyond == REFLECTION) at[d] = reflected(at[d], -edge, length - 1 + edge);
        first[d] = p.mode == NEAREST ? rint(at[d]) : floor(at[d]) - (p.mode == CUBIC);
    }
    sums s = {0, 0, 0, 0};
    for (int r = 0; r < count; r++)
        for (int c = 0; c < count; c++)
            take(&s, weight_of(p.mode, at[0] - first[0] - r) * weight_of(p.mode, at[1] - first[1] - c) *
                         value_of(p, plane, first[0] + r, first[1] + c));
    return s;
}

__device__ sums region(const whole_sample_problem &p, int64_t which, int64_t plane, const int64_t *bin, int64_t *points) {
    double begin[2], size[2];
    for (int d = 0; d < 2; d++) {
        const double offset = p.half ? 0.5 : 0;
        begin[d] = values_at(p.side, p.side_type, 4 * which + 1 - d) * p.scale - offset;
        size[d] = values_at(p.side, p.side_type, 4 * which + 3 - d) * p.scale - offset - begin[d];
        if (!p.half && size[d] < 1) size[d] = 1;
        size[d] /= (double)p.out[d];
        points[d] = p.sampling > 0 ? p.sampling : (int64_t)fmin(fmax(ceil(size[d]), 0.0), MOST_POINTS);
    }
    sums s = {0, 0, 0, 0};
    for (int64_t n = 0; points[0] > 0 && points[1] > 0 && n < points[0] * points[1]; n++) {
        const int64_t of[2] = {n / points[1], n % points[1]};
        double at[2];
        int64_t low[2];
        bool outside = false;
        for (int d = 0; d < 2; d++) {
            at[d] = begin[d] + (double)bin[d] * size[d] + ((double)of[d] + 0.5) * size[d] / (double)points[d];
            outside = outside || !(at[d] >= -1 && at[d] <= (double)p.in[d]);
            at[d] = fmin(fmax(at[d], 0.0), (double)(p.in[d] - 1));
            low[d] = (int64_t)at[d];
        }
        for (int k = 0; k < 4 && !outside; k++) {
            const double down = at[0] - (double)low[0], right = at[1] - (double)low[1];
            const int64_t row = low[0] + (k & 2 && low[0] < p.in[0] - 1), col = low[1] + (k & 1 && low[1] < p.in[1] - 1);
            take(&s, (k & 2 ? down : 1 - down) * (k & 1 ? right : 1 - right) *
                         values_at(p.input, p.type, (plane * p.in[0] + row) * p.in[1] + col));
        }
    }
    return s;
}

__global__ void __launch_bounds__(whole_each_threads)
    sample(const whole_sample_problem p, int64_t count, double *__restrict__ want, float *__restrict__ spread) {
    for (int64_t k = whole_each_first(); k < count; k += whole_each_step()) {
        const int64_t bin[2] = {k / p.out[1] % p.out[0], k % p.out[1]};
        const int64_t channel = k / p.out[1] / p.out[0] % p.channels, which = k / p.out[1] / p.out[0] / p.channels;
        int64_t points[2] = {1, 1};
        const int64_t image = p.batches ? ((const long long *)p.batches)[which] : which;
        const int64_t plane = image * p.channels + channel;
        const sums s = p.batches ? region(p, which, plane, bin, points) : point(p, image, plane, bin[0], bin[1]);
        const double over = p.mode == MAX || points[0] < 1 || points[1] < 1 ? 1 : (double)(points[0] * points[1]);
        want[k] = p.mode == MAX ? s.most : s.sum / over;
        const double least = p.type == DTYPE_FP16 ? 0x1p-14 : 0; /* below, its steps grow no smaller */
        spread[k] = (float)(fmax(sqrt(s.squares) / over, least) + 0x1p-24);
    }
}

} // namespace

cudaError_t whole_sample(const whole_sample_problem *p, double *want, float *spread, cudaStream_t stream) {
    const int64_t count = p->count * p->channels * p->out[0] * p->out[1];
    sample<<<whole_each_blocks(count), whole_each_threads, 0, stream>>>(*p, count, want, spread);
    return cudaGetLastError();
}
