/* One element of raw data as a number, for every numeric data type. Bytes are little-endian; types of less than a byte
 * are packed from the low end. */
#include "extract/read/constants.h"

#include <math.h>
#include <string.h>

/* A small floating format: its bits, and what its largest exponent means. */
typedef struct float_format {
    int exponent_bits, mantissa_bits, bias;
    bool is_signed;
    enum { TOP_IS_NUMBER, TOP_IS_INF_NAN, TOP_ALL_ONES_NAN, NEGATIVE_ZERO_NAN } special;
} float_format;

static const float_format *format_of(dtype type) {
    static const float_format fp16 = {5, 10, 15, true, TOP_IS_INF_NAN}, bf16 = {8, 7, 127, true, TOP_IS_INF_NAN};
    static const float_format e4m3fn = {4, 3, 7, true, TOP_ALL_ONES_NAN}, e4m3fnuz = {4, 3, 8, true, NEGATIVE_ZERO_NAN};
    static const float_format e5m2 = {5, 2, 15, true, TOP_IS_INF_NAN}, e5m2fnuz = {5, 2, 16, true, NEGATIVE_ZERO_NAN};
    static const float_format e2m1 = {2, 1, 1, true, TOP_IS_NUMBER}, e8m0 = {8, 0, 127, false, TOP_ALL_ONES_NAN};
    switch (type) {
    case DTYPE_FP16: return &fp16;
    case DTYPE_BF16: return &bf16;
    case DTYPE_FP8E4M3FN: return &e4m3fn;
    case DTYPE_FP8E4M3FNUZ: return &e4m3fnuz;
    case DTYPE_FP8E5M2: return &e5m2;
    case DTYPE_FP8E5M2FNUZ: return &e5m2fnuz;
    case DTYPE_FP4E2M1: return &e2m1;
    case DTYPE_FP8E8M0: return &e8m0;
    default: return NULL;
    }
}

static double decode_float(const float_format *f, uint64_t bits) {
    const uint64_t mantissa_mask = ((uint64_t)1 << f->mantissa_bits) - 1,
                   exponent_mask = ((uint64_t)1 << f->exponent_bits) - 1;
    const uint64_t mantissa = bits & mantissa_mask, exponent = bits >> f->mantissa_bits & exponent_mask;
    const bool negative = f->is_signed && (bits >> (f->mantissa_bits + f->exponent_bits) & 1);
    const double sign = negative ? -1.0 : 1.0;
    if (f->special == NEGATIVE_ZERO_NAN && negative && exponent == 0 && mantissa == 0) return NAN;
    if (f->special == TOP_ALL_ONES_NAN && exponent == exponent_mask && mantissa == mantissa_mask) return NAN;
    if (f->special == TOP_IS_INF_NAN && exponent == exponent_mask) return mantissa ? NAN : sign * INFINITY;
    if (f->mantissa_bits == 0) return ldexp(1.0, (int)exponent - f->bias); /* a bare power of two: there is no zero */
    if (exponent == 0) return sign * ldexp((double)mantissa, 1 - f->bias - f->mantissa_bits);
    return sign * ldexp((double)(mantissa | (mantissa_mask + 1)), (int)exponent - f->bias - f->mantissa_bits);
}

/* The bits of element `index`, in the low end. */
static uint64_t bits_at(int bits, const uint8_t *bytes, int64_t index) {
    if (bits < 8) {
        const int per_byte = 8 / bits;
        return bytes[index / per_byte] >> (bits * (int)(index % per_byte)) & ((1u << bits) - 1);
    }
    const uint8_t *at = bytes + index * (bits / 8);
    uint64_t x = 0;
    for (int k = 0; k < bits / 8; k++) x |= (uint64_t)at[k] << (8 * k);
    return x;
}

bool constants_int(dtype type, const uint8_t *bytes, int64_t index, int64_t *x) {
    const dtype_info *about = dtype_get(type);
    if (about->cls != DTYPE_CLASS_INT || about->bits <= 0) return false;
    uint64_t bits = bits_at(about->bits, bytes, index);
    if (type == DTYPE_BOOL) bits = bits != 0;
    if (about->is_signed && about->bits < 64 && bits >> (about->bits - 1) & 1) bits |= ~(uint64_t)0 << about->bits;
    memcpy(x, &bits, sizeof *x);
    return true;
}

bool constants_float(dtype type, const uint8_t *bytes, int64_t index, double *x) {
    const dtype_info *about = dtype_get(type);
    if (about->cls != DTYPE_CLASS_FLOAT || about->bits <= 0) return false;
    const uint64_t bits = bits_at(about->bits, bytes, index);
    if (type == DTYPE_FP64) {
        memcpy(x, &bits, sizeof *x);
    } else if (type == DTYPE_FP32) {
        const uint32_t low = (uint32_t)bits;
        float f;
        memcpy(&f, &low, sizeof f);
        *x = f;
    } else {
        const float_format *f = format_of(type);
        if (!f) return false;
        *x = decode_float(f, bits);
    }
    return true;
}
