/* Measuring ceilings on a whole device that is made up: a cache, memory, a launch floor, special functions, one library
 * whose products have a known best. What comes out is what was put in, everything is given back, and failures end what
 * they must end and nothing more. Time is virtual; memory is only counted. */
#include "scout/ceilings.h"
#include "scout/gemm.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>

#define FLOOR_S  2e-6
#define READ     4.4e12
#define COPY     4.1e12
#define WRITE    4.0e12
#define WARM     3.0 /* the cache is so much faster */
#define SPECIALS 5e12
#define PEAK     800e12
#define CACHE    (64u << 20)

typedef struct call { /* one recorded launch */
    uint64_t read, read_bytes, written, written_bytes;
    double work_s;
} call;

struct scout_sequence {
    call *calls;
    uint32_t count;
};

struct scout_device {
    double now, loss_at; /* loss_at: SCOUT_LOST from then on */
    uint64_t next, used, room;
    int memories, sequences, plans, runs;
    bool no_special, no_stream, refuse_gemm, lazy;
    struct scout_sequence *into; /* being recorded */
    bool graph;                  /* as a graph */
    uint64_t random;
};

static scout_device dev;

static double noise(void) {
    dev.random = dev.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return 1 + 0.004 * ((double)(dev.random >> 11) / 9007199254740992.0 - 0.5);
}

static void add_call(const call *c) {
    struct scout_sequence *s = dev.into;
    call *more = realloc(s->calls, ((size_t)s->count + 1) * sizeof *more);
    if (!more) abort();
    s->calls = more;
    s->calls[s->count++] = *c;
}

static scout_answer mem(scout_device *d, uint64_t *free_bytes, uint64_t *total, scout_why *why) {
    (void)why;
    *free_bytes = d->room - d->used, *total = d->room;
    return SCOUT_OK;
}
static scout_answer take(scout_device *d, uint64_t bytes, void **out, scout_why *why) {
    if (d->used + bytes > d->room) return scout_say(why, SCOUT_NO_MEMORY, "memory", "none left");
    uint64_t *head = malloc(16); /* stands for the memory; its address is that of nothing else */
    if (!head) return scout_say(why, SCOUT_NO_MEMORY, "memory", "none left here");
    head[0] = bytes;
    d->used += bytes, d->memories++;
    *out = head;
    return SCOUT_OK;
}
static void give(scout_device *d, void *memory) {
    d->used -= ((uint64_t *)memory)[0], d->memories--;
    free(memory);
}
static scout_answer fill(scout_device *d, void *to, uint64_t bytes, uint32_t type, uint32_t how, uint64_t seed,
                         scout_why *why) {
    (void)d, (void)to, (void)bytes, (void)type, (void)how, (void)seed, (void)why;
    d->now += (double)bytes / 2e12;
    return SCOUT_OK;
}
static scout_answer record(scout_device *d, int graph, uint32_t launches, scout_enqueue enqueue, void *context,
                           scout_sequence **out, scout_why *why) {
    scout_answer answer = SCOUT_OK;
    d->graph = graph;
    d->into = calloc(1, sizeof *d->into);
    if (!d->into) return scout_say(why, SCOUT_NO_MEMORY, "memory", "none");
    for (uint32_t k = 0; k < launches && answer == SCOUT_OK; k++) answer = enqueue(context, k, d, why);
    d->now += 1e-4;
    if (answer != SCOUT_OK) {
        free(d->into->calls);
        free(d->into);
        return answer;
    }
    d->sequences++;
    *out = d->into;
    return SCOUT_OK;
}
static void drop(scout_device *d, scout_sequence *s) {
    d->sequences--;
    free(s->calls);
    free(s);
}

/* How many bytes all launches of a sequence touch, where those that touch the same count once. */
static double footprint(const scout_sequence *s) {
    uint64_t low = UINT64_MAX, high = 0, most = 0;
    double sum = 0;
    for (uint32_t k = 0; k < s->count; k++) {
        const call *c = &s->calls[k];
        uint64_t at = c->read_bytes ? c->read : c->written;
        low = at < low ? at : low, high = at > high ? at : high;
        sum += (double)(c->read_bytes + c->written_bytes);
        most = c->read_bytes + c->written_bytes > most ? c->read_bytes + c->written_bytes : most;
    }
    return low == high ? (double)most : sum;
}

static double call_s(const call *c, double cached) {
    double bytes = (double)(c->read_bytes + c->written_bytes), f = bytes > 0 ? (double)c->read_bytes / bytes : 1;
    double rate = f >= 0.5 ? COPY + (READ - COPY) * (f - 0.5) / 0.5 : WRITE + (COPY - WRITE) * f / 0.5;
    rate *= 1 + (WARM - 1) * cached;
    return FLOOR_S + (bytes > 0 ? bytes / rate : 0) + c->work_s;
}

static scout_answer run(scout_device *d, scout_sequence *s, uint32_t repeats, double *seconds, scout_why *why) {
    double over = footprint(s) / CACHE, cached = over <= 1 ? 1 : fmax(0, 1 - (over - 1) / 3);
    for (uint32_t r = 0; r < repeats; r++) {
        double sum = 0;
        for (uint32_t k = 0; k < s->count; k++) sum += call_s(&s->calls[k], cached);
        seconds[r] = sum * noise();
        d->now += seconds[r];
    }
    d->runs++;
    if (d->loss_at > 0 && d->runs > d->loss_at) return scout_say(why, SCOUT_LOST, "lost", "the device is gone");
    return SCOUT_OK;
}
static double now(scout_device *d) { return d->now; }
static void rest(scout_device *d, double seconds) { d->now += seconds; }
static void telemetry(scout_device *d, scout_telemetry *out) {
    (void)d;
    *out = (scout_telemetry){.size = sizeof *out, .clock_mhz = 1500, .power_w = NAN};
    out->memory_clock_mhz = out->temperature_c = NAN;
}
static scout_answer stream(scout_device *d, const void *read, uint64_t read_bytes, void *written,
                           uint64_t written_bytes, void *queue, scout_why *why) {
    (void)queue;
    if (d->no_stream) return scout_say(why, SCOUT_FAILED, "error", "it does not stream");
    add_call(&(call){(uint64_t)(uintptr_t)read, read_bytes, (uint64_t)(uintptr_t)written, written_bytes, 0});
    return SCOUT_OK;
}
static scout_answer empty(scout_device *d, void *queue, scout_why *why) {
    (void)d, (void)queue, (void)why;
    add_call(&(call){0});
    return SCOUT_OK;
}
static scout_answer special(scout_device *d, uint64_t operations, uint64_t *done, void *queue, scout_why *why) {
    (void)queue;
    if (d->no_special) return scout_say(why, SCOUT_NO, "feature", "there is no such probe");
    *done = operations;
    add_call(&(call){.work_s = (double)operations / SPECIALS});
    return SCOUT_OK;
}

/* ---- its library ---- */

struct scout_plan {
    double work_s;
    bool loaded;
};

static scout_answer supports(const scout_op *op, scout_device *d, scout_why *why) {
    (void)d;
    if (dev.refuse_gemm || op->input == SCOUT_INT8) return scout_say(why, SCOUT_NO, "type", "not this type");
    if (op->input == SCOUT_FP8E4M3 && strcmp(op->layout, "nt") != 0)
        return scout_say(why, SCOUT_NO, "layout", "the weight must be transposed");
    return SCOUT_OK;
}
static scout_answer domain(const scout_op *op, scout_device *d, int exhaustive, scout_domain *out, scout_why *why) {
    (void)op, (void)d, (void)exhaustive, (void)why;
    out->count = 1;
    out->parameters[0] = (scout_parameter){.name = "algo", .count = 3, .values = {0, 1, 2}};
    return SCOUT_OK;
}
static double part_of(int64_t m, int64_t n, int64_t k, int64_t algo) {
    double tiles = ceil((double)m / 128) * ceil((double)n / 256), waves = ceil(tiles / 132) * 132;
    return tiles / waves * (double)k / ((double)k + 200) * (algo == 2 ? 1.02 : 1);
}
static scout_answer prepare(const scout_op *op, scout_device *d, const int64_t *values, scout_plan **plan,
                            scout_plan_needs *needs, scout_why *why) {
    (void)why;
    gemm_problem p = gemm_problem_of(op);
    scout_plan *x = calloc(1, sizeof *x);
    if (!x) return scout_say(why, SCOUT_NO_MEMORY, "memory", "none");
    double peak = op->input == SCOUT_FP8E4M3 ? 2 * PEAK : PEAK;
    x->work_s = 2.0 * (double)p.m * (double)p.n * (double)p.k / (peak * part_of(p.m, p.n, p.k, values[0])) - FLOOR_S;
    needs->workspace_bytes = 1 << 20;
    d->plans++;
    d->now += 3e-4;
    *plan = x;
    return SCOUT_OK;
}
static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    if (dev.lazy && dev.graph && !plan->loaded) return scout_say(why, SCOUT_FAILED, "error", "not while capturing");
    plan->loaded = true;
    if (!args->tensors[0] || !args->tensors[1] || !args->tensors[2] || !args->workspace) abort();
    add_call(&(call){.work_s = fmax(plan->work_s, 0)});
    return SCOUT_OK;
}
static int describe(const scout_plan *plan, char *json, size_t room) {
    (void)plan;
    return snprintf(json, room, "{}");
}
static void destroy(scout_plan *plan) {
    dev.plans--;
    free(plan);
}

static const scout_candidate library = {.size = sizeof(scout_candidate),
                                        .kind = SCOUT_GEMM,
                                        .flags = SCOUT_BASELINE,
                                        .name = "lib",
                                        .about = "",
                                        .supports = supports,
                                        .domain = domain,
                                        .prepare = prepare,
                                        .launch = launch,
                                        .describe = describe,
                                        .destroy = destroy};
static const scout_candidate *const candidates[] = {&library};
static const scout_device_api api = {.size = sizeof(scout_device_api),
                                     .name = "made-up",
                                     .memory = mem,
                                     .alloc = take,
                                     .release = give,
                                     .fill = fill,
                                     .record = record,
                                     .run = run,
                                     .drop = drop,
                                     .has_graphs = 1,
                                     .resolution_s = 5e-7,
                                     .now = now,
                                     .pause = rest,
                                     .telemetry = telemetry,
                                     .stream = stream,
                                     .empty = empty,
                                     .special = special,
                                     .candidate_count = 1,
                                     .candidates = candidates};

static double clock_now(void *context) { return now(context); }
static void clock_pause(void *context, double seconds) { rest(context, seconds); }
static void clock_telemetry(void *context, scout_telemetry *out) { telemetry(context, out); }

static void device_begin(void) {
    memset(&dev, 0, sizeof dev);
    dev.room = UINT64_C(100) << 30;
    dev.random = 3;
}
static bool nothing_left(void) { return dev.memories == 0 && dev.sequences == 0 && dev.plans == 0 && dev.used == 0; }

static scout_answer measure(const ceilings_request *q, ceilings *c, json_t *audit, scout_why *why) {
    static const scout_identity identity = {.size = sizeof identity, .units = 132, .cache_bytes = CACHE};
    const timing_clock clock = {&dev, 5e-7, clock_now, clock_pause, clock_telemetry, NULL};
    const regime r = {REGIME_SUSTAINED, REGIME_COLD, REGIME_GRAPH};
    json_builder b = {NULL};
    ceilings_request request = *q;
    request.identity = &identity;
    scout_answer answer = ceilings_measure(&api, &dev, &clock, &r, &request, NULL, NULL, c, &b, audit, why);
    UNIT_CHECK(b.why == NULL);
    return answer;
}

static bool near(double got, double want, double tolerance) {
    if (fabs(got - want) <= tolerance * want) return true;
    printf("    got %.6g, want %.6g\n", got, want);
    return false;
}

static void what_was_put_in(void) {
    ceilings *c = calloc(1, sizeof *c);
    json_t *audit = json_object();
    scout_why why = {.text = ""};
    device_begin();
    const ceilings_request q = {
        .precisions = {"fp16", "fp8", "int8", "int4"}, .bandwidth = true, .audit = true, .budget_s = 30};
    if (!UNIT_CHECK(c && measure(&q, c, audit, &why) == SCOUT_OK)) printf("    %s\n", why.text);
    UNIT_CHECK(nothing_left());
    UNIT_CHECK(near(c->launch_s, FLOOR_S, 0.01) && near(c->special_per_s, SPECIALS, 0.02));
    UNIT_CHECK(near(c->read_tbps, READ / 1e12, 0.01) && near(c->copy_tbps, COPY / 1e12, 0.01));
    UNIT_CHECK(near(c->write_tbps, WRITE / 1e12, 0.01));
    /* nothing is left of the cache's help from four times its size on */
    if (!UNIT_CHECK(c->plateau_bytes >= 3.5 * CACHE && c->plateau_bytes <= 12.0 * CACHE))
        printf("    plateau %.4g\n", c->plateau_bytes);
    UNIT_CHECK(c->bandwidth_count > 60 && c->bandwidth_count <= CEILINGS_MAX_BANDWIDTHS);
    UNIT_CHECK(near(ceilings_bandwidth_at(c, 20e6, 1, true), WARM * READ / 1e12, 0.03));
    UNIT_CHECK(near(ceilings_bandwidth_at(c, 20e6, 1, false), READ / 1e12, 0.03));
    UNIT_CHECK(near(ceilings_bandwidth_at(c, 2e9, 0.5, false), COPY / 1e12, 0.03));
    UNIT_INT(c->peak_count, 2); /* int8 has no library here, int4 is fp16 */
    const ceilings_peak *fp16 = ceilings_find_peak(c, "fp16"), *fp8 = ceilings_find_peak(c, "fp8");
    UNIT_CHECK(fp16 && near(fp16->tflops, 1.02 * PEAK / 1e12, 0.02) && strstr(fp16->how, "lib algo=2"));
    UNIT_CHECK(fp8 && near(fp8->tflops, 2 * 1.02 * PEAK / 1e12, 0.02) && strcmp(fp8->layout, "nt") == 0);
    UNIT_CHECK(fp16 && fp16->tried > 200 && fp16->clock_mhz == 1500);
    UNIT_CHECK(json_number_value(json_object_get(json_object_get(audit, "fp16"), "ratio")) >= 0.995);
    UNIT_CHECK(json_object_get(audit, "fp8") && !json_object_get(audit, "int8"));
    json_decref(audit);
    free(c);
}

static void known_is_not_measured_again(void) {
    ceilings *c = calloc(1, sizeof *c);
    scout_why why = {.text = ""};
    device_begin();
    ceilings_request q = {.precisions = {"fp16"}, .bandwidth = true, .budget_s = 10};
    UNIT_CHECK(c && measure(&q, c, NULL, &why) == SCOUT_OK);
    double was = dev.now;
    UNIT_CHECK(measure(&q, c, NULL, &why) == SCOUT_OK);
    UNIT_CHECK(dev.now == was);
    UNIT_CHECK(was < 10 + 12); /* a budget for the peak, and a few seconds for the rest */
    q.again = true;
    UNIT_CHECK(measure(&q, c, NULL, &why) == SCOUT_OK && dev.now > was + 2);
    UNIT_INT(c->peak_count, 1);
    free(c);
}

/* A library that loads its kernels at their first launch, and cannot while a graph is recorded. */
static void lazy_library(void) {
    ceilings *c = calloc(1, sizeof *c);
    scout_why why = {.text = ""};
    const ceilings_request q = {.precisions = {"fp16"}, .budget_s = 10};
    device_begin();
    dev.lazy = true;
    UNIT_CHECK(c && measure(&q, c, NULL, &why) == SCOUT_OK && nothing_left());
    UNIT_CHECK(c && c->peak_count == 1 && near(c->peaks[0].tflops, 1.02 * PEAK / 1e12, 0.02));
    free(c);
}

static void k_sweep(void) {
    ceilings *c = calloc(1, sizeof *c);
    scout_why why = {.text = ""};
    device_begin();
    ceilings_request q = {
        .precisions = {"fp16"}, .sweep_precision = "fp16", .sweep_m = 8192, .sweep_n = 8192, .budget_s = 30};
    UNIT_CHECK(c && measure(&q, c, NULL, &why) == SCOUT_OK);
    UNIT_INT(c->sweep_count, 13);
    UNIT_INT(c->sweep[0].shape[2], 65536);
    UNIT_INT(c->sweep[12].shape[2], 262144);
    UNIT_CHECK(near(c->sweep[12].tflops, PEAK / 1e12 * part_of(8192, 8192, 262144, 0), 0.01));
    UNIT_CHECK(nothing_left());
    for (int k = 0; k < c->sweep_count; k++) UNIT_CHECK(c->peaks[0].tflops >= c->sweep[k].tflops);
    dev.room = UINT64_C(4) << 30; /* 8192 x 131072 in fp16 twice is all that fits */
    q.again = true;
    UNIT_CHECK(measure(&q, c, NULL, &why) == SCOUT_OK);
    UNIT_CHECK(c->sweep_count > 0 && c->sweep_count < 6 && nothing_left());
    free(c);
}

static void less_memory_and_missing_parts(void) {
    ceilings *c = calloc(1, sizeof *c);
    scout_why why = {.text = ""};
    const ceilings_request q = {.precisions = {"fp16", "none-such"}, .bandwidth = true, .budget_s = 10};
    device_begin();
    dev.room = UINT64_C(600) << 20;
    UNIT_CHECK(c && measure(&q, c, NULL, &why) == SCOUT_OK && nothing_left());
    UNIT_CHECK(c->peak_count == 1 && c->bandwidth_count > 0);
    memset(c, 0, sizeof *c);
    device_begin();
    dev.no_special = dev.no_stream = dev.refuse_gemm = true;
    UNIT_CHECK(measure(&q, c, NULL, &why) == SCOUT_OK && nothing_left());
    UNIT_CHECK(c->peak_count == 0 && c->bandwidth_count == 0 && c->special_per_s == 0 && c->launch_s > 0);
    free(c);
}

static void a_lost_device_ends_it(void) {
    ceilings *c = calloc(1, sizeof *c);
    scout_why why = {.text = ""};
    const ceilings_request q = {.precisions = {"fp16"}, .bandwidth = true, .audit = true, .budget_s = 10};
    int ended = 0;
    for (double at = 1; at < 6000; at *= 1.7) {
        json_t *audit = json_object();
        device_begin();
        dev.loss_at = at;
        memset(c, 0, sizeof *c);
        scout_answer answer = measure(&q, c, audit, &why);
        UNIT_CHECK(answer == SCOUT_LOST || dev.runs <= (int)at);
        ended += answer == SCOUT_LOST;
        UNIT_CHECK(nothing_left());
        json_decref(audit);
    }
    UNIT_CHECK(ended > 10);
    free(c);
}

int main(void) {
    UNIT_RUN(what_was_put_in);
    UNIT_RUN(known_is_not_measured_again);
    UNIT_RUN(lazy_library);
    UNIT_RUN(k_sweep);
    UNIT_RUN(less_memory_and_missing_parts);
    UNIT_RUN(a_lost_device_ends_it);
    return unit_end();
}
