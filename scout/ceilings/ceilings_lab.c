/* How launches become figures while ceilings are measured: recorded sequences, metering, and the small ceilings that
 * need nothing else (the launch floor, special functions, multiply-adds in registers). */
#include "scout/ceilings/ceilings_lab.h"

#include "scout/timing/estimate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEAT_S 30.0 /* the next sign of life comes by then, beside what is known to take long */
#define RESTS  3.0  /* burst: rests of so many times the work keep the mean power far below any cap */
enum { MOST_BLOCKS = 90, MOST_PASSES = 16, HOST_BLOCKS = 3, BURSTS = 2, GROWTHS = 24 };
static const double waking_s = 0.3;                             /* after an idle device has been given work */
static const double steady_block_s = 0.05, host_block_s = 1e-3; /* of a long run */
static const double steady_rest_s = 0.3;                        /* of a long run in bursts, before each */
static const double device_interval_s = 1e-3;
static const double counted_s = 2e-3, host_counted_s = 0.5e-3; /* a launch of what is counted, at least */

double ceilings_lab_now(const ceilings_lab *lab) { return lab->clock->now(lab->clock->context); }

void ceilings_lab_say(const ceilings_lab *lab, const char *format, ...) {
    char text[256];
    va_list args;
    if (!lab->say) return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    lab->say(lab->say_context, text);
}

void ceilings_lab_part(ceilings_lab *lab, int parts_left, double most_s) {
    const double now_s = ceilings_lab_now(lab);
    lab->part_s = now_s + fmin(fmax(lab->end_s - now_s, 0) / (parts_left > 1 ? parts_left : 1), most_s);
}

double ceilings_lab_left(const ceilings_lab *lab) { return fmax(lab->part_s - ceilings_lab_now(lab), 0); }

bool ceilings_lab_late(const ceilings_lab *lab) { return ceilings_lab_now(lab) >= lab->part_s; }

uint64_t ceilings_lab_free_bytes(const ceilings_lab *lab) {
    uint64_t free_bytes = 0, total = 0;
    scout_why why;
    if (lab->api->memory(lab->device, &free_bytes, &total, &why) != SCOUT_OK) return 0;
    return free_bytes;
}

static scout_answer work_record(ceilings_work *w, bool graph, uint32_t launches, scout_why *why) {
    const ceilings_lab *lab = w->lab;
    return lab->api->record(lab->device, graph, launches, w->enqueue, w->context, &w->sequence, why);
}

/* A library may load a kernel at its first launch, which cannot be part of a graph: then it is launched once outside of
 * one, and recorded again. */
static scout_answer work_prepare(ceilings_work *w, uint32_t launches, scout_why *why) {
    const bool graph = w->lab->regime.launch == REGIME_GRAPH;
    double once = 0;
    scout_why first;
    scout_answer answer = work_record(w, graph, launches, why);
    if (graph && (answer == SCOUT_NO || answer == SCOUT_FAILED) && work_record(w, false, 1, &first) == SCOUT_OK) {
        scout_answer ran = w->lab->api->run(w->lab->device, w->sequence, 1, &once, &first);
        ceilings_work_drop(w);
        if (ran == SCOUT_OK) answer = work_record(w, true, launches, why);
        if (ran == SCOUT_LOST) answer = scout_say(why, SCOUT_LOST, first.code, "%s", first.text);
    }
    if (answer == SCOUT_OK) w->launches = launches;
    return answer;
}

static scout_answer work_run(void *context, uint32_t launches, uint32_t batches, double *seconds, scout_why *why) {
    ceilings_work *w = context;
    if (w->sequence && w->launches != launches) ceilings_work_drop(w);
    scout_answer answer = w->sequence ? SCOUT_OK : work_prepare(w, launches, why);
    if (answer != SCOUT_OK) return answer;
    return w->lab->api->run(w->lab->device, w->sequence, batches, seconds, why);
}

static uint32_t work_whole(void *context) { return ((ceilings_work *)context)->whole; }

timing_subject ceilings_work_subject(ceilings_work *w) {
    return (timing_subject){.context = w, .run = work_run, .whole = w->whole > 1 ? work_whole : NULL};
}

void ceilings_work_drop(ceilings_work *w) {
    if (w->sequence) w->lab->api->drop(w->lab->device, w->sequence);
    w->sequence = NULL;
    w->launches = 0;
}

/* ---- figures ---- */

static lanes_rules rules_of(const ceilings_lab *lab, int lanes, double seconds, double block_s) {
    lanes_rules rules = lanes_rules_of(&lab->regime, lab->host, true);
    rules.idle_s = RESTS * rules.burst_s;
    rules.block_s = fmin(fmin(block_s, seconds / 2), rules.burst ? rules.burst_s : INFINITY); /* rounds come in pairs */
    const double interval_s = lab->host ? rules.interval_s : device_interval_s;
    rules.interval_s = fmin(fmax(interval_s, rules.block_s / 32), rules.block_s);
    rules.look_s = rules.interval_s;
    rules.rounds = lab->host ? HOST_BLOCKS : 1;
    rules.most_rounds = (int)fmin(fmax(round(seconds / rules.block_s), rules.rounds), MOST_BLOCKS);
    rules.most_s = lanes * seconds;
    rules.fall = INFINITY; /* what a shape's own load does to the clock is a part of its rate */
    rules.precise = -1;    /* however well it is known: what is asked is the long run */
    return rules;
}

static scout_answer run_lanes(const ceilings_lab *lab, const lanes_rules *rules, lanes_lane *lanes, int count,
                              scout_why *why) {
    for (int k = 0; k < count; k++) lanes[k].keep = true;
    if (lanes_run(lab->clock, rules, lanes, count, -1, INFINITY)) return SCOUT_OK;
    for (int k = 0; k < count; k++)
        if (lanes[k].answer == SCOUT_LOST) *why = lanes[k].why;
    return SCOUT_LOST;
}

scout_answer ceilings_lab_pass(const ceilings_lab *lab, double seconds, double block_s, lanes_lane *lanes, int count,
                               scout_why *why) {
    const lanes_rules rules = rules_of(lab, count, seconds, block_s);
    return run_lanes(lab, &rules, lanes, count, why);
}

double ceilings_lab_launch_s(const ceilings_lab *lab, const lanes_lane *lane) {
    return lane->answer != SCOUT_OK ? 0 : lab->host ? lane->p05_s : lane->time_s;
}

/* Of a pass: seconds of a launch, and how the device ran. */
typedef struct pass {
    double launch_s, mhz, watts;
    bool counted; /* the device's own cycles, and not a look at its clock */
} pass;

static int by_time(const void *a, const void *b) {
    const pass *x = a, *y = b;
    return (x->launch_s > y->launch_s) - (x->launch_s < y->launch_s);
}

/* What takes cycles is known by its cycles: its time is that at the mean clock. */
static ceilings_figure figure_of(const pass *passes, int n, bool cycles) {
    double launch_s[MOST_PASSES] = {0}, mhz = 0, watts = 0;
    for (int k = 0; k < n; k++) cycles = cycles && passes[k].counted, mhz += passes[k].mhz, watts += passes[k].watts;
    for (int k = 0; k < n; k++) launch_s[k] = passes[k].launch_s * (cycles ? passes[k].mhz / (mhz / n) : 1);
    const estimate e = estimate_of(launch_s, (size_t)n);
    return (ceilings_figure){e.x, fmin(e.ci, 1), mhz / n, watts / n};
}

/* What disturbs a host only adds to its times: there as many passes more are run, and the faster half counts. */
scout_answer ceilings_lab_long(const ceilings_lab *lab, const timing_subject *subject, bool cycles, double seconds,
                               int passes, ceilings_figure *out, scout_why *why) {
    pass all[MOST_PASSES];
    const int most = (int)fmin(lab->host ? 2 * passes : passes, MOST_PASSES), least = lab->host ? 4 : 2;
    lanes_rules rules = rules_of(lab, 1, seconds, lab->host ? host_block_s : steady_block_s);
    int n = 0;
    if (rules.burst) rules.idle_s = steady_rest_s, rules.most_rounds = BURSTS;
    while (n < most && (n < least || !ceilings_lab_late(lab))) {
        lanes_lane lane = {.subject = *subject};
        scout_telemetry t = {.size = sizeof t, .clock_mhz = (double)NAN, .power_w = (double)NAN};
        const scout_answer answer = run_lanes(lab, &rules, &lane, 1, why);
        if (answer != SCOUT_OK) return answer;
        if (lane.answer != SCOUT_OK) {
            *why = lane.why;
            return lane.answer;
        }
        lab->clock->telemetry(lab->clock->context, &t);
        const bool counted = lane.clock_hz > 0;
        const double mhz = counted ? 1e-6 * lane.clock_hz : t.clock_mhz;
        all[n++] = (pass){ceilings_lab_launch_s(lab, &lane), mhz, t.power_w, counted};
    }
    if (lab->host) qsort(all, (size_t)n, sizeof all[0], by_time);
    *out = figure_of(all, lab->host ? n / 2 : n, cycles);
    return out->launch_s > 0 ? SCOUT_OK : scout_say(why, SCOUT_FAILED, "error", "the device's timer does not advance");
}

/* What the cap takes in a second depends on the second before: that is a rest. */
scout_answer ceilings_lab_fall(const ceilings_lab *lab, const timing_subject *subject, double *fall, scout_why *why) {
    static const double seconds = 0.02, block_s = 0.01, rest_s = 0.5;
    lanes_rules rules = rules_of(lab, 1, seconds, block_s);
    lanes_learned learned = {.steady_hz = 0};
    lanes_lane lane = {.subject = *subject, .keep = true};
    *fall = 0;
    rules.hold_s = LANES_WHOLE_S, rules.learned = &learned;
    lab->clock->pause(lab->clock->context, rest_s);
    if (!lanes_run(lab->clock, &rules, &lane, 1, 0, INFINITY)) {
        *why = lane.why;
        return SCOUT_LOST;
    }
    if (lane.answer == SCOUT_OK && lane.still_hz > 0 && lane.held_hz > 0)
        *fall = fmax(1 - lane.held_hz / lane.still_hz, 0);
    return SCOUT_OK;
}

/* ---- the launch floor ---- */

static scout_answer enqueue_nothing(void *context, uint32_t launch, void *stream, scout_why *why) {
    const ceilings_lab *lab = context;
    (void)launch;
    return lab->api->empty(lab->device, stream, why);
}

scout_answer ceilings_launch_measure(ceilings_lab *lab, ceilings *c, scout_why *why) {
    ceilings_work work = {.lab = lab, .enqueue = enqueue_nothing, .context = lab};
    const timing_subject subject = ceilings_work_subject(&work);
    ceilings_figure figure = {0};
    scout_answer answer = SCOUT_OK;
    if (!lab->host)
        answer = ceilings_lab_long(lab, &subject, false, waking_s, 2, &figure, why); /* of a clock that slept */
    if (answer == SCOUT_OK) answer = ceilings_lab_long(lab, &subject, false, 0.02, 4, &figure, why);
    ceilings_work_drop(&work);
    if (answer != SCOUT_OK) return answer;
    c->launch_s = lab->launch_s = figure.launch_s;
    ceilings_lab_say(lab, "launch floor %.2f us", figure.launch_s * 1e6);
    return SCOUT_OK;
}

/* ---- so many operations in one launch: special functions, registers ---- */

typedef struct counted {
    const ceilings_lab *lab;
    uint32_t type;         /* of arithmetic; SCOUT_NONE: special functions */
    uint64_t wanted, done; /* of one launch */
} counted;

static scout_answer enqueue_counted(void *context, uint32_t launch, void *stream, scout_why *why) {
    counted *x = context;
    (void)launch;
    const scout_device_api *api = x->lab->api;
    if (x->type == SCOUT_NONE) return api->special(x->lab->device, x->wanted, &x->done, stream, why);
    return api->arithmetic(x->lab->device, x->type, x->wanted, &x->done, stream, why);
}

/* Operations per second, net of the launch floor: launches grow until each is long enough. */
static scout_answer rate_of(const ceilings_lab *lab, uint32_t type, double *per_s, ceilings_figure *figure,
                            scout_why *why) {
    counted x = {.lab = lab, .type = type, .wanted = 1 << 20};
    ceilings_work work = {.lab = lab, .enqueue = enqueue_counted, .context = &x};
    const timing_subject subject = ceilings_work_subject(&work);
    const double least_s = lab->host ? host_counted_s : counted_s;
    scout_answer answer = SCOUT_OK;
    for (int step = 0; step < GROWTHS && answer == SCOUT_OK; step++) {
        double seconds[2] = {0};
        if (lab->clock->beat) lab->clock->beat(lab->clock->context, BEAT_S);
        answer = subject.run(subject.context, 1, 2, seconds, why);
        if (answer != SCOUT_OK || fmin(seconds[0], seconds[1]) >= least_s) break;
        const double factor = fmin(64, 1.5 * least_s / fmax(seconds[1], 1e-6));
        x.wanted = (uint64_t)((double)x.wanted * fmax(factor, 1.5));
        ceilings_work_drop(&work); /* what was recorded does the old number */
    }
    if (answer == SCOUT_OK) answer = ceilings_lab_long(lab, &subject, true, 0.09, 5, figure, why);
    ceilings_work_drop(&work);
    if (answer != SCOUT_OK) return answer;
    *per_s = (double)x.done / fmax(figure->launch_s - lab->launch_s, 0.5 * figure->launch_s);
    return *per_s > 0 ? SCOUT_OK : scout_say(why, SCOUT_FAILED, "error", "the probe did nothing");
}

scout_answer ceilings_special_measure(ceilings_lab *lab, ceilings *c, scout_why *why) {
    ceilings_figure figure = {0};
    double per_s = 0;
    if (!lab->api->special) return SCOUT_OK;
    scout_answer answer = rate_of(lab, SCOUT_NONE, &per_s, &figure, why);
    if (answer == SCOUT_NO) return SCOUT_OK;
    if (answer != SCOUT_OK) return answer;
    if (per_s > c->special_per_s) c->special_clock_mhz = figure.clock_mhz;
    c->special_per_s = fmax(c->special_per_s, per_s); /* what disturbs only takes away */
    ceilings_lab_say(lab, "special functions %.3g per second", c->special_per_s);
    return SCOUT_OK;
}

scout_answer ceilings_registers_measure(ceilings_lab *lab, const char *precision, ceilings *c, scout_why *why) {
    const ceilings_precision *p = ceilings_precision_named(precision);
    ceilings_peak peak = {.layout = ""};
    snprintf(peak.how, sizeof peak.how, "%s", ceilings_in_registers);
    ceilings_figure figure = {.rel_ci95 = 1};
    const double start_s = ceilings_lab_now(lab);
    double per_s = 0;
    if (!p || !lab->api->arithmetic) return SCOUT_NO; /* tf32: inputs may be rounded, they need not be */
    for (int k = 0; k < 2 && figure.rel_ci95 > CEILINGS_LAB_WIDE && (k == 0 || !ceilings_lab_late(lab)); k++) {
        const scout_answer answer = rate_of(lab, p->type, &per_s, &figure, why);
        if (answer != SCOUT_OK) return answer;
    }
    snprintf(peak.precision, sizeof peak.precision, "%s", p->name);
    peak.tflops = per_s / 1e12;
    peak.rel_ci95 = figure.rel_ci95, peak.disturbed = figure.rel_ci95 > CEILINGS_LAB_WIDE;
    peak.clock_mhz = figure.clock_mhz, peak.power_w = figure.power_w;
    peak.seconds = ceilings_lab_now(lab) - start_s;
    ceilings_lab_say(lab, "%s: %.4g TFLOP/s in registers", p->name, peak.tflops);
    ceilings_peak_offer(c, &peak);
    return SCOUT_OK;
}
