/* How far numbers lie from those that are wanted, of any two types. Sums are of fp64, and in the same order each time. */
#include "kernels/harness/kernels.h"
#include "kernels/harness/values.cuh"

namespace {

constexpr int threads = 256, per_thread = 8;

__device__ kernels_distance_sums distance_add(kernels_distance_sums a, const kernels_distance_sums &b) {
    a.off += b.off;
    a.all += b.all;
    a.apart += b.apart;
    a.infinite += b.infinite;
    return a;
}

__device__ void distance_take(kernels_distance_sums *sums, double want, double got) {
    const bool wanted = isfinite(want), there = isfinite(got);
    sums->infinite += !there;
    sums->apart += wanted != there;
    if (!wanted || !there) return;
    sums->off += (want - got) * (want - got);
    sums->all += want * want;
}

/* A thread has several loads under way. */
__global__ void distance(const void *want, uint32_t want_type, const void *got, uint32_t got_type, uint64_t count,
                         kernels_distance_sums *parts) {
    __shared__ kernels_distance_sums all[threads];
    const uint64_t piece = threads * per_thread, step = piece * gridDim.x;
    kernels_distance_sums own = {0, 0, 0, 0};
    for (uint64_t first = piece * blockIdx.x + threadIdx.x; first < count; first += step) {
#pragma unroll
        for (int k = 0; k < per_thread; k++) {
            const uint64_t at = first + (uint64_t)k * threads;
            if (at < count)
                distance_take(&own, values_at(want, want_type, (int64_t)at), values_at(got, got_type, (int64_t)at));
        }
    }
    all[threadIdx.x] = own;
    for (int half = threads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) all[threadIdx.x] = distance_add(all[threadIdx.x], all[threadIdx.x + half]);
    }
    if (threadIdx.x == 0) parts[blockIdx.x] = all[0];
}

} // namespace

cudaError_t kernels_distance(const void *want, uint32_t want_type, const void *got, uint32_t got_type, uint64_t count,
                             kernels_distance_sums *parts, int *blocks, cudaStream_t stream) {
    const uint64_t needed = (count + threads * per_thread - 1) / (threads * per_thread);
    if (needed < (uint64_t)*blocks) *blocks = (int)needed;
    if (*blocks < 1) return cudaSuccess;
    distance<<<(unsigned)*blocks, threads, 0, stream>>>(want, want_type, got, got_type, count, parts);
    return cudaGetLastError();
}
