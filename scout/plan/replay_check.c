/* Holds what a plan makes of an occurrence against what the default makes of it, on the same numbers and at the places
 * that they have in the run. What later steps overwrite is looked at before they run. */
#include "common/mix.h"
#include "scout/plan/replay_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

/* ---- numbers ---- */

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

/* What is no number in both is the same; in one, infinite. */
double replay_check_off(uint32_t want_type, const unsigned char *want, uint32_t got_type, const unsigned char *got,
                        uint64_t count) {
    double x[PIECE], y[PIECE], offs[SUMS] = {0}, alls[SUMS] = {0}, off = 0, all = 0;
    const bool halves = want_type == SCOUT_FP16 && got_type == SCOUT_FP16 && has_halves();
    for (uint64_t k = 0; k < count;) {
        if (halves && count - k >= PIECE && add_halves(want + 2 * k, got + 2 * k, &offs[0], &alls[0])) {
            k += PIECE;
            continue;
        }
        if (count - k >= PIECE && piece(want_type, want, k, x) && piece(got_type, got, k, y)) {
            for (int n = 0; n < PIECE; n += SUMS)
                for (int s = 0; s < SUMS; s++) {
                    offs[s] += (x[n + s] - y[n + s]) * (x[n + s] - y[n + s]);
                    alls[s] += x[n + s] * x[n + s];
                }
            k += PIECE;
            continue;
        }
        for (const uint64_t end = count - k < PIECE ? count : k + PIECE; k < end; k++) {
            const double a = element(want_type, want, k), b = element(got_type, got, k);
            if (isfinite(a) != isfinite(b)) return INFINITY;
            if (!isfinite(a)) continue;
            offs[0] += (a - b) * (a - b);
            alls[0] += a * a;
        }
    }
    for (int s = 0; s < SUMS; s++) off += offs[s], all += alls[s];
    return off == 0 ? 0 : all > 0 ? sqrt(off / all) : INFINITY;
}

double replay_check_distance(const scout_tensor *of, const unsigned char *want, const unsigned char *got) {
    return replay_check_off(of->type, want, of->type, got, of->bytes / size_of(of->type));
}

bool replay_check_enough(const replay_unit *u) { return u->compared_bytes >= (uint64_t)128 << 20; }

/* ---- one launch ---- */

typedef struct alone {
    replay *replay;
    const choice *choice;
    void *const *tensors;
} alone;

static scout_answer enqueue(void *context, uint32_t launch, void *stream, scout_why *why) {
    const alone *a = context;
    (void)launch;
    return replay_launch_on(a->replay, a->choice, a->tensors, stream, why);
}

scout_answer replay_check_run(replay *r, const scout_op *op, const choice *c, void *const *tensors, scout_why *why) {
    alone a = {r, c, tensors};
    scout_sequence *sequence = NULL;
    double seconds = 0;
    replay_tell(r, c, "verify", fmin(30 + op->flops / 2e9 + (op->bytes_read + op->bytes_written) / 2e8, 600));
    scout_answer answer = r->api->record(r->device, 0, 1, enqueue, &a, &sequence, why);
    if (answer == SCOUT_OK) answer = r->api->run(r->device, sequence, 1, &seconds, why);
    if (sequence && answer != SCOUT_LOST) r->api->drop(r->device, sequence);
    return answer;
}

scout_answer replay_check_fill(replay *r, const scout_tensor *like, void *to, uint64_t seed, scout_why *why) {
    const uint32_t how = bench_fill(like, &seed);
    if (like->bytes == 0) return SCOUT_OK;
    if (like->role == SCOUT_OUTPUT)
        return r->api->fill(r->device, to, like->bytes, SCOUT_NONE, SCOUT_FILL_BYTE, 0xff, why);
    return r->api->fill(r->device, to, like->bytes, like->type, how, seed, why);
}

/* ---- one step ---- */

static scout_answer prepare(replay *r, const replay_step *s, int order, scout_why *why) {
    const replay_unit *u = &r->units[s->unit];
    void *tensors[SCOUT_MAX_TENSORS];
    scout_answer answer = SCOUT_OK;
    replay_memory_tensors(r, s, order, NULL, 0, tensors);
    for (uint32_t t = 0; t < u->op.tensor_count && answer == SCOUT_OK; t++) {
        const uint64_t seed = mix_bits(r->pass.seed + (uint64_t)s->occurrence * SCOUT_MAX_TENSORS + t);
        if (u->op.tensors[t].role == SCOUT_OUTPUT || s->places[t].region == REPLAY_ACTIVATIONS)
            answer = replay_check_fill(r, &u->op.tensors[t], tensors[t], seed, why);
    }
    return answer;
}

static scout_answer run_alone(replay *r, const replay_step *s, int order, scout_why *why) {
    const replay_unit *u = &r->units[s->unit];
    const choice *c = &u->choices[order == 1 ? u->choice_of[1] : 0];
    void *tensors[SCOUT_MAX_TENSORS];
    const scout_answer answer = prepare(r, s, order, why);
    replay_memory_tensors(r, s, order, c, 0, tensors);
    return answer == SCOUT_OK ? replay_check_run(r, &u->op, c, tensors, why) : answer;
}

/* All outputs one behind the other. */
static scout_answer take(replay *r, const replay_step *s, int order, unsigned char *to, scout_why *why) {
    const replay_unit *u = &r->units[s->unit];
    void *tensors[SCOUT_MAX_TENSORS];
    scout_answer answer = SCOUT_OK;
    replay_memory_tensors(r, s, order, NULL, 0, tensors);
    for (uint32_t t = 0; t < u->op.tensor_count && answer == SCOUT_OK; t++) {
        if (u->op.tensors[t].role != SCOUT_OUTPUT) continue;
        answer = r->api->download(r->device, to, tensors[t], u->op.tensors[t].bytes, why);
        to += u->op.tensors[t].bytes;
    }
    return answer;
}

static double worst_of(const replay_unit *u, const unsigned char *want, const unsigned char *got) {
    double worst = 0;
    uint64_t at = 0;
    for (uint32_t t = 0; t < u->op.tensor_count; t++) {
        const scout_tensor *of = &u->op.tensors[t];
        if (of->role != SCOUT_OUTPUT) continue;
        worst = fmax(worst, replay_check_distance(of, want + at, got + at));
        at += of->bytes;
    }
    return worst;
}

void replay_check_seen(replay *r, int unit, double error) {
    const double relative = error / fmax(r->units[unit].tolerance, 1e-300);
    if (r->seen.compared++ > 0 && !(relative > r->seen.relative)) return;
    r->seen.worst = unit;
    r->seen.error = error;
    r->seen.relative = relative;
}

/* The best is the default from here on. */
static void wane(replay_unit *u, const char *code, const char *text) {
    u->choice_of[1] = 0;
    scout_say(&u->wanes, SCOUT_FAILED, code, "%s", text);
}

static void compare(replay *r, const replay_step *s, unsigned char *want, unsigned char *got) {
    replay_unit *u = &r->units[s->unit];
    scout_why why = {.code = ""};
    char text[160];
    scout_answer answer = take(r, s, replay_alone(r, s), want, &why);
    if (answer == SCOUT_OK) answer = run_alone(r, s, 1, &why);
    if (answer == SCOUT_OK) answer = take(r, s, 1, got, &why);
    if (answer == SCOUT_LOST) replay_note(r, answer, &why);
    if (answer != SCOUT_OK) {
        (void)bench_status_of(answer, &why);
        wane(u, why.code, why.text);
        return;
    }
    const double error = worst_of(u, want, got);
    replay_check_seen(r, s->unit, error);
    if (error <= u->tolerance) return;
    snprintf(text, sizeof text, "what it makes differs from the default's by %.2g of its norm, and %.2g is allowed",
             error, u->tolerance);
    wane(u, "samples", text);
}

static uint64_t output_bytes(const replay_unit *u) {
    uint64_t sum = 0;
    for (uint32_t t = 0; t < u->op.tensor_count; t++)
        if (u->op.tensors[t].role == SCOUT_OUTPUT) sum += u->op.tensors[t].bytes;
    return sum;
}

static void check_step(replay *r, const replay_step *s) {
    replay_unit *u = &r->units[s->unit];
    scout_why why = {.code = ""};
    const bool two = u->choice_of[1] == 1 && s->planned && !replay_check_enough(u);
    if (u->out || (u->checked && !two)) return;
    u->checked = true;
    const scout_answer answer = run_alone(r, s, replay_alone(r, s), &why);
    if (answer != SCOUT_OK) {
        if (answer == SCOUT_LOST) replay_note(r, answer, &why);
        (void)bench_status_of(answer, &why);
        replay_leave_out(u, &why);
        return;
    }
    if (!two) return;
    const size_t bytes = (size_t)output_bytes(u) + 1;
    u->compared_bytes += bytes;
    unsigned char *want = malloc(bytes), *got = malloc(bytes);
    if (want && got)
        compare(r, s, want, got);
    else
        wane(u, "memory", "the host has no memory to compare what it makes");
    free(want);
    free(got);
}

void replay_check(replay *r) {
    r->seen.compared = 0;
    for (int k = 0; k < r->step_count && r->answer == SCOUT_OK; k++) {
        const replay_step *s = &r->steps[k];
        if (!replay_takes_part(r, s)) continue;
        if (replay_group_of(r, s))
            replay_check_group(r, s);
        else
            check_step(r, s);
    }
}

void replay_count_nonfinite(replay *r, const replay_step *s) {
    const replay_unit *u = &r->units[s->unit];
    scout_why why;
    unsigned char *made = malloc((size_t)output_bytes(u) + 1), *from = made;
    const scout_answer answer = made ? take(r, s, 0, made, &why) : SCOUT_OK;
    r->nonfinite = 0;
    if (answer == SCOUT_LOST) replay_note(r, answer, &why);
    for (uint32_t t = 0; made && answer == SCOUT_OK && t < u->op.tensor_count; t++) {
        const scout_tensor *of = &u->op.tensors[t];
        if (of->role != SCOUT_OUTPUT) continue;
        const uint64_t count = of->bytes / size_of(of->type);
        double x[PIECE];
        for (uint64_t k = 0; k < count;) {
            if (count - k >= PIECE && piece(of->type, from, k, x))
                k += PIECE;
            else
                for (const uint64_t end = count - k < PIECE ? count : k + PIECE; k < end; k++)
                    r->nonfinite += !isfinite(element(of->type, from, k));
        }
        from += of->bytes;
    }
    free(made);
}

/* ---- what a run ends in ---- */

static const double most_ends = 1e9; /* bytes that are compared at most */

/* Of numbers that are places one more or less is as wrong as any other. */
static bool is_float(dtype type) {
    return type == DTYPE_FP32 || type == DTYPE_FP16 || type == DTYPE_BF16 || type == DTYPE_FP64;
}

int replay_check_next_end(const replay *r, int tensor, size_t *bytes) {
    const operation_flow *f = replay_flow(r, 0);
    if (tensor >= 0) *bytes += (size_t)f->tensors[tensor].bytes;
    for (int k = tensor + 1; k < f->tensor_count; k++) {
        const operation_tensor *t = &f->tensors[k];
        const bool fits = t->bytes > 0 && (double)*bytes + (double)t->bytes <= most_ends;
        if (t->kept && t->source < 0 && is_float(t->type) && fits && r->memory.made[k].at >= 0) return k;
    }
    return -1;
}

unsigned char *replay_check_ends(replay *r, int lane) {
    size_t bytes = 0, at = 0;
    scout_answer answer = SCOUT_OK;
    scout_why why;
    for (int k = replay_check_next_end(r, -1, &bytes); k >= 0;) k = replay_check_next_end(r, k, &bytes);
    unsigned char *const to = malloc(bytes + 1);
    for (int k = replay_check_next_end(r, -1, &at); to && k >= 0 && answer == SCOUT_OK;
         k = replay_check_next_end(r, k, &at)) {
        answer = r->api->download(r->device, to + at, replay_memory_at(r, &r->memory.made[k], lane, 0),
                                  (uint64_t)replay_flow(r, 0)->tensors[k].bytes, &why);
    }
    if (answer == SCOUT_LOST) replay_note(r, answer, &why);
    if (answer == SCOUT_OK) return to;
    free(to);
    return NULL;
}

void replay_check_end(replay *r, const unsigned char *want, const unsigned char *got) {
    size_t at = 0;
    r->ends.compared = 0;
    for (int k = replay_check_next_end(r, -1, &at); k >= 0; k = replay_check_next_end(r, k, &at)) {
        const operation_tensor *t = &replay_flow(r, 0)->tensors[k];
        const scout_tensor of = {.type = (uint32_t)t->type, .bytes = (uint64_t)t->bytes};
        const double error = replay_check_distance(&of, want + at, got + at);
        if (r->ends.compared++ > 0 && !(error > r->ends.error)) continue;
        r->ends.worst = k;
        r->ends.error = error;
    }
}
