/* Random data by counting: every block of 512 values is made from the seed and its own number alone, so threads are
 * independent. Normal values by Box and Muller with short polynomials, in loops that compilers turn into vector code;
 * fills of gigabytes are part of every measurement. */
#include "scout/cpu/device/cpu_fill.h"

#include "common/mix.h"
#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/device/cpu_vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { BLOCK = 512, PAIRS = BLOCK / 2, CHUNK = 1 << 20 };

FAST_BODY uint32_t mix32(uint32_t x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

FAST_BODY void words_body(uint64_t key, uint32_t *words) {
    const uint32_t low = (uint32_t)key, high = (uint32_t)(key >> 32);
    for (uint32_t k = 0; k < BLOCK; k++) words[k] = mix32(mix32(low + k * 0x9e3779b9u) ^ high);
}

FAST_BODY uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

FAST_BODY float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* -2 ln(u), u in (0, 1]: exponent and a polynomial for the logarithm of what is left, from 0.71 to 1.41. */
FAST_BODY float minus_two_log(uint32_t word) {
    const float u = ((float)(int32_t)(word >> 8) + 1) * 0x1p-24f;
    const int32_t exponent = (int32_t)(bits_of(u) - 0x3f3504f3u) >> 23;
    const float mantissa = float_of(bits_of(u) - ((uint32_t)exponent << 23));
    const float s = (mantissa - 1) / (mantissa + 1), q = s * s; /* ln = 2 artanh(s) */
    const float series = 2 * s * (1 + q * (0.33333333f + q * (0.2f + q * (0.14285714f + q * 0.11111111f))));
    return -2 * (series + (float)exponent * 0.69314718f);
}

/* x * 1/sqrt(x) by Newton's steps from a guess: the library's sqrtf may set errno, which no vector can. 0 gives 0. */
FAST_BODY float square_root(float x) {
    float r = float_of(0x5f375a86u - (bits_of(x) >> 1));
    for (int step = 0; step < 3; step++) r *= 1.5f - 0.5f * x * r * r;
    return x * r;
}

/* No branches: compilers make vectors of straight code only. */
FAST_BODY void normal_body(uint64_t key, float *out) {
    uint32_t words[BLOCK];
    words_body(key, words);
    for (uint32_t k = 0; k < PAIRS; k++) {
        const float radius = square_root(minus_two_log(words[k]));
        /* an eighth of a turn either way by Taylor's series; bits of the word swap the two and choose the signs */
        const uint32_t turn = words[PAIRS + k];
        const float angle = ((float)(int32_t)(turn >> 8) * 0x1p-24f - 0.5f) * 1.57079633f, q = angle * angle;
        const float sine = angle * (1 + q * (-0.16666667f + q * (0.0083333333f + q * -0.00019841270f)));
        const float cosine = 1 + q * (-0.5f + q * (0.041666667f + q * (-0.0013888889f + q * 0.0000248016f)));
        const uint32_t swap = (0 - (turn & 1)) & (bits_of(sine) ^ bits_of(cosine));
        out[k] = radius * float_of(bits_of(sine) ^ swap ^ (turn & 2) << 30);
        out[PAIRS + k] = radius * float_of(bits_of(cosine) ^ swap ^ (turn & 4) << 29);
    }
}

typedef void words_block(uint64_t key, uint32_t *words);
typedef void normal_block(uint64_t key, float *out);
FAST_WIDTHS(words, (uint64_t key, uint32_t *words), (key, words))
FAST_WIDTHS(normal, (uint64_t key, float *out), (key, out))

/* --- types --- */

typedef void convert_block(const float *normal, int64_t count, bool scales, void *out);

static inline float as_scale(float x, bool scales) { return scales ? fabsf(x) * 0x1p-6f + 0x1p-6f : x; }

FAST static void to_fp32(const float *x, int64_t count, bool scales, void *out) {
    float *to = out;
    for (int64_t k = 0; k < count; k++) to[k] = as_scale(x[k], scales);
}

FAST static void to_bf16(const float *x, int64_t count, bool scales, void *out) {
    uint16_t *to = out;
    for (int64_t k = 0; k < count; k++) {
        const float value = as_scale(x[k], scales); /* always finite */
        uint32_t u;
        memcpy(&u, &value, sizeof u);
        to[k] = (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
    }
}

FAST static void to_int8(const float *x, int64_t count, bool scales, void *out) {
    int8_t *to = out;
    (void)scales;
    for (int64_t k = 0; k < count; k++) {
        float value = x[k] * 32;
        value = value < -128 ? -128 : value > 127 ? 127 : value;
        const float magic = 0x1.8p23f; /* adding it rounds to an integer, ties to even */
        to[k] = (int8_t)(int32_t)((value + magic) - magic);
    }
}

#define CONVERT(name, type, expression)                                                                                \
    static void name(const float *x, int64_t count, bool scales, void *out) {                                          \
        for (int64_t k = 0; k < count; k++) {                                                                          \
            const float value = as_scale(x[k], scales);                                                                \
            ((type *)out)[k] = (type)(expression);                                                                     \
        }                                                                                                              \
    }
CONVERT(to_fp64, double, value)
CONVERT(to_fp16, uint16_t, cpu_number_to_fp16(value))
CONVERT(to_fp8e4m3, uint8_t, cpu_number_to_fp8e4m3(value))
CONVERT(to_fp8e5m2, uint8_t, cpu_number_to_fp8e5m2(value))
CONVERT(to_uint8, uint8_t, fminf(fmaxf(rintf(value * 32 + 128), 0), 255))
CONVERT(to_int32, int32_t, rintf(value * 0x1p20f))
CONVERT(to_int64, int64_t, rintf(value * 0x1p20f)) /* as int32: products are exact in a double */
CONVERT(to_int16, int16_t, fminf(fmaxf(rintf(value * 4096), -32768), 32767))
CONVERT(to_uint16, uint16_t, fminf(rintf(fabsf(value) * 4096), 65535))
CONVERT(to_uint32, uint32_t, rintf(fabsf(value) * 0x1p20f))
CONVERT(to_uint64, uint64_t, rintf(fabsf(value) * 0x1p20f))
CONVERT(to_bool, uint8_t, value > 0)
CONVERT(to_fp8e8m0, uint8_t, cpu_number_to_fp8e8m0(value, CPU_NUMBER_UP))

#define STORE(name, type)                                                                                              \
    static void name(const float *x, int64_t count, bool scales, void *out) {                                          \
        for (int64_t k = 0; k < count; k++) cpu_number_store(type, out, k, (double)as_scale(x[k], scales));            \
    }
STORE(to_fp8e4m3fnuz, SCOUT_FP8E4M3FNUZ)
STORE(to_fp8e5m2fnuz, SCOUT_FP8E5M2FNUZ)

static const struct {
    uint32_t type;
    convert_block *convert; /* NULL: bytes as they fall */
} types[] = {
    {SCOUT_FP32, to_fp32},
    {SCOUT_FP16, to_fp16},
    {SCOUT_BF16, to_bf16},
    {SCOUT_FP64, to_fp64},
    {SCOUT_INT8, to_int8},
    {SCOUT_UINT8, to_uint8},
    {SCOUT_FP8E4M3, to_fp8e4m3},
    {SCOUT_FP8E5M2, to_fp8e5m2},
    {SCOUT_INT32, to_int32},
    {SCOUT_INT4, NULL},
    {SCOUT_UINT4, NULL},
    {SCOUT_INT64, to_int64},
    {SCOUT_BOOL, to_bool},
    {SCOUT_INT16, to_int16},
    {SCOUT_UINT16, to_uint16},
    {SCOUT_UINT32, to_uint32},
    {SCOUT_UINT64, to_uint64},
    {SCOUT_INT2, NULL},
    {SCOUT_UINT2, NULL},
    {SCOUT_FP4E2M1, NULL},
    {SCOUT_FP8E4M3FNUZ, to_fp8e4m3fnuz},
    {SCOUT_FP8E5M2FNUZ, to_fp8e5m2fnuz},
    {SCOUT_FP8E8M0, to_fp8e8m0},
};

/* --- on all threads --- */

typedef struct fill_job {
    uint8_t *to;
    uint64_t bytes, seed;
    size_t element;
    bool byte, scales, boxes;
    float factor;          /* of normal numbers */
    uint32_t least, range; /* range > 0: whole numbers, `least` and as many more */
    convert_block *convert;
    words_block *words;
    normal_block *normal;
} fill_job;

/* A word's upper bits choose: all numbers of the range alike, within what 32 bits can share out. */
static void put_places(const fill_job *j, const uint32_t *words, int64_t count, void *out) {
    for (int64_t k = 0; k < count; k++) {
        const uint32_t place = j->least + (uint32_t)((uint64_t)words[k] * j->range >> 32);
        if (j->element == sizeof(int64_t))
            ((int64_t *)out)[k] = place;
        else
            ((int32_t *)out)[k] = (int32_t)place;
    }
}

/* Boxes of four numbers: a corner in the first 7/16 of the square, and how far the other one is from it. No rounding
 * brings them together, or out of the square. */
static void put_boxes(const fill_job *j, const uint32_t *words, int64_t count, void *out) {
    const float side = (float)j->range;
    float boxes[BLOCK];
    for (int k = 0; k < BLOCK; k++) {
        const float part = (float)(words[k] >> 8) * 0x1p-24f;
        boxes[k] = k % 4 < 2 ? side * 0.4375f * part : boxes[k - 2] + side * (0.25f + 0.25f * part);
    }
    j->convert(boxes, count, false, out);
}

static void fill_share(void *context, int thread, int threads) {
    const fill_job *j = context;
    const uint64_t block_bytes = j->convert || j->range ? BLOCK * j->element : BLOCK * sizeof(uint32_t);
    int64_t from, to;
    if (j->byte) {
        cpu_team_share((int64_t)j->bytes, thread, threads, &from, &to);
        memset(j->to + from, (int)(j->seed & 255), (size_t)(to - from));
        return;
    }
    cpu_team_share((int64_t)((j->bytes + block_bytes - 1) / block_bytes), thread, threads, &from, &to);
    for (int64_t block = from; block < to; block++) {
        const uint64_t key = mix_bits(j->seed ^ mix_bits((uint64_t)block)), at = (uint64_t)block * block_bytes;
        const uint64_t here = j->bytes - at < block_bytes ? j->bytes - at : block_bytes;
        if (j->range) {
            uint32_t words[BLOCK];
            j->words(key, words);
            (j->boxes ? put_boxes : put_places)(j, words, (int64_t)(here / j->element), j->to + at);
        } else if (j->convert) {
            float normal[BLOCK];
            j->normal(key, normal);
            for (int64_t k = 0; k < BLOCK && j->factor != 1; k++) normal[k] *= j->factor;
            j->convert(normal, (int64_t)(here / j->element), j->scales, j->to + at);
            memset(j->to + at + here / j->element * j->element, 0, here % j->element);
        } else {
            uint32_t words[BLOCK];
            j->words(key, words);
            memcpy(j->to + at, words, here);
        }
    }
}

/* Lengths: from the last 64th, of two values at least, so that a candidate that does not look at them is wrong. */
static bool cpu_fill_range(uint32_t how, uint64_t seed, uint32_t *least, uint32_t *range) {
    const uint32_t bound = (uint32_t)(seed >> 32), last = bound / 64 < 2 ? 2 : bound / 64;
    if (bound == 0 || bound > (uint32_t)1 << 31) return false;
    *range = how == SCOUT_FILL_NEAR && last < bound ? last : bound;
    *least = bound - *range;
    return true;
}

scout_answer cpu_fill(void *to, uint64_t bytes, uint32_t type, uint32_t how, uint64_t seed, scout_why *why) {
    fill_job job = {.to = to, .bytes = bytes, .seed = seed, .scales = how == SCOUT_FILL_SCALE, .factor = 1};
    job.byte = how == SCOUT_FILL_BYTE;
    size_t k = 0;
    while (!job.byte && k < sizeof types / sizeof types[0] && types[k].type != type) k++;
    const bool places = how == SCOUT_FILL_BELOW || how == SCOUT_FILL_NEAR, small = how == SCOUT_FILL_SMALL;
    const bool wide = type == SCOUT_FP32 || type == SCOUT_FP16 || type == SCOUT_BF16 || type == SCOUT_FP64;
    const bool boxes = how == SCOUT_FILL_BELOW && wide && type != SCOUT_FP64;
    if (k == sizeof types / sizeof types[0] || how > SCOUT_FILL_SMALL ||
        (places && type != SCOUT_INT32 && type != SCOUT_INT64 && !boxes) || (small && !wide))
        return scout_say(why, SCOUT_NO, "type", "no way to fill memory with type %u (%u)", (unsigned)type,
                         (unsigned)how);
    job.element = job.byte ? 1 : (size_t)(cpu_number_bits(type) + 7) / 8;
    if (!job.byte) job.convert = types[k].convert;
    job.boxes = boxes;
    if (places && !cpu_fill_range(how, seed, &job.least, &job.range))
        return scout_say(why, SCOUT_NO, "shape", "the bound leaves no whole number");
    if (small && seed >> 32 > 64) return scout_say(why, SCOUT_NO, "shape", "the power of 2 is out of range");
    if (small) job.factor = ldexpf(1, -(int)(seed >> 32));
    const cpu_info *c = cpu_info_get();
    job.words = FAST_WIDEST(words, c);
    job.normal = FAST_WIDEST(normal, c);
    if (bytes > 0) cpu_team_run(fill_share, &job);
    return SCOUT_OK;
}

/* --- checksum --- */

typedef struct sum_job {
    const uint8_t *data;
    uint64_t bytes;
    uint64_t *sums; /* one a chunk */
    int64_t chunks;
} sum_job;

static uint64_t chunk_sum(const sum_job *j, int64_t chunk) {
    const uint64_t at = (uint64_t)chunk * CHUNK, left = j->bytes - at;
    return XXH3_64bits_withSeed(j->data + at, (size_t)(left < CHUNK ? left : CHUNK), (XXH64_hash_t)chunk);
}

static void sum_share(void *context, int thread, int threads) {
    const sum_job *j = context;
    int64_t from, to;
    cpu_team_share(j->chunks, thread, threads, &from, &to);
    for (int64_t chunk = from; chunk < to; chunk++) j->sums[chunk] = chunk_sum(j, chunk);
}

uint64_t cpu_fill_checksum(const void *data, uint64_t bytes) {
    sum_job job = {.data = data, .bytes = bytes, .chunks = (int64_t)((bytes + CHUNK - 1) / CHUNK)};
    uint64_t total = bytes;
    job.sums = job.chunks > 1 ? malloc((size_t)job.chunks * sizeof *job.sums) : NULL;
    if (job.sums) cpu_team_run(sum_share, &job);
    for (int64_t chunk = 0; chunk < job.chunks; chunk++)
        total = mix_bits(total ^ (job.sums ? job.sums[chunk] : chunk_sum(&job, chunk)));
    free(job.sums);
    return total;
}
