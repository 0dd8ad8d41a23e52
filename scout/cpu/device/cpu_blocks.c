/* Conversions of short runs, in vectors where the processor has them. */
#include "scout/cpu/device/cpu_blocks.h"

#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_math.h"
#include "scout/cpu/device/cpu_number.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Each is compiled for every width that the processor may have. */
#define LOAD(name, type, to, expression)                                                                               \
    FAST_BODY void load_##name##_body(const void *data, int64_t at, int64_t count, void *block) {                      \
        const type *restrict from = (const type *)data + at;                                                           \
        __typeof__(to) *restrict out = block;                                                                          \
        for (int64_t k = 0; k < count; k++) out[k] = (to)(expression);                                                 \
    }                                                                                                                  \
    LOAD_WIDTH(name, any, )                                                                                            \
    LOAD_WIDTH(name, avx2, WIDE_AVX2)                                                                                  \
    LOAD_WIDTH(name, avx512, WIDE_AVX512)
#define LOAD_WIDTH(name, width, target)                                                                                \
    FAST target static void load_##name##_##width(const void *data, int64_t at, int64_t count, void *block) {          \
        load_##name##_body(data, at, count, block);                                                                    \
    }
#define STORE(name, type, of, expression)                                                                              \
    FAST_BODY void store_##name##_body(const void *block, int64_t count, void *data, int64_t at) {                     \
        const of *restrict from = block;                                                                               \
        __typeof__(type) *restrict out = (type *)data + at;                                                            \
        for (int64_t k = 0; k < count; k++) out[k] = (type)(expression);                                               \
    }                                                                                                                  \
    STORE_WIDTH(name, any, )                                                                                           \
    STORE_WIDTH(name, avx2, WIDE_AVX2)                                                                                 \
    STORE_WIDTH(name, avx512, WIDE_AVX512)
#define STORE_WIDTH(name, width, target)                                                                               \
    FAST target static void store_##name##_##width(const void *block, int64_t count, void *data, int64_t at) {         \
        store_##name##_body(block, count, data, at);                                                                   \
    }

FAST_BODY uint16_t to_bf16(float x) {
    const uint32_t u = cpu_math_bits(x);
    const uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16, nan = u >> 16 | 0x40;
    return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

LOAD(fp32, float, float, from[k])
LOAD(bf16, uint16_t, float, cpu_math_float((uint32_t)from[k] << 16))
LOAD(fp16, uint16_t, float, cpu_number_from_fp16(from[k]))
LOAD(byte, uint8_t, float, from[k] != 0)
STORE(fp32, float, float, from[k])
STORE(bf16, uint16_t, float, to_bf16(from[k]))
STORE(fp16, uint16_t, float, cpu_number_to_fp16(from[k]))
STORE(byte, uint8_t, float, from[k] != 0)

FAST_BODY int32_t nearest(float x, float least, float most) {
    return (int32_t)cpu_math_near(cpu_math_min(cpu_math_max(x, least), most));
}
LOAD(signed, int8_t, float, from[k])
LOAD(unsigned, uint8_t, float, from[k] - 128)
STORE(signed, int8_t, float, nearest(from[k], -128, 127))
STORE(unsigned, uint8_t, float, nearest(from[k], -128, 127) + 128)

LOAD(int64, int64_t, int64_t, from[k])
LOAD(int32, int32_t, int64_t, from[k])
LOAD(int8, int8_t, int64_t, from[k])
LOAD(uint8, uint8_t, int64_t, from[k])
LOAD(int16, int16_t, int64_t, from[k])
LOAD(uint16, uint16_t, int64_t, from[k])
LOAD(uint32, uint32_t, int64_t, from[k])
LOAD(truth, uint8_t, int64_t, from[k] != 0)
LOAD(fp64, double, double, from[k])
LOAD(flag, uint8_t, double, from[k] != 0)
STORE(int64, int64_t, int64_t, from[k])
STORE(int32, int32_t, int64_t, (uint32_t)(uint64_t)from[k])
STORE(int8, int8_t, int64_t, (uint8_t)(uint64_t)from[k])
STORE(uint8, uint8_t, int64_t, (uint64_t)from[k])
STORE(int16, int16_t, int64_t, (uint16_t)(uint64_t)from[k])
STORE(uint16, uint16_t, int64_t, (uint64_t)from[k])
STORE(uint32, uint32_t, int64_t, (uint64_t)from[k])
STORE(truth, uint8_t, int64_t, from[k] != 0)
STORE(fp64, double, double, from[k])
STORE(flag, uint8_t, double, from[k] != 0)

#if defined(__x86_64__)

WIDE_AVX512 static void load_fp16_f16c(const void *data, int64_t at, int64_t count, void *block) {
    const uint16_t *from = (const uint16_t *)data + at;
    float *out = block;
    for (int64_t k = 0; k < count; k += 16) {
        const __mmask16 mask = (__mmask16)(count - k < 16 ? (1u << (count - k)) - 1 : 0xffff);
        _mm512_mask_storeu_ps(out + k, mask, _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, from + k)));
    }
}

WIDE_AVX512 static void store_fp16_f16c(const void *block, int64_t count, void *data, int64_t at) {
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
    out->load = load_fp16_f16c;
    out->store = store_fp16_f16c;
}

#else
static void choose_wide(uint32_t type, cpu_blocks *out) { (void)type, (void)out; }
#endif

#define ALL(name)                                                                                                      \
    {load_##name##_any, load_##name##_avx2, load_##name##_avx512}, {                                                   \
        store_##name##_any, store_##name##_avx2, store_##name##_avx512                                                 \
    }

enum { FLOATS = CPU_BLOCKS_FLOATS, WHOLES = CPU_BLOCKS_WHOLES, DOUBLES = CPU_BLOCKS_DOUBLES };

bool cpu_blocks_of(uint32_t type, cpu_blocks_in in, cpu_blocks *out) {
    static const struct {
        uint32_t type;
        int in;
        bool plain;
        size_t size;
        cpu_blocks_load *load[3];
        cpu_blocks_store *store[3];
    } rows[] = {
        {SCOUT_FP32, FLOATS, true, 4, ALL(fp32)},    {SCOUT_BF16, FLOATS, false, 2, ALL(bf16)},
        {SCOUT_FP16, FLOATS, false, 2, ALL(fp16)},   {SCOUT_BOOL, FLOATS, false, 1, ALL(byte)},
        {SCOUT_INT8, FLOATS, false, 1, ALL(signed)}, {SCOUT_UINT8, FLOATS, false, 1, ALL(unsigned)},
        {SCOUT_INT64, WHOLES, true, 8, ALL(int64)},  {SCOUT_UINT64, WHOLES, true, 8, ALL(int64)},
        {SCOUT_INT32, WHOLES, false, 4, ALL(int32)}, {SCOUT_UINT32, WHOLES, false, 4, ALL(uint32)},
        {SCOUT_INT16, WHOLES, false, 2, ALL(int16)}, {SCOUT_UINT16, WHOLES, false, 2, ALL(uint16)},
        {SCOUT_INT8, WHOLES, false, 1, ALL(int8)},   {SCOUT_UINT8, WHOLES, false, 1, ALL(uint8)},
        {SCOUT_BOOL, WHOLES, false, 1, ALL(truth)},  {SCOUT_FP64, DOUBLES, true, 8, ALL(fp64)},
        {SCOUT_BOOL, DOUBLES, false, 1, ALL(flag)},
    };
    const cpu_info *c = cpu_info_get();
    const int width = c->avx512 ? 2 : c->avx2 ? 1 : 0;
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        if (rows[k].type != type || rows[k].in != (int)in) continue;
        *out = (cpu_blocks){rows[k].load[width], rows[k].store[width], rows[k].plain, rows[k].size,
                            in == CPU_BLOCKS_FLOATS ? sizeof(float) : sizeof(int64_t)};
        choose_wide(type, out);
        return true;
    }
    return false;
}
