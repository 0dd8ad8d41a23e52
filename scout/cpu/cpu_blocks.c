/* Conversions of short runs, in vectors where the processor has them. */
#include "scout/cpu/cpu_blocks.h"

#include "scout/cpu/cpu_info.h"
#include "scout/cpu/cpu_math.h"
#include "scout/cpu/cpu_number.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define LOAD(name, type, to, expression)                                                                               \
    FAST static void load_##name(const void *data, int64_t at, int64_t count, void *block) {                           \
        const type *restrict from = (const type *)data + at;                                                           \
        __typeof__(to) *restrict out = block;                                                                          \
        for (int64_t k = 0; k < count; k++) out[k] = (to)(expression);                                                 \
    }
#define STORE(name, type, of, expression)                                                                              \
    FAST static void store_##name(const void *block, int64_t count, void *data, int64_t at) {                          \
        const of *restrict from = block;                                                                               \
        __typeof__(type) *restrict out = (type *)data + at;                                                            \
        for (int64_t k = 0; k < count; k++) out[k] = (type)(expression);                                               \
    }

FAST_BODY uint16_t to_bf16(float x) {
    const uint32_t u = cpu_math_bits(x);
    const uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16, nan = u >> 16 | 0x40;
    return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

LOAD(fp32, float, float, from[k])
LOAD(bf16, uint16_t, float, cpu_math_float((uint32_t)from[k] << 16))
LOAD(fp16, uint16_t, float, cpu_number_from_fp16(from[k]))
LOAD(bool, uint8_t, float, from[k] != 0)
STORE(fp32, float, float, from[k])
STORE(bf16, uint16_t, float, to_bf16(from[k]))
STORE(fp16, uint16_t, float, cpu_number_to_fp16(from[k]))
STORE(bool, uint8_t, float, from[k] != 0)

LOAD(int64, int64_t, int64_t, from[k])
LOAD(int32, int32_t, int64_t, from[k])
LOAD(int8, int8_t, int64_t, from[k])
LOAD(uint8, uint8_t, int64_t, from[k])
LOAD(truth, uint8_t, int64_t, from[k] != 0)
STORE(int64, int64_t, int64_t, from[k])
STORE(int32, int32_t, int64_t, (uint32_t)(uint64_t)from[k])
STORE(int8, int8_t, int64_t, (uint8_t)(uint64_t)from[k])
STORE(uint8, uint8_t, int64_t, (uint64_t)from[k])
STORE(truth, uint8_t, int64_t, from[k] != 0)

#if defined(__x86_64__)

WIDE_AVX512 static void load_fp16_avx512(const void *data, int64_t at, int64_t count, void *block) {
    const uint16_t *from = (const uint16_t *)data + at;
    float *out = block;
    for (int64_t k = 0; k < count; k += 16) {
        const __mmask16 mask = (__mmask16)(count - k < 16 ? (1u << (count - k)) - 1 : 0xffff);
        _mm512_mask_storeu_ps(out + k, mask, _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, from + k)));
    }
}

WIDE_AVX512 static void store_fp16_avx512(const void *block, int64_t count, void *data, int64_t at) {
    const float *from = block;
    uint16_t *out = (uint16_t *)data + at;
    for (int64_t k = 0; k < count; k += 16) {
        const __mmask16 mask = (__mmask16)(count - k < 16 ? (1u << (count - k)) - 1 : 0xffff);
        const __m512 x = _mm512_maskz_loadu_ps(mask, from + k);
        _mm256_mask_storeu_epi16(out + k, mask, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
}

static void choose_wide(uint32_t type, cpu_blocks *out) {
    if (type != SCOUT_FP16 || !cpu_info_get()->avx512) return;
    out->load = load_fp16_avx512;
    out->store = store_fp16_avx512;
}

#else
static void choose_wide(uint32_t type, cpu_blocks *out) { (void)type, (void)out; }
#endif

bool cpu_blocks_of(uint32_t type, bool wholes, cpu_blocks *out) {
    static const struct {
        uint32_t type;
        bool wholes;
        cpu_blocks blocks;
    } rows[] = {
        {SCOUT_FP32, false, {load_fp32, store_fp32, true, 4}},
        {SCOUT_BF16, false, {load_bf16, store_bf16, false, 2}},
        {SCOUT_FP16, false, {load_fp16, store_fp16, false, 2}},
        {SCOUT_BOOL, false, {load_bool, store_bool, false, 1}},
        {SCOUT_INT64, true, {load_int64, store_int64, true, 8}},
        {SCOUT_INT32, true, {load_int32, store_int32, false, 4}},
        {SCOUT_INT8, true, {load_int8, store_int8, false, 1}},
        {SCOUT_UINT8, true, {load_uint8, store_uint8, false, 1}},
        {SCOUT_BOOL, true, {load_truth, store_truth, false, 1}},
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        if (rows[k].type != type || rows[k].wholes != wholes) continue;
        *out = rows[k].blocks;
        choose_wide(type, out);
        return true;
    }
    return false;
}
