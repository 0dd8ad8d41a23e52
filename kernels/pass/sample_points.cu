/* Points of a grid and bins of regions: a thread finds what its output is mixed from, in fp64, so that the nearest place
 * and the ends of images are the right ones, and adds it up in fp32. */
#include "kernels/pass/pass.cuh"
#include "kernels/pass/pool_kernels.h"

namespace {

constexpr int threads = 256, most_points = 1 << 15; /* of a bin along an axis, as scout/op/sample.h has it */

struct job {
    sample_points_shape s;
    const void *in, *side;
    const void *batches; /* int64, of crops int32 */
    void *out;
    int64_t elements;
    pass::radix places; /* column, row, channel, image or region */
};

/* --- points of a grid --- */

__device__ double reflect(double x, double least, double most) {
    const double range = most - least;
    if (range <= 0) return least;
    if (x >= least && x <= most) return x;
    const double beyond = x < least ? least - x : x - most, times = floor(beyond / range);
    const double rest = beyond - times * range;
    return (fmod(times, 2.0) == 0) == (x < least) ? least + rest : most - rest;
}

/* -1: nowhere. */
__device__ int64_t inside(const sample_points_shape &s, int axis, double at) {
    const double last = (double)(s.in[axis] - 1), edge = s.corners ? 0 : 0.5;
    if (s.beyond == SAMPLE_POINTS_ZEROS) return at >= 0 && at <= last ? (int64_t)at : -1;
    if (s.beyond == SAMPLE_POINTS_REFLECTION) at = reflect(at, -edge, last + edge);
    return (int64_t)fmin(fmax(at, 0.0), last);
}

__device__ double cubic_near(double d) { return (1.25 * d - 2.25) * d * d + 1; }
__device__ double cubic_far(double d) { return ((-0.75 * d + 3.75) * d - 6) * d + 3; }

struct axis_taps {
    int count;
    int64_t places[4];
    float weights[4];
};

__device__ axis_taps taps_of(const sample_points_shape &s, int axis, double told) {
    const double length = (double)s.in[axis], edge = s.corners ? 0 : 0.5, least = -edge, most = length - 1 + edge;
    double x = s.corners ? (told + 1) / 2 * (length - 1) : ((told + 1) * length - 1) / 2;
    axis_taps t;
    if (s.mode == SAMPLE_POINTS_NEAREST) x = rint(x);
    if (x < least || x > most) {
        if (s.beyond == SAMPLE_POINTS_BORDER) x = x < 0 ? 0 : length - 1;
        if (s.beyond == SAMPLE_POINTS_REFLECTION) x = reflect(x, least, most);
    }
    const double below = floor(x), part = x - below;
    double first = below;
    if (s.mode == SAMPLE_POINTS_NEAREST) {
        first = rint(x), t.count = 1, t.weights[0] = 1;
    } else if (s.mode == SAMPLE_POINTS_LINEAR) {
        t.count = 2, t.weights[0] = (float)(1 - part), t.weights[1] = (float)part;
    } else {
        first = below - 1, t.count = 4;
        t.weights[0] = (float)cubic_far(part + 1), t.weights[1] = (float)cubic_near(part);
        t.weights[2] = (float)cubic_near(1 - part), t.weights[3] = (float)cubic_far(2 - part);
    }
    for (int k = 0; k < t.count; k++) t.places[k] = inside(s, axis, first + k);
    return t;
}

__device__ float point_at(const job &p, int64_t image, int64_t channel, int64_t row, int64_t col) {
    const int64_t at = ((image * p.s.out[0] + row) * p.s.out[1] + col) * 2;
    const axis_taps x = taps_of(p.s, 1, (double)pass::load_float(p.s.side_type, p.side, at)),
                    y = taps_of(p.s, 0, (double)pass::load_float(p.s.side_type, p.side, at + 1));
    const int64_t base = (image * p.s.channels + channel) * p.s.in[0];
    float sum = 0;
    for (int r = 0; r < y.count; r++)
        for (int c = 0; c < x.count; c++)
            if (y.places[r] >= 0 && x.places[c] >= 0)
                sum += y.weights[r] * x.weights[c] *
                       pass::load_float(p.s.type, p.in, (base + y.places[r]) * p.s.in[1] + x.places[c]);
    return sum;
}

/* --- regions --- */

struct between {
    int64_t low, high; /* low -1: outside */
    float weights[2];  /* each rounded by itself: what is left of a rounded one is not exact where it is small */
};

__device__ between between_of(double x, int64_t length) {
    if (!(x >= -1 && x <= (double)length)) return {-1, 0, {0, 0}};
    const double at = fmax(x, 0.0), above = at - (double)(int64_t)at;
    if ((int64_t)at >= length - 1) return {length - 1, length - 1, {1, 0}};
    return {(int64_t)at, (int64_t)at + 1, {(float)(1 - above), (float)above}};
}

__device__ float bin_of(const job &p, int64_t region, int64_t channel, const int64_t *bin) {
    double from[2], size[2];
    int64_t points[2];
    for (int d = 0; d < 2; d++) {
        const double offset = p.s.half ? 0.5 : 0;
        const double begin = (double)pass::load_float(p.s.side_type, p.side, 4 * region + 1 - d) * p.s.scale - offset;
        double all = (double)pass::load_float(p.s.side_type, p.side, 4 * region + 3 - d) * p.s.scale - offset - begin;
        if (!p.s.half) all = fmax(all, 1.0);
        size[d] = all / (double)p.s.out[d];
        from[d] = begin + (double)bin[d] * size[d];
        points[d] = p.s.sampling > 0 ? p.s.sampling : (int64_t)fmin(fmax(ceil(size[d]), 0.0), (double)most_points);
    }
    const int64_t base = (((const long long *)p.batches)[region] * p.s.channels + channel) * p.s.in[0];
    float all = 0;
    bool any = false;
    for (int64_t i = 0; i < points[0]; i++) {
        const between y = between_of(from[0] + ((double)i + 0.5) * size[0] / (double)points[0], p.s.in[0]);
        for (int64_t j = 0; j < points[1] && y.low >= 0; j++) {
            const between x = between_of(from[1] + ((double)j + 0.5) * size[1] / (double)points[1], p.s.in[1]);
            if (x.low < 0) continue;
            for (int k = 0; k < 4; k++) {
                const float weight = y.weights[k / 2] * x.weights[k % 2];
                const int64_t row = k & 2 ? y.high : y.low, col = k & 1 ? x.high : x.low;
                const float term = weight * pass::load_float(p.s.type, p.in, (base + row) * p.s.in[1] + col);
                all = p.s.mode != SAMPLE_POINTS_MAX ? all + term : any ? fmaxf(all, term) : term;
                any = true;
            }
        }
    }
    const int64_t count = points[0] > 0 && points[1] > 0 ? points[0] * points[1] : 1;
    return p.s.mode == SAMPLE_POINTS_MAX ? all : all / (float)count;
}

/* --- crops --- */

/* Places are rounded one time after the other, as scout/op/sample.h has them: the nearest one must not depend on what
 * the compiler makes of a product and a sum. */
__device__ float crop_of(const job &p, int64_t region, int64_t channel, const int64_t *bin) {
    int64_t low[2], high[2];
    float weights[2][2]; /* of the lower place and of the one above, each rounded by itself */
    for (int d = 0; d < 2; d++) {
        const double roi = (double)pass::load_float(p.s.side_type, p.side, 4 * region + d);
        const double end = (double)pass::load_float(p.s.side_type, p.side, 4 * region + 2 + d);
        const double last = (double)(p.s.in[d] - 1), from = __dmul_rn(roi, last), size = __dmul_rn(end - roi, last);
        const double step = p.s.out[d] > 1 ? size / (double)(p.s.out[d] - 1) : size;
        const double at = __dadd_rn(from, __dmul_rn(p.s.out[d] > 1 ? (double)bin[d] : 0.5, step));
        if (!(at >= 0 && at <= last)) return p.s.outside;
        low[d] = (int64_t)(p.s.mode == SAMPLE_POINTS_NEAREST ? round(at) : at);
        high[d] = low[d] < p.s.in[d] - 1 ? low[d] + 1 : low[d];
        const double above = p.s.mode == SAMPLE_POINTS_NEAREST ? 0 : at - (double)low[d];
        weights[d][0] = (float)(1 - above), weights[d][1] = (float)above;
    }
    const int64_t base = (((const int *)p.batches)[region] * p.s.channels + channel) * p.s.in[0];
    float sum = 0;
    for (int k = 0; k < 4; k++) {
        const float weight = weights[0][k / 2] * weights[1][k % 2];
        const int64_t row = k & 2 ? high[0] : low[0], col = k & 1 ? high[1] : low[1];
        if (weight != 0) sum += weight * pass::load_float(p.s.type, p.in, (base + row) * p.s.in[1] + col);
    }
    return sum;
}

__global__ void __launch_bounds__(threads) sample(const job p) {
    const int64_t step = (int64_t)gridDim.x * threads;
    for (int64_t at = (int64_t)blockIdx.x * threads + threadIdx.x; at < p.elements; at += step) {
        int64_t which = at;
        const int64_t col = pass::radix_next(p.places, 0, which), row = pass::radix_next(p.places, 1, which),
                      channel = pass::radix_next(p.places, 2, which);
        const int64_t bin[] = {row, col};
        pass::store_float(p.s.type, p.out, at,
              p.s.crops   ? crop_of(p, which, channel, bin)
              : p.batches ? bin_of(p, which, channel, bin)
                          : point_at(p, which, channel, row, col));
    }
}

bool is_float(int type) { return type == PASS_FP32 || type == PASS_FP16 || type == PASS_BF16; }

} // namespace

int sample_points_fits(const sample_points_shape *s) {
    if (!is_float(s->type) || !is_float(s->side_type) || s->count < 1 || s->channels < 1) return 0;
    for (int d = 0; d < 2; d++)
        if (s->in[d] < 1 || s->out[d] < 1) return 0;
    return s->mode >= 0 && s->mode <= SAMPLE_POINTS_MAX && s->beyond >= 0 && s->beyond <= SAMPLE_POINTS_REFLECTION &&
           s->sampling >= 0;
}

int sample_points_launch(const sample_points_shape *s, const void *in, const void *side, const void *batches, void *out,
                         void *stream) {
    if (!sample_points_fits(s)) return cudaErrorInvalidValue;
    const int64_t dims[] = {s->out[1], s->out[0], s->channels, s->count};
    const pass_config plain = {};
    job j = {};
    j.s = *s, j.in = in, j.side = side, j.batches = batches, j.out = out;
    j.elements = dims[0] * dims[1] * dims[2] * dims[3];
    j.places = pass::radix_of(4, dims);
    void *args[] = {&j};
    return cudaLaunchKernel((const void *)sample, dim3(pass::blocks_of(plain, (j.elements + threads - 1) / threads)),
                            dim3(threads), args, 0, (cudaStream_t)stream);
}
