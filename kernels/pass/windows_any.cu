/* Windows that models seldom have: norms of any order, and maxima that tell their places. A thread for each output. */
#include "kernels/pass/pass.cuh"
#include "kernels/pass/pool_kernels.h"

namespace {

constexpr int threads = 256;

struct job {
    windows_any_shape s;
    const void *in;
    void *out;
    long long *indices;
    int64_t outputs;
    pass::radix places; /* width, height, depth, channel, image */
};

__device__ __forceinline__ float load(int type, const void *x, int64_t at) {
    switch (type) {
    case PASS_FP32: return ((const float *)x)[at];
    case PASS_FP16: return __half2float(((const __half *)x)[at]);
    case PASS_BF16: return __uint_as_float((unsigned)((const unsigned short *)x)[at] << 16);
    case PASS_INT8: return (float)((const int8_t *)x)[at];
    default: return (float)((const uint8_t *)x)[at];
    }
}

__device__ __forceinline__ void store(int type, void *y, int64_t at, float x) {
    switch (type) {
    case PASS_FP32: ((float *)y)[at] = x; break;
    case PASS_FP16: ((__half *)y)[at] = __float2half_rn(x); break;
    case PASS_BF16: ((__nv_bfloat16 *)y)[at] = __float2bfloat16_rn(x); break;
    default: ((uint8_t *)y)[at] = (uint8_t)(int)x; break;
    }
}

struct taps { /* of a window along one axis, those inside of the input */
    int64_t from, count;
};

__device__ taps taps_of(const pool_axis &a, int64_t out) {
    const int64_t start = out * a.stride - a.begin;
    const int64_t before = start < 0 ? (-start + a.dilation - 1) / a.dilation : 0;
    const int64_t from = start + before * a.dilation, left = a.kernel - before;
    if (from >= a.in || left <= 0) return {from, 0};
    const int64_t fit = (a.in - 1 - from) / a.dilation + 1;
    return {from, fit < left ? fit : left};
}

__global__ void __launch_bounds__(threads) windows(const job p) {
    const int64_t step = (int64_t)gridDim.x * threads;
    const pool_axis *a = p.s.axes;
    for (int64_t k = (int64_t)blockIdx.x * threads + threadIdx.x; k < p.outputs; k += step) {
        int64_t image = k;
        const int64_t col = pass::radix_next(p.places, 0, image), row = pass::radix_next(p.places, 1, image),
                      deep = pass::radix_next(p.places, 2, image), channel = pass::radix_next(p.places, 3, image);
        const taps z = taps_of(a[0], deep), y = taps_of(a[1], row), x = taps_of(a[2], col);
        const int64_t base = image * p.s.in_n + channel * p.s.in_c;
        const float order = p.s.order;
        float sum = 0, most = 0;
        int64_t most_at = -1;
        for (int64_t d = 0; d < z.count; d++)
            for (int64_t h = 0; h < y.count; h++)
                for (int64_t w = 0; w < x.count; w++) {
                    const int64_t at = ((z.from + d * a[0].dilation) * a[1].in + y.from + h * a[1].dilation) * a[2].in +
                                       x.from + w * a[2].dilation;
                    const float value = load(p.s.type, p.in, base + at * p.s.in_step), size = fabsf(value);
                    if (most_at < 0 || value > most) most = value, most_at = at;
                    if (order > 0) sum += order == 2 ? size * size : order == 1 ? size : powf(size, order);
                }
        const int64_t place = (deep * a[1].out + row) * a[2].out + col;
        const int64_t to = image * p.s.out_n + channel * p.s.out_c + place * p.s.out_step;
        store(p.s.type, p.out, to,
              order == 0   ? most
              : order == 1 ? sum
              : order == 2 ? sqrtf(sum)
                           : powf(sum, 1 / order));
        if (!p.indices) continue;
        const int64_t plane = image * p.s.channels + channel, width = a[2].in, height = a[1].in;
        const int64_t turned = (most_at / width / height * width + most_at % width) * height + most_at / width % height;
        p.indices[to] = (long long)(plane * a[0].in * height * width + (p.s.columns ? turned : most_at));
    }
}

} // namespace

int windows_any_fits(const windows_any_shape *s) {
    static const int types[] = {PASS_FP32, PASS_FP16, PASS_BF16, PASS_INT8, PASS_UINT8};
    bool known = false;
    for (int type : types) known = known || type == s->type;
    if (!known || s->n < 1 || s->channels < 1 || s->order < 0) return 0;
    if (s->order > 0 && (s->type == PASS_INT8 || s->type == PASS_UINT8)) return 0;
    for (int k = 0; k < POOL_AXES; k++)
        if (s->axes[k].in < 1 || s->axes[k].out < 1 || s->axes[k].stride < 1 || s->axes[k].dilation < 1) return 0;
    return 1;
}

int windows_any_launch(const windows_any_shape *s, const void *in, void *out, void *indices, void *stream) {
    if (!windows_any_fits(s)) return cudaErrorInvalidValue;
    const int64_t dims[] = {s->axes[2].out, s->axes[1].out, s->axes[0].out, s->channels, s->n};
    const pass_config plain = {};
    job j = {};
    j.s = *s, j.in = in, j.out = out, j.indices = (long long *)indices;
    j.outputs = dims[0] * dims[1] * dims[2] * dims[3] * dims[4];
    j.places = pass::radix_of(5, dims);
    void *args[] = {&j};
    return cudaLaunchKernel((const void *)windows, dim3(pass::blocks_of(plain, (j.outputs + threads - 1) / threads)),
                            dim3(threads), args, 0, (cudaStream_t)stream);
}
