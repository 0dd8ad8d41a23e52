/* Tiles of 8 x 32 (or x 16) in registers, and exponentials by a polynomial; each body is compiled once for every width
 * that a processor may have. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=fast") /* products and sums in one instruction, which -std=c11 forbids */
#elif defined(__clang__)
#pragma STDC FP_CONTRACT ON
#endif
#include "scout/cpu/products/cpu_attention_kernel.h"

#include "scout/cpu/device/cpu_convert.h"
#include "scout/cpu/device/cpu_info.h"

enum { TILE = 8 };

/* Sixteen numbers; the compiler makes as many registers of them as it needs. */
typedef float lanes16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef float vector16 __attribute__((vector_size(64)));

/* `rows` and `wide` are constants wherever this is inlined, so that c stays in registers. */
FAST_BODY void tile_body(const cpu_attention_product *p, int64_t row, int64_t lane, int rows, int wide) {
    vector16 c[TILE][2];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < wide; j++) {
            const vector16 zero = {0};
            const float *from = p->c + (row + i) * p->lanes + lane + j * 16;
            c[i][j] = zero;
            if (p->add) c[i][j] = *(const lanes16 *)from;
        }
    const float *a = p->a + row * p->step_i, *b = p->b + lane;
    for (int64_t k = 0; k < p->depth; k++, a += p->step_k, b += p->lanes) {
        vector16 right[2];
        for (int j = 0; j < wide; j++) right[j] = *(const lanes16 *)(b + j * 16);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 8
#endif
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < wide; j++) c[i][j] += a[i * p->step_i] * right[j];
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < wide; j++) *(lanes16 *)(p->c + (row + i) * p->lanes + lane + j * 16) = c[i][j];
}

FAST_BODY void multiply_body(const cpu_attention_product *p) {
    for (int64_t lane = 0; lane < p->lanes; lane += 32) {
        const int wide = p->lanes - lane >= 32;
        int64_t row = 0;
        for (; row + TILE <= p->rows; row += TILE) {
            if (wide)
                tile_body(p, row, lane, TILE, 2);
            else
                tile_body(p, row, lane, TILE, 1);
        }
        for (; row < p->rows; row++) {
            if (wide)
                tile_body(p, row, lane, 1, 2);
            else
                tile_body(p, row, lane, 1, 1);
        }
    }
}

/* exp(x) for x <= 0, within 2 units in the last place; below -87 it is as small as at -87, which is nothing beside the
 * 1 that every row holds. Adding 1.5 * 2^23 rounds to a whole number; the Taylor series is of degree 6 around 0. */
FAST_BODY float exponential(float x) {
    const float magic = 0x1.8p23f, bounded = x < -87.0f ? -87.0f : x;
    const float shifted = bounded * 1.44269504f + magic, whole = shifted - magic;
    const float r = (bounded - whole * 0.693359375f) + whole * 2.12194440e-4f;
    const float series =
        1 + r * (1 + r * (0.5f + r * (0.166666667f + r * (0.0416666667f + r * (0.00833333333f + r * 0.00138888889f)))));
    return series * cpu_convert_float((cpu_convert_bits(shifted) - 0x4b400000u + 127u) << 23);
}

FAST_BODY void soften_body(const cpu_attention_soften *s) {
    const int64_t n = s->lanes;
    float *const most = s->most, *const sum = s->sum, *const change = s->change;
    int moved = 0;
    for (int64_t lane = 0; lane < n; lane++) change[lane] = most[lane];
    for (int64_t key = 0; key < s->keys; key++) {
        const float *x = s->scores + key * n;
        for (int64_t lane = 0; lane < n; lane++) most[lane] = x[lane] > most[lane] ? x[lane] : most[lane];
    }
    for (int64_t lane = 0; lane < n; lane++) {
        moved |= change[lane] < most[lane];
        change[lane] = exponential(change[lane] - most[lane]);
        sum[lane] *= change[lane];
    }
    for (int64_t key = 0; key < s->keys; key++) {
        float *x = s->scores + key * n;
        for (int64_t lane = 0; lane < n; lane++) {
            x[lane] = exponential(x[lane] - most[lane]);
            sum[lane] += x[lane];
        }
    }
    for (int64_t d = 0; moved && d < s->v_dim; d++)
        for (int64_t lane = 0; lane < n; lane++) s->out[d * n + lane] *= change[lane];
}

#define WIDTH(name, attributes)                                                                                        \
    FAST attributes static void multiply_##name(const cpu_attention_product *p) { multiply_body(p); }                  \
    FAST attributes static void soften_##name(const cpu_attention_soften *s) { soften_body(s); }                       \
    FAST attributes static void load_##name(uint32_t type, const void *from, int64_t count, float *to) {               \
        cpu_convert_load(type, from, count, to);                                                                       \
    }                                                                                                                  \
    FAST attributes static void store_##name(uint32_t type, const float *from, int64_t count, void *to) {              \
        cpu_convert_store(type, from, count, to);                                                                      \
    }                                                                                                                  \
    static const cpu_attention_kernel kernel_##name = {#name, multiply_##name, soften_##name, load_##name,             \
                                                       store_##name};
WIDTH(any, )
WIDTH(avx2, WIDE_AVX2)
WIDTH(avx512, WIDE_AVX512)

const cpu_attention_kernel *cpu_attention_kernel_get(void) {
    const cpu_info *c = cpu_info_get();
    return c->avx512 ? &kernel_avx512 : c->avx2 ? &kernel_avx2 : &kernel_any;
}
