/* Reports whose probe has a say in the ceiling: in place of what is stored. */
#include "scout/report/report.h"
#include "tests/unit/scout/report_made.h"

#include <math.h>
#include <string.h>

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
static supervisor_device device = {.name = "cpu", .device_class = "class A", .device_instance = "class A;1"};

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

static double number(const json_t *o, const char *key) { return json_number_value(json_object_get(o, key)); }
static const char *text(const json_t *o, const char *key) { return json_string_value(json_object_get(o, key)); }

/* What ran among the blocks of a host is its ceiling, in place of what is stored, and is doubted no more. */
static void a_ceiling_from_beside(void) {
    json_t *m =
        parsed("{'baseline':'lib','baseline_variant':'','best':'lib','best_variant':'','candidates':[{'name':'lib',"
               "'variant':'','status':'OK','reason':null,'time_us':{'median':40.0,'rel_ci95':0.002}}]}");
    report_input in = input(m);
    report_figures f;
    report_read(&in, &f);
    UNIT_TEXT(f.ceiling_from, "stored");
    const double stored_us = f.ceiling_us;
    static const struct {
        const char *probe;
        double ceiling_us;
        const char *from;
    } cases[] = {
        {"{'bound':'compute','bound_us':30.0,'bound_ci':0.01}", 31, "probe"},
        {"{'bound':'compute','bound_us':39.3,'bound_ci':0.01}", 40.3, "probe"},
        {"{'bound':'compute','bound_us':50.0,'bound_ci':0.01}", 0, "stored"}, /* which it outran: no ceiling */
        {"{'bound':'memory','bound_us':25.0,'bound_ci':0.01}", 26, "probe"},
        {"{'bound':'memory','bound_us':2.0,'bound_ci':0.01}", 0, "stored"},  /* the other part is larger */
        {"{'bound':'compute','bound_us':2.0,'bound_ci':0.01}", 7, "stored"}, /* now the bytes are */
        {"{'bound':'compute','bound_us':-30.0,'bound_ci':0.01}", 0, "stored"},
        {"{'bound':'compute','bound_us':'30'}", 0, "stored"},
        {"{'bound':7,'bound_us':30.0}", 0, "stored"},
        {"{'bound':'launch','bound_us':30.0}", 0, "stored"},
        {"null", 0, "stored"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        json_object_set_new(m, "probe", cases[k].probe[0] == 'n' ? json_null() : parsed(cases[k].probe));
        report_read(&in, &f);
        UNIT_TEXT(f.ceiling_from, cases[k].from);
        near(f.ceiling_us, cases[k].ceiling_us > 0 ? cases[k].ceiling_us : stored_us);
        near(f.efficiency, f.ceiling_us / 40);
        UNIT_CHECK(!f.above_ceiling);
        json_builder b = {0};
        json_t *report = report_build(&in, &b);
        UNIT_TEXT(text(report, "ceiling_from"), cases[k].from);
        if (strcmp(cases[k].from, "probe") == 0)
            near(number(report, "stored_ceiling_time_us"), stored_us);
        else
            UNIT_CHECK(!json_object_get(report, "stored_ceiling_time_us"));
        json_decref(report);
    }
    json_decref(m);
    m = parsed("{'baseline':'lib','baseline_variant':'','best':'lib','best_variant':'','candidates':[{'name':'lib',"
               "'variant':'','status':'OK','reason':null,'time_us':{'median':15.0,'rel_ci95':0.002}}],"
               "'probe':{'bound':'compute','bound_us':30.0,'bound_ci':0.01}}");
    in = input(m);
    report_read(&in, &f);
    UNIT_TEXT(f.ceiling_from, "stored"); /* above both: said, not clipped */
    UNIT_CHECK(f.above_ceiling && f.efficiency > 1.3);
    json_decref(m);
}

/* Its interval is that of the ratio, and of the efficiency: what the baseline's own time is known to is not added. In
 * one pass it is not known. One that ran before the blocks, as in older measurements, says nothing. */
static void the_ratios_interval_is_the_efficiencys(void) {
    static const struct {
        const char *probe;
        double ceiling_us, half;
        const char *from;
    } cases[] = {
        {"{'bound':'compute','bound_us':31.0,'bound_ci':0.01,'among':true}", 32, 0.8 * 0.01 * 31 / 32, "probe"},
        {"{'bound':'compute','bound_us':31.0,'among':true}", 32, INFINITY, "probe"},
        {"{'bound':'compute','bound_us':31.0,'bound_ci':0.01,'among':false}", 21, 0.525 * 0.03, "stored"},
    };
    json_t *m =
        parsed("{'baseline':'lib','baseline_variant':'','best':'lib','best_variant':'','candidates':[{'name':'lib',"
               "'variant':'','status':'OK','reason':null,'time_us':{'median':40.0,'rel_ci95':0.03}}]}");
    report_input in = input(m);
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        report_figures f;
        json_object_set_new(m, "probe", parsed(cases[k].probe));
        report_read(&in, &f);
        UNIT_TEXT(f.ceiling_from, cases[k].from);
        near(f.ceiling_us, cases[k].ceiling_us);
        const double half = f.verdict.figures[VERDICT_EFFICIENCY].half;
        if (!UNIT_CHECK(half == cases[k].half || fabs(half - cases[k].half) < 1e-9)) printf("%g\n", half);
    }
    json_decref(m);
}

int main(void) {
    set_up();
    UNIT_RUN(a_ceiling_from_beside);
    UNIT_RUN(the_ratios_interval_is_the_efficiencys);
    return unit_end();
}
