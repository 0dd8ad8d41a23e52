/* Numbers that a replay has made: held while others are made in their place, and held against others, on the device
 * where it can, else here piece by piece. */
#include "scout/plan/replay_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

static double fp32_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

/* A half's exponent and fraction are those of a float, 112 below: what is none is put right apart. */
static double widen(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff;
    if (rest >= 0x7c00) return fp32_of(sign | 0x7f800000 | rest << 13);
    return fp32_of(sign | rest << 13) * 0x1p112;
}

/* Element k; of a type that this does not know, and of packed ones, its byte. */
static double element(uint32_t type, const unsigned char *from, uint64_t k) {
    union {
        uint16_t u16;
        uint32_t u32;
        int32_t i32;
        int64_t i64;
        double f64;
    } x;
    switch (type) {
    case SCOUT_FP32: memcpy(&x.u32, from + 4 * k, 4); return fp32_of(x.u32);
    case SCOUT_FP16: memcpy(&x.u16, from + 2 * k, 2); return widen(x.u16);
    case SCOUT_BF16: memcpy(&x.u16, from + 2 * k, 2); return fp32_of((uint32_t)x.u16 << 16);
    case SCOUT_FP64: memcpy(&x.f64, from + 8 * k, 8); return x.f64;
    case SCOUT_INT32: memcpy(&x.i32, from + 4 * k, 4); return x.i32;
    case SCOUT_INT64: memcpy(&x.i64, from + 8 * k, 8); return (double)x.i64;
    case SCOUT_INT8: return (signed char)from[k];
    default: return from[k];
    }
}

static uint64_t size_of(uint32_t type) {
    switch (type) {
    case SCOUT_FP64:
    case SCOUT_INT64: return 8;
    case SCOUT_FP32:
    case SCOUT_INT32: return 4;
    case SCOUT_FP16:
    case SCOUT_BF16: return 2;
    default: return 1;
    }
}

/* Outputs have hundreds of millions of elements. So many of them are looked at together, in loops that a compiler makes
 * vectors of. */
enum { PIECE = 256, SUMS = 4 };

/* False: some are none, and all are still to be widened. */
static bool piece(uint32_t type, const unsigned char *from, uint64_t first, double to[PIECE]) {
    int none = 0;
    if (type == SCOUT_FP16) {
        uint16_t h[PIECE];
        memcpy(h, from + 2 * first, sizeof h);
        for (int k = 0; k < PIECE; k++) {
            const uint32_t bits = (uint32_t)(h[k] & 0x8000) << 16 | (uint32_t)(h[k] & 0x7fff) << 13;
            float x;
            memcpy(&x, &bits, sizeof x);
            to[k] = (double)x * 0x1p112;
            none |= (h[k] & 0x7c00) == 0x7c00;
        }
    } else if (type == SCOUT_FP32) {
        uint32_t bits[PIECE];
        memcpy(bits, from + 4 * first, sizeof bits);
        for (int k = 0; k < PIECE; k++) {
            float x;
            memcpy(&x, &bits[k], sizeof x);
            to[k] = (double)x;
            none |= (bits[k] & 0x7f800000) == 0x7f800000;
        }
    } else {
        for (int k = 0; k < PIECE; k++) {
            to[k] = element(type, from, first + (uint64_t)k);
            none |= !isfinite(to[k]);
        }
    }
    return none == 0;
}

#if defined(__x86_64__)
/* Sums over a piece of halves: of the squares of their differences, and of what is wanted. False: some are no numbers.
 */
__attribute__((target("avx2,fma,f16c"))) static bool add_halves(const unsigned char *want, const unsigned char *got,
                                                                double *off, double *all) {
    enum { LANES = 4 };
    __m256d offs[2] = {_mm256_setzero_pd(), _mm256_setzero_pd()}, alls[2] = {offs[0], offs[0]};
    double sums[2][LANES], added[2] = {0, 0};
    for (size_t at = 0; at < PIECE * sizeof(uint16_t); at += 2 * LANES * sizeof(uint16_t)) {
        const __m256 wide[] = {_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(want + at))),
                               _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(got + at)))};
        for (int h = 0; h < 2; h++) {
            const __m256d x = _mm256_cvtps_pd(h ? _mm256_extractf128_ps(wide[0], 1) : _mm256_castps256_ps128(wide[0]));
            const __m256d y = _mm256_cvtps_pd(h ? _mm256_extractf128_ps(wide[1], 1) : _mm256_castps256_ps128(wide[1]));
            const __m256d apart = _mm256_sub_pd(x, y);
            offs[h] = _mm256_fmadd_pd(apart, apart, offs[h]);
            alls[h] = _mm256_fmadd_pd(x, x, alls[h]);
        }
    }
    _mm256_storeu_pd(sums[0], _mm256_add_pd(offs[0], offs[1]));
    _mm256_storeu_pd(sums[1], _mm256_add_pd(alls[0], alls[1]));
    for (int k = 0; k < LANES; k++) added[0] += sums[0][k], added[1] += sums[1][k];
    if (!isfinite(added[0]) || !isfinite(added[1])) return false;
    *off += added[0], *all += added[1];
    return true;
}

static bool has_halves(void) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __get_cpuid(1, &a, &b, &c, &d) &&
           (c & bit_F16C) != 0;
}
#else
static bool add_halves(const unsigned char *want, const unsigned char *got, double *off, double *all) {
    (void)want, (void)got, (void)off, (void)all;
    return false;
}
static bool has_halves(void) { return false; }
#endif

/* What is no number in both is the same. */
static void add_one(double want, double got, scout_distance *to) {
    to->infinite += isfinite(got) ? 0U : 1U;
    to->apart += isfinite(want) != isfinite(got);
    if (!isfinite(want) || !isfinite(got)) return;
    to->off += (want - got) * (want - got);
    to->all += want * want;
}

void replay_numbers_add(uint32_t want_type, const unsigned char *want, uint32_t got_type, const unsigned char *got,
                        uint64_t count, scout_distance *to) {
    double x[PIECE], y[PIECE], offs[SUMS] = {0}, alls[SUMS] = {0};
    const bool halves = want_type == SCOUT_FP16 && got_type == SCOUT_FP16 && has_halves();
    for (uint64_t k = 0; k < count;) {
        const bool whole = count - k >= PIECE;
        if (halves && whole && add_halves(want + 2 * k, got + 2 * k, &offs[0], &alls[0])) {
            k += PIECE;
        } else if (whole && piece(want_type, want, k, x) && piece(got_type, got, k, y)) {
            for (int n = 0; n < PIECE; n += SUMS)
                for (int s = 0; s < SUMS; s++) {
                    offs[s] += (x[n + s] - y[n + s]) * (x[n + s] - y[n + s]);
                    alls[s] += x[n + s] * x[n + s];
                }
            k += PIECE;
        } else {
            for (const uint64_t end = whole ? k + PIECE : count; k < end; k++)
                add_one(element(want_type, want, k), element(got_type, got, k), to);
        }
    }
    for (int s = 0; s < SUMS; s++) to->off += offs[s], to->all += alls[s];
}

/* ---- held ---- */

static bool compares(const replay *r) { return SCOUT_HAS(r->api, distance) && r->api->distance; }

/* So many of several that are held together: a device reads numbers at multiples of their size alone. */
uint64_t replay_held_bytes(uint64_t bytes) { return (bytes + 15) & ~(uint64_t)15; }

/* Recording a run and computing in fp32 need memory, too. */
static bool has_room(replay *r, uint64_t bytes) {
    uint64_t free_bytes = 0, total = 0;
    scout_why why;
    return r->api->memory(r->device, &free_bytes, &total, &why) == SCOUT_OK && free_bytes > bytes + total / 8;
}

/* A device that compares has what is held beside it, while there is room. Zeros: what no part of a group makes is not
 * what the group makes. */
scout_answer replay_hold_open(replay *r, uint64_t bytes, replay_held *to, scout_why *why) {
    *to = (replay_held){.at = NULL};
    if (compares(r) && has_room(r, bytes)) {
        const scout_answer answer = r->api->alloc(r->device, bytes + 1, &to->at, why);
        if (answer == SCOUT_OK) return r->api->fill(r->device, to->at, bytes, SCOUT_NONE, SCOUT_FILL_BYTE, 0, why);
        if (answer != SCOUT_NO_MEMORY) return answer;
    }
    *to = (replay_held){calloc(1, (size_t)bytes + 1), true};
    return to->at ? SCOUT_OK
                  : scout_say(why, SCOUT_FAILED, "memory", "the host has no memory to compare what it makes");
}

scout_answer replay_hold(replay *r, const replay_held *to, uint64_t at, const void *from, uint64_t bytes,
                         scout_why *why) {
    return (to->here ? r->api->download : r->api->upload)(r->device, (char *)to->at + at, from, bytes, why);
}

void replay_hold_close(replay *r, replay_held *held) {
    if (held->here)
        free(held->at);
    else if (held->at && r->answer != SCOUT_LOST)
        r->api->release(r->device, held->at);
    *held = (replay_held){.at = NULL};
}

replay_numbers replay_numbers_held(const replay_held *held, uint64_t at, uint32_t type) {
    return (replay_numbers){type, (const char *)held->at + at, held->here};
}

/* ---- held against each other ---- */

enum { AT_ONCE = 1 << 16 }; /* numbers, of those that come from the device: they stay in a cache */

static scout_answer fetch(replay *r, const replay_numbers *of, uint64_t first, uint64_t count, unsigned char *room,
                          const unsigned char **to, scout_why *why) {
    const uint64_t size = size_of(of->type);
    *to = of->here ? (const unsigned char *)of->at + first * size : room;
    if (of->here) return SCOUT_OK;
    return r->api->download(r->device, room, (const char *)of->at + first * size, count * size, why);
}

static scout_answer distance_here(replay *r, const replay_numbers *want, const replay_numbers *got, uint64_t count,
                                  scout_distance *out, scout_why *why) {
    const size_t widest = sizeof(double);
    unsigned char *const rooms = malloc(2 * AT_ONCE * widest);
    const unsigned char *x = NULL, *y = NULL;
    scout_answer answer = SCOUT_OK;
    if (!rooms) return scout_say(why, SCOUT_FAILED, "memory", "the host has no memory to compare what it makes");
    for (uint64_t first = 0; first < count && answer == SCOUT_OK; first += AT_ONCE) {
        const uint64_t some = count - first < AT_ONCE ? count - first : AT_ONCE;
        answer = fetch(r, want, first, some, rooms, &x, why);
        if (got->at == want->at)
            y = x;
        else if (answer == SCOUT_OK)
            answer = fetch(r, got, first, some, rooms + AT_ONCE * widest, &y, why);
        if (answer == SCOUT_OK) replay_numbers_add(want->type, x, got->type, y, some, out);
    }
    free(rooms);
    return answer;
}

/* Types whose elements are not known are bytes. */
static uint32_t seen_as(uint32_t type) { return size_of(type) > 1 || type == SCOUT_INT8 ? type : SCOUT_UINT8; }

scout_answer replay_numbers_distance(replay *r, const replay_numbers *want, const replay_numbers *got, uint64_t bytes,
                                     scout_distance *out, scout_why *why) {
    const uint64_t count = bytes / size_of(want->type);
    *out = (scout_distance){.size = sizeof *out};
    if (count == 0) return SCOUT_OK;
    if (!compares(r) || want->here || got->here) return distance_here(r, want, got, count, out, why);
    return r->api->distance(r->device, seen_as(want->type), want->at, seen_as(got->type), got->at, count, out, why);
}

double replay_numbers_relative(const scout_distance *d) {
    if (d->apart > 0) return INFINITY;
    if (d->off == 0) return 0;
    return d->all > 0 && isfinite(d->off) ? sqrt(d->off / d->all) : INFINITY;
}

scout_answer replay_numbers_off(replay *r, const replay_numbers *want, const replay_numbers *got, uint64_t bytes,
                                double *off, scout_why *why) {
    scout_distance found;
    const scout_answer answer = replay_numbers_distance(r, want, got, bytes, &found, why);
    if (answer == SCOUT_OK) *off = replay_numbers_relative(&found);
    return answer;
}
