/* Every body is compiled once for each width of vectors. Sums are kept in eight vectors of 8, and every 4,096 elements
 * in double: so their rounding hardly grows with the row. Other loops are left to the compiler. */
#include "scout/cpu/kernels/cpu_rows.h"

#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_vector.h"

#include <math.h>
#include <stddef.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* As FAST of cpu_vector.h; products and sums are joined where the processor can, as clang does by itself. */
#if defined(__GNUC__) && !defined(__clang__)
#define JOINED      __attribute__((optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=fast")))
#define JOINED_BODY static inline __attribute__((always_inline)) JOINED
#else
#define JOINED
#define JOINED_BODY FAST_BODY
#endif

/* Iterations do not depend on each other, whether or not an output is the input. */
#if defined(__clang__)
#pragma clang diagnostic ignored                                                                                       \
    "-Wpass-failed" /* a build without vectorizing, such as a fuzzer's, refuses the pragma */
#define APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define APART _Pragma("GCC ivdep")
#endif

enum { LANES = 8, SUMS = 8, STEP = SUMS * LANES, PART = 4096, CHUNK = 512 };

typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));
typedef int32_t bits __attribute__((vector_size(LANES * sizeof(int32_t)), aligned(4), may_alias));

JOINED_BODY uint32_t bits_of(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

JOINED_BODY float float_of(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* --- sums --- */

/* `each` of vector or scalar v, added up over whole steps and the rest. */
#define SUM_BODY(name, parameters, of_vector, of_scalar)                                                               \
    JOINED_BODY double name parameters {                                                                               \
        double total = 0;                                                                                              \
        for (int64_t from = 0; from < count; from += PART) {                                                           \
            const int64_t end = count - from < PART ? count : from + PART;                                             \
            int64_t k = from;                                                                                          \
            float rest = 0;                                                                                            \
            lanes s[SUMS] = {{0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}};                                                  \
            for (; k + STEP <= end; k += STEP)                                                                         \
                for (int u = 0; u < SUMS; u++) {                                                                       \
                    const lanes v = *(const lanes *)(x + k + u * LANES);                                               \
                    s[u] += (of_vector);                                                                               \
                }                                                                                                      \
            for (; k + LANES <= end; k += LANES) {                                                                     \
                const lanes v = *(const lanes *)(x + k);                                                               \
                s[0] += (of_vector);                                                                                   \
            }                                                                                                          \
            for (; k < end; k++) {                                                                                     \
                const float v = x[k];                                                                                  \
                rest += (of_scalar);                                                                                   \
            }                                                                                                          \
            for (int half = SUMS / 2; half > 0; half /= 2)                                                             \
                for (int u = 0; u < half; u++) s[u] += s[u + half];                                                    \
            for (int l = 0; l < LANES; l++) rest += s[0][l];                                                           \
            total += (double)rest;                                                                                     \
        }                                                                                                              \
        return total;                                                                                                  \
    }

SUM_BODY(sum_body, (const float *x, int64_t count), v, v)
SUM_BODY(squares_body, (const float *x, int64_t count, float mean), (v - mean) * (v - mean), (v - mean) * (v - mean))
SUM_BODY(magnitudes_body, (const float *x, int64_t count), (lanes)((bits)v & 0x7fffffff), fabsf(v))

JOINED_BODY void largest_columns_body(const float *x, int64_t count, float *most) {
    APART for (int64_t k = 0; k < count; k++) most[k] = x[k] > most[k] ? x[k] : most[k];
}

JOINED_BODY float largest_body(const float *x, int64_t count) {
    float most[STEP];
    int64_t k = count < STEP ? count : STEP;
    if (count >= STEP)
        memcpy(most, x, sizeof most);
    else
        for (int l = 0; l < STEP; l++) most[l] = x[l < k ? l : 0];
    for (; k + STEP <= count; k += STEP) largest_columns_body(x + k, STEP, most);
    largest_columns_body(x + k, count - k, most);
    for (int half = STEP / 2; half > 0; half /= 2) largest_columns_body(most + half, half, most);
    return most[0];
}

/* --- exponentials --- */

/* 2^n times a polynomial for what is left, at most half an octave. Subnormal results are rounded once more, beyond -104
 * everything is 0, beyond 89 infinite. Adding 1.5 * 2^23 rounds to a whole number in the low bits. */
JOINED_BODY float exp_one(float x) {
    const float magic = 0x1.8p23f;
    x = x < -104.5f ? -104.5f : x;
    x = x > 89 ? 89 : x;
    const float turned = x * 1.44269504f + magic, n = turned - magic;
    float r = x - n * 0.693359375f; /* exact: 9 bits times 8 */
    r = r - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r;
    p = p + 1;
    const int32_t whole = (int32_t)(bits_of(turned) - bits_of(magic)), half = whole >> 1;
    return p * float_of((uint32_t)(half + 127) << 23) * float_of((uint32_t)(whole - half + 127) << 23);
}

JOINED_BODY double exponentials_body(const float *x, int64_t count, float shift, float *y) {
    double total = 0;
    for (int64_t from = 0; from < count; from += CHUNK) { /* summed while they are near */
        const int64_t end = count - from < CHUNK ? count : from + CHUNK;
        APART for (int64_t k = from; k < end; k++) y[k] = exp_one(x[k] - shift);
        total += sum_body(y + from, end - from);
    }
    return total;
}

JOINED_BODY void silu_body(const float *x, int64_t count, float *y) {
    APART for (int64_t k = 0; k < count; k++) y[k] = x[k] / (1 + exp_one(-x[k]));
}

/* --- elementwise --- */

JOINED_BODY void affine_body(const float *x, int64_t count, float mean, float factor, float addend, float *y) {
    APART for (int64_t k = 0; k < count; k++) y[k] = (x[k] - mean) * factor + addend;
}

JOINED_BODY void scaled_body(const float *x, int64_t count, float mean, float factor, const float *scale,
                             const float *bias, float *y) {
    if (scale && bias) {
        APART for (int64_t k = 0; k < count; k++) y[k] = (x[k] - mean) * factor * scale[k] + bias[k];
    } else if (scale) {
        APART for (int64_t k = 0; k < count; k++) y[k] = (x[k] - mean) * factor * scale[k];
    } else if (bias) {
        APART for (int64_t k = 0; k < count; k++) y[k] = (x[k] - mean) * factor + bias[k];
    } else {
        APART for (int64_t k = 0; k < count; k++) y[k] = (x[k] - mean) * factor;
    }
}

JOINED_BODY void add_body(const float *a, const float *b, int64_t count, float *y) {
    APART for (int64_t k = 0; k < count; k++) y[k] = a[k] + b[k];
}

JOINED_BODY void add_one_body(const float *a, float b, int64_t count, float *y) {
    APART for (int64_t k = 0; k < count; k++) y[k] = a[k] + b;
}

JOINED_BODY void relu_body(const float *x, int64_t count, float *y) {
    APART for (int64_t k = 0; k < count; k++) y[k] = x[k] > 0 ? x[k] : 0;
}

/* --- columns --- */

JOINED_BODY void sum_columns_body(const float *x, int64_t count, float *sums) {
    APART for (int64_t k = 0; k < count; k++) sums[k] += x[k];
}

JOINED_BODY void magnitude_columns_body(const float *x, int64_t count, float *sums) {
    APART for (int64_t k = 0; k < count; k++) sums[k] += float_of(bits_of(x[k]) & 0x7fffffffu);
}

JOINED_BODY void square_columns_body(const float *x, const float *mean, int64_t count, float *sums) {
    APART for (int64_t k = 0; k < count; k++) sums[k] += (x[k] - mean[k]) * (x[k] - mean[k]);
}

JOINED_BODY void scale_columns_body(const float *x, const float *mean, const float *factor, int64_t count, float *y) {
    APART for (int64_t k = 0; k < count; k++) y[k] = (x[k] - mean[k]) * factor[k];
}

JOINED_BODY void exponential_columns_body(const float *x, const float *most, int64_t count, float *y, float *sums) {
    APART for (int64_t k = 0; k < count; k++) {
        y[k] = exp_one(x[k] - most[k]);
        sums[k] += y[k];
    }
}

/* --- types --- */

JOINED_BODY void load_bf16_body(const uint16_t *from, int64_t count, float *to) {
    for (int64_t k = 0; k < count; k++) to[k] = float_of((uint32_t)from[k] << 16);
}

JOINED_BODY void store_bf16_body(const float *from, int64_t count, uint16_t *to) {
    for (int64_t k = 0; k < count; k++) {
        const uint32_t u = bits_of(from[k]), rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
        to[k] = (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? u >> 16 | 0x40 : rounded);
    }
}

static void load_fp16_tail(const uint16_t *from, int64_t count, float *to) {
    for (int64_t k = 0; k < count; k++) to[k] = cpu_number_from_fp16(from[k]);
}

static void store_fp16_tail(const float *from, int64_t count, uint16_t *to) {
    for (int64_t k = 0; k < count; k++) to[k] = cpu_number_to_fp16(from[k]);
}

#define load_fp16_portable  load_fp16_tail
#define store_fp16_portable store_fp16_tail

#if defined(__x86_64__)
__attribute__((target("avx2,f16c"))) static void load_fp16_avx2(const uint16_t *from, int64_t count, float *to) {
    int64_t k = 0;
    for (; k + 8 <= count; k += 8)
        _mm256_storeu_ps(to + k, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + k))));
    load_fp16_tail(from + k, count - k, to + k);
}

__attribute__((target("avx2,f16c"))) static void store_fp16_avx2(const float *from, int64_t count, uint16_t *to) {
    int64_t k = 0;
    for (; k + 8 <= count; k += 8)
        _mm_storeu_si128((__m128i *)(void *)(to + k),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + k), _MM_FROUND_TO_NEAREST_INT));
    store_fp16_tail(from + k, count - k, to + k);
}

__attribute__((target("avx512f"))) static void load_fp16_avx512(const uint16_t *from, int64_t count, float *to) {
    int64_t k = 0;
    for (; k + 16 <= count; k += 16)
        _mm512_storeu_ps(to + k, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(from + k))));
    load_fp16_tail(from + k, count - k, to + k);
}

__attribute__((target("avx512f"))) static void store_fp16_avx512(const float *from, int64_t count, uint16_t *to) {
    int64_t k = 0;
    for (; k + 16 <= count; k += 16)
        _mm256_storeu_si256((__m256i *)(void *)(to + k),
                            _mm512_cvtps_ph(_mm512_loadu_ps(from + k), _MM_FROUND_TO_NEAREST_INT));
    store_fp16_tail(from + k, count - k, to + k);
}
#endif

/* --- one table a width --- */

/* A function of that width, of `answer`, that hands its arguments to the body. */
#define WIDE(width, target, answer, name, parameters, arguments)                                                       \
    JOINED target static answer name##_##width parameters { return name##_body arguments; }
#define WIDE_VOID(width, target, name, parameters, arguments)                                                          \
    JOINED target static void name##_##width parameters { name##_body arguments; }

#define TABLE(width, target)                                                                                           \
    WIDE(width, target, double, sum, (const float *x, int64_t count), (x, count))                                      \
    WIDE(width, target, double, squares, (const float *x, int64_t count, float mean), (x, count, mean))                \
    WIDE(width, target, double, magnitudes, (const float *x, int64_t count), (x, count))                               \
    WIDE(width, target, float, largest, (const float *x, int64_t count), (x, count))                                   \
    WIDE(width, target, double, exponentials, (const float *x, int64_t count, float shift, float *y),                  \
         (x, count, shift, y))                                                                                         \
    WIDE_VOID(width, target, affine,                                                                                   \
              (const float *x, int64_t count, float mean, float factor, float addend, float *y),                       \
              (x, count, mean, factor, addend, y))                                                                     \
    WIDE_VOID(                                                                                                         \
        width, target, scaled,                                                                                         \
        (const float *x, int64_t count, float mean, float factor, const float *scale, const float *bias, float *y),    \
        (x, count, mean, factor, scale, bias, y))                                                                      \
    WIDE_VOID(width, target, add, (const float *a, const float *b, int64_t count, float *y), (a, b, count, y))         \
    WIDE_VOID(width, target, add_one, (const float *a, float b, int64_t count, float *y), (a, b, count, y))            \
    WIDE_VOID(width, target, relu, (const float *x, int64_t count, float *y), (x, count, y))                           \
    WIDE_VOID(width, target, silu, (const float *x, int64_t count, float *y), (x, count, y))                           \
    WIDE_VOID(width, target, sum_columns, (const float *x, int64_t count, float *sums), (x, count, sums))              \
    WIDE_VOID(width, target, magnitude_columns, (const float *x, int64_t count, float *sums), (x, count, sums))        \
    WIDE_VOID(width, target, square_columns, (const float *x, const float *mean, int64_t count, float *sums),          \
              (x, mean, count, sums))                                                                                  \
    WIDE_VOID(width, target, largest_columns, (const float *x, int64_t count, float *most), (x, count, most))          \
    WIDE_VOID(width, target, scale_columns,                                                                            \
              (const float *x, const float *mean, const float *factor, int64_t count, float *y),                       \
              (x, mean, factor, count, y))                                                                             \
    WIDE_VOID(width, target, exponential_columns,                                                                      \
              (const float *x, const float *most, int64_t count, float *y, float *sums), (x, most, count, y, sums))    \
    WIDE_VOID(width, target, load_bf16, (const uint16_t *from, int64_t count, float *to), (from, count, to))           \
    WIDE_VOID(width, target, store_bf16, (const float *from, int64_t count, uint16_t *to), (from, count, to))          \
    static void load_##width(uint32_t type, const void *from, int64_t count, float *to) {                              \
        if (type == SCOUT_FP32) memcpy(to, from, (size_t)count * sizeof *to);                                          \
        if (type == SCOUT_FP16) load_fp16_##width(from, count, to);                                                    \
        if (type == SCOUT_BF16) load_bf16_##width(from, count, to);                                                    \
    }                                                                                                                  \
    static void store_##width(uint32_t type, const float *from, int64_t count, void *to) {                             \
        if (type == SCOUT_FP32) memcpy(to, from, (size_t)count * sizeof *from);                                        \
        if (type == SCOUT_FP16) store_fp16_##width(from, count, to);                                                   \
        if (type == SCOUT_BF16) store_bf16_##width(from, count, to);                                                   \
    }                                                                                                                  \
    static const cpu_rows rows_##width = {.name = #width,                                                              \
                                          .load = load_##width,                                                        \
                                          .store = store_##width,                                                      \
                                          .sum = sum_##width,                                                          \
                                          .squares = squares_##width,                                                  \
                                          .magnitudes = magnitudes_##width,                                            \
                                          .largest = largest_##width,                                                  \
                                          .exponentials = exponentials_##width,                                        \
                                          .affine = affine_##width,                                                    \
                                          .scaled = scaled_##width,                                                    \
                                          .add = add_##width,                                                          \
                                          .add_one = add_one_##width,                                                  \
                                          .relu = relu_##width,                                                        \
                                          .silu = silu_##width,                                                        \
                                          .sum_columns = sum_columns_##width,                                          \
                                          .magnitude_columns = magnitude_columns_##width,                              \
                                          .square_columns = square_columns_##width,                                    \
                                          .largest_columns = largest_columns_##width,                                  \
                                          .scale_columns = scale_columns_##width,                                      \
                                          .exponential_columns = exponential_columns_##width};

TABLE(portable, )
#if defined(__x86_64__)
TABLE(avx2, WIDE_AVX2)
TABLE(avx512, WIDE_AVX512)
#endif

const cpu_rows *cpu_rows_at(int index) {
    const cpu_info *c = cpu_info_get();
    (void)c;
    if (index == 0) return &rows_portable;
#if defined(__x86_64__)
    if (index == 1 && c->avx2) return &rows_avx2;
    if (index == 2 && c->avx2 && c->avx512) return &rows_avx512;
#endif
    return NULL;
}

const cpu_rows *cpu_rows_best(void) {
    int index = 0;
    while (cpu_rows_at(index + 1)) index++;
    return cpu_rows_at(index);
}

int64_t cpu_rows_scratch(int64_t floats) { return (floats + 31) / 16 * 16; }
