/* What the attention kernels share on the device: which keys a query sees, and the arithmetic of a softmax that is
 * computed as its scores come in. */
#pragma once

#include "kernels/attention/attention_kernels.h"
#include "kernels/product/gemm_device.cuh"

#include <cuda_runtime.h>

namespace attention {

static constexpr float log2e = 1.4426950408889634f;

/* The end of the keys that a sequence has. */
static __device__ __forceinline__ int64_t sequence_end(const attention_shape &s, const int32_t *lengths, int64_t b) {
    const int64_t end = lengths ? (int64_t)lengths[b] + 1 : s.keys;
    return end < 0 ? 0 : end < s.keys ? end : s.keys;
}

/* The keys [first, end) that a query sees by its place, of those before `all`. */
static __device__ __forceinline__ int64_t first_key(const attention_shape &s, int64_t query) {
    const int64_t first = s.past + query + 1 - s.window;
    return s.causal && s.window > 0 && first > 0 ? first : 0;
}
static __device__ __forceinline__ int64_t end_key(const attention_shape &s, int64_t query, int64_t all) {
    const int64_t end = s.past + query + 1;
    return s.causal && end < all ? end : all;
}

/* A bit of a row of the block mask. */
static __device__ __forceinline__ bool block_seen(const uint32_t *row, int col) {
    return row[col >> 5] >> (col & 31) & 1;
}

/* A scaled and capped score; the mask is added by the caller. */
static __device__ __forceinline__ float capped(const attention_shape &s, float dot) {
    const float x = dot * s.scale;
    return s.softcap > 0 ? s.softcap * tanhf(x / s.softcap) : x;
}

/* The base of exponents: the largest score so far, or 0 before the first, as infinities have no difference. */
static __device__ __forceinline__ float base_of(float most) { return most == -INFINITY ? 0.0f : most; }

/* The final factor of sums: a query that sees no key gets 0. */
static __device__ __forceinline__ float inverse(float total) { return total == 0 ? 0.0f : 1 / total; }

/* 2^x */
static __device__ __forceinline__ float power(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

template <typename T> static __device__ __forceinline__ uint32_t pack(float low, float high);
template <> __device__ __forceinline__ uint32_t pack<__half>(float low, float high) {
    const __half2 both = __floats2half2_rn(low, high);
    return *(const uint32_t *)&both;
}
template <> __device__ __forceinline__ uint32_t pack<__nv_bfloat16>(float low, float high) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return *(const uint32_t *)&both;
}

} // namespace attention
