/* Values of the device's types on the host: what a triple loop reads, and what it writes as an output. */
#ifndef TESTS_GPU_GPU_VALUES_H
#define TESTS_GPU_GPU_VALUES_H

#include "scout/plugin.h"

#include <math.h>
#include <string.h>

static inline double decode_float(unsigned bits, int exponent_bits, int fraction_bits, int bias) {
    const unsigned e = bits >> fraction_bits & ((1u << exponent_bits) - 1), f = bits & ((1u << fraction_bits) - 1);
    const double x = e ? ldexp(1 + ldexp(f, -fraction_bits), (int)e - bias) : ldexp(f, 1 - bias - fraction_bits);
    return bits >> (exponent_bits + fraction_bits) & 1 ? -x : x;
}

static inline double value_at(const unsigned char *data, uint32_t type, int64_t at) {
    float f = 0;
    double d = 0;
    int32_t i = 0;
    uint16_t h = 0;
    switch (type) {
    case SCOUT_FP32: return memcpy(&f, data + 4 * at, 4), f;
    case SCOUT_FP64: return memcpy(&d, data + 8 * at, 8), d;
    case SCOUT_INT32: return memcpy(&i, data + 4 * at, 4), i;
    case SCOUT_FP16: return memcpy(&h, data + 2 * at, 2), decode_float(h, 5, 10, 15);
    case SCOUT_BF16: return memcpy(&h, data + 2 * at, 2), decode_float(h, 8, 7, 127);
    case SCOUT_FP8E4M3: return decode_float(data[at], 4, 3, 7);
    case SCOUT_INT8: return (signed char)data[at];
    case SCOUT_UINT8: return data[at];
    case SCOUT_INT4: i = at & 1 ? data[at / 2] >> 4 : data[at / 2] & 15; return i < 8 ? i : i - 16;
    default: return NAN;
    }
}

static inline void put_value(unsigned char *data, uint32_t type, int64_t at, double x) {
    const float f = (float)x;
    const int32_t i = (int32_t)x;
    uint32_t bits = 0;
    memcpy(&bits, &f, sizeof bits);
    if (type == SCOUT_FP64) memcpy(data + 8 * at, &x, 8);
    if (type == SCOUT_FP32) memcpy(data + 4 * at, &f, 4);
    if (type == SCOUT_INT32) memcpy(data + 4 * at, &i, 4);
    if (type == SCOUT_INT8 || type == SCOUT_UINT8) data[at] = (unsigned char)i;
    if (type == SCOUT_BF16) {
        const uint16_t h = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        memcpy(data + 2 * at, &h, 2);
    }
    if (type == SCOUT_FP16) { /* small numbers become zero: far below any tolerance here */
        const int e = (int)(bits >> 23 & 255) - 112;
        const uint32_t rounded = (bits & 0x7fffffff) + 0xfff + (bits >> 13 & 1);
        const uint16_t h = (uint16_t)((bits >> 16 & 0x8000) | (e < 1 ? 0 : (rounded >> 13) - (112u << 10)));
        memcpy(data + 2 * at, &h, 2);
    }
}

#endif
