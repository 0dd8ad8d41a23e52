/* Interpolation: a first kernel finds for each place along each axis what it is mixed from, in fp64, so that the
 * nearest place is the right one; a second one mixes each output from that table. */
#include "kernels/pass/pass.cuh"
#include "kernels/pass/pool_kernels.h"

namespace {

constexpr int most = 4, threads = 256;

struct taps {
    int places[most];
    float weights[most];
};

struct job {
    resize_taps_shape s;
    const void *in;
    void *out;
    taps *table[POOL_AXES];
    int counts[POOL_AXES]; /* taps along each axis */
    int64_t elements;
    pass::radix places; /* column, row, depth, plane */
};

__host__ __device__ bool keeps(const resize_taps_shape &s, int axis) {
    return s.in[axis] == s.out[axis] && s.over[axis] == s.under[axis];
}

/* Where output i along an axis lies in the input. */
__device__ double place_of(const resize_taps_shape &s, int axis, int64_t i) {
    const double in = (double)s.in[axis], out = (double)s.out[axis], at = (double)i;
    const double over = s.over[axis], under = s.under[axis];
    switch (s.way) {
    case RESIZE_PASS_ALIGN_CORNERS: return out > 1 ? at * (in - 1) / (out - 1) : 0;
    case RESIZE_PASS_ASYMMETRIC: return at * over / under;
    case RESIZE_PASS_PYTORCH_HALF_PIXEL: return out > 1 ? (at + 0.5) * over / under - 0.5 : 0;
    default: return (at + 0.5) * over / under - 0.5;
    }
}

__device__ double nearest(int rounding, double x) {
    return rounding == RESIZE_PASS_FLOOR         ? floor(x)
           : rounding == RESIZE_PASS_CEIL        ? ceil(x)
           : rounding == RESIZE_PASS_PREFER_CEIL ? floor(x + 0.5)
                                                 : ceil(x - 0.5);
}

/* Of a place that is `d` away: within 1, and within 2. */
__device__ double cubic_near(double a, double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; }
__device__ double cubic_far(double a, double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; }

__global__ void __launch_bounds__(threads) find_taps(const job p, int axis) {
    const int64_t i = (int64_t)blockIdx.x * threads + threadIdx.x;
    if (i >= p.s.out[axis]) return;
    const double x = place_of(p.s, axis, i), below = floor(x), t = x - below, a = p.s.cubic;
    double from = below, weights[most] = {1, 0, 0, 0}, all = 0;
    const int count = p.counts[axis];
    if (keeps(p.s, axis)) {
        from = (double)i;
    } else if (p.s.mode == RESIZE_PASS_NEAREST) {
        from = nearest(p.s.rounding, x);
    } else if (p.s.mode == RESIZE_PASS_LINEAR) {
        weights[0] = 1 - t, weights[1] = t;
    } else {
        from = below - 1;
        weights[0] = cubic_far(a, t + 1), weights[1] = cubic_near(a, t);
        weights[2] = cubic_near(a, 1 - t), weights[3] = cubic_far(a, 2 - t);
    }
    taps found = {};
    for (int k = 0; k < count; k++) {
        const double at = from + k, last = (double)(p.s.in[axis] - 1);
        found.places[k] = (int)fmin(fmax(at, 0.0), last);
        if (p.s.inside && count > 1 && (at < 0 || at > last)) weights[k] = 0;
        all += weights[k];
    }
    for (int k = 0; k < count; k++) found.weights[k] = (float)(p.s.inside ? weights[k] / all : weights[k]);
    p.table[axis][i] = found;
}

__global__ void __launch_bounds__(threads) mix(const job p) {
    const int64_t step = (int64_t)gridDim.x * threads;
    for (int64_t at = (int64_t)blockIdx.x * threads + threadIdx.x; at < p.elements; at += step) {
        int64_t plane = at;
        const int64_t column = pass::radix_next(p.places, 0, plane), row = pass::radix_next(p.places, 1, plane),
                      depth = pass::radix_next(p.places, 2, plane);
        const taps &deep = p.table[0][depth], &high = p.table[1][row], &wide = p.table[2][column];
        float sum = 0;
        for (int d = 0; d < p.counts[0]; d++)
            for (int h = 0; h < p.counts[1]; h++) {
                const int64_t line = ((plane * p.s.in[0] + deep.places[d]) * p.s.in[1] + high.places[h]) * p.s.in[2];
                const float weight = deep.weights[d] * high.weights[h];
                for (int w = 0; w < p.counts[2]; w++)
                    sum += weight * wide.weights[w] * pass::load_float(p.s.type, p.in, line + wide.places[w]);
            }
        pass::store_float(p.s.type, p.out, at, sum);
    }
}

} // namespace

int resize_taps_fits(const resize_taps_shape *s) {
    if (s->type != PASS_FP32 && s->type != PASS_FP16 && s->type != PASS_BF16) return 0;
    if (s->mode < 0 || s->mode > RESIZE_PASS_CUBIC || s->way < 0 || s->way > RESIZE_PASS_ASYMMETRIC) return 0;
    if (s->rounding < 0 || s->rounding > RESIZE_PASS_CEIL || s->planes < 1) return 0;
    for (int k = 0; k < POOL_AXES; k++)
        if (s->in[k] < 1 || s->out[k] < 1 || s->in[k] > POOL_LARGEST || s->out[k] > POOL_LARGEST ||
            !(s->over[k] > 0 && s->under[k] > 0))
            return 0;
    return 1;
}

uint64_t resize_taps_workspace(const resize_taps_shape *s) {
    return (uint64_t)(s->out[0] + s->out[1] + s->out[2]) * sizeof(taps);
}

int resize_taps_launch(const resize_taps_shape *s, const void *in, void *out, void *workspace, void *stream) {
    if (!resize_taps_fits(s)) return cudaErrorInvalidValue;
    const int64_t dims[] = {s->out[2], s->out[1], s->out[0], s->planes};
    const pass_config plain = {};
    job j = {};
    j.s = *s, j.in = in, j.out = out;
    j.elements = s->planes * s->out[0] * s->out[1] * s->out[2];
    j.places = pass::radix_of(4, dims);
    taps *next = (taps *)workspace;
    for (int k = 0; k < POOL_AXES; k++) {
        j.table[k] = next, next += s->out[k];
        j.counts[k] = keeps(*s, k) || s->mode == RESIZE_PASS_NEAREST ? 1 : s->mode == RESIZE_PASS_LINEAR ? 2 : 4;
    }
    int axis, error = 0;
    void *args[] = {&j, &axis};
    for (axis = 0; axis < POOL_AXES && !error; axis++)
        error = cudaLaunchKernel((const void *)find_taps, dim3((unsigned)((s->out[axis] + threads - 1) / threads)),
                                 dim3(threads), args, 0, (cudaStream_t)stream);
    if (error) return error;
    return cudaLaunchKernel((const void *)mix, dim3(pass::blocks_of(plain, (j.elements + threads - 1) / threads)),
                            dim3(threads), args, 0, (cudaStream_t)stream);
}
