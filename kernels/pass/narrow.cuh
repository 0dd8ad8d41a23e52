/* Numbers of few bits: what a code stands for, and the code of a number. */
#pragma once

#include "kernels/pass/pass_kernels.h"

#include <cuda_runtime.h>

namespace pass {

/* An integer, or a float of sign, exponent and fraction; fp8e8m0 is an exponent alone. */
struct narrow_format {
    int type, bits;
    bool whole, is_signed;
    int exponent, fraction, bias; /* of floats */
    uint32_t largest;             /* code of the largest number, without its sign */
    uint32_t nan;                 /* what becomes of not-a-number; fp4 has none, and its largest number in place */
    bool one_zero;                /* the code of -0 is the NaN */
};

inline narrow_format narrow_format_of(int type) {
    static const narrow_format rows[] = {
        {PASS_INT8, 8, true, true, 0, 0, 0, 0, 0, false},
        {PASS_UINT8, 8, true, false, 0, 0, 0, 0, 0, false},
        {PASS_INT4, 4, true, true, 0, 0, 0, 0, 0, false},
        {PASS_UINT4, 4, true, false, 0, 0, 0, 0, 0, false},
        {PASS_INT2, 2, true, true, 0, 0, 0, 0, 0, false},
        {PASS_UINT2, 2, true, false, 0, 0, 0, 0, 0, false},
        {PASS_FP4E2M1, 4, false, true, 2, 1, 1, 0x7, 0x7, false},
        {PASS_FP8E4M3FNUZ, 8, false, true, 4, 3, 8, 0x7f, 0x80, true},
        {PASS_FP8E5M2FNUZ, 8, false, true, 5, 2, 16, 0x7f, 0x80, true},
        {PASS_FP8E8M0, 8, false, false, 8, 0, 127, 0xfe, 0xff, false},
    };
    for (const narrow_format &row : rows)
        if (row.type == type) return row;
    return {};
}

/* The fraction and exponent of a float stand where fp32 has its own, and a power of two moves the bias: exact, also of
 * numbers below the smallest normal one. */
__device__ __forceinline__ float narrow_decode(const narrow_format &f, uint32_t code) {
    if (f.whole) {
        const int half = f.is_signed ? 1 << (f.bits - 1) : 0;
        return (float)(((int)code ^ half) - half);
    }
    if (!f.is_signed) return __uint_as_float(code == 0xff ? 0x7fffffffu : code == 0 ? 0x00400000u : code << 23);
    const int size = f.exponent + f.fraction;
    const uint32_t rest = code & ((1u << size) - 1), sign = code >> size << 31;
    if (f.one_zero && code == f.nan) return __uint_as_float(0x7fffffffu);
    const float value = __uint_as_float(rest << (23 - f.fraction)) * __uint_as_float((uint32_t)(254 - f.bias) << 23);
    return __uint_as_float(__float_as_uint(value) | sign);
}

/* To nearest, ties to even; what is beyond the range becomes its end. */
__device__ __forceinline__ uint32_t narrow_encode_float(const narrow_format &f, float x, uint32_t up) {
    const uint32_t u = __float_as_uint(x), a = u & 0x7fffffffu;
    if (!f.is_signed) {
        const uint32_t half = 0x400000; /* its smallest number, 2^-127, is half a normal one */
        const uint32_t power = (a >= half << 1 ? a + up : a >= half ? (a - half) * 2 + up : 0) >> 23;
        return a > 0x7f800000u ? f.nan : min(power, f.largest);
    }
    const int size = f.exponent + f.fraction, drop = 23 - f.fraction;
    const uint32_t sign = u >> 31 << size;
    if (a > 0x7f800000u) return f.nan;
    uint32_t code;
    if (a < (uint32_t)(128 - f.bias) << 23) { /* below the smallest normal number: a sum rounds at the right bit */
        const float magic = __uint_as_float((uint32_t)(151 - f.bias - f.fraction) << 23);
        code = __float_as_uint(__uint_as_float(a) + magic) - __float_as_uint(magic);
    } else {
        code = ((a + (1u << (drop - 1)) - 1 + (a >> drop & 1)) >> drop) - ((uint32_t)(127 - f.bias) << f.fraction);
    }
    code = min(code, f.largest);
    return f.one_zero && code == 0 ? 0 : code | sign;
}

/* Of a whole number within the range, or one whose upper bits are lost. */
__device__ __forceinline__ uint32_t narrow_encode_whole(const narrow_format &f, int x) {
    return (uint32_t)x & ((1u << f.bits) - 1);
}

__device__ __forceinline__ float narrow_least(const narrow_format &f) {
    return f.is_signed ? -(float)(1 << (f.bits - 1)) : 0.0f;
}
__device__ __forceinline__ float narrow_most(const narrow_format &f) {
    return (float)((1 << (f.bits - (f.is_signed ? 1 : 0))) - 1);
}

/* The code at a place: bits that lie within a byte. */
__device__ __forceinline__ uint32_t narrow_code_at(const void *x, int bits, int64_t at) {
    const uint32_t byte = ((const unsigned char *)x)[at * bits / 8];
    return byte >> (int)(at * bits % 8) & ((1u << bits) - 1);
}

} // namespace pass
