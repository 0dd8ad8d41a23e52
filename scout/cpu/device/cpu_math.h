/* Special functions in fp32 as straight code that compilers turn into vectors. All are within a few roundings; sine and
 * cosine for |x| up to 8192. What is no number stays none. */
#pragma once

#include "scout/cpu/device/cpu_vector.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

FAST_BODY uint32_t cpu_math_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

FAST_BODY float cpu_math_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

FAST_BODY float cpu_math_abs(float x) { return cpu_math_float(cpu_math_bits(x) & 0x7fffffffu); }
/* The second one where either is no number. */
FAST_BODY float cpu_math_min(float x, float y) { return x < y ? x : y; }
FAST_BODY float cpu_math_max(float x, float y) { return x > y ? x : y; }

/* To the next integer, ties to even, of numbers below 2^22: adding this leaves no room for a fraction. */
FAST_BODY float cpu_math_near(float x) {
    const float magic = 0x1.8p23F;
    return (x + magic) - magic;
}

/* e^x is 2^n e^r with |r| <= ln(2)/2; ln(2) in two parts, the first one exact in products with n. Returns e^r - 1. */
FAST_BODY float cpu_math_exp_parts(float x, float *n) {
    const float inside = cpu_math_min(cpu_math_max(x, -87.33654F), 88.72283F);
    *n = cpu_math_near(inside * 1.44269504F);
    const float r = (inside - *n * 0.693359375F) + *n * 2.12194440e-4F;
    float y = 1.9875691500e-4F;
    y = y * r + 1.3981999507e-3F;
    y = y * r + 8.3334519073e-3F;
    y = y * r + 4.1665795894e-2F;
    y = y * r + 1.6666665459e-1F;
    y = y * r + 5.0000001201e-1F;
    return y * (r * r) + r;
}

FAST_BODY float cpu_math_exp(float x) {
    float n;
    const float y = cpu_math_exp_parts(x, &n) + 1;
    /* in two steps: 2^128 is no float, and half of it times 2 may be one */
    const int32_t half = (int32_t)n >> 1, rest = (int32_t)n - half;
    const float result =
        y * cpu_math_float((uint32_t)(half + 127) << 23) * cpu_math_float((uint32_t)(rest + 127) << 23);
    return x > 88.72283F ? __builtin_inff() : x < -87.33654F ? 0 : x != x ? x : result;
}

/* e^x - 1 of x up to 0. */
FAST_BODY float cpu_math_exp_minus_one(float x) {
    float n;
    const float y = cpu_math_exp_parts(x, &n), scale = cpu_math_float((uint32_t)((int32_t)n + 127) << 23);
    return x < -87.33654F ? -1 : x != x ? x : y * scale + (scale - 1);
}

/* Of positive normal numbers. */
FAST_BODY float cpu_math_log_inside(float x) {
    const int32_t exponent = (int32_t)(cpu_math_bits(x) - 0x3f3504f3u) >> 23; /* what is left lies in 0.71 to 1.41 */
    const float r = cpu_math_float(cpu_math_bits(x) - ((uint32_t)exponent << 23)) - 1, q = r * r;
    const float n = (float)exponent;
    float y = 7.0376836292e-2F;
    y = y * r - 1.1514610310e-1F;
    y = y * r + 1.1676998740e-1F;
    y = y * r - 1.2420140846e-1F;
    y = y * r + 1.4249322787e-1F;
    y = y * r - 1.6668057665e-1F;
    y = y * r + 2.0000714765e-1F;
    y = y * r - 2.4999993993e-1F;
    y = y * r + 3.3333331174e-1F;
    y = y * r * q - n * 2.12194440e-4F - 0.5F * q;
    return r + y + n * 0.693359375F;
}

FAST_BODY float cpu_math_log(float x) {
    const bool small = x < 0x1p-126F; /* subnormals have no exponent of their own */
    const float inside = cpu_math_log_inside(small ? x * 0x1p23F : x) - (small ? 15.9423851F : 0);
    const float beyond = x == 0 ? -__builtin_inff() : x < 0 ? __builtin_nanf("") : x;
    return x > 0 && x < __builtin_inff() ? inside : beyond;
}

/* log(1 + x) of x from 0 to 1. What 1 + x rounds away comes back over 1 + x, for which a few terms will do. */
FAST_BODY float cpu_math_log_plus_one(float x) {
    const float u = 1 + x, t = u - 1, lost = x - t;
    const float y = cpu_math_log_inside(u) + lost * (1 - t * (1 - 0.5F * t));
    return x == x ? y : x;
}

/* A quotient of polynomials, up to where fp32 cannot tell it from 1. */
FAST_BODY float cpu_math_tanh(float x) {
    const float c = cpu_math_min(7.90531110763549805F, cpu_math_max(-7.90531110763549805F, x)), q = c * c;
    float p = -2.76076847742355e-16F;
    p = p * q + 2.00018790482477e-13F;
    p = p * q - 8.60467152213735e-11F;
    p = p * q + 5.12229709037114e-08F;
    p = p * q + 1.48572235717979e-05F;
    p = p * q + 6.37261928875436e-04F;
    p = p * q + 4.89352455891786e-03F;
    float d = 1.19825839466702e-06F;
    d = d * q + 1.18534705686654e-04F;
    d = d * q + 2.26843463243900e-03F;
    d = d * q + 4.89352518554385e-03F;
    return c * p / d;
}

FAST_BODY float cpu_math_erf(float x) {
    const float c = cpu_math_min(4.0F, cpu_math_max(-4.0F, x)), q = c * c;
    float p = -2.72614225801306e-10F;
    p = p * q + 2.77068142495902e-08F;
    p = p * q - 2.10102402082508e-06F;
    p = p * q - 5.69250639462346e-05F;
    p = p * q - 7.34990630326855e-04F;
    p = p * q - 2.95459980854025e-03F;
    p = p * q - 1.60960333262415e-02F;
    float d = -1.45660718464996e-05F;
    d = d * q - 2.13374055278905e-04F;
    d = d * q - 1.68282697438203e-03F;
    d = d * q - 7.37332916720468e-03F;
    d = d * q - 1.42647390514189e-02F;
    return c * p / d;
}

FAST_BODY float cpu_math_sigmoid(float x) { return 1 / (1 + cpu_math_exp(-x)); }

/* sin(x + quarter * pi/2): quarters of a turn are taken off in three parts. */
FAST_BODY float cpu_math_sine(float x, int32_t quarter) {
    const float n = cpu_math_near(x * 0.636619772F);
    const float r = ((x - n * 1.5703125F) - n * 4.837512969970703125e-4F) - n * 7.54978995489188216e-8F, q = r * r;
    const float sine = r + r * q * (-1.6666654611e-1F + q * (8.3321608736e-3F + q * -1.9515295891e-4F));
    const float cosine =
        1 - 0.5F * q + q * q * (4.166664568298827e-2F + q * (-1.388731625493765e-3F + q * 2.443315711809948e-5F));
    const uint32_t turn = (uint32_t)((int32_t)n + quarter);
    const float y = turn & 1 ? cosine : sine;
    return cpu_math_float(cpu_math_bits(y) ^ (turn & 2) << 30);
}
