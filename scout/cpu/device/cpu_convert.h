/* Rows of fp16 and bf16 to fp32 and back without a branch, so that compilers make vectors of them whatever the
 * processor has; cpu_number.h has the same one by one. Bodies: they are compiled with the vector width of their caller.
 */
#pragma once

#include "scout/cpu/device/cpu_vector.h"
#include "scout/plugin.h"

#include <string.h>

FAST_BODY float cpu_convert_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

FAST_BODY uint32_t cpu_convert_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* A power of two moves the exponent; what has the largest one is no number, or infinite. */
FAST_BODY float cpu_convert_widen(uint16_t h) {
    const uint32_t rest = (uint32_t)(h & 0x7fff) << 13, sign = (uint32_t)(h & 0x8000) << 16;
    const uint32_t finite = cpu_convert_bits(cpu_convert_float(rest) * 0x1p112f), other = rest | 0x7f800000u;
    return cpu_convert_float((rest >= 0x0f800000u ? other : finite) | sign);
}

/* To nearest, ties to even; below 2^-14 adding a half rounds at the right bit. */
FAST_BODY uint16_t cpu_convert_narrow(float x) {
    const uint32_t u = cpu_convert_bits(x), a = u & 0x7fffffffu, sign = u >> 16 & 0x8000u;
    const uint32_t normal = (a + 0xfff + (a >> 13 & 1) - (112u << 23)) >> 13;
    const uint32_t small = cpu_convert_bits(cpu_convert_float(a) + 0.5f) - 0x3f000000u;
    const uint32_t large = a > 0x7f800000u ? 0x7e00u : 0x7c00u;
    const uint32_t code = a < 0x38800000u ? small : a >= 0x477ff000u ? large : normal;
    return (uint16_t)(code | sign);
}

FAST_BODY uint16_t cpu_convert_narrow_bf16(float x) {
    const uint32_t u = cpu_convert_bits(x);
    const uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16, other = u >> 16 | 0x40;
    return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? other : rounded);
}

/* `count` values of fp32, fp16 or bf16. */
FAST_BODY void cpu_convert_load(uint32_t type, const void *from, int64_t count, float *to) {
    const uint16_t *halves = from;
    if (type == SCOUT_FP16)
        for (int64_t k = 0; k < count; k++) to[k] = cpu_convert_widen(halves[k]);
    else if (type == SCOUT_BF16)
        for (int64_t k = 0; k < count; k++) to[k] = cpu_convert_float((uint32_t)halves[k] << 16);
    else
        memcpy(to, from, (size_t)count * sizeof *to);
}

FAST_BODY void cpu_convert_store(uint32_t type, const float *from, int64_t count, void *to) {
    uint16_t *halves = to;
    if (type == SCOUT_FP16)
        for (int64_t k = 0; k < count; k++) halves[k] = cpu_convert_narrow(from[k]);
    else if (type == SCOUT_BF16)
        for (int64_t k = 0; k < count; k++) halves[k] = cpu_convert_narrow_bf16(from[k]);
    else
        memcpy(to, from, (size_t)count * sizeof *from);
}

static inline int cpu_convert_known(uint32_t type) {
    return type == SCOUT_FP32 || type == SCOUT_FP16 || type == SCOUT_BF16;
}

static inline int64_t cpu_convert_size(uint32_t type) { return type == SCOUT_FP32 ? 4 : 2; }
