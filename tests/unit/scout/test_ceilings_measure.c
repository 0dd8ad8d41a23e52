/* Measuring ceilings on a whole device that is made up: a cache, memory, a launch floor, special functions, one library
 * whose products have a known best. What comes out is what was put in, everything is given back, and failures end what
 * they must end and nothing more. Time is virtual; memory is only counted. */
#include "scout/ceilings/ceilings_lab.h"
#include "tests/fakes/made_up.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>

static scout_answer measure(const ceilings_request *q, ceilings *c, json_t *audit, scout_why *why) {
    static const scout_identity identity = {.size = sizeof identity, .units = 132, .cache_bytes = MADE_UP_CACHE};
    const regime r = {REGIME_SUSTAINED, REGIME_COLD, REGIME_GRAPH};
    json_builder b = {NULL};
    ceilings_request request = *q;
    request.identity = &identity;
    scout_answer answer =
        ceilings_measure(&made_up_api, &made_up, &made_up_clock, &r, &request, NULL, NULL, c, &b, audit, why);
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
    made_up_begin();
    const ceilings_request q = {
        .precisions = {"fp16", "fp8", "int8", "int4"}, .bandwidth = true, .audit = true, .budget_s = 30};
    if (!UNIT_CHECK(c && measure(&q, c, audit, &why) == SCOUT_OK)) printf("    %s\n", why.text);
    UNIT_CHECK(made_up_nothing_left());
    UNIT_CHECK(near(c->launch_s, MADE_UP_FLOOR_S, 0.01) && near(c->special_per_s, MADE_UP_SPECIALS, 0.02));
    UNIT_CHECK(near(c->read_tbps, MADE_UP_READ / 1e12, 0.01) && near(c->copy_tbps, MADE_UP_COPY / 1e12, 0.01));
    UNIT_CHECK(near(c->write_tbps, MADE_UP_WRITE / 1e12, 0.01));
    /* nothing is left of the cache's help from four times its size on */
    if (!UNIT_CHECK(c->plateau_bytes >= 3.5 * MADE_UP_CACHE && c->plateau_bytes <= 12.0 * MADE_UP_CACHE))
        printf("    plateau %.4g\n", c->plateau_bytes);
    UNIT_CHECK(c->bandwidth_count > 60 && c->bandwidth_count <= CEILINGS_MAX_BANDWIDTHS);
    UNIT_CHECK(near(ceilings_bandwidth_at(c, 20e6, 1, true), MADE_UP_WARM * MADE_UP_READ / 1e12, 0.03));
    UNIT_CHECK(near(ceilings_bandwidth_at(c, 20e6, 1, false), MADE_UP_READ / 1e12, 0.03));
    UNIT_CHECK(near(ceilings_bandwidth_at(c, 2e9, 0.5, false), MADE_UP_COPY / 1e12, 0.03));
    UNIT_INT(c->peak_count, 2); /* int8 has no library here, int4 is fp16 */
    const ceilings_peak *fp16 = ceilings_find_peak(c, "fp16"), *fp8 = ceilings_find_peak(c, "fp8");
    UNIT_CHECK(fp16 && near(fp16->tflops, 1.02 * MADE_UP_PEAK / 1e12, 0.02) && strstr(fp16->how, "lib algo=2"));
    UNIT_CHECK(fp8 && near(fp8->tflops, 2 * 1.02 * MADE_UP_PEAK / 1e12, 0.02) && strcmp(fp8->layout, "nt") == 0);
    UNIT_CHECK(fp16 && fp16->tried > 200 && fp16->clock_mhz == 1500);
    UNIT_CHECK(json_number_value(json_object_get(json_object_get(audit, "fp16"), "ratio")) >= 0.995);
    UNIT_CHECK(json_object_get(audit, "fp8") && !json_object_get(audit, "int8"));
    json_decref(audit);
    free(c);
}

static char parts[256];
static void part(void *context, const ceilings *c, const char *name) {
    const size_t n = strlen(parts);
    UNIT_CHECK(context == parts && c->taken[0]);
    snprintf(parts + n, sizeof parts - n, "%s %d+%d ", name, c->bandwidth_count > 0, c->peak_count);
}

static void parts_are_told_as_they_end(void) {
    ceilings *c = calloc(1, sizeof *c);
    scout_why why = {.text = ""};
    made_up_begin();
    ceilings_request q = {
        .precisions = {"fp16"}, .bandwidth = true, .budget_s = 10, .part = part, .part_context = parts};
    UNIT_CHECK(c && measure(&q, c, NULL, &why) == SCOUT_OK);
    UNIT_TEXT(parts, "bandwidth 1+0 fp16 1+1 ");
    parts[0] = 0;
    q.bandwidth = false;
    q.precisions[1] = "fp8", q.precisions[2] = "int8"; /* no candidate computes that here, which is known then */
    UNIT_CHECK(measure(&q, c, NULL, &why) == SCOUT_OK);
    UNIT_TEXT(parts, "fp8 1+2 int8 1+2 ");
    made_up.loss_at = made_up.now;
    parts[0] = 0;
    q.again = true;
    UNIT_INT(measure(&q, c, NULL, &why), SCOUT_LOST);
    UNIT_TEXT(parts, "");
    free(c);
}

static void known_is_not_measured_again(void) {
    ceilings *c = calloc(1, sizeof *c);
    scout_why why = {.text = ""};
    made_up_begin();
    ceilings_request q = {.precisions = {"fp16"}, .bandwidth = true, .budget_s = 10};
    UNIT_CHECK(c && measure(&q, c, NULL, &why) == SCOUT_OK);
    double was = made_up.now;
    UNIT_CHECK(measure(&q, c, NULL, &why) == SCOUT_OK);
    UNIT_CHECK(made_up.now == was);
    UNIT_CHECK(was < 10 + 12); /* a budget for the peak, and a few seconds for the rest */
    q.again = true;
    UNIT_CHECK(measure(&q, c, NULL, &why) == SCOUT_OK && made_up.now > was + 2);
    UNIT_INT(c->peak_count, 1);
    free(c);
}

/* All parts together keep within what they are given, and each of them says something. */
static void one_deadline_for_all(void) {
    ceilings *c = calloc(1, sizeof *c);
    scout_why why = {.text = ""};
    static const double times_s[] = {2, 4, 8, 16};
    for (size_t k = 0; c && k < sizeof times_s / sizeof times_s[0]; k++) {
        const double within_s = times_s[k];
        made_up_begin();
        memset(c, 0, sizeof *c);
        const ceilings_request q = {
            .precisions = {"fp16", "fp8"}, .bandwidth = true, .budget_s = within_s / 3, .within_s = within_s};
        UNIT_CHECK(measure(&q, c, NULL, &why) == SCOUT_OK && made_up_nothing_left());
        if (!UNIT_CHECK(made_up.now < 1.1 * within_s)) printf("    %.2f s of %.2f\n", made_up.now, within_s);
        UNIT_INT(c->peak_count, 2);
        UNIT_CHECK(c->bandwidth_count >= 4 && near(c->read_tbps, MADE_UP_READ / 1e12, 0.03));
        UNIT_CHECK(near(ceilings_bandwidth_at(c, 20e6, 1, true), MADE_UP_WARM * MADE_UP_READ / 1e12, 0.2));
        for (int p = 0; p < c->peak_count; p++) UNIT_CHECK(c->peaks[p].tflops > 0.8 * MADE_UP_PEAK / 1e12);
    }
    free(c);
}

/* What was disturbed counts until it is measured again, which is the next time that it is wanted. */
static void disturbed_is_measured_again(void) {
    ceilings *c = calloc(1, sizeof *c);
    scout_why why = {.text = ""};
    const ceilings_request q = {.precisions = {"fp16"}, .bandwidth = true, .budget_s = 10};
    made_up_begin();
    UNIT_CHECK(c && measure(&q, c, NULL, &why) == SCOUT_OK && c->peak_count == 1 && !c->peaks[0].disturbed);
    if (!c) return;
    const double was = made_up.now, right = c->peaks[0].tflops;
    c->peaks[0].disturbed = true, c->peaks[0].tflops = 100;
    UNIT_CHECK(measure(&q, c, NULL, &why) == SCOUT_OK && made_up.now > was + 2);
    UNIT_CHECK(c->peak_count == 1 && !c->peaks[0].disturbed && near(c->peaks[0].tflops, right, 0.02));
    free(c);
}

/* A library that loads its kernels at their first launch, and cannot while a graph is recorded. */
static void lazy_library(void) {
    ceilings *c = calloc(1, sizeof *c);
    scout_why why = {.text = ""};
    const ceilings_request q = {.precisions = {"fp16"}, .budget_s = 10};
    made_up_begin();
    made_up.lazy = true;
    UNIT_CHECK(c && measure(&q, c, NULL, &why) == SCOUT_OK && made_up_nothing_left());
    UNIT_CHECK(c && c->peak_count == 1 && near(c->peaks[0].tflops, 1.02 * MADE_UP_PEAK / 1e12, 0.02));
    free(c);
}

static void k_sweep(void) {
    ceilings *c = calloc(1, sizeof *c);
    scout_why why = {.text = ""};
    made_up_begin();
    ceilings_request q = {
        .precisions = {"fp16"}, .sweep_precision = "fp16", .sweep_m = 8192, .sweep_n = 8192, .budget_s = 30};
    UNIT_CHECK(c && measure(&q, c, NULL, &why) == SCOUT_OK);
    UNIT_INT(c->sweep_count, 13);
    UNIT_INT(c->sweep[0].shape[2], 65536);
    UNIT_INT(c->sweep[12].shape[2], 262144);
    UNIT_CHECK(near(c->sweep[12].tflops, MADE_UP_PEAK / 1e12 * made_up_part_of(8192, 8192, 262144, 0), 0.01));
    UNIT_CHECK(made_up_nothing_left());
    for (int k = 0; k < c->sweep_count; k++) UNIT_CHECK(c->peaks[0].tflops >= c->sweep[k].tflops);
    const ceilings_peak searched = c->peaks[0];
    q.precisions[0] =
        NULL; /* the sweep alone: it adds its shapes to those that were tried, and no time to the search */
    UNIT_CHECK(measure(&q, c, NULL, &why) == SCOUT_OK);
    UNIT_INT(c->peaks[0].tried, searched.tried + 13);
    UNIT_CHECK(c->peaks[0].seconds == searched.seconds && searched.seconds < q.budget_s);
    q.precisions[0] = "fp16";
    made_up.room = UINT64_C(4) << 30; /* 8192 x 131072 in fp16 twice is all that fits */
    q.again = true;
    UNIT_CHECK(measure(&q, c, NULL, &why) == SCOUT_OK);
    UNIT_CHECK(c->sweep_count > 0 && c->sweep_count < 6 && made_up_nothing_left());
    free(c);
}

/* What a budget leaves is for the operation: depths that it has no time for are left out. */
static void a_sweep_keeps_within_its_part(void) {
    ceilings *c = calloc(1, sizeof *c);
    scout_why why = {.text = ""};
    const double within_s = 6;
    made_up_begin();
    const ceilings_request q = {.precisions = {"fp16"},
                                .sweep_precision = "fp16",
                                .sweep_m = 8192,
                                .sweep_n = 8192,
                                .budget_s = within_s / 2,
                                .within_s = within_s};
    UNIT_CHECK(c && measure(&q, c, NULL, &why) == SCOUT_OK && made_up_nothing_left());
    if (!UNIT_CHECK(made_up.now < 1.2 * within_s)) printf("    %.2f s of %.2f\n", made_up.now, within_s);
    if (!UNIT_CHECK(c && c->sweep_count > 0)) printf("    nothing swept\n");
    free(c);
}

/* A figure that may be anything does not make one that is known as vague as itself. */
static void a_disturbed_peak_replaces_none_by_luck(void) {
    static const struct {
        double tflops, ci;
        bool disturbed;
        double left;
    } offers[] = {{500, 0.01, false, 500}, {520, 0.2, true, 500},   {700, 0.2, true, 700},
                  {600, 0.01, false, 600}, {590, 0.01, false, 600}, {610, 0.01, false, 610}};
    ceilings *c = calloc(1, sizeof *c);
    for (size_t k = 0; c && k < sizeof offers / sizeof offers[0]; k++) {
        ceilings_peak p = {.precision = "fp32", .tflops = offers[k].tflops, .rel_ci95 = offers[k].ci};
        p.disturbed = offers[k].disturbed;
        ceilings_peak_offer(c, &p);
        UNIT_CHECK(c->peak_count == 1 && near(c->peaks[0].tflops, offers[k].left, 1e-12));
    }
    free(c);
}

static void less_memory_and_missing_parts(void) {
    ceilings *c = calloc(1, sizeof *c);
    scout_why why = {.text = ""};
    const ceilings_request q = {.precisions = {"fp16", "none-such"}, .bandwidth = true, .budget_s = 10};
    made_up_begin();
    made_up.room = UINT64_C(600) << 20;
    UNIT_CHECK(c && measure(&q, c, NULL, &why) == SCOUT_OK && made_up_nothing_left());
    UNIT_CHECK(c->peak_count == 1 && c->bandwidth_count > 0);
    memset(c, 0, sizeof *c);
    made_up_begin();
    made_up.no_special = made_up.no_stream = made_up.refuse_gemm = true;
    UNIT_CHECK(measure(&q, c, NULL, &why) == SCOUT_OK && made_up_nothing_left());
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
        made_up_begin();
        made_up.loss_at = at;
        memset(c, 0, sizeof *c);
        scout_answer answer = measure(&q, c, audit, &why);
        UNIT_CHECK(answer == SCOUT_LOST || made_up.runs <= (int)at);
        ended += answer == SCOUT_LOST;
        UNIT_CHECK(made_up_nothing_left());
        json_decref(audit);
    }
    UNIT_CHECK(ended > 10);
    free(c);
}

/* A thing whose launches take 1 ms, and half as much more once others have come. */
typedef struct shared {
    int runs, quiet;
} shared;

static scout_answer shared_run(void *context, uint32_t launches, uint32_t batches, double *seconds, scout_why *why) {
    shared *x = context;
    (void)why;
    x->runs++;
    for (uint32_t k = 0; k < batches; k++) seconds[k] = 1e-3 * launches * (x->runs > x->quiet ? 1.5 : 1);
    return SCOUT_OK;
}

/* Where others use a host, what they do only adds: the faster passes are the figure, and it is well known. On a device
 * all passes count, and their spread is told. */
static void the_faster_half_of_a_host(void) {
    made_up_begin();
    ceilings_lab lab = {.clock = &made_up_clock, .end_s = INFINITY, .part_s = INFINITY, .host = true};
    shared x = {.quiet = 330};
    const timing_subject subject = {.context = &x, .run = shared_run};
    ceilings_figure figure = {0};
    scout_why why = {.text = ""};
    UNIT_INT(ceilings_lab_long(&lab, &subject, false, 0.06, 5, &figure, &why), SCOUT_OK);
    UNIT_CHECK(near(figure.launch_s, 1e-3, 0.02) && figure.rel_ci95 < 0.05);
    lab.host = false;
    x = (shared){.quiet = 88};
    UNIT_INT(ceilings_lab_long(&lab, &subject, false, 1, 8, &figure, &why), SCOUT_OK);
    if (!UNIT_CHECK(figure.launch_s > 1.05e-3 && figure.rel_ci95 > 0.05 && figure.rel_ci95 <= 1))
        printf("    %.3g s +- %.3g\n", figure.launch_s, figure.rel_ci95);
}

int main(void) {
    UNIT_RUN(what_was_put_in);
    UNIT_RUN(parts_are_told_as_they_end);
    UNIT_RUN(known_is_not_measured_again);
    UNIT_RUN(one_deadline_for_all);
    UNIT_RUN(disturbed_is_measured_again);
    UNIT_RUN(lazy_library);
    UNIT_RUN(k_sweep);
    UNIT_RUN(a_sweep_keeps_within_its_part);
    UNIT_RUN(a_disturbed_peak_replaces_none_by_luck);
    UNIT_RUN(less_memory_and_missing_parts);
    UNIT_RUN(a_lost_device_ends_it);
    UNIT_RUN(the_faster_half_of_a_host);
    return unit_end();
}
