/* The made-up device. Sequences keep what was recorded, and running one adds up what its launches would take. */
#include "tests/fakes/made_up.h"

#include "scout/op/gemm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct call { /* one recorded launch */
    uint64_t read, read_bytes, written, written_bytes;
    double work_s;
} call;

struct scout_sequence {
    call *calls;
    uint32_t count;
};

scout_device made_up;

static double noise(void) {
    made_up.random = made_up.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return 1 + 0.004 * ((double)(made_up.random >> 11) / 9007199254740992.0 - 0.5);
}

static void add_call(const call *c) {
    struct scout_sequence *s = made_up.into;
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
    double rate = f >= 0.5 ? MADE_UP_COPY + (MADE_UP_READ - MADE_UP_COPY) * (f - 0.5) / 0.5
                           : MADE_UP_WRITE + (MADE_UP_COPY - MADE_UP_WRITE) * f / 0.5;
    rate *= 1 + (MADE_UP_WARM - 1) * cached;
    return MADE_UP_FLOOR_S + (bytes > 0 ? bytes / rate : 0) + c->work_s;
}

static scout_answer run(scout_device *d, scout_sequence *s, uint32_t repeats, double *seconds, scout_why *why) {
    double over = footprint(s) / MADE_UP_CACHE, cached = over <= 1 ? 1 : fmax(0, 1 - (over - 1) / 3);
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
    add_call(&(call){.work_s = (double)operations / MADE_UP_SPECIALS});
    return SCOUT_OK;
}

/* ---- its library ---- */

struct scout_plan {
    double work_s;
    bool loaded;
};

static scout_answer supports(const scout_op *op, scout_device *d, scout_why *why) {
    (void)d;
    if (made_up.refuse_gemm || op->input == SCOUT_INT8) return scout_say(why, SCOUT_NO, "type", "not this type");
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
double made_up_part_of(int64_t m, int64_t n, int64_t k, int64_t algo) {
    double tiles = ceil((double)m / 128) * ceil((double)n / 256), waves = ceil(tiles / 132) * 132;
    return tiles / waves * (double)k / ((double)k + 200) * (algo == 2 ? 1.02 : 1);
}
static scout_answer prepare(const scout_op *op, scout_device *d, const int64_t *values, scout_plan **plan,
                            scout_plan_needs *needs, scout_why *why) {
    (void)why;
    gemm_problem p = gemm_problem_of(op);
    scout_plan *x = calloc(1, sizeof *x);
    if (!x) return scout_say(why, SCOUT_NO_MEMORY, "memory", "none");
    double peak = op->input == SCOUT_FP8E4M3 ? 2 * MADE_UP_PEAK : MADE_UP_PEAK;
    x->work_s = 2.0 * (double)p.m * (double)p.n * (double)p.k / (peak * made_up_part_of(p.m, p.n, p.k, values[0])) -
                MADE_UP_FLOOR_S;
    needs->workspace_bytes = 1 << 20;
    d->plans++;
    d->now += 3e-4;
    *plan = x;
    return SCOUT_OK;
}
static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    if (made_up.lazy && made_up.graph && !plan->loaded)
        return scout_say(why, SCOUT_FAILED, "error", "not while capturing");
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
    made_up.plans--;
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
const scout_device_api made_up_api = {.size = sizeof(scout_device_api),
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

const timing_clock made_up_clock = {
    .context = &made_up, .resolution_s = 5e-7, .now = clock_now, .pause = clock_pause, .telemetry = clock_telemetry};

void made_up_begin(void) {
    memset(&made_up, 0, sizeof made_up);
    made_up.room = UINT64_C(100) << 30;
    made_up.random = 3;
}
bool made_up_nothing_left(void) {
    return made_up.memories == 0 && made_up.sequences == 0 && made_up.plans == 0 && made_up.used == 0;
}
