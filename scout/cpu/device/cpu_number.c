/* Conversions between the types of tensors and the types that C computes in. The 8-bit floats share the code of fp16:
 * every one of them is a short float with its own number of exponent and fraction bits, but for fp8e8m0, which is an
 * exponent alone. */
#include "scout/cpu/device/cpu_number.h"

#include "common/checked.h"

#include <math.h>
#include <string.h>

int cpu_number_bits(uint32_t type) {
    static const struct {
        uint32_t type;
        int bits;
    } rows[] = {
        {SCOUT_FP32, 32},       {SCOUT_UINT8, 8},       {SCOUT_INT8, 8},    {SCOUT_INT32, 32},  {SCOUT_FP16, 16},
        {SCOUT_FP64, 64},       {SCOUT_BF16, 16},       {SCOUT_INT4, 4},    {SCOUT_FP8E4M3, 8}, {SCOUT_FP8E5M2, 8},
        {SCOUT_UINT4, 4},       {SCOUT_INT64, 64},      {SCOUT_BOOL, 8},    {SCOUT_INT16, 16},  {SCOUT_UINT16, 16},
        {SCOUT_UINT32, 32},     {SCOUT_UINT64, 64},     {SCOUT_INT2, 2},    {SCOUT_UINT2, 2},   {SCOUT_FP4E2M1, 4},
        {SCOUT_FP8E4M3FNUZ, 8}, {SCOUT_FP8E5M2FNUZ, 8}, {SCOUT_FP8E8M0, 8},
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (rows[k].type == type) return rows[k].bits;
    return 0;
}

bool cpu_number_whole(uint32_t type) {
    static const uint32_t types[] = {SCOUT_INT64,  SCOUT_INT32,  SCOUT_INT16, SCOUT_INT8, SCOUT_UINT64,
                                     SCOUT_UINT32, SCOUT_UINT16, SCOUT_UINT8, SCOUT_BOOL, SCOUT_INT4,
                                     SCOUT_UINT4,  SCOUT_INT2,   SCOUT_UINT2};
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
        if (types[k] == type) return true;
    return false;
}

static uint32_t bits_of(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float float_of(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* A float of fewer bits: sign, `exponent` bits, `fraction` bits. fp8e4m3 uses the codes of infinities for numbers, and
 * has one NaN; fp4 has none, and the largest number in its place. */
typedef struct short_float {
    int exponent, fraction, bias;
    bool infinities;
    bool one_zero;    /* the code of -0 is the NaN, the only one */
    uint32_t largest; /* code of the largest finite number */
    uint32_t nan;
} short_float;

static const short_float fp16 = {5, 10, 15, true, false, 0x7bff, 0x7e00};
static const short_float fp8e4m3 = {4, 3, 7, false, false, 0x7e, 0x7f};
static const short_float fp8e5m2 = {5, 2, 15, true, false, 0x7b, 0x7f};
static const short_float fp8e4m3fnuz = {4, 3, 8, false, true, 0x7f, 0x80};
static const short_float fp8e5m2fnuz = {5, 2, 16, false, true, 0x7f, 0x80};
static const short_float fp4e2m1 = {2, 1, 1, false, false, 0x7, 0x7};

static float widen(const short_float *s, uint32_t code) {
    const uint32_t sign = code >> (s->exponent + s->fraction) << 31;
    const uint32_t rest = code & ((1u << (s->exponent + s->fraction)) - 1);
    const uint32_t exponent = rest >> s->fraction, fraction = rest & ((1u << s->fraction) - 1);
    if (s->one_zero && code == s->nan) return float_of(0x7fc00000u);
    if (rest > s->largest) {
        if (s->infinities && fraction == 0) return float_of(sign | 0x7f800000u);
        return float_of(sign | 0x7fc00000u);
    }
    if (exponent == 0) { /* fraction * 2^(1 - bias - fraction bits) */
        const float unit = float_of((uint32_t)(1 - s->bias - s->fraction + 127) << 23);
        const float value = (float)fraction * unit;
        return sign ? -value : value;
    }
    return float_of(sign | (exponent + (uint32_t)(127 - s->bias)) << 23 | fraction << (23 - s->fraction));
}

/* The code of a number that is not negative, given by its bits. */
static uint32_t narrow_size(const short_float *s, uint32_t a) {
    const int drop = 23 - s->fraction, exponent = (int)(a >> 23) - 127;
    const uint32_t lost_value = s->infinities ? s->largest + 1 : s->largest;
    if (exponent < 1 - s->bias) { /* below the smallest normal number: adding a power of two rounds at the right bit */
        const float magic = float_of((uint32_t)(1 - s->bias - s->fraction + 23 + 127) << 23);
        return bits_of(float_of(a) + magic) - bits_of(magic);
    }
    const uint32_t odd = a >> drop & 1;
    const uint32_t rounded = (a + (1u << (drop - 1)) - 1 + odd) >> drop;
    const uint32_t code = rounded - ((uint32_t)(127 - s->bias) << s->fraction);
    return code > s->largest || a == 0x7f800000u ? lost_value : code;
}

static uint32_t narrow(const short_float *s, float x) {
    const uint32_t u = bits_of(x), sign = u >> 31 << (s->exponent + s->fraction), a = u & 0x7fffffffu;
    if (a > 0x7f800000u) return s->one_zero ? s->nan : sign | s->nan;
    const uint32_t code = narrow_size(s, a);
    return s->one_zero && code == 0 ? 0 : sign | code;
}

float cpu_number_from_fp16(uint16_t h) { return widen(&fp16, h); }
uint16_t cpu_number_to_fp16(float x) { return (uint16_t)narrow(&fp16, x); }
float cpu_number_from_fp8e4m3(uint8_t b) { return widen(&fp8e4m3, b); }
uint8_t cpu_number_to_fp8e4m3(float x) { return (uint8_t)narrow(&fp8e4m3, x); }
float cpu_number_from_fp8e5m2(uint8_t b) { return widen(&fp8e5m2, b); }
uint8_t cpu_number_to_fp8e5m2(float x) { return (uint8_t)narrow(&fp8e5m2, x); }

uint8_t cpu_number_to_fp8e8m0(float x, uint32_t up) {
    const uint32_t a = bits_of(x) & 0x7fffffffu,
                   half = 0x400000; /* its smallest number, 2^-127, is half a normal one */
    const uint32_t power = (a >= half << 1 ? a + up : a >= half ? (a - half) * 2 + up : 0) >> 23;
    return (uint8_t)(a > 0x7f800000u ? 0xff : power > 0xfe ? 0xfe : power);
}

static float from_fp8e8m0(uint32_t code) {
    return float_of(code == 0xff ? 0x7fc00000u : code == 0 ? 0x00400000u : code << 23);
}

float cpu_number_from_bf16(uint16_t h) { return float_of((uint32_t)h << 16); }

uint16_t cpu_number_to_bf16(float x) {
    const uint32_t u = bits_of(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* Codes of 2 or 4 bits, the lowest bits of a byte first. */
static uint32_t packed(const uint8_t *bytes, int64_t at, int bits) {
    const int per = 8 / bits;
    return (uint32_t)bytes[at / per] >> (at % per * bits) & ((1u << bits) - 1);
}

static void pack(uint8_t *bytes, int64_t at, int bits, uint32_t code) {
    const int per = 8 / bits, shift = (int)(at % per) * bits;
    const uint32_t mask = ((1u << bits) - 1) << shift;
    bytes[at / per] = (uint8_t)((bytes[at / per] & ~mask) | (code << shift & mask));
}

#define LOAD_LOOP(expression)                                                                                          \
    for (int64_t k = 0, i = at; k < count; k++, i += step) out[k] = (double)(expression);                              \
    break

void cpu_number_load(uint32_t type, const void *data, int64_t at, int64_t step, int64_t count, double *out) {
    const uint8_t *bytes = data;
    const uint16_t *halves = data;
    switch (type) {
    case SCOUT_FP32: LOAD_LOOP(((const float *)data)[i]);
    case SCOUT_FP64: LOAD_LOOP(((const double *)data)[i]);
    case SCOUT_INT32: LOAD_LOOP(((const int32_t *)data)[i]);
    case SCOUT_INT64: LOAD_LOOP(((const int64_t *)data)[i]);
    case SCOUT_INT16: LOAD_LOOP((int16_t)halves[i]);
    case SCOUT_UINT16: LOAD_LOOP(halves[i]);
    case SCOUT_UINT32: LOAD_LOOP(((const uint32_t *)data)[i]);
    case SCOUT_UINT64: LOAD_LOOP(((const uint64_t *)data)[i]);
    case SCOUT_BOOL: LOAD_LOOP(bytes[i]);
    case SCOUT_INT8: LOAD_LOOP((int8_t)bytes[i]);
    case SCOUT_UINT8: LOAD_LOOP(bytes[i]);
    case SCOUT_FP16: LOAD_LOOP(widen(&fp16, halves[i]));
    case SCOUT_BF16: LOAD_LOOP(cpu_number_from_bf16(halves[i]));
    case SCOUT_FP8E4M3: LOAD_LOOP(widen(&fp8e4m3, bytes[i]));
    case SCOUT_FP8E5M2: LOAD_LOOP(widen(&fp8e5m2, bytes[i]));
    case SCOUT_FP8E4M3FNUZ: LOAD_LOOP(widen(&fp8e4m3fnuz, bytes[i]));
    case SCOUT_FP8E5M2FNUZ: LOAD_LOOP(widen(&fp8e5m2fnuz, bytes[i]));
    case SCOUT_FP8E8M0: LOAD_LOOP(from_fp8e8m0(bytes[i]));
    case SCOUT_FP4E2M1: LOAD_LOOP(widen(&fp4e2m1, packed(bytes, i, 4)));
    case SCOUT_INT4: LOAD_LOOP((int)(packed(bytes, i, 4) ^ 8) - 8);
    case SCOUT_UINT4: LOAD_LOOP(packed(bytes, i, 4));
    case SCOUT_INT2: LOAD_LOOP((int)(packed(bytes, i, 2) ^ 2) - 2);
    case SCOUT_UINT2: LOAD_LOOP(packed(bytes, i, 2));
    default: LOAD_LOOP(NAN);
    }
}

static double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : rint(x); }

void cpu_number_store(uint32_t type, void *data, int64_t at, double value) {
    uint8_t *bytes = data;
    uint16_t *halves = data;
    switch (type) {
    case SCOUT_FP32: ((float *)data)[at] = (float)value; break;
    case SCOUT_FP64: ((double *)data)[at] = value; break;
    case SCOUT_INT32: ((int32_t *)data)[at] = (int32_t)clamp(value, INT32_MIN, INT32_MAX); break;
    case SCOUT_INT64: ((int64_t *)data)[at] = checked_from_double(rint(value)); break;
    case SCOUT_INT16: halves[at] = (uint16_t)(int16_t)clamp(value, INT16_MIN, INT16_MAX); break;
    case SCOUT_UINT16: halves[at] = (uint16_t)clamp(value, 0, UINT16_MAX); break;
    case SCOUT_UINT32: ((uint32_t *)data)[at] = (uint32_t)clamp(value, 0, UINT32_MAX); break;
    case SCOUT_UINT64:
        ((uint64_t *)data)[at] = value >= 0x1p64 ? UINT64_MAX : value > 0 ? (uint64_t)rint(value) : 0;
        break;
    case SCOUT_BOOL: bytes[at] = value != 0; break;
    case SCOUT_INT8: bytes[at] = (uint8_t)(int8_t)clamp(value, -128, 127); break;
    case SCOUT_UINT8: bytes[at] = (uint8_t)clamp(value, 0, 255); break;
    case SCOUT_FP16: halves[at] = cpu_number_to_fp16((float)value); break;
    case SCOUT_BF16: halves[at] = cpu_number_to_bf16((float)value); break;
    case SCOUT_FP8E4M3: bytes[at] = cpu_number_to_fp8e4m3((float)value); break;
    case SCOUT_FP8E5M2: bytes[at] = cpu_number_to_fp8e5m2((float)value); break;
    case SCOUT_FP8E4M3FNUZ: bytes[at] = (uint8_t)narrow(&fp8e4m3fnuz, (float)value); break;
    case SCOUT_FP8E5M2FNUZ: bytes[at] = (uint8_t)narrow(&fp8e5m2fnuz, (float)value); break;
    case SCOUT_FP8E8M0: bytes[at] = cpu_number_to_fp8e8m0((float)value, CPU_NUMBER_UP); break;
    case SCOUT_FP4E2M1: pack(bytes, at, 4, narrow(&fp4e2m1, (float)value)); break;
    case SCOUT_INT4: pack(bytes, at, 4, (uint32_t)(int)clamp(value, -8, 7)); break;
    case SCOUT_UINT4: pack(bytes, at, 4, (uint32_t)clamp(value, 0, 15)); break;
    case SCOUT_INT2: pack(bytes, at, 2, (uint32_t)(int)clamp(value, -2, 1)); break;
    case SCOUT_UINT2: pack(bytes, at, 2, (uint32_t)clamp(value, 0, 3)); break;
    default: break;
    }
}
