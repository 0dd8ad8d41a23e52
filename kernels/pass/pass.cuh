/* What passes over memory share: pieces of any width, places found by multiplying instead of dividing, types to fp32
 * and back. */
#pragma once

#include "kernels/pass/pass_kernels.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace pass {

template <int SIZE> struct unit;
template <> struct unit<1> { typedef uint8_t type; };
template <> struct unit<2> { typedef uint16_t type; };
template <> struct unit<4> { typedef uint32_t type; };
template <> struct unit<8> { typedef unsigned long long type; };

/* VEC elements that are loaded and stored at once. */
template <int SIZE, int VEC> struct alignas(SIZE *VEC) bits { typename unit<SIZE>::type at[VEC]; };

template <int SIZE, int VEC> __device__ __forceinline__ bits<SIZE, VEC> load(const void *from, int64_t at) {
    typedef typename unit<SIZE>::type word;
    return *(const bits<SIZE, VEC> *)((const word *)from + at);
}

template <int SIZE, int VEC> __device__ __forceinline__ void store(void *to, int64_t at, const bits<SIZE, VEC> &x) {
    typedef typename unit<SIZE>::type word;
    *(bits<SIZE, VEC> *)((word *)to + at) = x;
}

/* The first `count` of a piece, for ends that are no whole one. */
template <int SIZE, int VEC>
__device__ __forceinline__ bits<SIZE, VEC> load_some(const void *from, int64_t at, int64_t count) {
    typedef typename unit<SIZE>::type word;
    bits<SIZE, VEC> x;
#pragma unroll
    for (int i = 0; i < VEC; i++) x.at[i] = i < count ? ((const word *)from)[at + i] : (word)0;
    return x;
}

template <int SIZE, int VEC>
__device__ __forceinline__ void store_some(void *to, int64_t at, int64_t count, const bits<SIZE, VEC> &x) {
    typedef typename unit<SIZE>::type word;
#pragma unroll
    for (int i = 0; i < VEC; i++)
        if (i < count) ((word *)to)[at + i] = x.at[i];
}

template <int SIZE, int VEC> __device__ __forceinline__ bits<SIZE, VEC> splat(const void *from, int64_t at) {
    typedef typename unit<SIZE>::type word;
    const word one = ((const word *)from)[at];
    bits<SIZE, VEC> x;
#pragma unroll
    for (int i = 0; i < VEC; i++) x.at[i] = one;
    return x;
}

/* --- fp32 and back --- */

template <int VEC> __device__ __forceinline__ void widen(int type, const bits<2, VEC> &x, float *to) {
    if (type == PASS_FP16) {
#pragma unroll
        for (int i = 0; i < VEC; i++) to[i] = __half2float(__ushort_as_half(x.at[i]));
    } else {
#pragma unroll
        for (int i = 0; i < VEC; i++) to[i] = __uint_as_float((uint32_t)x.at[i] << 16);
    }
}

template <int VEC> __device__ __forceinline__ void widen(int, const bits<4, VEC> &x, float *to) {
#pragma unroll
    for (int i = 0; i < VEC; i++) to[i] = __uint_as_float(x.at[i]);
}

template <int VEC> __device__ __forceinline__ void narrow(int type, const float *x, bits<2, VEC> &to) {
    if (type == PASS_FP16) {
#pragma unroll
        for (int i = 0; i < VEC; i++) to.at[i] = __half_as_ushort(__float2half_rn(x[i]));
    } else {
#pragma unroll
        for (int i = 0; i < VEC; i++) to.at[i] = __bfloat16_as_ushort(__float2bfloat16_rn(x[i]));
    }
}

template <int VEC> __device__ __forceinline__ void narrow(int, const float *x, bits<4, VEC> &to) {
#pragma unroll
    for (int i = 0; i < VEC; i++) to.at[i] = __float_as_uint(x[i]);
}

/* One element of fp32, fp16 or bf16. */
__device__ __forceinline__ float load_float(int type, const void *x, int64_t at) {
    if (type == PASS_FP32) return ((const float *)x)[at];
    const unsigned short bits = ((const unsigned short *)x)[at];
    return type == PASS_FP16 ? __half2float(__ushort_as_half(bits)) : __uint_as_float((unsigned)bits << 16);
}

__device__ __forceinline__ void store_float(int type, void *y, int64_t at, float x) {
    if (type == PASS_FP32)
        ((float *)y)[at] = x;
    else
        ((unsigned short *)y)[at] =
            type == PASS_FP16 ? __half_as_ushort(__float2half_rn(x)) : __bfloat16_as_ushort(__float2bfloat16_rn(x));
}

/* --- places --- */

/* Division of numbers below 2^31 by one that is known before. */
struct divisor {
    uint32_t by, magic, shift;
};

inline divisor divisor_of(int64_t by) {
    divisor d = {(uint32_t)by, 0, 0};
    while (((uint64_t)1 << d.shift) < (uint64_t)by) d.shift++;
    d.magic = (uint32_t)((((uint64_t)1 << 32) * (((uint64_t)1 << d.shift) - (uint64_t)by)) / (uint64_t)by + 1);
    return d;
}

__device__ __forceinline__ uint32_t divide(uint32_t n, const divisor &d) {
    return (__umulhi(n, d.magic) + n) >> d.shift;
}

/* Mixed radix, innermost first. `narrow`: all places are below 2^31. */
struct radix {
    int rank, narrow;
    int64_t dims[PASS_PLACES];
    divisor by[PASS_PLACES];
};

inline radix radix_of(int rank, const int64_t *dims) {
    radix r = {};
    int64_t count = 1;
    r.rank = rank;
    for (int d = 0; d < rank; d++) count *= r.dims[d] = dims[d];
    r.narrow = count < (int64_t)1 << 31;
    for (int d = 0; d < rank && r.narrow; d++) r.by[d] = divisor_of(dims[d]);
    return r;
}

/* Long and seldom used: not inlined. */
static __device__ __noinline__ int64_t divide_any(int64_t n, int64_t by) { return n / by; }

/* One place after the other, from the innermost dimension on: `n` becomes what is left. */
__device__ __forceinline__ int64_t radix_next(const radix &r, int d, int64_t &n) {
    if (d == r.rank - 1) return n;
    if (r.narrow) {
        const uint32_t all = (uint32_t)n, rest = divide(all, r.by[d]);
        n = rest;
        return all - rest * r.by[d].by;
    }
    const int64_t all = n;
    n = divide_any(all, r.dims[d]);
    return all - n * r.dims[d];
}

/* --- launching --- */

inline int aligned(const void *p, int to) { return ((uintptr_t)p & (uintptr_t)(to - 1)) == 0; }

inline int size_of(int type) {
    switch (type) {
    case PASS_UINT8:
    case PASS_INT8:
    case PASS_BOOL: return 1;
    case PASS_FP16:
    case PASS_INT16:
    case PASS_UINT16:
    case PASS_BF16: return 2;
    case PASS_FP32:
    case PASS_UINT32:
    case PASS_INT32: return 4;
    case PASS_INT64:
    case PASS_UINT64:
    case PASS_FP64: return 8;
    default: return 0;
    }
}

inline int threads_of(const pass_config &c, int otherwise) { return c.threads > 0 ? c.threads : otherwise; }

/* Blocks for that many tiles: kernels go on by the size of the grid, so fewer are right too. */
inline unsigned blocks_of(const pass_config &c, int64_t tiles) {
    int64_t most = 0x7fffffff;
    int device = 0, units = 0;
    if (c.resident > 0 && cudaGetDevice(&device) == cudaSuccess &&
        cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, device) == cudaSuccess)
        most = (int64_t)c.resident * units;
    return (unsigned)(tiles < 1 ? 1 : tiles < most ? tiles : most);
}

} // namespace pass
