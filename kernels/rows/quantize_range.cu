/* The range of a dynamic quantiser: the least and the greatest number, 0 included, and from these a scale and a zero
 * point for uint8. Each block reduces a part, then one block reduces the results. */
#include "kernels/pass/pass.cuh"

namespace {

constexpr int threads = 256, most_blocks = 1024;

struct bounds {
    float least, greatest;
};

__device__ __forceinline__ bounds both(bounds a, bounds b) {
    return {fminf(a.least, b.least), fmaxf(a.greatest, b.greatest)};
}

/* Of a block's threads; right in thread 0. */
__device__ bounds of_block(bounds mine) {
    __shared__ bounds of_warp[threads / 32];
    for (int step = 16; step > 0; step /= 2)
        mine = both(
            mine, {__shfl_xor_sync(0xffffffffu, mine.least, step), __shfl_xor_sync(0xffffffffu, mine.greatest, step)});
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int k = 1; k < threads / 32; k++) mine = both(mine, of_warp[k]);
    return mine;
}

template <int SIZE, int VEC>
__global__ void __launch_bounds__(threads) parts(int type, int64_t count, const void *x, bounds *found) {
    const int64_t step = (int64_t)gridDim.x * threads * VEC;
    bounds mine = {0, 0};
    for (int64_t at = ((int64_t)blockIdx.x * threads + threadIdx.x) * VEC; at < count; at += step) {
        float values[VEC];
        /* beyond the end lie zeros, which are among them anyway */
        pass::widen<VEC>(
            type, at + VEC <= count ? pass::load<SIZE, VEC>(x, at) : pass::load_some<SIZE, VEC>(x, at, count - at),
            values);
#pragma unroll
        for (int i = 0; i < VEC; i++) mine = both(mine, {values[i], values[i]});
    }
    mine = of_block(mine);
    if (threadIdx.x == 0) found[blockIdx.x] = mine;
}

__global__ void __launch_bounds__(threads) whole(int blocks, const bounds *found, float *scale, uint8_t *zero) {
    bounds mine = {0, 0};
    for (int k = threadIdx.x; k < blocks; k += threads) mine = both(mine, found[k]);
    mine = of_block(mine);
    if (threadIdx.x != 0) return;
    const float range = mine.greatest - mine.least, step = range > 0 ? range / 255.0f : 1.0f;
    *scale = step;
    *zero = (uint8_t)(int)rintf(fminf(fmaxf(0.0f - mine.least / step, 0.0f), 255.0f));
}

} // namespace

size_t quantize_range_workspace(void) { return most_blocks * sizeof(bounds); }

int quantize_range_launch(int type, int64_t count, const void *x, void *workspace, void *scale, void *zero,
                          void *stream) {
    if ((type != PASS_FP32 && type != PASS_FP16 && type != PASS_BF16) || count < 1) return cudaErrorInvalidValue;
    const int size = pass::size_of(type), wide = pass::aligned(x, 16), each = threads * (wide ? 16 / size : 1);
    const int64_t tiles = (count + each - 1) / each;
    const unsigned blocks = (unsigned)(tiles < most_blocks ? tiles : most_blocks);
    bounds *const found = (bounds *)workspace;
    const auto kernel = size == 4 ? wide ? parts<4, 4> : parts<4, 1> : wide ? parts<2, 8> : parts<2, 1>;
    kernel<<<blocks, threads, 0, (cudaStream_t)stream>>>(type, count, x, found);
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) return error;
    whole<<<1, threads, 0, (cudaStream_t)stream>>>((int)blocks, found, (float *)scale, (uint8_t *)zero);
    return cudaGetLastError();
}
