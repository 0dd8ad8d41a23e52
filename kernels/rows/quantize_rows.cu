/* To 8 bits and back, in fp32: pieces of 8 elements that share a scale where rows allow it, else one by one. */
#include "kernels/pass/pass.cuh"

namespace {

constexpr int most_threads = 512, pieces = 2;

struct job {
    int from, to, sides; /* types; sides: of scales */
    int64_t all;         /* pieces */
    const void *x, *scales, *zeros;
    void *y;
    pass::radix places; /* piece of a row, channel, outer */
};

__device__ __forceinline__ float scale_of(const job &p, int64_t channel) {
    float scale;
    if (p.sides == PASS_FP32)
        scale = ((const float *)p.scales)[channel];
    else
        pass::widen<1>(p.sides, pass::load<2, 1>(p.scales, channel), &scale);
    return scale;
}

__device__ __forceinline__ float zero_of(const job &p, int type, int64_t channel) {
    if (!p.zeros) return 0;
    return type == PASS_INT8 ? (float)((const int8_t *)p.zeros)[channel] : (float)((const uint8_t *)p.zeros)[channel];
}

/* The bounds come before the zero point is added, which is a whole number. */
__device__ __forceinline__ uint8_t quantized(int type, float x, float scale, float zero) {
    const float low = (type == PASS_INT8 ? -128.0f : 0.0f) - zero, high = low + 255.0f;
    return (uint8_t)(int)(rintf(fminf(fmaxf(x / scale, low), high)) + zero);
}

__device__ __forceinline__ float restored(int type, uint8_t x, float scale, float zero) {
    return ((type == PASS_INT8 ? (float)(int8_t)x : (float)x) - zero) * scale;
}

/* SIZE: of the float; VEC elements at once. */
template <int SIZE, int VEC, int FORWARD> __global__ void __launch_bounds__(most_threads) quantize(const job p) {
    const int64_t tile = (int64_t)pieces * blockDim.x;
    for (int64_t first = blockIdx.x * tile + threadIdx.x; first < p.all; first += gridDim.x * tile) {
        pass::bits<FORWARD ? SIZE : 1, VEC> x[pieces];
        pass::bits<FORWARD ? 1 : SIZE, VEC> y;
        float values[VEC];
#pragma unroll
        for (int k = 0; k < pieces; k++) {
            const int64_t n = first + (int64_t)k * blockDim.x;
            x[k] = pass::load < FORWARD ? SIZE : 1, VEC > (p.x, (n < p.all ? n : first) * VEC);
        }
#pragma unroll
        for (int k = 0; k < pieces; k++) {
            const int64_t n = first + (int64_t)k * blockDim.x;
            int64_t rest = n;
            if (n >= p.all) break;
            (void)pass::radix_next(p.places, 0, rest);
            const int64_t channel = pass::radix_next(p.places, 1, rest);
            const float scale = scale_of(p, channel), zero = zero_of(p, FORWARD ? p.to : p.from, channel);
            if constexpr (FORWARD) {
                pass::widen(p.from, x[k], values);
#pragma unroll
                for (int i = 0; i < VEC; i++) y.at[i] = quantized(p.to, values[i], scale, zero);
            } else {
#pragma unroll
                for (int i = 0; i < VEC; i++) values[i] = restored(p.from, x[k].at[i], scale, zero);
                pass::narrow(p.to, values, y);
            }
            pass::store<FORWARD ? 1 : SIZE, VEC>(p.y, n * VEC, y);
        }
    }
}

/* [fp32][wide][forward]: pieces of 16 bytes of floats. */
const void *const kernels[2][2][2] = {{{(const void *)quantize<2, 1, 0>, (const void *)quantize<2, 1, 1>},
                                       {(const void *)quantize<2, 8, 0>, (const void *)quantize<2, 8, 1>}},
                                      {{(const void *)quantize<4, 1, 0>, (const void *)quantize<4, 1, 1>},
                                       {(const void *)quantize<4, 4, 0>, (const void *)quantize<4, 4, 1>}}};

int is_float(int type) { return type == PASS_FP32 || type == PASS_FP16 || type == PASS_BF16; }
int is_byte(int type) { return type == PASS_INT8 || type == PASS_UINT8; }

} // namespace

int quantize_rows_fits(const quantize_rows *q) {
    const int threads = q->config.threads;
    if (!(is_float(q->from) && is_byte(q->to)) && !(is_byte(q->from) && is_float(q->to))) return 0;
    return is_float(q->scale_type) && q->outer > 0 && q->channels > 0 && q->inner > 0 && threads >= 0 &&
           threads <= most_threads && threads % 32 == 0 && q->config.resident >= 0;
}

int quantize_rows_launch(const quantize_rows *q, const void *x, const void *scales, const void *zero_points, void *y,
                         void *stream) {
    if (!quantize_rows_fits(q)) return cudaErrorInvalidValue;
    const int forward = is_float(q->from), size = pass::size_of(forward ? q->from : q->to);
    const int threads = pass::threads_of(q->config, 256);
    const int wide = q->inner % (16 / size) == 0 && pass::aligned(x, 16) && pass::aligned(y, 16);
    const int64_t dims[] = {wide ? q->inner / (16 / size) : q->inner, q->channels, q->outer};
    const int64_t tile = (int64_t)pieces * threads;
    job j = {};
    j.from = q->from, j.to = q->to, j.sides = q->scale_type, j.all = dims[0] * dims[1] * dims[2];
    j.x = x, j.scales = scales, j.zeros = zero_points, j.y = y;
    j.places = pass::radix_of(3, dims);
    void *args[] = {&j};
    return cudaLaunchKernel(kernels[size == 4][wide][forward],
                            dim3(pass::blocks_of(q->config, (j.all + tile - 1) / tile)), dim3((unsigned)threads), args,
                            0, (cudaStream_t)stream);
}
