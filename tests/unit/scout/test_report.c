/* Reports: what is taken from a measurement, whatever wrote it; figures beside their ceiling; what may be reused. */
#include "scout/report/report.h"
#include "tests/unit/scout/report_made.h"

#include <math.h>
#include <stdlib.h>

static const operation product = {.id = "gemm_1",
                                  .name = "ffn",
                                  .rec = {.kind = OP_GEMM,
                                          .rank = 3,
                                          .shape = shape,
                                          .layout = "nn",
                                          .type = DTYPE_FP16,
                                          .weight_type = DTYPE_FP16,
                                          .flops = 2000000000,
                                          .bytes_read = 4000000,
                                          .bytes_written = 2000000},
                                  .count = 3,
                                  .pattern = "DENSE"};
static supervisor_device device = {.name = "cuda:0", .device_class = "class A", .device_instance = "class A;1"};

static void set_up(void) {
    set_up_ceilings();
    device.identity.units = 100;
    snprintf(device.identity.name, sizeof device.identity.name, "A");
}

static report_input input(const json_t *m) {
    return (report_input){.operation = &product,
                          .key = "gemm;key",
                          .device = &device,
                          .regime = &rules,
                          .search = &search,
                          .measurement = m,
                          .ceilings = &best,
                          .model_us = -1};
}

#define ROW_TIME(us)                                                                                                   \
    "'status':'OK','reason':null,'tflops':1.0,'tbps':1.0,'time_us':{'median':" us                                      \
    ",'mean':1.0,'min':1.0,'p05':1.0,'p95':1.0,'rel_ci95':0.002,'batches':20,'launches':200}"
#define ONLY_LIB(us)                                                                                                   \
    "{'baseline':'lib','baseline_variant':'','best':'lib','best_variant':'','candidates':[{'name':'lib','variant':''"  \
    "," ROW_TIME(us) "}]}"
static const char good[] =
    "{'baseline':'lib','baseline_variant':'algo=0','best':'lib','best_variant':'algo=3','best_approach':'LIBRARY_TUNE',"
    "'ratio':0.8,'ratio_ci':0.002,'settled':true,'libraries':[],'candidates':["
    "{'name':'lib','variant':'algo=0'," ROW_TIME(
        "40.0") ",'config':{'a':0}},"
                "{'name':'lib','variant':'algo=3'," ROW_TIME(
                    "32.0") ",'config':{'a':3}},"
                            "{'name':'own','variant':'','status':'WRONG','reason':{'code':'samples','text':'off'}}]}";

static double number(const json_t *o, const char *key) { return json_number_value(json_object_get(o, key)); }
static const char *text(const json_t *o, const char *key) { return json_string_value(json_object_get(o, key)); }

static void figures_of_a_measurement(void) {
    json_t *m = parsed(good);
    report_input in = input(m);
    report_figures f;
    report_read(&in, &f);
    UNIT_INT(f.status, ROW_OK);
    near(f.baseline_us, 40);
    near(f.best_us, 32);
    near(f.ratio, 0.8);
    UNIT_TEXT(f.family, "LIBRARY_TUNE");
    UNIT_INT(f.bad_rows, 1);
    UNIT_TEXT(f.precision, "fp16");
    UNIT_TEXT(f.bound, "compute");
    UNIT_CHECK(f.peak == &best.peaks[0]);
    UNIT_CHECK(f.ceiling_us >= 20 && f.ceiling_us < 22);
    near(f.efficiency, f.ceiling_us / 40);
    UNIT_CHECK(!f.above_ceiling);
    json_decref(m);
}

static void a_report_says_it_all(void) {
    json_t *m = parsed(good);
    report_input in = input(m);
    json_builder b = {0};
    json_t *first = report_build(&in, &b);
    UNIT_CHECK(!b.why);
    UNIT_TEXT(text(first, "operation"), "gemm_1");
    UNIT_TEXT(text(first, "status"), "OK");
    UNIT_TEXT(text(first, "regime"), "sustained-model-graph");
    near(number(first, "baseline_time_us"), 40);
    UNIT_CHECK(!json_object_get(first, "least_time_us"));
    near(number(first, "baseline_tflops"), 50);
    near(number(first, "peak_tflops"), 100);
    UNIT_INT(number(json_object_get(first, "config"), "a"), 3);
    UNIT_CHECK(!json_object_get(first, "approach")); /* the model's time is not known yet */
    in.model_us = 1000;
    json_t *second = report_build(&in, &b);
    UNIT_TEXT(text(second, "approach"), "LIBRARY_TUNE");
    UNIT_TEXT(text(second, "priority"), "MEDIUM"); /* 24 of 1000 us proven; of the potential 54 to 60 */
    near(number(second, "proven_gain_us"), 3 * 40 * 0.2);
    /* a report stands for its own measurement, with or without a verdict */
    report_input again = input(second);
    again.model_us = 1000;
    json_t *third = report_build(&again, &b);
    UNIT_CHECK(json_equal(second, third));
    again.measurement = first;
    json_t *fourth = report_build(&again, &b);
    UNIT_CHECK(json_equal(second, fourth));
    json_decref(first), json_decref(second), json_decref(third), json_decref(fourth), json_decref(m);
}

/* Without an interval it is a figure, and proves nothing: not in the verdict, not in the totals. */
static void an_attention_has_times_of_a_head(void) {
    static const int64_t heads[] = {2, 5, 64, 64};
    const operation attention = {.id = "attention_1",
                                 .name = "attention",
                                 .rec = {.kind = OP_ATTENTION, .rank = 4, .shape = heads, .type = DTYPE_FP16},
                                 .count = 1};
    json_t *m = parsed(good);
    report_input in = input(m);
    json_builder b = {NULL};
    json_t *of_product = report_build(&in, &b);
    UNIT_CHECK(!json_object_get(of_product, "best_per_head_us"));
    in.operation = &attention;
    json_t *of_attention = report_build(&in, &b);
    near(number(of_attention, "baseline_per_head_us"), 4);
    near(number(of_attention, "best_per_head_us"), 3.2);
    json_decref(of_product);
    json_decref(of_attention);
    json_decref(m);
}

static void one_pass_has_no_interval(void) {
    json_t *m =
        parsed("{'baseline':'lib','baseline_variant':'','best':'own','best_variant':'','best_approach':"
               "'CUSTOM_KERNEL','baseline_own':true,'ratio':0.5,'passes':1,'undecided':['winner'],'candidates':["
               "{'name':'lib','variant':'','status':'OK','reason':null,'time_us':{'median':40.0}},"
               "{'name':'own','variant':'','status':'OK','reason':null,'time_us':{'median':20.0},'quality':"
               "'wide','addresses':{'best':0.45,'worst':0.55}}]}");
    report_input in = input(m);
    report_figures f;
    in.model_us = 120;
    report_read(&in, &f);
    UNIT_CHECK(f.status == ROW_OK && isnan(f.baseline_ci) && isnan(f.best_ci) && isnan(f.ratio_ci));
    UNIT_CHECK(f.wide && f.own && f.bad_rows == 0 && !f.above_ceiling);
    UNIT_CHECK(f.verdict.borderline && f.verdict.proven_gain_us == 0);
    near(f.proven_us, 40);
    UNIT_CHECK(strstr(f.verdict.recommendation, "Its time depends on memory addresses: between 0.450 and 0.550") !=
               NULL);
    json_builder b = {0};
    json_t *r = report_build(&in, &b);
    UNIT_INT(number(r, "passes"), 1);
    UNIT_INT(json_array_size(json_object_get(r, "undecided")), 1);
    UNIT_CHECK(!json_object_get(r, "ratio_ci"));
    json_decref(r);
    json_object_set_new(m, "ratio_ci", json_real(0.01));
    report_read(&in, &f);
    near(f.proven_us, 20); /* the ratio is known: so is the gain */
    UNIT_CHECK(f.verdict.proven_gain_us > 0 && f.wide);
    json_decref(m);
}

static void without_a_measurement(void) {
    report_input in = input(NULL);
    json_builder b = {0};
    in.status = ROW_SKIPPED, in.code = "no_candidate", in.text = "nobody", in.model_us = 10;
    json_t *r = report_build(&in, &b);
    UNIT_TEXT(text(r, "status"), "SKIPPED");
    UNIT_TEXT(text(json_object_get(r, "reason"), "code"), "no_candidate");
    UNIT_TEXT(text(r, "approach"), "UNMEASURED");
    UNIT_CHECK(json_is_null(json_object_get(r, "baseline")));
    UNIT_CHECK(!json_object_get(r, "baseline_time_us") && !json_object_get(r, "efficiency"));
    UNIT_INT(json_array_size(json_object_get(r, "candidates")), 0);
    json_decref(r);
    in.code = "no_work";
    r = report_build(&in, &b);
    UNIT_TEXT(text(r, "approach"), "NONE");
    json_decref(r);
}

static void a_baseline_that_is_not_ok(void) {
    static const struct {
        const char *measurement, *status, *code;
    } cases[] = {
        {"{'baseline':'lib','baseline_variant':'','best':null,'candidates':[{'name':'lib','variant':'','status':'"
         "UNSTABLE',"
         "'reason':{'code':'interval','text':'wide'}}]}",
         "SKIPPED", "interval"}, /* an older one */
        {"{'baseline':null,'best':null,'candidates':[{'name':'a','variant':'','status':'UNSUPPORTED','reason':"
         "{'code':'type','text':'no'}},{'name':'b','variant':'','status':'CRASHED','reason':{'code':'signal','text':"
         "'SIGSEGV'}}]}",
         "CRASHED", "signal"},
        {"{'baseline':null,'best':null,'candidates':[]}", "SKIPPED", "no_candidate"},
        /* says OK and has no figure */
        {"{'baseline':'lib','baseline_variant':'','candidates':[{'name':'lib','variant':'','status':'OK'}]}", "SKIPPED",
         "no_candidate"},
        {"{'baseline':'lib','baseline_variant':'','candidates':[{'name':'lib','variant':'','status':'OK','time_us':"
         "{'median':-4}}]}",
         "SKIPPED", "no_candidate"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        json_t *m = parsed(cases[k].measurement);
        report_input in = input(m);
        json_builder b = {0};
        in.model_us = 5;
        json_t *r = report_build(&in, &b);
        UNIT_TEXT(text(r, "status"), cases[k].status);
        UNIT_TEXT(text(json_object_get(r, "reason"), "code"), cases[k].code);
        UNIT_TEXT(text(r, "approach"), "UNMEASURED");
        UNIT_CHECK(!json_object_get(r, "baseline_time_us"));
        json_decref(r), json_decref(m);
    }
}

/* For the model's time: at least what its ceiling takes, or its bytes where no ceiling of its precision is known. */
static void what_was_not_timed_is_estimated(void) {
    json_t *m = parsed("{'baseline':'lib','baseline_variant':'','best':null,'best_variant':null,'best_approach':null,"
                       "'candidates':[{'name':'lib','variant':'','status':'UNSTABLE',"
                       "'reason':{'code':'interval','text':'wide'}}]}");
    report_input in = input(m);
    report_figures f;
    report_read(&in, &f);
    UNIT_CHECK(!f.baseline_row && f.estimate_us >= 20 && f.estimate_us < 22);
    json_builder b = {0};
    json_t *r = report_build(&in, &b);
    UNIT_CHECK(json_is_null(json_object_get(r, "best_variant")) && json_is_null(json_object_get(r, "best_approach")));
    near(number(r, "least_time_us"), f.estimate_us);
    json_decref(r);
    in.measurement = NULL, in.status = ROW_SKIPPED, in.code = "budget", in.text = "";
    report_read(&in, &f);
    UNIT_CHECK(f.estimate_us >= 20 && f.estimate_us < 22 && isnan(f.ceiling_us) && !verdict_is_excused(f.code));
    best.peak_count = 0; /* 6 MB at 1 TB/s */
    report_read(&in, &f);
    UNIT_CHECK(f.estimate_us >= 6 && f.estimate_us < 8);
    best.peak_count = 1;
    in.ceilings = NULL;
    report_read(&in, &f);
    UNIT_CHECK(isnan(f.estimate_us));
    in.code = "no_work";
    report_read(&in, &f);
    UNIT_CHECK(verdict_is_excused(f.code));
    json_decref(m);
}

static void nonsense_is_survived(void) {
    static const char *const cases[] = {
        "[]", "{'candidates':3}", "{'candidates':[1,null,{},[]]}",
        "{'baseline':7,'candidates':[{'name':7,'status':[]}]}",
        "{'baseline':'lib','best':'lib','candidates':[{'name':'lib','status':'NEW','time_us':'fast'}],'ratio':'x'}"};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        json_t *m = parsed(cases[k]);
        report_input in = input(m);
        json_builder b = {0};
        in.model_us = 1;
        json_t *r = report_build(&in, &b);
        UNIT_CHECK(r && !b.why);
        UNIT_TEXT(text(r, "approach"), "UNMEASURED");
        UNIT_CHECK(!report_may_serve(m, true));
        json_decref(r), json_decref(m);
    }
}

static void faster_than_the_ceiling_is_flagged(void) {
    json_t *m = parsed(ONLY_LIB("15.0"));
    report_input in = input(m);
    report_figures f;
    report_read(&in, &f);
    UNIT_CHECK(f.above_ceiling && f.efficiency > 1.3); /* not clipped */
    best.peaks[0].rel_ci95 = 0.5;                      /* 5 % of it are forgiven, whatever the rest may be */
    report_read(&in, &f);
    UNIT_CHECK(f.above_ceiling);
    json_decref(m);
    in.measurement = m = parsed(ONLY_LIB("20.2"));
    report_read(&in, &f);
    UNIT_CHECK(fabs(f.efficiency - 1.0396) < 0.001 && !f.above_ceiling);
    best.peaks[0].rel_ci95 = 0;
    report_read(&in, &f);
    UNIT_CHECK(f.above_ceiling);
    json_decref(m);
}

/* What computes goes with the clock, where the device tells one. */
static void a_ceiling_is_that_of_the_clock(void) {
    report_figures f;
    best.peaks[0].clock_mhz = 1000;
    json_t *m = parsed(ONLY_LIB("15.0"));
    report_input in = input(m);
    report_read(&in, &f);
    near(f.ceiling_us, 21);
    json_object_set_new(m, "clock_mhz", json_real(2000));
    report_read(&in, &f);
    near(f.ceiling_us, 11);
    near(f.physical_us, 10);
    UNIT_TEXT(f.ceiling_from, "clock");
    UNIT_CHECK(!f.above_ceiling);
    best.peaks[0].clock_mhz = 0;
    json_decref(m);
}

/* What ran is attainable, down to the physical bound. */
static void what_ran_is_attainable(void) {
    report_figures f;
    best.peaks[0].tflops = 1000;
    best.bandwidths[1].tbps = best.bandwidths[3].tbps = 3; /* of 6 MB it is below that, and 2 us at the plateau */
    const double table_us = 1 + 6 / ceilings_bandwidth_at(&best, 6e6, 2.0 / 3, false);
    for (int clocked = 0; clocked < 2; clocked++) {
        json_t *m = parsed(ONLY_LIB("3.1"));
        report_input in = input(m);
        if (clocked) json_object_set_new(m, "clock_mhz", json_real(2000));
        report_read(&in, &f);
        UNIT_CHECK(table_us > 3.2 && f.above_ceiling == !clocked);
        near(f.ceiling_us, clocked ? 3.1 : table_us);
        near(f.physical_us, 2);
        UNIT_TEXT(f.ceiling_from, clocked ? "measured" : "stored");
        json_decref(m);
        in.measurement = m = parsed(ONLY_LIB("1.8")); /* below the physical bound: one of the two is wrong */
        if (clocked) json_object_set_new(m, "clock_mhz", json_real(2000));
        report_read(&in, &f);
        UNIT_CHECK(f.above_ceiling);
        near(f.ceiling_us, table_us);
        json_decref(m);
    }
    set_up_ceilings();
}

/* What a measurement says of the one that nearly won decides whether its report is sure of its verdict. */
static void borderline_by_what_nearly_won(void) {
    static const struct {
        const char *rival;
        bool borderline;
    } cases[] = {
        {"", false},
        {"'rival':{'name':'o','variant':'','approach':'CUSTOM_KERNEL','ratio':0.9805,'ratio_ci':0.001},", true},
        {"'rival':{'name':'o','variant':'','approach':'CUSTOM_KERNEL','ratio':0.9795,'ratio_ci':0.001},", true},
        {"'rival':{'name':'o','variant':'','approach':'CUSTOM_KERNEL','ratio':0.99,'ratio_ci':0.001},", false},
        {"'rival':{'name':'o','variant':'','approach':'CUSTOM_KERNEL','ratio':0.99,'ratio_ci':1},", false},
        {"'rival':{'name':'o','variant':'','approach':'CUSTOM_KERNEL','ratio':0.99,'ratio_ci':0.3},", true},
        {"'rival':[],", false},
        {"'rival':{'ratio':0.7},", false},
        {"'rival':{'ratio':-3,'ratio_ci':'x'},", false}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        char whole[2048];
        snprintf(whole, sizeof whole,
                 "{'baseline':'lib','baseline_variant':'','best':'lib','best_variant':'',%s'candidates':[{'name':'lib',"
                 "'variant':'',%s}]}",
                 cases[k].rival, ROW_TIME("40.0"));
        json_t *m = parsed(whole);
        report_input in = input(m);
        json_builder b = {0};
        in.model_us = 120;
        json_t *r = report_build(&in, &b);
        UNIT_TEXT(text(r, "approach"), "CUTLASS_SWEEP");
        UNIT_INT(json_is_true(json_object_get(r, "borderline")), cases[k].borderline);
        report_input again = input(r); /* a report that is kept says the same */
        again.model_us = 120;
        json_t *second = report_build(&again, &b);
        UNIT_CHECK(json_equal(r, second));
        json_decref(r), json_decref(second), json_decref(m);
    }
}

/* Bound by memory the ceiling's interval is that of the bandwidth, not of a peak that has nothing to do with it. */
static void borderline_by_the_ceilings_interval(void) {
    static operation moves;
    json_t *m = parsed(ONLY_LIB("40.0"));
    moves = product;
    moves.rec.flops = 1000, moves.rec.bytes_read = 34800000, moves.rec.bytes_written = 0; /* 35.8 of 40 us */
    report_input in = input(m);
    report_figures f;
    in.operation = &moves, in.model_us = 120;
    best.peaks[0].rel_ci95 = 0.5;
    for (int k = 0; k < best.bandwidth_count; k++) best.bandwidths[k].rel_ci95 = 1; /* not known */
    report_read(&in, &f);
    UNIT_CHECK(f.verdict.borderline && strcmp(f.verdict.approach, "UNMEASURED") == 0);
    for (int k = 0; k < best.bandwidth_count; k++) best.bandwidths[k].rel_ci95 = 0;
    report_read(&in, &f);
    UNIT_TEXT(f.bound, "memory");
    near(f.ceiling_us, 35.8);
    UNIT_CHECK(!f.verdict.borderline);
    for (int k = 0; k < best.bandwidth_count; k++) best.bandwidths[k].rel_ci95 = 0.01;
    report_read(&in, &f);
    near(f.ceiling_ci, 0.01 * 34.8 / 35.8);
    UNIT_CHECK(f.verdict.borderline);
    UNIT_TEXT(f.verdict.approach, "NONE");
    for (int k = 0; k < best.bandwidth_count; k++) best.bandwidths[k].rel_ci95 = 0;
    best.peaks[0].rel_ci95 = 0;
    json_decref(m);
}

static void a_product_on_a_cpu_is_not_swept(void) {
    json_t *m = parsed(ONLY_LIB("40.0"));
    report_input in = input(m);
    supervisor_device other = device;
    report_figures f;
    snprintf(other.name, sizeof other.name, "cpu");
    in.device = &other, in.model_us = 120;
    report_read(&in, &f);
    UNIT_TEXT(f.verdict.approach, "CUSTOM_KERNEL");
    json_decref(m);
}

/* From a file that anything may have written. */
static void a_work_that_nothing_does_has_no_rate(void) {
    json_t *m = parsed(good);
    json_object_set_new(m, "flops", json_real(1e308));
    report_input in = input(m);
    json_builder b = {0};
    json_t *r = report_build(&in, &b);
    UNIT_CHECK(r && !b.why);
    UNIT_CHECK(json_number_value(json_object_get(r, "baseline_tflops")) == 0);
    UNIT_CHECK(!json_object_get(r, "best_tflops"));
    json_decref(r), json_decref(m);
}

static void what_is_kept_is_of_the_same(void) {
    json_t *m = parsed(good);
    report_input in = input(m);
    json_builder b = {0};
    json_t *r = report_build(&in, &b);
    UNIT_CHECK(report_is_of(r, &in));
    report_input other = in;
    other.key = "gemm;another";
    UNIT_CHECK(!report_is_of(r, &other));
    other = in;
    const regime burst = {REGIME_BURST, REGIME_MODEL, REGIME_GRAPH};
    other.regime = &burst;
    UNIT_CHECK(!report_is_of(r, &other));
    other = in;
    supervisor_device second = device;
    snprintf(second.device_class, sizeof second.device_class, "class B");
    other.device = &second;
    UNIT_CHECK(!report_is_of(r, &other));
    second = device;
    second.candidates_hash++; /* another plugin, or another version of it */
    UNIT_CHECK(!report_is_of(r, &other));
    other = in;
    report_search all = search;
    all.exhaustive = true;
    other.search = &all;
    UNIT_CHECK(!report_is_of(r, &other));
    all = search;
    all.candidate = "own";
    UNIT_CHECK(!report_is_of(r, &other));
    json_object_set_new(r, "method", json_integer(REGIME_METHOD + 1));
    UNIT_CHECK(!report_is_of(r, &in));
    json_decref(r), json_decref(m);
}

static void what_may_serve(void) {
    static const struct {
        const char *row;
        bool now, later;
    } cases[] = {
        {ROW_TIME("4.0"), true, true},
        {"'status':'UNSTABLE','reason':{'code':'interval','text':''}", true, false},
        {"'status':'UNSUPPORTED','reason':{'code':'type','text':''}", true, true},
        {"'status':'ERROR','reason':{'code':'memory','text':''}", false, false},
        {"'status':'CRASHED','reason':{'code':'device_lost','text':''}", false, false},
        {"'status':'SKIPPED','reason':{'code':'budget','text':''}", false, false},
        {ROW_TIME("4.0") "},{'name':'other','variant':'','status':'CRASHED','reason':{'code':'killed','text':''}",
         false, false}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        char whole[1024];
        snprintf(whole, sizeof whole,
                 "{'baseline':'lib','baseline_variant':'','candidates':[{'name':'lib','variant':'',%s}]}",
                 cases[k].row);
        json_t *m = parsed(whole);
        UNIT_INT(report_may_serve(m, false), cases[k].now);
        UNIT_INT(report_may_serve(m, true), cases[k].later);
        json_decref(m);
    }
}

int main(void) {
    set_up();
    UNIT_RUN(figures_of_a_measurement);
    UNIT_RUN(a_report_says_it_all);
    UNIT_RUN(an_attention_has_times_of_a_head);
    UNIT_RUN(one_pass_has_no_interval);
    UNIT_RUN(without_a_measurement);
    UNIT_RUN(a_baseline_that_is_not_ok);
    UNIT_RUN(what_was_not_timed_is_estimated);
    UNIT_RUN(nonsense_is_survived);
    UNIT_RUN(faster_than_the_ceiling_is_flagged);
    UNIT_RUN(a_ceiling_is_that_of_the_clock);
    UNIT_RUN(what_ran_is_attainable);
    UNIT_RUN(borderline_by_what_nearly_won);
    UNIT_RUN(borderline_by_the_ceilings_interval);
    UNIT_RUN(a_product_on_a_cpu_is_not_swept);
    UNIT_RUN(a_work_that_nothing_does_has_no_rate);
    UNIT_RUN(what_is_kept_is_of_the_same);
    UNIT_RUN(what_may_serve);
    return unit_end();
}
