/* Reports of fusions: what a measurement says of the parts and of what does them at once, and what follows from it. */
#include "scout/report/report.h"
#include "tests/unit/scout/report_made.h"

#include <math.h>
#include <stdlib.h>

static const operation part = {.id = "gemm_1", .name = "gemm_1"};
static fusion joined = {.id = "gemm_bias_1",
                        .pattern = "gemm+bias",
                        .count = 4,
                        .selected = 3,
                        .saved_bytes = 4000000,
                        .op_count = 2,
                        .ops = {&part, &part},
                        .how = FUSION_SEQUENCE,
                        .fused = {.id = "gemm_bias_1",
                                  .name = "gemm_bias_1",
                                  .rec = {.kind = OP_GEMM,
                                          .rank = 3,
                                          .shape = shape,
                                          .type = DTYPE_FP16,
                                          .flops = 2000000000,
                                          .bytes_read = 4000000,
                                          .bytes_written = 2000000},
                                  .count = 4,
                                  .pattern = "DENSE"}};
static supervisor_device device = {.name = "cuda:0", .device_class = "class A", .device_instance = "class A;1"};

static report_input input(const json_t *m) {
    set_up_ceilings();
    return (report_input){.operation = &joined.fused,
                          .fusion = {.of = &joined, .sum_us = NAN, .sum_ci = NAN, .sum_kernels = -1},
                          .key = "parts|key",
                          .device = &device,
                          .regime = &rules,
                          .search = &search,
                          .measurement = m,
                          .ceilings = &best,
                          .model_us = 1000};
}

#define OK_ROW(name, us, kernels)                                                                                      \
    "{'name':'" name "','variant':'','status':'OK','reason':null,'tflops':1.0,'tbps':1.0,'kernels':" kernels           \
    ",'time_us':{'median':" us                                                                                         \
    ",'mean':1.0,'min':1.0,'p05':1.0,'p95':1.0,'rel_ci95':0.002,'batches':20,'launches':200}}"
#define PARTS_FIRST      "'baseline':'parts','baseline_variant':'',"
#define RIVAL(ratio, ci) "'rival':{'name':'one','variant':'','approach':'FUSION','ratio':" ratio ",'ratio_ci':" ci "},"

static const json_t *fusion_of(const json_t *report) { return json_object_get(report, "fusion"); }
static double number(const json_t *o, const char *key) { return json_number_value(json_object_get(o, key)); }
static const char *text(const json_t *o, const char *key) { return json_string_value(json_object_get(o, key)); }

static json_t *report_of(const char *measurement) {
    json_t *m = parsed(measurement);
    const report_input in = input(m);
    json_builder b = {0};
    json_t *report = report_build(&in, &b);
    UNIT_CHECK(!b.why);
    json_decref(m);
    return report;
}

static void a_faster_one_is_worth_it(void) {
    json_t *r =
        report_of("{" PARTS_FIRST "'best':'one','best_variant':'','best_approach':'FUSION','ratio':0.8,"
                  "'ratio_ci':0.004,'candidates':[" OK_ROW("parts", "50.0", "2") "," OK_ROW("one", "40.0", "1") "]}");
    const json_t *f = fusion_of(r);
    near(number(f, "parts_time_us"), 50);
    near(number(f, "fused_time_us"), 40);
    near(number(f, "speedup"), 1.25);
    near(number(f, "speedup_ci"), 0.004);
    UNIT_INT(number(f, "kernels_parts"), 2);
    UNIT_INT(number(f, "kernels_fused"), 1);
    UNIT_TEXT(text(f, "worth"), "yes");
    UNIT_TEXT(text(f, "how"), "sequence");
    near(number(f, "saved_us"), 4 * 50 * 0.2);
    UNIT_CHECK(json_object_get(f, "why") == NULL);
    UNIT_TEXT(text(r, "approach"), "FUSION");
    near(number(r, "proven_gain_us"), 40);
    UNIT_CHECK(strstr(text(r, "recommendation"), "than the parts") != NULL);
    json_decref(r);
}

static void a_slower_one_is_said_to_be(void) {
    json_t *r =
        report_of("{" PARTS_FIRST RIVAL("1.25", "0.004") "'best':'parts','best_variant':'','candidates':[" OK_ROW(
            "parts", "40.0", "2") "," OK_ROW("one", "50.0", "2") "]}");
    const json_t *f = fusion_of(r);
    near(number(f, "speedup"), 0.8);
    near(number(f, "fused_time_us"), 50);
    UNIT_INT(number(f, "kernels_fused"), 2); /* an epilogue that is a kernel of its own */
    UNIT_TEXT(text(f, "worth"), "no");
    near(number(f, "saved_us"), 0);
    UNIT_TEXT(text(r, "approach"), "NONE");
    UNIT_TEXT(text(r, "priority"), "NONE");
    UNIT_CHECK(strstr(text(r, "recommendation"), "1.25 times as long") != NULL);
    json_decref(r);
}

static void near_the_margin_it_is_borderline(void) {
    json_t *r =
        report_of("{" PARTS_FIRST RIVAL("0.979", "0.006") "'best':'parts','best_variant':'','candidates':[" OK_ROW(
            "parts", "40.0", "2") "," OK_ROW("one", "39.2", "1") "]}");
    UNIT_TEXT(text(fusion_of(r), "worth"), "borderline");
    UNIT_TEXT(text(r, "approach"), "NONE");
    UNIT_CHECK(json_is_true(json_object_get(r, "borderline")));
    json_decref(r);
}

/* Of an older measurement: a ratio, but no time. */
static void one_without_a_time_has_a_ratio(void) {
    json_t *r = report_of("{" PARTS_FIRST RIVAL("0.7", "0.5") "'best':'parts','best_variant':'','candidates':[" OK_ROW(
        "parts", "40.0",
        "2") ",{'name':'one','variant':'','status':'UNSTABLE','reason':{'code':'drift','text':'x'}}]}");
    UNIT_CHECK(json_object_get(fusion_of(r), "fused_time_us") == NULL);
    UNIT_TEXT(text(fusion_of(r), "worth"), "borderline");
    json_decref(r);
}

static void a_ratio_that_may_be_anything_decides_nothing(void) {
    json_t *r = report_of("{" PARTS_FIRST RIVAL("0.7", "1.0") "'best':'parts','best_variant':'','candidates':[" OK_ROW(
        "parts", "40.0", "2") "," OK_ROW("one", "28.0", "1") "]}");
    UNIT_TEXT(text(fusion_of(r), "worth"), "borderline");
    UNIT_CHECK(!json_object_get(fusion_of(r), "speedup_ci"));
    UNIT_TEXT(text(r, "approach"), "NONE");
    json_decref(r);
}

static void what_is_missing_is_said(void) {
    static const struct {
        const char *measurement, *code;
    } cases[] = {
        {"{" PARTS_FIRST "'best':'parts','best_variant':'','candidates':[" OK_ROW(
             "parts", "40.0",
             "2") ",{'name':'one',"
                  "'variant':'','status':'UNSUPPORTED','reason':{'code':'epilogue','text':'not it'}}]}",
         "epilogue"},
        {"{" PARTS_FIRST "'best':'parts','best_variant':'','candidates':[" OK_ROW("parts", "40.0", "2") "]}",
         "no_candidate"},
        {"{" PARTS_FIRST "'best':null,'best_variant':null,'candidates':[{'name':'parts','variant':'','status':'WRONG',"
         "'reason':{'code':'samples','text':'off'}}," OK_ROW("one", "39.2", "1") "]}",
         "samples"},
        {"{'baseline':'one','baseline_variant':'','best':'one','best_variant':'','candidates':[" OK_ROW(
             "one", "39.2", "1") ",{'name':'parts','variant':'','status':'UNSUPPORTED','reason':{'code':'feature',"
                                 "'text':'no'}}]}",
         "no_candidate"}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        json_t *r = report_of(cases[k].measurement);
        UNIT_TEXT(text(json_object_get(fusion_of(r), "why"), "code"), cases[k].code);
        UNIT_CHECK(json_object_get(fusion_of(r), "worth") == NULL);
        UNIT_CHECK(strcmp(text(r, "approach"), "FUSION") != 0);
        json_decref(r);
    }
}

/* The measurement is that of the one operation; the parts have times of their own. */
static void a_sum_has_both_intervals(void) {
    json_t *m = parsed("{'baseline':'lib','baseline_variant':'','best':'one','best_variant':'','best_approach':"
                       "'CUSTOM_KERNEL','ratio':0.8,'ratio_ci':0.004,'candidates':[" OK_ROW(
                           "lib", "50.0", "1") "," OK_ROW("one", "40.0", "1") "]}");
    report_input in = input(m);
    report_figures f;
    joined.how = FUSION_SUM;
    in.fusion.sum_us = 100;
    in.fusion.sum_ci = 0.0015;
    in.fusion.sum_kernels = 9;
    report_read(&in, &f);
    near(f.fused.ratio, 0.4);
    near(f.fused.ratio_ci, 0.0025);
    UNIT_TEXT(f.fused.worth, "yes");
    near(f.fused.saved_us, 4 * 60);
    UNIT_INT(f.fused.kernels_parts, 9);
    UNIT_TEXT(f.verdict.approach, "FUSION");
    in.fusion.sum_us = 30;
    report_read(&in, &f);
    UNIT_TEXT(f.fused.worth, "no");
    UNIT_TEXT(f.verdict.approach, "NONE");
    in.fusion.sum_us = NAN;
    in.fusion.code = "budget";
    in.fusion.text = "no time";
    report_read(&in, &f);
    UNIT_CHECK(f.fused.worth == NULL);
    UNIT_TEXT(f.fused.code, "budget");
    UNIT_TEXT(f.verdict.approach, "UNMEASURED");
    joined.how = FUSION_SEQUENCE;
    json_decref(m);
}

int main(void) {
    UNIT_RUN(a_faster_one_is_worth_it);
    UNIT_RUN(a_slower_one_is_said_to_be);
    UNIT_RUN(near_the_margin_it_is_borderline);
    UNIT_RUN(one_without_a_time_has_a_ratio);
    UNIT_RUN(a_ratio_that_may_be_anything_decides_nothing);
    UNIT_RUN(what_is_missing_is_said);
    UNIT_RUN(a_sum_has_both_intervals);
    return unit_end();
}
