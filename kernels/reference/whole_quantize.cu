/* The reference of quantising: quotients stay as they are, and their spread makes half a step of them right. */
#include "kernels/reference/whole.h"

#include "kernels/harness/values.cuh"
#include "kernels/reference/whole_each.cuh"

namespace {

/* As the kind's tolerance has it: so much of |want| + spread is half a step, and 2^-9 more. */
constexpr double within = 1.0 / 1024, half_a_step = 0.5 + 1.0 / 512;

struct range {
    double low, high;
    bool steps; /* whole numbers */
};

__device__ range range_of(uint32_t type) {
    switch (type) {
    case DTYPE_INT16: return {-32768, 32767, true};
    case DTYPE_UINT16: return {0, 65535, true};
    case DTYPE_INT8: return {-128, 127, true};
    case DTYPE_UINT8: return {0, 255, true};
    case DTYPE_INT4: return {-8, 7, true};
    case DTYPE_UINT4: return {0, 15, true};
    case DTYPE_INT2: return {-2, 1, true};
    case DTYPE_UINT2: return {0, 3, true};
    case DTYPE_FP4E2M1: return {-6, 6, false};
    case DTYPE_FP8E4M3FN: return {-448, 448, false};
    case DTYPE_FP8E4M3FNUZ: return {-240, 240, false};
    default: return {-57344, 57344, false};
    }
}

__device__ int64_t side_of(const whole_quantize_problem &p, int64_t k) {
    const int64_t along = k / p.inner % p.channels, outer = k / p.inner / p.channels;
    if (p.block == 0) return along;
    return (outer * ((p.channels + p.block - 1) / p.block) + along / p.block) * p.inner + k % p.inner;
}

__global__ void __launch_bounds__(whole_each_threads)
    quantize(const whole_quantize_problem p, double *__restrict__ want, float *__restrict__ spread) {
    const int64_t count = p.outer * p.channels * p.inner;
    const range r = range_of(p.to);
    for (int64_t k = whole_each_first(); k < count; k += whole_each_step()) {
        const int64_t channel = side_of(p, k);
        const double x = values_at(p.x, p.from, k), scale = values_at(p.scales, p.scale_type, channel);
        const double zero = p.zero_points ? values_at(p.zero_points, p.zero_type, channel) : 0;
        const double y = p.quantizes ? fmin(r.high, fmax(r.low, x / scale + zero)) : (x - zero) * scale;
        want[k] = y;
        const double step = r.steps ? 1 : values_step(p.to, y);
        spread[k] = (float)(p.quantizes && step > 0 ? half_a_step * step / within - fabs(y) : values_least(p.to));
    }
}

constexpr int dynamic_threads = 1024;

/* One block looks for the range first: scale and zero point in fp32, as ONNX has it. */
__global__ void __launch_bounds__(dynamic_threads)
    dynamic(const whole_quantize_problem p, double *__restrict__ want, float *__restrict__ spread) {
    __shared__ double least[dynamic_threads], greatest[dynamic_threads];
    const int64_t count = p.outer * p.channels * p.inner;
    double low = 0, high = 0;
    for (int64_t k = threadIdx.x; k < count; k += dynamic_threads) {
        const double x = values_at(p.x, p.from, k);
        low = fmin(low, x), high = fmax(high, x);
    }
    least[threadIdx.x] = low, greatest[threadIdx.x] = high;
    __syncthreads();
    for (int step = dynamic_threads / 2; step > 0; step /= 2) {
        if ((int)threadIdx.x < step) {
            least[threadIdx.x] = fmin(least[threadIdx.x], least[threadIdx.x + step]);
            greatest[threadIdx.x] = fmax(greatest[threadIdx.x], greatest[threadIdx.x + step]);
        }
        __syncthreads();
    }
    const float from = (float)least[0], to = (float)greatest[0], scale = to > from ? (to - from) / 255.0f : 1.0f;
    const float zero = rintf(fminf(fmaxf(0.0f - from / scale, 0.0f), 255.0f));
    if (p.found != 1) {
        if (threadIdx.x != 0) return;
        want[0] = p.found == 2 ? (double)scale : (double)zero;
        spread[0] = p.found == 2 ? (float)(want[0] * (1.0 / 8192 - 1)) : 0; /* 2^-23 of it is left */
        return;
    }
    for (int64_t k = threadIdx.x; k < count; k += dynamic_threads) {
        const double y = fmin(255.0, fmax(0.0, values_at(p.x, p.from, k) / (double)scale + (double)zero));
        want[k] = y;
        spread[k] = (float)(half_a_step / within - y);
    }
}

} // namespace

cudaError_t whole_quantize(const whole_quantize_problem *p, double *want, float *spread, cudaStream_t stream) {
    if (p->found) {
        dynamic<<<1, dynamic_threads, 0, stream>>>(*p, want, spread);
        return cudaGetLastError();
    }
    const unsigned blocks = whole_each_blocks(p->outer * p->channels * p->inner);
    quantize<<<blocks, whole_each_threads, 0, stream>>>(*p, want, spread);
    return cudaGetLastError();
}
