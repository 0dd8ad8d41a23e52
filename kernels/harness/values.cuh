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

/* The number that so many bits of a byte stand for. */
__host__ __device__ inline int values_bits(const void *data, int bits, int64_t at) {
    return ((const uint8_t *)data)[at * bits / 8] >> (int)(at * bits % 8) & ((1 << bits) - 1);
}

/* A short float of sign, exponent and fraction, or (`fnuz`) one whose code of -0 is not a number. */
__device__ inline double values_short(int code, int exponent, int fraction, int bias, bool fnuz) {
    const int power = code >> fraction & ((1 << exponent) - 1), rest = code & ((1 << fraction) - 1);
    const double size =
        power ? scalbn(1.0 + scalbn((double)rest, -fraction), power - bias) : scalbn((double)rest, 1 - bias - fraction);
    const bool negative = code >> (exponent + fraction);
    if (fnuz && negative && size == 0) return __longlong_as_double(0x7ff8000000000000ll);
    return negative ? -size : size;
}

__device__ inline double values_power(int code) {
    return code == 255 ? __longlong_as_double(0x7ff8000000000000ll) : scalbn(1.0, code - 127);
}

/* Half a step of a short float grows no smaller below it. */
__device__ inline double values_least(uint32_t type) {
    switch (type) {
    case DTYPE_FP16:
    case DTYPE_FP8E5M2: return 0x1p-14;
    case DTYPE_FP8E4M3FN: return 0x1p-6;
    default: return 0;
    }
}

/* A step between a number and its neighbours, of short floats without a library; 0: of all others. */
__device__ inline double values_step(uint32_t type, double x) {
    if (type != DTYPE_FP4E2M1 && type != DTYPE_FP8E4M3FNUZ && type != DTYPE_FP8E5M2FNUZ) return 0;
    const int fraction = type == DTYPE_FP4E2M1 ? 1 : type == DTYPE_FP8E4M3FNUZ ? 3 : 2;
    const int least = type == DTYPE_FP4E2M1 ? 0 : type == DTYPE_FP8E4M3FNUZ ? -7 : -15;
    return scalbn(1.0, max(x == 0 ? least : ilogb(x), least) - fraction);
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
    case DTYPE_INT2: return (double)((values_bits(data, 2, at) ^ 2) - 2);
    case DTYPE_UINT2: return (double)values_bits(data, 2, at);
    case DTYPE_FP4E2M1: return values_short(values_bits(data, 4, at), 2, 1, 1, false);
    case DTYPE_FP8E4M3FNUZ: return values_short(((const uint8_t *)data)[at], 4, 3, 8, true);
    case DTYPE_FP8E5M2FNUZ: return values_short(((const uint8_t *)data)[at], 5, 2, 16, true);
    case DTYPE_FP8E8M0: return values_power(((const uint8_t *)data)[at]);
    default: return __longlong_as_double(0x7ff8000000000000ll);
    }
}
