/* Values of every type as doubles, and counter-based random bits: shared by fills and references. */
#pragma once

#include "common/dtype.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <stdint.h>

/* A good mix of 64 bits (the finisher of splitmix64): neighbouring counters come out unrelated. */
__host__ __device__ inline uint64_t values_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/* A signed nibble, the low one of a byte first. */
__host__ __device__ inline int values_nibble(uint8_t byte, int high) {
    const int nibble = high ? byte >> 4 : byte & 15;
    return nibble < 8 ? nibble : nibble - 16;
}

/* The same type for all threads of a launch, so the switch costs a predictable branch. Not-a-number for a type that no
 * product has: a reference that does not know its inputs never agrees with anything. */
__device__ inline double values_at(const void *data, uint32_t type, int64_t at) {
    switch (type) {
    case DTYPE_FP32: return (double)((const float *)data)[at];
    case DTYPE_FP64: return ((const double *)data)[at];
    case DTYPE_FP16: return (double)__half2float(((const __half *)data)[at]);
    case DTYPE_BF16: return (double)__bfloat162float(((const __nv_bfloat16 *)data)[at]);
    case DTYPE_FP8E4M3FN: return (double)(float)((const __nv_fp8_e4m3 *)data)[at];
    case DTYPE_FP8E5M2: return (double)(float)((const __nv_fp8_e5m2 *)data)[at];
    case DTYPE_INT8: return (double)((const int8_t *)data)[at];
    case DTYPE_UINT8: return (double)((const uint8_t *)data)[at];
    case DTYPE_INT32: return (double)((const int32_t *)data)[at];
    case DTYPE_INT64: return (double)((const long long *)data)[at];
    case DTYPE_INT4: return (double)values_nibble(((const uint8_t *)data)[at / 2], (int)(at % 2));
    case DTYPE_UINT4: return (double)(values_nibble(((const uint8_t *)data)[at / 2], (int)(at % 2)) & 15);
    case DTYPE_INT16: return (double)((const int16_t *)data)[at];
    case DTYPE_UINT16: return (double)((const uint16_t *)data)[at];
    case DTYPE_UINT32: return (double)((const uint32_t *)data)[at];
    case DTYPE_UINT64: return (double)((const unsigned long long *)data)[at];
    case DTYPE_BOOL: return (double)((const uint8_t *)data)[at];
    default: return __longlong_as_double(0x7ff8000000000000ll);
    }
}
