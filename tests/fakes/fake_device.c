/* The device: memory, sequences, a reference. Its candidates are in fake_candidates.c. */
#include "tests/fakes/fake_device.h"

#include "scout/op/gemm.h"

#include <math.h>
#include <stdlib.h>

enum { FRONT = 512 };

/* ---- what it owns ---- */

void *fake_own(scout_device *d, void *memory) {
    for (int k = 0; memory && k < FAKE_OWNED; k++) {
        if (d->owned[k]) continue;
        d->owned[k] = memory;
        return memory;
    }
    free(memory);
    return NULL;
}

void fake_disown(scout_device *d, void *memory) {
    for (int k = 0; memory && k < FAKE_OWNED; k++)
        if (d->owned[k] == memory) d->owned[k] = NULL;
    free(memory);
}

/* ---- memory ---- */

static scout_answer fake_memory(scout_device *d, uint64_t *free_bytes, uint64_t *total, scout_why *why) {
    if (d->lost) return scout_say(why, SCOUT_LOST, "poisoned", "lost");
    *total = d->limit_bytes;
    *free_bytes = d->limit_bytes - d->used_bytes;
    return SCOUT_OK;
}

static scout_answer fake_alloc(scout_device *d, uint64_t bytes, void **out, scout_why *why) {
    if (d->lost) return scout_say(why, SCOUT_LOST, "poisoned", "lost");
    if (bytes > d->limit_bytes - d->used_bytes) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory");
    char *base = fake_own(d, aligned_alloc(512, (bytes + 511) / 512 * 512 + FRONT));
    if (!base) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory");
    memcpy(base, &bytes, sizeof bytes);
    d->used_bytes += bytes;
    d->live_allocations++;
    *out = base + FRONT;
    return SCOUT_OK;
}

static void fake_release(scout_device *d, void *memory) {
    uint64_t bytes;
    char *base = (char *)memory - FRONT;
    memcpy(&bytes, base, sizeof bytes);
    d->used_bytes -= bytes;
    d->live_allocations--;
    fake_disown(d, base);
}

static scout_answer fake_copy(scout_device *d, void *to, const void *from, uint64_t bytes, scout_why *why) {
    if (d->lost) return scout_say(why, SCOUT_LOST, "poisoned", "lost");
    memcpy(to, from, bytes);
    return SCOUT_OK;
}

static uint64_t next(uint64_t *state) {
    uint64_t x = (*state += 0x9e3779b97f4a7c15u);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static double uniform(uint64_t *state) { return (double)(next(state) >> 11) * 0x1p-53; }

static scout_answer fake_fill(scout_device *d, void *to, uint64_t bytes, uint32_t type, uint32_t how, uint64_t seed,
                              scout_why *why) {
    if (d->lost) return scout_say(why, SCOUT_LOST, "poisoned", "lost");
    if (how == SCOUT_FILL_BYTE) {
        memset(to, (int)(seed & 0xff), bytes);
        return SCOUT_OK;
    }
    d->fills++;
    if (type != SCOUT_FP32) return scout_say(why, SCOUT_FAILED, "type", "the fake fills fp32 alone");
    float *x = to;
    for (uint64_t k = 0; k < bytes / sizeof *x; k++) {
        double sum = -6;
        for (int i = 0; i < 12; i++) sum += uniform(&seed);
        x[k] = (float)sum * (d->fill_factor != 0 ? d->fill_factor : 1);
    }
    return SCOUT_OK;
}

static scout_answer fake_checksum(scout_device *d, const void *data, uint64_t bytes, uint64_t *sum, scout_why *why) {
    const unsigned char *x = data;
    uint64_t h = 0xcbf29ce484222325u;
    if (d->lost) return scout_say(why, SCOUT_LOST, "poisoned", "lost");
    for (uint64_t k = 0; k < bytes; k++) h = (h ^ x[k]) * 0x100000001b3u;
    *sum = h;
    return SCOUT_OK;
}

/* ---- sequences ---- */

static void fake_drop(scout_device *d, scout_sequence *s) {
    d->live_sequences--;
    fake_disown(d, s->calls);
    fake_disown(d, s);
}

void fake_take(scout_device *d, const fake_call *one) {
    scout_sequence *s = d->capturing;
    if (s->count == s->room) {
        const uint32_t room = 2 * s->room + 16;
        fake_call *more = fake_own(d, calloc(room, sizeof *more));
        if (!more) abort();
        if (s->count > 0) memcpy(more, s->calls, s->count * sizeof *more);
        fake_disown(d, s->calls);
        s->calls = more;
        s->room = room;
    }
    s->calls[s->count++] = *one;
}

static scout_answer fake_record(scout_device *d, int graph, uint32_t launches, scout_enqueue enqueue, void *context,
                                scout_sequence **out, scout_why *why) {
    scout_answer answer = SCOUT_OK;
    scout_sequence *s = fake_own(d, calloc(1, sizeof *s));
    if (d->lost || !s) {
        fake_disown(d, s);
        return scout_say(why, d->lost ? SCOUT_LOST : SCOUT_NO_MEMORY, "memory", "cannot record");
    }
    *s = (scout_sequence){graph && fake_api.has_graphs, launches, 0, 0, NULL, enqueue, context};
    d->live_sequences++;
    if (s->graph) {
        d->capturing = s;
        for (uint32_t k = 0; k < launches && answer == SCOUT_OK; k++) answer = enqueue(context, k, NULL, why);
        d->capturing = NULL;
    }
    if (answer == SCOUT_OK)
        *out = s;
    else
        fake_drop(d, s);
    return answer;
}

uint32_t fake_clocks(scout_device *d, double *hz, uint32_t most) {
    const uint32_t count = d->hz_count < most ? d->hz_count : most;
    memcpy(hz, d->hz, count * sizeof *hz);
    return count;
}

double fake_stolen(scout_device *d) { return d->stolen_s; }

/* What an interval of so many seconds takes at today's clock, and what it does to it. */
static double fake_clocked(scout_device *d, double seconds) {
    const double tau_s = 0.02, factor = FAKE_MOST_MHZ / d->clock_mhz;
    if (d->held_mhz == 0) return seconds;
    if (d->hz_count < sizeof d->hz / sizeof d->hz[0]) d->hz[d->hz_count++] = 1e6 * d->clock_mhz;
    d->clock_mhz += (d->held_mhz - d->clock_mhz) * (1 - exp(-seconds / tau_s));
    return factor * seconds;
}

static scout_answer fake_run(scout_device *d, scout_sequence *s, uint32_t repeats, double *seconds, scout_why *why) {
    d->hz_count = 0;
    for (uint32_t r = 0; r < repeats; r++) {
        const double start = d->now_s;
        for (uint32_t k = 0; k < (s->graph ? s->count : s->launches); k++) {
            if (s->graph) {
                d->now_s += s->calls[k].stream_s + (s->calls[k].plan ? d->owed_s : 0);
                d->owed_s = s->calls[k].owes_s;
                if (s->calls[k].plan) fake_execute(&s->calls[k]);
                continue;
            }
            const scout_answer answer = s->enqueue(s->context, k, NULL, why);
            if (answer != SCOUT_OK) return answer;
        }
        if (d->lost) return scout_say(why, SCOUT_LOST, "poisoned", "the launch lost the device");
        d->now_s = start + fake_clocked(d, d->now_s - start);
        d->now_s += (d->now_s - start) * (d->slow + d->noise * (uniform(&d->random) - 0.5));
        seconds[r] = d->now_s - start;
    }
    return SCOUT_OK;
}

static const double fake_forget_s = 3e-5;

scout_answer fake_play(scout_device *d, scout_sequence *const *sequences, uint32_t count, double *seconds,
                       scout_why *why) {
    scout_answer answer = SCOUT_OK;
    for (uint32_t k = 0; k < count && answer == SCOUT_OK; k++) answer = fake_run(d, sequences[k], 1, &seconds[k], why);
    return answer;
}

scout_answer fake_forget(scout_device *d, scout_forget what, const scout_op *op, void *const *tensors, void *stream,
                         scout_why *why) {
    const double owed_s = (what == SCOUT_FORGET_PROGRAM   ? d->fetch_s
                           : what == SCOUT_FORGET_TENSORS ? d->tensors_s
                                                          : 0) +
                          d->change_s;
    (void)stream, (void)why;
    if (what == SCOUT_FORGET_TENSORS) d->left = op->tensors[0].left, d->crowd_written = op->crowd_written;
    if (op->tensor_count == 0 || !tensors[0]) abort();
    if (d->capturing) {
        fake_take(d, &(fake_call){.stream_s = fake_forget_s, .owes_s = owed_s});
    } else {
        d->now_s += fake_forget_s;
        d->owed_s = owed_s;
    }
    return SCOUT_OK;
}

static scout_answer fake_made_of(scout_device *d, scout_sequence *s, scout_composition *out, scout_why *why) {
    (void)d;
    if (!s->graph) return scout_say(why, SCOUT_NO, "capture", "it is no graph");
    for (uint32_t k = 0; k < s->count; k++) out->kernels += s->calls[k].plan != NULL;
    return SCOUT_OK;
}

static double fake_now(scout_device *d) { return d->now_s; }
static void fake_pause(scout_device *d, double seconds) { d->now_s += seconds; }

static void fake_telemetry(scout_device *d, scout_telemetry *out) {
    out->clock_mhz = d->clock_mhz;
    out->most_clock_mhz = FAKE_MOST_MHZ;
    out->power_w = NAN;
}

static scout_answer fake_stream(scout_device *d, const void *read, uint64_t read_bytes, void *written,
                                uint64_t written_bytes, void *stream, scout_why *why) {
    const double seconds = (double)(read_bytes + written_bytes) / 1e9;
    (void)read, (void)written, (void)stream, (void)why;
    if (d->capturing)
        fake_take(d, &(fake_call){.stream_s = seconds});
    else
        d->now_s += seconds;
    return SCOUT_OK;
}

static scout_answer count(scout_device *d, uint64_t wanted, uint64_t *done) {
    *done = (wanted + 999) / 1000 * 1000;
    d->now_s += (double)*done / d->counted_per_s * (1 + d->counted_noise * (uniform(&d->random) - 0.5));
    return SCOUT_OK;
}

static scout_answer fake_special(scout_device *d, uint64_t operations, uint64_t *done, void *stream, scout_why *why) {
    (void)stream, (void)why;
    return count(d, operations, done);
}

static scout_answer fake_arithmetic(scout_device *d, uint32_t type, uint64_t flops, uint64_t *done, void *stream,
                                    scout_why *why) {
    (void)stream;
    return type == SCOUT_FP32 ? count(d, flops, done) : scout_say(why, SCOUT_NO, "type", "fp32 alone");
}

/* ---- reference ---- */

void fake_compute(const scout_op *op, void *const *tensors, bool packed, double *want, double *spread) {
    const gemm_problem p = gemm_problem_of(op);
    const float *a = tensors[GEMM_A], *b = tensors[GEMM_B];
    float *c = want ? NULL : tensors[GEMM_C];
    const int trans_b = packed ? !p.trans_b : p.trans_b;
    const int64_t ldb = packed ? (trans_b ? p.k : p.n) : p.ldb;
    for (int64_t i = 0; i < p.batch * p.m * p.n; i++) {
        const int64_t batch = i / (p.m * p.n), row = i / p.n % p.m, col = i % p.n;
        const float *x = a + batch * p.stride_a * (p.batch > 1), *y = b + batch * p.stride_b * (p.batch > 1);
        double sum = 0, squares = 0;
        for (int64_t k = 0; k < p.k; k++) {
            const double term = (double)x[p.trans_a ? k * p.lda + row : row * p.lda + k] *
                                (double)y[trans_b ? col * ldb + k : k * ldb + col];
            sum += term;
            squares += term * term;
        }
        if (c) c[batch * p.stride_c * (p.batch > 1) + row * p.ldc + col] = (float)sum;
        if (want) want[i] = sum, spread[i] = sqrt(squares);
    }
}

struct scout_check {
    scout_device *device;
    uint64_t rows, cols;
    double *want, *spread;
};

static void fake_end(scout_check *check) {
    scout_device *d = check->device;
    d->live_checks--;
    fake_disown(d, check->want);
    fake_disown(d, check);
}

static scout_answer fake_begin(scout_device *d, const scout_op *op, void *const *tensors, uint64_t seed,
                               scout_check **out, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    const uint64_t n = (uint64_t)(p.batch * p.m * p.n);
    scout_check *check = fake_own(d, calloc(1, sizeof *check));
    double *want = fake_own(d, calloc(2 * n, sizeof *want));
    (void)seed;
    if (!check || !want) {
        fake_disown(d, check);
        fake_disown(d, want);
        return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory");
    }
    *check = (scout_check){d, n / (uint64_t)p.n, (uint64_t)p.n, want, want + n};
    fake_compute(op, tensors, false, check->want, check->spread);
    d->live_checks++;
    *out = check;
    return SCOUT_OK;
}

static void hold(scout_verdict *v, double *worst, double tolerance, double got, double want, double spread,
                 uint64_t at) {
    const double error = isfinite(got) ? fabs(got - want) / (fabs(want) + spread) : INFINITY;
    if (error > tolerance) v->wrong++;
    if (!(error > *worst)) return;
    *worst = error;
    v->at = at, v->got = got, v->want = want;
}

/* Every other element is a sample; rows are the projections. */
static scout_answer fake_compare(scout_check *c, const void *output, double tolerance, scout_verdict *v,
                                 scout_why *why) {
    const float *x = output;
    if (c->device->lost) return scout_say(why, SCOUT_LOST, "poisoned", "lost");
    for (uint64_t r = 0; r < c->rows; r++) {
        double got = 0, want = 0, squares = 0;
        for (uint64_t k = r * c->cols; k < (r + 1) * c->cols; k++) {
            if (k % 2 == 0) hold(v, &v->worst, tolerance, (double)x[k], c->want[k], c->spread[k], k);
            got += (double)x[k], want += c->want[k], squares += c->spread[k] * c->spread[k];
            v->compared += k % 2 == 0;
        }
        hold(v, &v->worst_projected, tolerance, got, want, sqrt(squares), r);
    }
    return SCOUT_OK;
}

static const scout_reference fake_reference = {
    .size = sizeof(scout_reference), .kind = SCOUT_GEMM, .begin = fake_begin, .compare = fake_compare, .end = fake_end};
static const scout_reference *const references[] = {&fake_reference};

scout_device_api fake_api = {.size = sizeof(scout_device_api),
                             .name = "fake",
                             .memory = fake_memory,
                             .alloc = fake_alloc,
                             .release = fake_release,
                             .upload = fake_copy,
                             .download = fake_copy,
                             .fill = fake_fill,
                             .checksum = fake_checksum,
                             .record = fake_record,
                             .run = fake_run,
                             .drop = fake_drop,
                             .has_graphs = 1,
                             .resolution_s = 1e-7,
                             .now = fake_now,
                             .pause = fake_pause,
                             .telemetry = fake_telemetry,
                             .stream = fake_stream,
                             .special = fake_special,
                             .arithmetic = fake_arithmetic,
                             .reference_count = 1,
                             .references = references,
                             .made_of = fake_made_of};

void fake_use(int count, const scout_candidate *const *candidates) {
    fake_api.candidate_count = (uint32_t)count;
    fake_api.candidates = candidates;
}

scout_device *fake_open(void) {
    scout_device *d = calloc(1, sizeof *d);
    if (!d) abort();
    d->limit_bytes = (uint64_t)64 << 20;
    d->clock_mhz = 1000;
    d->noise = 0.002;
    d->counted_per_s = 1e9;
    return d;
}

void fake_close(scout_device *d) {
    for (int k = 0; k < FAKE_OWNED; k++) free(d->owned[k]);
    free(d);
}
