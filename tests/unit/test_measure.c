/* One operation from its candidates to its rows, on a device whose clock only launches move. */
#include "scout/measure.h"
#include "tests/unit/fake_device.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>

static guard g;
static arena a;
static operation_list list;
static scout_device *d;
static measure_request request;
static ceilings known;
static json_t *result;
static scout_answer answer;
static scout_why why;
static int steps;
static char last_step[256], all_steps[1 << 16];

static void step(void *context, const char *candidate, const char *variant, const char *what, double seconds) {
    (void)context;
    steps++;
    snprintf(last_step, sizeof last_step, "%s|%s|%s", candidate ? candidate : "", variant ? variant : "", what);
    if (!UNIT_CHECK(seconds > 0 && seconds <= 3600 && what)) printf("%s %g\n", last_step, seconds);
    const size_t used = strlen(all_steps);
    if (!strstr(all_steps, last_step)) snprintf(all_steps + used, sizeof all_steps - used, "%s\n", last_step);
}

static const measure_watcher watcher = {.step = step};

static void begin(const char *shape, const char *precision) {
    guard_init(&g);
    arena_init(&a, &g, (size_t)16 << 20);
    operation_from_words("gemm", shape, precision, 0, NULL, &a, &list);
    d = fake_open();
    steps = 0;
    *last_step = *all_steps = 0;
    memset(&known, 0, sizeof known);
    request = (measure_request){.operation = &list.items[0],
                                .regime = {REGIME_SUSTAINED, REGIME_MODEL, REGIME_GRAPH},
                                .budget_s = 20,
                                .early_exit = 0.97,
                                .workspace_limit = 1 << 16,
                                .seed = 5};
}

static void end(void) {
    json_decref(result);
    result = NULL;
    if (!d->lost) {
        UNIT_INT(d->live_allocations, 0);
        UNIT_INT(d->live_sequences, 0);
        UNIT_INT(d->live_plans, 0);
        UNIT_INT(d->live_checks, 0);
    }
    fake_close(d);
    operation_list_free(&list);
    arena_free(&a);
    fake_api.has_graphs = 1;
}

static scout_identity identity = {.size = sizeof(scout_identity), .name = "fake", .cache_bytes = 4096};

static void measure(void) {
    result = measure_operation(&fake_api, d, &identity, &request, &watcher, &answer, &why);
    if (answer == SCOUT_OK) UNIT_CHECK(result != NULL);
}

#define USE(...)                                                                                                       \
    do {                                                                                                               \
        static const scout_candidate *const used[] = {__VA_ARGS__};                                                    \
        fake_use((int)(sizeof used / sizeof *used), used);                                                             \
    } while (0)

static const char *text(const json_t *o, const char *key) { return json_string_value(json_object_get(o, key)); }
static double number(const json_t *o, const char *key) { return json_number_value(json_object_get(o, key)); }

static const json_t *row(const char *name, const char *variant) {
    const json_t *rows = json_object_get(result, "candidates");
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *one = json_array_get(rows, k);
        if (strcmp(text(one, "name"), name) == 0 && strcmp(text(one, "variant"), variant) == 0) return one;
    }
    return NULL;
}

static void row_is(const char *name, const char *variant, const char *status_name, const char *code) {
    const json_t *one = row(name, variant), *reason = json_object_get(one, "reason");
    if (!UNIT_CHECK(one != NULL)) return;
    UNIT_TEXT(text(one, "status"), status_name);
    if (code) UNIT_TEXT(text(reason, "code"), code);
    if (!code) UNIT_CHECK(json_is_null(reason));
    UNIT_CHECK((json_object_get(one, "time_us") != NULL) == (strcmp(status_name, "OK") == 0));
    UNIT_CHECK((json_object_get(one, "tflops") != NULL) == (strcmp(status_name, "OK") == 0));
    if (code) UNIT_CHECK(text(reason, "text") && *text(reason, "text"));
}

static int rows_of(const char *status_name) {
    const json_t *rows = json_object_get(result, "candidates");
    int count = 0;
    for (size_t k = 0; k < json_array_size(rows); k++)
        count += strcmp(text(json_array_get(rows, k), "status"), status_name) == 0;
    return count;
}

static void near(double got, double want) {
    if (!(fabs(got / want - 1) < 0.01)) {
        printf("got %g, want %g\n", got, want);
        UNIT_CHECK(false);
    }
}

/* ---- who wins ---- */

static void the_faster_one_wins(void) {
    begin("16,24,8", "fp32");
    USE(&fake_fast, &fake_right);
    measure();
    UNIT_TEXT(text(result, "baseline"), "right");
    UNIT_TEXT(text(result, "best"), "fast");
    UNIT_TEXT(text(result, "best_approach"), "CUSTOM_KERNEL");
    near(number(result, "baseline_time_us"), 200);
    near(number(result, "best_time_us"), 150);
    near(number(result, "ratio"), 0.75);
    UNIT_CHECK(number(result, "ratio_ci") < 0.01);
    row_is("right", "", "OK", NULL);
    row_is("fast", "", "OK", NULL);
    const json_t *times = json_object_get(row("fast", ""), "time_us");
    near(number(times, "median"), 150);
    UNIT_CHECK(number(times, "rel_ci95") < 0.005 && number(times, "batches") >= 20 && number(times, "launches") >= 200);
    near(number(row("fast", ""), "tflops"), 2.0 * 16 * 24 * 8 / 150e-6 / 1e12);
    UNIT_CHECK(number(row("fast", ""), "clock_mhz") == 1000);
    UNIT_CHECK(json_object_get(row("fast", ""), "power_w") == NULL); /* not known */
    UNIT_CHECK(json_is_object(json_object_get(row("fast", ""), "config")));
    UNIT_CHECK(number(json_object_get(row("fast", ""), "error"), "worst") > 0);
    UNIT_TEXT(text(json_array_get(json_object_get(result, "candidates"), 0), "name"), "right");
    UNIT_CHECK(json_is_true(json_object_get(result, "settled")));
    UNIT_CHECK(json_is_null(json_object_get(result, "probe")));
    UNIT_TEXT(text(result, "precision"), "fp32");
    end();
}

/* Two are confirmed beside the baseline where both might win. */
static void two_that_may_win_are_confirmed(void) {
    static scout_candidate twin;
    twin = fake_fast;
    twin.name = "twin";
    begin("16,24,8", "fp32");
    USE(&fake_fast, &fake_right, &twin);
    measure();
    row_is("fast", "", "OK", NULL);
    row_is("twin", "", "OK", NULL);
    UNIT_INT(rows_of("OK"), 3);
    const json_t *rival = json_object_get(result, "rival"); /* the other one of the two */
    UNIT_CHECK(rival && strcmp(text(rival, "name"), text(result, "best")) != 0);
    UNIT_TEXT(text(rival, "approach"), "CUSTOM_KERNEL");
    near(number(rival, "ratio"), 0.75);
    UNIT_CHECK(number(rival, "ratio_ci") < 0.01);
    end();
}

static void a_small_lead_is_none(void) {
    begin("16,24,8", "fp32");
    USE(&fake_near, &fake_right);
    measure();
    UNIT_TEXT(text(result, "best"), "right");
    UNIT_TEXT(text(result, "best_approach"), "NONE");
    UNIT_CHECK(json_object_get(result, "ratio") == NULL);
    UNIT_TEXT(text(json_object_get(result, "rival"), "name"), "near"); /* how near it came is told */
    UNIT_CHECK(number(json_object_get(result, "rival"), "ratio") > 0.98);
    end();
}

static void alone_there_is_no_rival(void) {
    begin("16,24,8", "fp32");
    USE(&fake_right);
    measure();
    UNIT_TEXT(text(result, "best"), "right");
    UNIT_CHECK(json_object_get(result, "rival") == NULL);
    end();
}

static void variants_race(void) {
    begin("16,24,8", "fp32");
    USE(&fake_tuned, &fake_right);
    measure();
    UNIT_TEXT(text(result, "best"), "tuned");
    UNIT_TEXT(text(result, "best_variant"), "algo=3,split=1");
    UNIT_INT(json_array_size(json_object_get(result, "candidates")), 12);
    row_is("tuned", "algo=3,split=1", "OK", NULL);
    row_is("tuned", "algo=5,split=1", "SKIPPED", "outraced");
    UNIT_INT(rows_of("OK"), 2); /* the others are slower than the baseline: not even the next of them is confirmed */
    UNIT_CHECK(row("tuned", "algo=5,split=2") == NULL); /* which does not exist */
    end();
}

static void the_same_seed_gives_the_same_rows(void) {
    char *dumps[2];
    for (int k = 0; k < 2; k++) {
        begin("16,24,8", "fp32");
        USE(&fake_tuned, &fake_right, &fake_near, &fake_packs);
        measure();
        json_object_del(result, "seconds");
        dumps[k] = json_dumps(result, JSON_COMPACT);
        end();
    }
    UNIT_TEXT(dumps[0], dumps[1]);
    free(dumps[0]);
    free(dumps[1]);
}

static void packed_weights_are_told(void) {
    begin("16,24,8", "fp32");
    USE(&fake_packs);
    measure();
    UNIT_CHECK(json_is_null(json_object_get(result, "baseline")));
    UNIT_TEXT(text(result, "best"), "packs");
    UNIT_INT(json_integer_value(json_object_get(row("packs", "order=0"), "pack_bytes")), 768);
    near(number(row("packs", "order=0"), "pack_us"), 50);
    end();
}

/* ---- faults ---- */

static void every_fault_gets_its_row(void) {
    begin("16,24,8", "fp32");
    USE(&fake_wrong, &fake_outside, &fake_before, &fake_changes, &fake_partial, &fake_fails, &fake_refuses,
        &fake_hungry, &fake_uncapturable, &fake_right, &fake_fast);
    measure();
    row_is("wrong", "", "WRONG", "samples");
    row_is("outside", "", "WRONG", "canary");
    row_is("before", "", "WRONG", "canary");
    row_is("changes", "", "WRONG", "input_changed");
    row_is("partial", "", "WRONG", "projection");
    row_is("fails", "", "ERROR", "error");
    row_is("refuses", "", "UNSUPPORTED", "shape");
    row_is("hungry", "", "ERROR", "memory");
    row_is("uncapturable", "", "UNSUPPORTED", "capture");
    row_is("right", "", "OK", NULL);
    row_is("fast", "", "OK", NULL);
    near(number(result, "best_time_us"), 150); /* as without them */
    end();
}

static void a_late_fault_loses_its_time(void) {
    begin("16,24,8", "fp32");
    USE(&fake_late, &fake_right);
    measure();
    row_is("late", "", "WRONG", "projection");
    UNIT_TEXT(text(result, "best"), "right");
    end();
    begin("16,24,8", "fp32");
    request.regime.cache = REGIME_COLD;
    USE(&fake_late_outside, &fake_right);
    measure();
    row_is("late_outside", "", "WRONG", "canary");
    row_is("right", "", "OK", NULL);
    end();
}

static void a_lost_device_ends_it(void) {
    begin("16,24,8", "fp32");
    USE(&fake_lost, &fake_right);
    measure();
    UNIT_CHECK(result == NULL);
    UNIT_INT(answer, SCOUT_LOST);
    UNIT_TEXT(last_step, "lost||verify"); /* whom the supervisor will blame */
    end();
}

static void the_culprit_is_left_out(void) {
    const measure_exclusion exclusions[] = {
        {"lost", "", ROW_CRASHED, {.code = "poisoned", .text = "left the device unusable"}},
        {"tuned", "algo=3,split=1", ROW_TIMEOUT, {.code = "deadline", .text = "did not answer"}}};
    begin("16,24,8", "fp32");
    request.exclusions = exclusions;
    request.exclusion_count = 2;
    USE(&fake_lost, &fake_right, &fake_tuned);
    measure();
    row_is("lost", "", "CRASHED", "poisoned");
    row_is("tuned", "algo=3,split=1", "TIMEOUT", "deadline");
    row_is("right", "", "OK", NULL);
    UNIT_TEXT(text(result, "best"), "right");
    UNIT_CHECK(strstr(all_steps, "lost|") == NULL && strstr(all_steps, "algo=3,split=1") == NULL);
    end();
}

static void without_a_baseline_there_is_none(void) {
    const measure_exclusion exclusion = {"right", "", ROW_CRASHED, {.code = "signal", .text = "ended"}};
    begin("16,24,8", "fp32");
    request.exclusions = &exclusion;
    request.exclusion_count = 1;
    USE(&fake_right, &fake_fast);
    measure();
    UNIT_CHECK(json_is_null(json_object_get(result, "baseline")));
    UNIT_TEXT(text(result, "best"), "fast");
    UNIT_CHECK(json_object_get(result, "ratio") == NULL && json_object_get(result, "baseline_time_us") == NULL);
    end();
}

static void nobody_for_these_types(void) {
    begin("16,24,8", "fp16");
    USE(&fake_right, &fake_fast);
    measure();
    UNIT_CHECK(result != NULL);
    row_is("right", "", "UNSUPPORTED", "type");
    UNIT_CHECK(json_is_null(json_object_get(result, "best")));
    end();
}

static void a_product_that_cannot_be_told(void) {
    begin("16,24,8", "fp32");
    oprec_set_text(&list.items[0].rec, "quant", "qdq");
    USE(&fake_right, &fake_fast);
    measure();
    row_is("right", "", "UNSUPPORTED", "feature");
    row_is("fast", "", "UNSUPPORTED", "feature");
    end();
}

static void too_large_for_the_memory(void) {
    begin("4096,4096,4096", "fp32");
    USE(&fake_right);
    measure();
    row_is("right", "", "ERROR", "memory");
    end();
}

/* ---- priorities ---- */

static void ceilings_at(double tflops) {
    known.launch_s = 1e-9;
    known.plateau_bytes = 8192;
    known.peak_count = 1;
    known.peaks[0] =
        (ceilings_peak){.precision = "fp32", .tflops = tflops, .shape = {16, 16, 16}, .layout = "nn", .how = "right"};
    known.read_tbps = known.copy_tbps = known.write_tbps = 1000;
    known.bandwidth_count = 2;
    known.bandwidths[0] = (ceilings_bandwidth){.bytes = 1 << 20, .read_fraction = 1, .tbps = 1000};
    known.bandwidths[1] = (ceilings_bandwidth){.bytes = 1 << 20, .read_fraction = 1, .resident = true, .tbps = 1000};
    request.ceilings = &known;
}

static void the_last_resort_waits(void) {
    const double work = 2.0 * 16 * 24 * 8 / 1e12;
    begin("16,24,8", "fp32");
    USE(&fake_last, &fake_right);
    ceilings_at(work / 199e-6); /* the baseline is at the ceiling */
    measure();
    row_is("last", "", "SKIPPED", "early_exit");
    end();
    begin("16,24,8", "fp32");
    ceilings_at(work / 100e-6); /* it is far from it */
    measure();
    row_is("last", "", "OK", NULL);
    UNIT_TEXT(text(result, "best"), "last");
    const json_t *probe = json_object_get(result, "probe");
    UNIT_INT(json_array_size(json_object_get(probe, "shape")), 3);
    near(number(probe, "tflops"), 2.0 * 16 * 16 * 16 / 200e-6 / 1e12);
    near(number(probe, "stored_tflops"), work / 100e-6);
    end();
    begin("16,24,8", "fp32");
    request.exhaustive = true;
    ceilings_at(work / 199e-6);
    measure();
    row_is("last", "", "OK", NULL);
    end();
    begin("16,24,8", "fp32");
    measure(); /* no ceilings are known */
    row_is("last", "", "OK", NULL);
    end();
}

static void only_one_was_asked_for(void) {
    begin("16,24,8", "fp32");
    USE(&fake_tuned, &fake_right, &fake_fast);
    request.only = "fast";
    measure();
    row_is("right", "", "OK", NULL);
    row_is("fast", "", "OK", NULL);
    row_is("tuned", "", "SKIPPED", "not_asked");
    end();
}

static void bursts_and_direct_launches(void) {
    begin("16,24,8", "fp32");
    request.regime = (regime){REGIME_BURST, REGIME_HOT, REGIME_DIRECT};
    request.budget_s = 200;
    USE(&fake_right, &fake_fast, &fake_uncapturable);
    measure();
    row_is("right", "", "OK", NULL);
    near(number(result, "best_time_us"), 150);
    UNIT_CHECK(number(result, "rotation_bytes") == 0);
    end();
}

static void bytes_that_only_stream_have_a_probe(void) {
    begin("16,24,8", "fp32");
    USE(&fake_right);
    ceilings_at(1e6);
    const double bytes = 16 * 8 * 4 + 24 * 8 * 4 + 16 * 24 * 4;
    for (int k = 0; k < 2; k++) known.bandwidths[k].tbps = bytes / 100e-6 / 1e12; /* twice as fast as the baseline */
    measure();
    row_is("right", "", "OK", NULL);
    const json_t *probe = json_object_get(result, "probe");
    near(number(probe, "tbps"), 1e9 / 1e12); /* the fake moves a byte in a nanosecond */
    UNIT_CHECK(number(probe, "bytes") >= bytes && json_object_get(probe, "shape") == NULL);
    UNIT_CHECK(number(probe, "read_fraction") > 0.4 && number(probe, "read_fraction") <= 0.5);
    end();
}

static void too_many_variants_are_counted(void) {
    begin("4,4,4", "fp32");
    USE(&fake_right, &fake_many);
    measure();
    UNIT_INT(json_array_size(json_object_get(result, "candidates")), 600);
    UNIT_INT(json_integer_value(json_object_get(result, "variants_left_out")), 1 + 512 * 2 - 600);
    UNIT_TEXT(text(result, "best"), "right");
    end();
}

static void what_the_budget_does_not_reach(void) {
    begin("16,24,8", "fp32");
    USE(&fake_right, &fake_packs, &fake_fast);
    request.budget_s = 1e-4; /* less than one launch */
    measure();
    row_is("right", "", "OK", NULL); /* the baseline always is */
    row_is("packs", "order=1", "SKIPPED", "budget");
    end();
}

static void a_restless_device_is_unstable(void) {
    begin("16,24,8", "fp32");
    USE(&fake_right);
    d->noise = 0.8;
    request.budget_s = 3;
    measure();
    row_is("right", "", "UNSTABLE", "interval");
    UNIT_TEXT(text(result, "baseline"), "right");
    UNIT_CHECK(json_is_null(json_object_get(result, "best")) && !json_object_get(result, "baseline_time_us"));
    end();
}

/* ---- telling ---- */

static void everybody_is_announced(void) {
    begin("16,24,8", "fp32");
    USE(&fake_right, &fake_fast, &fake_tuned);
    measure();
    static const char *const said[] = {"right||supports",
                                       "right||prepare",
                                       "right||verify",
                                       "right||time",
                                       "fast||time",
                                       "tuned|algo=3,split=1|prepare",
                                       "tuned|algo=3,split=1|verify",
                                       "tuned|algo=3,split=1|time",
                                       "||fill"};
    for (size_t k = 0; k < sizeof said / sizeof *said; k++)
        if (!strstr(all_steps, said[k])) unit_check(false, said[k], __FILE__, __LINE__);
    UNIT_CHECK(steps < 100000);
    end();
}

static void qualifying_names_the_faulty(void) {
    static const struct {
        const char *name, *status, *code;
    } rows[] = {{"wrong", "WRONG", "samples"}, {"outside", "WRONG", "canary"}, {"fails", "ERROR", "error"}};
    USE(&fake_wrong, &fake_outside, &fake_fails, &fake_right, &fake_refuses, &fake_late_outside);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        begin("16,24,8", "fp32");
        result = measure_qualify(&fake_api, d, &request, rows[k].name, &watcher, &answer, &why);
        UNIT_INT(answer, SCOUT_OK);
        UNIT_INT(json_array_size(result), 1);
        UNIT_TEXT(text(json_array_get(result, 0), "status"), rows[k].status);
        UNIT_TEXT(text(json_object_get(json_array_get(result, 0), "reason"), "code"), rows[k].code);
        UNIT_CHECK(strstr(all_steps, "right|") == NULL); /* nobody else ran */
        end();
    }
    static const char *const fine[] = {"right", "refuses"};
    for (int k = 0; k < 2; k++) {
        begin("16,24,8", "fp32");
        result = measure_qualify(&fake_api, d, &request, fine[k], &watcher, &answer, &why);
        UNIT_INT(json_array_size(result), 0);
        UNIT_CHECK(json_is_array(result));
        end();
    }
    begin("16,24,8", "fp32");
    request.regime.cache = REGIME_COLD;
    result = measure_qualify(&fake_api, d, &request, "late_outside", &watcher, &answer, &why);
    UNIT_INT(json_array_size(result), 1);
    end();
}

static void names_of_variants(void) {
    static const char *const labels[] = {"plain", "transposed"};
    scout_domain *domain = calloc(1, sizeof *domain);
    char variant[64];
    if (!domain) abort();
    measure_variant_text(domain, (int[]){0}, variant, sizeof variant);
    UNIT_TEXT(variant, "");
    domain->count = 2;
    domain->parameters[0] = (scout_parameter){.name = "algo", .count = 2, .values = {0, 66}};
    domain->parameters[1] = (scout_parameter){.name = "weight", .count = 2, .values = {0, 1}, .labels = labels};
    measure_variant_text(domain, (int[]){1, 1}, variant, sizeof variant);
    UNIT_TEXT(variant, "algo=66,weight=transposed");
    measure_variant_text(domain, (int[]){1, 1}, variant, 8);
    UNIT_TEXT(variant, "algo=66");
    free(domain);
}

int main(void) {
    UNIT_RUN(the_faster_one_wins);
    UNIT_RUN(two_that_may_win_are_confirmed);
    UNIT_RUN(a_small_lead_is_none);
    UNIT_RUN(alone_there_is_no_rival);
    UNIT_RUN(variants_race);
    UNIT_RUN(the_same_seed_gives_the_same_rows);
    UNIT_RUN(packed_weights_are_told);
    UNIT_RUN(every_fault_gets_its_row);
    UNIT_RUN(a_late_fault_loses_its_time);
    UNIT_RUN(a_lost_device_ends_it);
    UNIT_RUN(the_culprit_is_left_out);
    UNIT_RUN(without_a_baseline_there_is_none);
    UNIT_RUN(nobody_for_these_types);
    UNIT_RUN(a_product_that_cannot_be_told);
    UNIT_RUN(too_large_for_the_memory);
    UNIT_RUN(the_last_resort_waits);
    UNIT_RUN(only_one_was_asked_for);
    UNIT_RUN(bursts_and_direct_launches);
    UNIT_RUN(bytes_that_only_stream_have_a_probe);
    UNIT_RUN(too_many_variants_are_counted);
    UNIT_RUN(what_the_budget_does_not_reach);
    UNIT_RUN(a_restless_device_is_unstable);
    UNIT_RUN(everybody_is_announced);
    UNIT_RUN(qualifying_names_the_faulty);
    UNIT_RUN(names_of_variants);
    return unit_end();
}
