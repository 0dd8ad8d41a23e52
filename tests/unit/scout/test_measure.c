/* One operation from its candidates to its rows, on a device whose clock only launches move. */
#include "scout/report/report.h"
#include "tests/unit/scout/measure_fixture.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>

/* ---- what wins ---- */

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
    UNIT_CHECK(number(times, "rel_ci95") < 0.005 && number(times, "batches") >= 8 && number(times, "launches") >= 50);
    UNIT_TEXT(text(row("fast", ""), "quality"), "good");
    UNIT_TEXT(text(row("fast", ""), "time_from"), "plain");
    UNIT_TEXT(text(row("fast", ""), "interval_from"), "3 passes"); /* the first one chose it */
    UNIT_TEXT(text(row("right", ""), "interval_from"), "4 passes");
    UNIT_INT(json_array_size(json_object_get(row("fast", ""), "passes")), 4);
    UNIT_INT(number(result, "passes"), 4);
    UNIT_INT(json_array_size(json_object_get(result, "undecided")), 0);
    UNIT_CHECK(figures_open(result) == 0);
    near(number(row("fast", ""), "tflops"), 2.0 * 16 * 24 * 8 / 150e-6 / 1e12);
    UNIT_CHECK(number(row("fast", ""), "clock_mhz") == 1000);
    UNIT_CHECK(json_object_get(row("fast", ""), "power_w") == NULL); /* not known */
    UNIT_CHECK(json_is_object(json_object_get(row("fast", ""), "config")));
    UNIT_CHECK(number(json_object_get(row("fast", ""), "error"), "worst") > 0);
    UNIT_TEXT(text(json_array_get(json_object_get(result, "candidates"), 0), "name"), "right");
    UNIT_CHECK(json_is_null(json_object_get(result, "probe")));
    const json_t *spent = json_object_get(result, "spent_s"); /* preparing and checking, too, move the fake's clock */
    const double told = number(spent, "preparing") + number(spent, "timing") + number(spent, "checking");
    UNIT_CHECK(number(spent, "timing") > 0.05 && number(spent, "preparing") > 0 && number(spent, "checking") > 0);
    UNIT_CHECK(told <= 1.0001 * number(result, "seconds") && told > 0.5 * number(result, "seconds"));
    UNIT_CHECK(number(result, "seconds") < 1); /* tenths of a second a pass */
    UNIT_TEXT(text(result, "precision"), "fp32");
    end();
}

/* Two go through all passes beside the baseline where both might win. */
static void two_that_may_win_are_both_known(void) {
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

/* Where no library is the default, the own kernel that is best is the baseline, though it came last and another
 * candidate is far ahead of all of them. */
static void the_best_own_kernel_is_the_baseline(void) {
    begin("16,24,8", "fp32");
    USE(&fake_plain, &fake_plain_last, &fake_last);
    measure();
    UNIT_TEXT(text(result, "baseline"), "plain_last");
    UNIT_TEXT(text(result, "best"), "last");
    near(number(result, "ratio"), 0.4);
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

static scout_answer later_first(const scout_op *op, scout_device *of, int exhaustive, scout_domain *out,
                                scout_why *not_needed) {
    (void)op, (void)of, (void)exhaustive, (void)not_needed;
    out->count = 1;
    out->parameters[0] = (scout_parameter){.name = "order", .count = 2, .values = {1, 0}};
    return SCOUT_OK;
}

static void a_variant_as_fast_as_the_baseline_does_not_win(void) {
    static scout_candidate even;
    even = fake_packs;
    even.name = "even";
    even.flags = SCOUT_BASELINE;
    even.domain = later_first;
    begin("16,24,8", "fp32");
    USE(&even);
    measure();
    row_is("even", "order=1", "OK", NULL);
    row_is("even", "order=0", "OK", NULL); /* 0.5 % faster, which does not make it the best */
    UNIT_TEXT(text(result, "best_variant"), "order=1");
    near(number(json_object_get(result, "rival"), "ratio"), 0.995);
    UNIT_INT(json_array_size(json_object_get(result, "undecided")), 0);
    end();
}

/* Tiny tensors have hundreds of copies; all of them are not waited for to know that one is a thousand times behind. */
static void what_crawls_costs_single_launches(void) {
    begin("16,24,8", "fp32");
    known.plateau_bytes = 1e9;
    request.ceilings = &known;
    budget_s = 3;
    USE(&fake_right, &fake_crawls);
    measure();
    row_is("right", "", "OK", NULL);
    row_is("crawls", "", "OK", NULL);
    near(number(json_object_get(row("crawls", ""), "time_us"), "median"), 1e5);
    UNIT_CHECK(number(row("crawls", ""), "ratio") > 400);
    UNIT_CHECK(number(result, "seconds") < 2 * budget_s);
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
    UNIT_INT(rows_of("OK"), 12); /* a table of all variants has all times */
    const json_t *loser = row("tuned", "algo=5,split=1");
    near(number(json_object_get(loser, "time_us"), "median"), 270);
    UNIT_CHECK(json_is_true(json_object_get(json_array_get(json_object_get(loser, "passes"), 0), "race")));
    UNIT_INT(json_array_size(json_object_get(loser, "passes")), 1);
    UNIT_INT(json_array_size(json_object_get(row("tuned", "algo=3,split=1"), "passes")), 4);
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
    ceilings_at(work / 199e-6);
    known.peaks[0].rel_ci95 = 0.2; /* so does the baseline seem to be, but that is unknown */
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
    budget_s = 200;
    USE(&fake_right, &fake_fast, &fake_uncapturable);
    measure();
    row_is("right", "", "OK", NULL);
    near(number(result, "best_time_us"), 150);
    UNIT_CHECK(number(result, "rotation_bytes") == 0);
    end();
}

/* A device's memory is its own: what was stored of it holds. */
static void bytes_of_a_device_have_no_probe(void) {
    begin("16,24,8", "fp32");
    USE(&fake_right);
    ceilings_at(1e6);
    const double bytes = 16 * 8 * 4 + 24 * 8 * 4 + 16 * 24 * 4;
    for (int k = 0; k < 2; k++) known.bandwidths[k].tbps = bytes / 100e-6 / 1e12; /* twice as fast as the baseline */
    measure();
    row_is("right", "", "OK", NULL);
    UNIT_CHECK(json_is_null(json_object_get(result, "probe")));
    end();
}

/* ---- the ceiling of the same blocks ---- */

/* A host that is slower today than when its ceilings were taken: so is its ceiling. */
static void a_host_is_held_against_its_own_minute(void) {
    const double work = 2.0 * 16 * 24 * 8;
    for (int slow = 0; slow < 2; slow++) {
        begin("16,24,8", "fp32");
        fake_api.has_graphs = 0;
        USE(&fake_right);
        ceilings_at(work / 100e-6 / 1e12);
        memset(known.peaks[0].shape, 0, sizeof known.peaks[0].shape); /* reached in registers */
        d->counted_per_s = work / 100e-6;
        d->slow = slow * 0.3;
        measure();
        row_is("right", "", "OK", NULL);
        near(number(result, "baseline_time_us"), slow ? 260 : 200);
        const json_t *probe = json_object_get(result, "probe");
        UNIT_CHECK(!json_object_get(probe, "shape"));
        near(number(probe, "stored_tflops"), work / 100e-6 / 1e12);
        near(number(probe, "tflops"), work / 100e-6 / 1e12 / (slow ? 1.3 : 1));
        UNIT_TEXT(text(probe, "bound"), "compute");
        near(number(probe, "bound_us"), slow ? 130 : 100);
        UNIT_CHECK(number(probe, "bound_ci") > 0 && number(probe, "bound_ci") <= 0.01);
        end();
    }
}

/* Where a product set the peak, registers may only have had a bad moment then: what is faster now is the scale. */
static void the_faster_one_of_now_is_the_scale(void) {
    const double product = 2.0 * 16 * 16 * 16 / 200e-6;
    for (int faster = 0; faster < 2; faster++) {
        begin("16,24,8", "fp32");
        fake_api.has_graphs = 0;
        USE(&fake_right);
        ceilings_at(product / 1e12); /* by a product of 16 x 16 x 16 */
        d->counted_per_s = (faster ? 1.1 : 0.9) * product;
        measure();
        const json_t *probe = json_object_get(result, "probe");
        UNIT_CHECK((json_object_get(probe, "shape") == NULL) == (faster == 1));
        near(number(probe, "bound_us"), 2.0 * 16 * 24 * 8 / (faster ? 1.1 * product : product) * 1e6);
        end();
    }
}

/* A device that counts its cycles: the time is that at the clock which the operation's own load holds, wherever the
 * clock was in a pass, and so is the ceiling. */
static void a_time_is_told_at_its_own_clock(void) {
    const double product = 2.0 * 16 * 16 * 16 / 200e-6, work = 2.0 * 16 * 24 * 8, each = 200 * 2000 / 1500.0;
    static const double from_mhz[] = {2000, 1400, 1800, 1600};
    begin("16,24,8", "fp32");
    USE(&fake_right, &fake_fast);
    ceilings_at(product / 1e12);
    known.peaks[0].clock_mhz = 1000;
    known.clock_fall = 0.001; /* whole seconds are hardly another matter */
    hold_s = 0.8;
    d->held_mhz = 1500;
    fake_api.clocks = fake_clocks;
    measure_opens();
    for (int k = 0; k < 4; k++) {
        d->clock_mhz = from_mhz[k];
        measure_pass_of(k + 1);
    }
    measure_close(session);
    fake_api.clocks = NULL;
    UNIT_CHECK(fabs(number(result, "clock_mhz") / 1500 - 1) < 0.005);
    UNIT_CHECK(fabs(number(result, "baseline_time_us") / each - 1) < 0.005);
    near(number(result, "ratio"), 0.75);
    UNIT_TEXT(text(row("right", ""), "time_from"), "clock");
    UNIT_CHECK(fabs(number(row("right", ""), "tflops") / (work / each / 1e6) - 1) < 0.005);
    const json_t *time = json_object_get(row("right", ""), "time_us");
    UNIT_CHECK(number(time, "rel_ci95") < 0.01);
    UNIT_CHECK(json_is_null(json_object_get(result, "probe"))); /* no load is needed beside it */
    end();
}

/* A time that is known says nothing of an efficiency where its ceiling is not. */
static void a_host_whose_ceiling_is_restless(void) {
    const double work = 2.0 * 16 * 24 * 8;
    begin("16,24,8", "fp32");
    fake_api.has_graphs = 0;
    USE(&fake_right, &fake_fast);
    ceilings_at(work / 100e-6 / 1e12);
    memset(known.peaks[0].shape, 0, sizeof known.peaks[0].shape);
    d->counted_per_s = work / 100e-6;
    d->counted_noise = 1.8;
    measure();
    row_is("right", "", "OK", NULL);
    row_is("fast", "", "OK", NULL);
    UNIT_TEXT(text(row("right", ""), "quality"), "good");
    UNIT_CHECK(number(json_object_get(result, "probe"), "bound_ci") > 0.01);
    end();
}

static void bytes_of_a_host(void) {
    const double bytes = 16 * 8 * 4 + 24 * 8 * 4 + 16 * 24 * 4;
    begin("16,24,8", "fp32");
    fake_api.has_graphs = 0;
    USE(&fake_right);
    ceilings_at(1e6);
    for (int k = 0; k < 2; k++) {
        known.bandwidths[k].bytes = 512;
        known.bandwidths[k].tbps = bytes / 100e-6 / 1e12;
    }
    known.bandwidths[2] = (ceilings_bandwidth){.bytes = 1 << 16, .read_fraction = 1, .tbps = bytes / 100e-6 / 1e12};
    known.bandwidths[3] = known.bandwidths[2];
    known.bandwidths[3].resident = true;
    known.bandwidth_count = 4;
    known.plateau_bytes = 1e7; /* more than 512 copies have: what records nothing may have as many as it takes */
    measure();
    const json_t *probe = json_object_get(result, "probe");
    UNIT_TEXT(text(probe, "bound"), "memory");
    /* the cache carries all of it; the probe has whole lines, and the fake moves a byte in a nanosecond */
    near(number(probe, "bound_us"), bytes * 1e-3);
    UNIT_CHECK(number(probe, "bytes") >= bytes && number(probe, "bytes") < bytes + 1024);
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
    budget_s = 1e-4; /* less than one launch */
    measure();
    row_is("right", "", "OK", NULL); /* the baseline always is */
    row_is("packs", "order=1", "SKIPPED", "budget");
    end();
}

/* A launch of minutes is known to be one before it begins. Without a deadline it is timed. */
static void what_would_overrun_the_budget_by_minutes(void) {
    for (int waits = 0; waits < 2; waits++) {
        begin("16,24,8", "fp32");
        USE(&fake_right, &fake_packs);
        ceilings_at(1e-10);
        budget_s = waits ? 3 : 1e9;
        measure();
        row_is("right", "", waits ? "SKIPPED" : "OK", waits ? "budget" : NULL);
        if (waits) row_is("packs", "order=1", "SKIPPED", "budget");
        UNIT_CHECK(!waits || d->launches == 0);
        end();
    }
}

/* Not of the library that has nothing for it: its own baseline had no time. Where that failed, this is told. */
static void what_had_no_time_gives_its_own_reason(void) {
    static const measure_exclusion crashed = {"default", "", ROW_CRASHED, {.code = "signal", .text = "ended"}};
    for (int failed = 0; failed < 2; failed++) {
        static scout_candidate library, ours;
        library = fake_refuses, library.flags = SCOUT_BASELINE, library.priority = 200, library.name = "default";
        ours = fake_right, ours.flags = SCOUT_BASELINE | SCOUT_OWN;
        begin("16,24,8", "fp32");
        USE(&library, &ours, &fake_packs);
        ceilings_at(1e-10);
        budget_s = 3;
        request.exclusions = &crashed;
        request.exclusion_count = failed;
        measure();
        const report_input in = {.operation = &list.items[0], .measurement = result};
        report_figures f;
        report_read(&in, &f);
        UNIT_INT(f.status, failed ? ROW_CRASHED : ROW_SKIPPED);
        UNIT_TEXT(f.code, failed ? "signal" : "budget");
        UNIT_TEXT(f.baseline ? f.baseline : "none", failed ? "none" : "right");
        UNIT_CHECK(!report_may_serve(result, true));
        end();
    }
}

/* No row goes without a figure: a restless one has a wide interval. */
static void a_restless_device_has_wide_intervals(void) {
    begin("16,24,8", "fp32");
    USE(&fake_right);
    d->noise = 0.8;
    measure();
    row_is("right", "", "OK", NULL);
    UNIT_CHECK(strcmp(text(row("right", ""), "quality"), "good") != 0);
    UNIT_TEXT(text(result, "best"), "right");
    UNIT_CHECK(fabs(number(result, "baseline_time_us") / 200 - 1) < 0.1);
    UNIT_CHECK(number(json_object_get(row("right", ""), "time_us"), "rel_ci95") > 0.01);
    end();
}

/* ---- passes ---- */

static void memory_lies_elsewhere_in_every_pass(void) {
    enum { PASSES = 4 };
    uintptr_t at[PASSES];
    begin("64,256,64", "fp32");
    request.regime.cache = REGIME_HOT; /* one weight a pass */
    USE(&fake_right);
    measure_opens();
    for (int k = 0; k < PASSES; k++) {
        measure_pass_of(k + 1);
        UNIT_INT(d->live_allocations, 0); /* all of it is given back */
        UNIT_INT(d->live_sequences, 0);
        at[k] = (uintptr_t)d->log[(d->launches - 1) % FAKE_LOG];
        for (int other = 0; other < k; other++) UNIT_CHECK(at[k] != at[other]);
    }
    measure_close(session);
    end();
}

static void plans_are_prepared_once(void) {
    begin("16,24,8", "fp32");
    USE(&fake_right, &fake_fast, &fake_tuned, &fake_packs);
    measure_opens();
    measure_pass_of(1);
    const uint32_t prepared = d->prepared;
    UNIT_INT(prepared, 2 + 11 + 3);
    UNIT_CHECK(d->live_plans >= 2 && d->live_plans < (int)prepared); /* of what lost the race none is kept */
    for (int k = 2; k <= 4; k++) measure_pass_of(k);
    UNIT_INT(d->prepared, prepared);
    UNIT_INT(json_array_size(json_object_get(row("fast", ""), "passes")), 4);
    measure_close(session);
    end();
}

/* Its worker was lost: another process goes on with the pass that is due, and prepares and checks what it times. */
static void a_new_session_goes_on(void) {
    begin("16,24,8", "fp32");
    USE(&fake_right, &fake_fast, &fake_tuned);
    measure_opens();
    measure_pass_of(1);
    measure_close(session);
    UNIT_INT(d->live_plans, 0);
    const uint32_t prepared = d->prepared;
    measure_opens();
    for (int k = 2; k <= 4; k++) measure_pass_of(k);
    measure_close(session);
    UNIT_CHECK(d->prepared > prepared && d->prepared <= prepared + 4);
    UNIT_CHECK(strstr(all_steps, "fast||verify") != NULL);
    UNIT_INT(json_array_size(json_object_get(row("fast", ""), "passes")), 4);
    UNIT_INT(rows_of("OK"), 13);
    near(number(result, "ratio"), 0.75);
    end();
}

/* A caller that sends no result between passes need not give anything back: each pass does, of the one before. */
static void a_pass_gives_back_what_the_last_one_left(void) {
    const measure_choice rows[] = {{"right", ""}, {"fast", ""}};
    begin("16,24,8", "fp32");
    USE(&fake_fast, &fake_right);
    measure_opens();
    for (int number = 1; number <= 3; number++) {
        const measure_pass pass = {
            .number = number, .seed = (uint64_t)number, .budget_s = 20, .rows = rows, .row_count = 2};
        json_t *seen = measure_run(session, &pass, &answer, &why);
        UNIT_CHECK(seen && answer == SCOUT_OK);
        json_decref(seen);
    }
    UNIT_INT(d->prepared, 2); /* plans stay */
    measure_close(session);
    end();
}

/* On a host that differs from block to block rounds go on; where the run's budget cuts the pass, a third of it long. */
static void a_cut_pass_leaves_time_for_others(void) {
    double took_s[2];
    for (int k = 0; k < 2; k++) {
        begin("16,24,8", "fp32");
        fake_api.has_graphs = 0;
        d->noise = 0.2;
        budget_s = 0.09;
        cut = k == 1;
        USE(&fake_brief, &fake_brisk);
        measure_opens();
        const double from_s = d->now_s;
        measure_pass_of(1);
        took_s[k] = d->now_s - from_s;
        UNIT_TEXT(text(row("brisk", ""), "status"), "OK");
        measure_close(session);
        end();
        cut = false;
        fake_api.has_graphs = 1;
    }
    UNIT_CHECK(took_s[0] > 0.1 && took_s[1] < 0.06);
}

int main(void) {
    UNIT_RUN(memory_lies_elsewhere_in_every_pass);
    UNIT_RUN(plans_are_prepared_once);
    UNIT_RUN(a_pass_gives_back_what_the_last_one_left);
    UNIT_RUN(a_new_session_goes_on);
    UNIT_RUN(the_faster_one_wins);
    UNIT_RUN(two_that_may_win_are_both_known);
    UNIT_RUN(the_best_own_kernel_is_the_baseline);
    UNIT_RUN(a_small_lead_is_none);
    UNIT_RUN(a_variant_as_fast_as_the_baseline_does_not_win);
    UNIT_RUN(what_crawls_costs_single_launches);
    UNIT_RUN(alone_there_is_no_rival);
    UNIT_RUN(variants_race);
    UNIT_RUN(the_same_seed_gives_the_same_rows);
    UNIT_RUN(packed_weights_are_told);
    UNIT_RUN(the_last_resort_waits);
    UNIT_RUN(only_one_was_asked_for);
    UNIT_RUN(bursts_and_direct_launches);
    UNIT_RUN(bytes_of_a_device_have_no_probe);
    UNIT_RUN(a_host_is_held_against_its_own_minute);
    UNIT_RUN(the_faster_one_of_now_is_the_scale);
    UNIT_RUN(a_time_is_told_at_its_own_clock);
    UNIT_RUN(a_host_whose_ceiling_is_restless);
    UNIT_RUN(bytes_of_a_host);
    UNIT_RUN(too_many_variants_are_counted);
    UNIT_RUN(what_the_budget_does_not_reach);
    UNIT_RUN(what_would_overrun_the_budget_by_minutes);
    UNIT_RUN(what_had_no_time_gives_its_own_reason);
    UNIT_RUN(a_restless_device_has_wide_intervals);
    UNIT_RUN(a_cut_pass_leaves_time_for_others);
    return unit_end();
}
