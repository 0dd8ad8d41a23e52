/* Compares every element of an output with the reference. */
#include "kernels/reference/whole.h"

#include "kernels/harness/values.cuh"

namespace {

constexpr int threads = 256;

struct worst {
    double error;
    unsigned long long at;
};

/* The greater error; of equal ones the first, so that the answer is the same every time. */
__device__ worst worse(worst a, worst b) { return b.error > a.error || (b.error == a.error && b.at < a.at) ? b : a; }

/* Equal is right, infinite or not. NaN on either side is infinitely wrong, as error_of in scout/cpu/device/cpu_cover.c.
 */
__device__ double error_of(double got, double want, double spread) {
    const double measure = fabs(want) + spread;
    if (got == want) return 0;
    if (!isfinite(got) || !isfinite(measure) || measure == 0) return __longlong_as_double(0x7ff0000000000000ll);
    return fabs(got - want) / measure;
}

__global__ void compare(uint32_t type, const void *output, const double *want, const float *spread, uint64_t count,
                        double tolerance, worst *blocks, whole_found *found) {
    __shared__ worst shared[threads];
    worst mine = {-1, 0};
    unsigned long long wrong = 0;
    for (uint64_t at = blockIdx.x * (uint64_t)threads + threadIdx.x; at < count; at += gridDim.x * (uint64_t)threads) {
        const double error = error_of(values_at(output, type, (int64_t)at), want[at], spread[at]);
        wrong += error > tolerance;
        mine = worse(mine, {error, at});
    }
    shared[threadIdx.x] = mine;
    if (wrong > 0) atomicAdd(&found->wrong, wrong);
    for (int half = threads / 2; half > 0; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < half) shared[threadIdx.x] = worse(shared[threadIdx.x], shared[threadIdx.x + half]);
    }
    if (threadIdx.x == 0) blocks[blockIdx.x] = shared[0];
}

__global__ void conclude(uint32_t type, const void *output, const double *want, const worst *blocks, int count,
                         whole_found *found) {
    worst all = {-1, 0};
    for (int k = 0; k < count; k++) all = worse(all, blocks[k]);
    found->worst = all.error < 0 ? 0 : all.error;
    found->at = all.at;
    found->got = all.error < 0 ? 0 : values_at(output, type, (int64_t)all.at);
    found->want = all.error < 0 ? 0 : want[all.at];
}

} // namespace

cudaError_t whole_compare(uint32_t type, const void *output, const double *want, const float *spread, uint64_t count,
                          double tolerance, whole_found *found, int multiprocessors, cudaStream_t stream) {
    worst *blocks = nullptr;
    const int most = 8 * multiprocessors;
    const uint64_t needed = (count + threads - 1) / threads;
    const int grid = needed < (uint64_t)most ? (needed ? (int)needed : 1) : most;
    cudaError_t error = cudaMalloc(&blocks, (size_t)grid * sizeof *blocks);
    if (error != cudaSuccess) return error;
    error = cudaMemsetAsync(found, 0, sizeof *found, stream);
    if (error == cudaSuccess) {
        compare<<<grid, threads, 0, stream>>>(type, output, want, spread, count, tolerance, blocks, found);
        conclude<<<1, 1, 0, stream>>>(type, output, want, blocks, grid, found);
        error = cudaGetLastError();
    }
    const cudaError_t freed = cudaFree(blocks); /* waits for what was enqueued */
    return error != cudaSuccess ? error : freed;
}
