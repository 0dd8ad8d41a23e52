/* Peaks in registers. One kernel for each way in which a processor multiplies, best first in the table; a kernel does
 * rounds of independent multiply-adds, enough of them in flight to hide their latency on two units. Operands have
 * random mantissas and signs, as zeros would cost less power; an empty asm statement keeps sums alive, so that nothing
 * is optimised away. */
#include "scout/cpu/device/cpu_stream.h"

#include "common/mix.h"
#include "scout/cpu/device/cpu_fill.h"
#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_team.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef void arithmetic_kernel(uint64_t rounds);

typedef struct method {
    uint32_t type;
    size_t needs;             /* place of a bool in cpu_info */
    uint64_t flops_per_round; /* of one thread */
    arithmetic_kernel *kernel;
} method;

#define KEEP(value) __asm__ volatile("" : "+x"(value));
#define TEN(STEP)   STEP(s0) STEP(s1) STEP(s2) STEP(s3) STEP(s4) STEP(s5) STEP(s6) STEP(s7) STEP(s8) STEP(s9)

static void scalar_fp32(uint64_t rounds) {
    float sum[16];
    for (int k = 0; k < 16; k++) sum[k] = (float)k;
    for (uint64_t r = 0; r < rounds; r++) {
        for (int k = 0; k < 16; k++) sum[k] = sum[k] * 0.5F + 1.0F;
        __asm__ volatile("" : : "r"(sum) : "memory");
    }
}

#if defined(__x86_64__)

#define VECTOR __attribute__((target("avx512f,avx512bw,avx512vl")))

/* 2 KiB of bf16 numbers from 0.5 to 1 of either sign; as bytes, integers of all sizes. */
typedef struct noise {
    _Alignas(64) uint16_t halves[1024];
} noise;

static void make_noise(noise *n, uint32_t keep, uint32_t set) {
    for (size_t k = 0; k < sizeof n->halves / sizeof n->halves[0]; k++)
        n->halves[k] = (uint16_t)((mix_bits(k) & keep) | set);
}
enum { BF16_KEEP = 0x807f, BF16_SET = 0x3f00, INT8_KEEP = 0xffff, INT8_SET = 0 };

/* KEEP512: clang and gcc name the class of all 32 registers "v". */
#define KEEP512(value) __asm__ volatile("" : "+v"(value))

__attribute__((target("avx2,fma"))) static void avx2_fp32(uint64_t rounds) {
    __m256 s0 = _mm256_setzero_ps(), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0, s8 = s0, s9 = s0;
    __m256 half = _mm256_set1_ps(0.5F), one = _mm256_set1_ps(1.0F);
    KEEP(half)
    KEEP(one)
    for (uint64_t r = 0; r < rounds; r++) {
        s0 = _mm256_fmadd_ps(s0, half, one), s1 = _mm256_fmadd_ps(s1, half, one);
        s2 = _mm256_fmadd_ps(s2, half, one), s3 = _mm256_fmadd_ps(s3, half, one);
        s4 = _mm256_fmadd_ps(s4, half, one), s5 = _mm256_fmadd_ps(s5, half, one);
        s6 = _mm256_fmadd_ps(s6, half, one), s7 = _mm256_fmadd_ps(s7, half, one);
        s8 = _mm256_fmadd_ps(s8, half, one), s9 = _mm256_fmadd_ps(s9, half, one);
        TEN(KEEP)
    }
}

#define TWELVE(STEP)                                                                                                   \
    STEP(s0) STEP(s1) STEP(s2) STEP(s3) STEP(s4) STEP(s5) STEP(s6) STEP(s7) STEP(s8) STEP(s9) STEP(s10) STEP(s11)

VECTOR static void avx512_fp32(uint64_t rounds) {
    __m512 s0 = _mm512_setzero_ps(), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0, s8 = s0, s9 = s0,
           s10 = s0, s11 = s0, half = _mm512_set1_ps(0.5F), one = _mm512_set1_ps(1.0F);
    KEEP512(half);
    KEEP512(one);
    for (uint64_t r = 0; r < rounds; r++) {
#define STEP(s)                                                                                                        \
    s = _mm512_fmadd_ps(s, half, one);                                                                                 \
    KEEP512(s);
        TWELVE(STEP)
#undef STEP
    }
}

__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) static void avx512_bf16(uint64_t rounds) {
    __m512 s0 = _mm512_setzero_ps(), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0, s8 = s0, s9 = s0,
           s10 = s0, s11 = s0;
    noise n;
    make_noise(&n, BF16_KEEP, BF16_SET);
    __m512i a = _mm512_load_si512(n.halves), b = _mm512_load_si512(n.halves + 32);
    KEEP512(a);
    KEEP512(b);
    for (uint64_t r = 0; r < rounds; r++) {
#define STEP(s)                                                                                                        \
    s = _mm512_dpbf16_ps(s, (__m512bh)a, (__m512bh)b);                                                                 \
    KEEP512(s);
        TWELVE(STEP)
#undef STEP
    }
}

__attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni"))) static void avx512_vnni(uint64_t rounds) {
    __m512i s0 = _mm512_setzero_si512(), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0, s8 = s0,
            s9 = s0, s10 = s0, s11 = s0;
    noise n;
    make_noise(&n, INT8_KEEP, INT8_SET);
    __m512i a = _mm512_load_si512(n.halves), b = _mm512_load_si512(n.halves + 32);
    KEEP512(a);
    KEEP512(b);
    for (uint64_t r = 0; r < rounds; r++) {
#define STEP(s)                                                                                                        \
    s = _mm512_dpbusd_epi32(s, a, b);                                                                                  \
    KEEP512(s);
        TWELVE(STEP)
#undef STEP
    }
}

/* Eight tiles of 16 rows of 64 bytes: four that collect, two times two that are multiplied. */
typedef struct tile_shape {
    uint8_t palette, start_row, reserved[14];
    uint16_t columns[16];
    uint8_t rows[16];
} tile_shape;

static void shape_tiles(tile_shape *t) {
    memset(t, 0, sizeof *t);
    t->palette = 1;
    for (int k = 0; k < 8; k++) t->columns[k] = 64, t->rows[k] = 16;
}

#define TILES(NAME, TARGET, MULTIPLY, KEPT, SET)                                                                       \
    __attribute__((target(TARGET))) static void NAME(uint64_t rounds) {                                                \
        tile_shape shape;                                                                                              \
        noise n;                                                                                                       \
        shape_tiles(&shape);                                                                                           \
        make_noise(&n, KEPT, SET);                                                                                     \
        _tile_loadconfig(&shape);                                                                                      \
        _tile_zero(0);                                                                                                 \
        _tile_zero(1);                                                                                                 \
        _tile_zero(2);                                                                                                 \
        _tile_zero(3);                                                                                                 \
        _tile_loadd(4, n.halves, 64);                                                                                  \
        _tile_loadd(5, n.halves + 512, 64);                                                                            \
        _tile_loadd(6, n.halves + 256, 64);                                                                            \
        _tile_loadd(7, n.halves + 128, 64);                                                                            \
        for (uint64_t r = 0; r < rounds; r++) {                                                                        \
            MULTIPLY(0, 4, 6);                                                                                         \
            MULTIPLY(1, 4, 7);                                                                                         \
            MULTIPLY(2, 5, 6);                                                                                         \
            MULTIPLY(3, 5, 7);                                                                                         \
        }                                                                                                              \
        _tile_release();                                                                                               \
    }
TILES(amx_bf16, "amx-tile,amx-bf16", _tile_dpbf16ps, BF16_KEEP, BF16_SET)
TILES(amx_int8, "amx-tile,amx-int8", _tile_dpbssd, INT8_KEEP, INT8_SET)

#define NEEDS(member) offsetof(cpu_info, member)
static const method methods[] = {
    {SCOUT_FP32, NEEDS(avx512), 12ull * 16 * 2, avx512_fp32},
    {SCOUT_FP32, NEEDS(avx2), 10ull * 8 * 2, avx2_fp32},
    {SCOUT_BF16, NEEDS(amx_bf16), 4ull * 16 * 16 * 32 * 2, amx_bf16},
    {SCOUT_BF16, NEEDS(avx512_bf16), 12ull * 32 * 2, avx512_bf16},
    {SCOUT_INT8, NEEDS(amx_int8), 4ull * 16 * 16 * 64 * 2, amx_int8},
    {SCOUT_INT8, NEEDS(avx512_vnni), 12ull * 64 * 2, avx512_vnni},
};
#else
static const method methods[] = {{SCOUT_NONE, 0, 1, scalar_fp32}};
#endif
static const method portable = {SCOUT_FP32, 0, 16 * 2, scalar_fp32};

typedef struct arithmetic_job {
    const method *method;
    uint64_t rounds;
} arithmetic_job;

static void arithmetic_share(void *context, int thread, int threads) {
    const arithmetic_job *j = context;
    (void)thread, (void)threads;
    j->method->kernel(j->rounds);
}

scout_answer cpu_arithmetic_run(uint32_t type, uint64_t flops, uint64_t *done, scout_why *why) {
    const cpu_info *c = cpu_info_get();
    arithmetic_job job = {.method = NULL};
    const uint64_t threads = (uint64_t)cpu_team_size();
    for (size_t k = 0; k < sizeof methods / sizeof methods[0] && !job.method; k++)
        if (methods[k].type == type && *((const bool *)c + methods[k].needs)) job.method = &methods[k];
    if (!job.method && type == SCOUT_FP32) job.method = &portable;
    if (!job.method)
        return scout_say(why, SCOUT_NO, "hardware", "this processor has no multiply-add of this type (%s)",
                         c->capability);
    const uint64_t each = job.method->flops_per_round * threads;
    job.rounds = flops / each + (flops % each > 0);
    cpu_team_run(arithmetic_share, &job);
    *done = job.rounds * each;
    return SCOUT_OK;
}
