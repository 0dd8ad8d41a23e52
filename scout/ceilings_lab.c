/* How launches become figures while ceilings are measured: recorded sequences, metering, and the small ceilings that
 * need nothing else (the launch floor, special functions, multiply-adds in registers). */
#include "scout/ceilings_lab.h"

#include "scout/stats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_INTERVALS = 4096, LAUNCHES_OF_NOTHING = 400, LEAST_LATE = 2 };
#define BEAT_S 30.0 /* the next sign of life comes by then, beside what is known to take long */
#define RESTS  3.0  /* burst: rests of so many times the work keep the mean power far below any cap */

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

void ceilings_lab_part(ceilings_lab *lab, int parts_left) {
    const double now_s = ceilings_lab_now(lab);
    lab->part_s = now_s + fmax(lab->end_s - now_s, 0) / (parts_left > 1 ? parts_left : 1);
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

timing_subject ceilings_work_subject(ceilings_work *w) { return (timing_subject){.context = w, .run = work_run}; }

void ceilings_work_drop(ceilings_work *w) {
    if (w->sequence) w->lab->api->drop(w->lab->device, w->sequence);
    w->sequence = NULL;
    w->launches = 0;
}

void ceilings_lab_rest(const timing_clock *clock, const timing_rules *rules, double worked) {
    if (rules->burst) clock->pause(clock->context, RESTS * worked);
}

scout_answer ceilings_lab_meter(const ceilings_lab *lab, const timing_subject *subject, uint32_t launches,
                                double seconds, uint32_t least, ceilings_figure *out, scout_why *why) {
    double intervals[MAX_INTERVALS], first = 0;
    if (lab->clock->beat) lab->clock->beat(lab->clock->context, BEAT_S);
    scout_answer answer = subject->run(subject->context, launches, 1, &first, why);
    if (answer != SCOUT_OK) return answer;
    if (!(first > 0)) return scout_say(why, SCOUT_FAILED, "error", "the device's timer stands still");
    /* who is late looks less closely, but looks */
    if (ceilings_lab_left(lab) < first * least) least = least < LEAST_LATE ? least : LEAST_LATE;
    double wanted = fmax(fmin(seconds, ceilings_lab_left(lab)) / first, least);
    uint32_t count = (uint32_t)fmin(wanted, MAX_INTERVALS), done = 0;
    while (done < count) {
        uint32_t some = count - done;
        double piece = lab->rules.burst ? lab->rules.burst_s : 1; /* in pieces of a second, each with a sign of life */
        some = (uint32_t)fmax(1, fmin(some, piece / first));
        if (lab->clock->beat) lab->clock->beat(lab->clock->context, BEAT_S + 10 * first * some);
        answer = subject->run(subject->context, launches, some, intervals + done, why);
        if (answer != SCOUT_OK) return answer;
        ceilings_lab_rest(lab->clock, &lab->rules, first * some);
        done += some;
    }
    out->median_s = stats_median(intervals, count) / launches;
    out->rel_ci95 = stats_median_interval(intervals, count, 0, 1).relative;
    if (!isfinite(out->rel_ci95)) out->rel_ci95 = 1; /* a single interval says nothing of it */
    return out->median_s > 0 ? SCOUT_OK : scout_say(why, SCOUT_FAILED, "error", "the device's timer stands still");
}

/* ---- the launch floor ---- */

static scout_answer enqueue_nothing(void *context, uint32_t launch, void *stream, scout_why *why) {
    const ceilings_lab *lab = context;
    (void)launch;
    return lab->api->empty(lab->device, stream, why);
}

scout_answer ceilings_launch_measure(ceilings_lab *lab, ceilings *c, scout_why *why) {
    ceilings_work work = {.lab = lab, .enqueue = enqueue_nothing, .context = lab};
    timing_subject subject = ceilings_work_subject(&work);
    ceilings_figure figure = {0, 0};
    scout_answer answer = ceilings_lab_meter(lab, &subject, LAUNCHES_OF_NOTHING, 0.1, 20, &figure, why);
    ceilings_work_drop(&work);
    if (answer != SCOUT_OK) return answer;
    c->launch_s = lab->launch_s = figure.median_s;
    ceilings_lab_say(lab, "launch floor %.2f us", figure.median_s * 1e6);
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

/* Operations per second, net of the launch floor: launches grow until each takes 2 ms or more. */
static scout_answer rate_of(const ceilings_lab *lab, uint32_t type, double *per_s, double *rel_ci95, scout_why *why) {
    counted x = {.lab = lab, .type = type, .wanted = 1 << 20};
    ceilings_work work = {.lab = lab, .enqueue = enqueue_counted, .context = &x};
    timing_subject subject = ceilings_work_subject(&work);
    ceilings_figure figure = {0, 0};
    scout_answer answer = SCOUT_OK;
    for (int step = 0; step < 24 && answer == SCOUT_OK; step++) {
        answer = ceilings_lab_meter(lab, &subject, 1, 0, 3, &figure, why);
        if (answer != SCOUT_OK || figure.median_s >= 2e-3) break;
        double factor = fmin(64, 1.5 * 2e-3 / figure.median_s);
        x.wanted = (uint64_t)((double)x.wanted * fmax(factor, 1.5));
        ceilings_work_drop(&work); /* what was recorded does the old number */
    }
    if (answer == SCOUT_OK) answer = ceilings_lab_meter(lab, &subject, 1, 0.4, 20, &figure, why);
    ceilings_work_drop(&work);
    if (answer != SCOUT_OK) return answer;
    double net = fmax(figure.median_s - lab->launch_s, 0.5 * figure.median_s);
    *per_s = (double)x.done / net;
    *rel_ci95 = figure.rel_ci95;
    return *per_s > 0 ? SCOUT_OK : scout_say(why, SCOUT_FAILED, "error", "the probe did nothing");
}

scout_answer ceilings_special_measure(ceilings_lab *lab, ceilings *c, scout_why *why) {
    double rel = 0;
    if (!lab->api->special) return SCOUT_OK;
    scout_answer answer = rate_of(lab, SCOUT_NONE, &c->special_per_s, &rel, why);
    if (answer == SCOUT_NO) return SCOUT_OK;
    if (answer == SCOUT_OK) ceilings_lab_say(lab, "special functions %.3g per second", c->special_per_s);
    return answer;
}

scout_answer ceilings_registers_measure(ceilings_lab *lab, const char *precision, ceilings *c, scout_why *why) {
    const ceilings_precision *p = ceilings_precision_named(precision);
    ceilings_peak peak = {.how = "registers", .layout = ""};
    double per_s = 0, start = ceilings_lab_now(lab);
    if (!p || !lab->api->arithmetic) return SCOUT_NO; /* tf32: inputs may be rounded, they need not be */
    scout_answer answer = SCOUT_OK;
    peak.rel_ci95 = 1;
    for (int k = 0; k < CEILINGS_LAB_TIMES && answer == SCOUT_OK && peak.rel_ci95 > CEILINGS_LAB_WIDE; k++) {
        if (k > 0 && ceilings_lab_late(lab)) break;
        answer = rate_of(lab, p->type, &per_s, &peak.rel_ci95, why);
    }
    if (answer != SCOUT_OK) return answer;
    peak.disturbed = peak.rel_ci95 > CEILINGS_LAB_WIDE;
    scout_telemetry t = {.size = sizeof t, .clock_mhz = (double)NAN, .power_w = (double)NAN};
    lab->clock->telemetry(lab->clock->context, &t);
    snprintf(peak.precision, sizeof peak.precision, "%s", p->name);
    peak.tflops = per_s / 1e12;
    peak.clock_mhz = t.clock_mhz, peak.power_w = t.power_w;
    peak.seconds = ceilings_lab_now(lab) - start;
    ceilings_lab_say(lab, "%s: %.4g TFLOP/s in registers", p->name, peak.tflops);
    ceilings_peak_offer(c, &peak);
    return SCOUT_OK;
}
