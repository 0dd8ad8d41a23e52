/* Measuring the ceilings of a device: which parts are wanted and not known yet, in which order, and what a failure of
 * one of them means for the others. */
#include "scout/ceilings/ceilings_lab.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const double LONGEST = 1.5; /* budgets that a precision may take, confirmed twice where it was disturbed */

static const ceilings_precision precisions[] = {
    {"fp32", SCOUT_FP32, 0, 4, 4}, {"tf32", SCOUT_FP32, 1, 4, 4},   {"fp16", SCOUT_FP16, 0, 2, 2},
    {"bf16", SCOUT_BF16, 0, 2, 2}, {"fp8", SCOUT_FP8E4M3, 0, 1, 2}, {"int8", SCOUT_INT8, 0, 1, 4},
};

const ceilings_precision *ceilings_precision_named(const char *name) {
    if (strcmp(name, "int4") == 0) name = "fp16"; /* its weights are multiplied as fp16 */
    for (size_t k = 0; k < sizeof precisions / sizeof precisions[0]; k++)
        if (strcmp(precisions[k].name, name) == 0) return &precisions[k];
    return NULL;
}

uint32_t ceilings_type_of(const char *precision) {
    const ceilings_precision *p = ceilings_precision_named(precision);
    return p && !p->tf32 ? p->type : SCOUT_NONE;
}

/* What was disturbed takes the place of what was not only by more than its interval, and never keeps it else. */
static bool is_more(const ceilings_peak *p, const ceilings_peak *known) {
    if (p->disturbed == known->disturbed) return p->tflops > known->tflops;
    const ceilings_peak *doubted = p->disturbed ? p : known, *sure = p->disturbed ? known : p;
    const bool surely = doubted->tflops * (1 - fmin(doubted->rel_ci95, 1)) > sure->tflops;
    return surely == p->disturbed;
}

void ceilings_peak_offer(ceilings *c, const ceilings_peak *p) {
    for (int k = 0; k < c->peak_count; k++) {
        ceilings_peak *known = &c->peaks[k];
        if (strcmp(known->precision, p->precision) != 0) continue;
        double seconds = known->seconds + p->seconds, datasheet = known->datasheet;
        int32_t tried = known->tried + p->tried;
        if (is_more(p, known)) *known = *p;
        known->seconds = seconds, known->tried = tried; /* of all that was looked at */
        if (datasheet > 0) known->datasheet = datasheet;
        return;
    }
    if (c->peak_count < CEILINGS_MAX_PEAKS) c->peaks[c->peak_count++] = *p;
}

/* A part that is not there on this device, or failed, leaves the others as they are; a lost device ends everything. */
static bool fatal(scout_answer answer) { return answer == SCOUT_LOST; }

static scout_answer measure_base(ceilings_lab *lab, bool bandwidth, ceilings *c, scout_why *why) {
    scout_answer answer = ceilings_launch_measure(lab, c, why);
    if (answer != SCOUT_OK) return answer; /* where not even nothing can be launched */
    if (!bandwidth) return SCOUT_OK;
    answer = ceilings_bandwidth_measure(lab, c, why);
    if (answer == SCOUT_OK || answer == SCOUT_NO || answer == SCOUT_FAILED) {
        if (answer != SCOUT_OK) ceilings_lab_say(lab, "bandwidth: %s", why->text);
        answer = ceilings_special_measure(lab, c, why);
    }
    return fatal(answer) || answer == SCOUT_NO_MEMORY ? answer : SCOUT_OK;
}

static scout_answer measure_precision(ceilings_lab *lab, const ceilings_request *q, const char *name, ceilings *c,
                                      json_builder *b, json_t *audit, scout_why *why) {
    const ceilings_precision *p = ceilings_precision_named(name);
    if (!p) return scout_say(why, SCOUT_NO, "type", "precision %.40s has no peak", name);
    scout_answer registers = ceilings_registers_measure(lab, p->name, c, why);
    if (fatal(registers)) return registers;
    scout_answer answer = ceilings_gemm_measure(lab, p->name, q->budget_s, c, b, q->audit ? audit : NULL, why);
    for (int k = 0; k < c->peak_count; k++)
        if (strcmp(c->peaks[k].precision, p->name) == 0 && lab->identity && lab->api->datasheet)
            c->peaks[k].datasheet = lab->api->datasheet(lab->identity, p->type, p->tf32);
    return answer;
}

static void stamp(char *text, size_t room) {
    time_t now = time(NULL);
    struct tm utc;
    if (now == (time_t)-1 || !gmtime_r(&now, &utc) || strftime(text, room, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        text[0] = 0;
}

static void take_telemetry(const ceilings_lab *lab, ceilings *c) {
    scout_telemetry t = {.size = sizeof t, .clock_mhz = (double)NAN, .power_w = (double)NAN};
    lab->clock->telemetry(lab->clock->context, &t);
    c->clock_mhz = t.clock_mhz;
    c->power_w = t.power_w;
}

static void part_is_done(const ceilings_lab *lab, const ceilings_request *request, ceilings *c, const char *name) {
    take_telemetry(lab, c);
    stamp(c->taken, sizeof c->taken);
    if (request->part) request->part(request->part_context, c, name);
}

static bool is_known(const ceilings_request *request, const ceilings *c, const char *name) {
    const ceilings_peak *peak = ceilings_find_peak(c, name);
    return !request->again && !request->audit && peak && !peak->disturbed;
}

/* From the k-th precision on, and the K sweep. */
static int parts_left(const ceilings_request *request, const ceilings *c, int k) {
    int count = request->sweep_precision != NULL;
    for (; k < CEILINGS_MAX_PEAKS && request->precisions[k]; k++)
        count += !is_known(request, c, request->precisions[k]);
    return count;
}

static scout_answer measure_peaks(ceilings_lab *lab, const ceilings_request *request, ceilings *c, json_builder *b,
                                  json_t *audit, scout_why *why) {
    for (int k = 0; k < CEILINGS_MAX_PEAKS && request->precisions[k]; k++) {
        const char *name = request->precisions[k];
        if (is_known(request, c, name)) continue;
        ceilings_lab_part(lab, parts_left(request, c, k), LONGEST * request->budget_s);
        scout_answer answer = measure_precision(lab, request, name, c, b, audit, why);
        if (fatal(answer)) return answer;
        if (answer != SCOUT_OK) ceilings_lab_say(lab, "%s: no peak by products: %s", name, why->text);
        part_is_done(lab, request, c, name);
    }
    return SCOUT_OK;
}

scout_answer ceilings_measure(const scout_device_api *api, scout_device *device, const timing_clock *clock,
                              const regime *r, const ceilings_request *request, ceilings_say *say, void *say_context,
                              ceilings *c, json_builder *b, json_t *audit, scout_why *why) {
    ceilings_lab lab = {.api = api, .device = device, .clock = clock, .regime = *r, .identity = request->identity};
    lab.host = !api->has_graphs;
    lab.say = say, lab.say_context = say_context;
    bool known = c->bandwidth_count > 0 && c->load == r->load && c->launch == r->launch;
    if (c->load != r->load || c->launch != r->launch) /* of another regime */
        c->peak_count = c->sweep_count = c->bandwidth_count = 0, c->special_per_s = 0;
    c->load = r->load, c->launch = r->launch;
    lab.launch_s = c->launch_s;
    lab.end_s = lab.part_s = request->within_s > 0 ? ceilings_lab_now(&lab) + request->within_s : (double)INFINITY;
    scout_answer answer = SCOUT_OK;
    ceilings_lab_part(&lab, 1 + parts_left(request, c, 0), (lab.host ? 2 : 1) * request->budget_s);
    if (request->again || !known) answer = measure_base(&lab, request->bandwidth, c, why);
    if (answer == SCOUT_OK && request->bandwidth) part_is_done(&lab, request, c, "bandwidth");
    if (answer == SCOUT_OK) answer = measure_peaks(&lab, request, c, b, audit, why);
    if (answer == SCOUT_OK && request->sweep_precision) {
        ceilings_lab_part(&lab, 1, request->budget_s);
        answer = ceilings_gemm_sweep(&lab, request->sweep_precision, request->sweep_m, request->sweep_n, c, why);
        if (answer != SCOUT_OK) ceilings_lab_say(&lab, "K sweep: %s", why->text);
        if (!fatal(answer)) answer = SCOUT_OK;
    }
    take_telemetry(&lab, c);
    stamp(c->taken, sizeof c->taken);
    return answer;
}
