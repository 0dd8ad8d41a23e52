/* The verdicts of analyze are those of scout_batch: reports are made by scout's own hand, of measurements of all sorts,
 * and every one that is read says with the default thresholds what it said itself. */
#include "analyze/study/study_internal.h"
#include "scout/report/report.h"
#include "tests/unit/analyze/study_fixture.h"
#include "tests/unit/scout/report_made.h"

enum { OPERATIONS = 160, FUSIONS = 40 };

static supervisor_device device = {.name = "cuda:0", .device_class = "class A", .device_instance = "class A;1"};
static const operation part = {.id = "gemm_1", .name = "gemm_1"};

typedef struct made {
    char id[32];
    operation operation;
    fusion fusion;
    json_t *measurement;
    report_input in;
} made;
static made all[OPERATIONS + FUSIONS];

static uint64_t state = 3;
static unsigned any(unsigned n) { /* from 0 to n - 1 */
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}
static double between(double a, double b) { return a + (b - a) * any(100001) / 100000; }

/* An interval, or one time in ten none: there was one pass. */
static const char *interval(const char *key, double ci) {
    static char text[2][64];
    static int turn;
    char *to = text[turn ^= 1];
    snprintf(to, sizeof text[0], "'%s':%.17g,", key, ci);
    return any(10) ? to : "";
}

/* A row that is OK, and one time in eight one that is not. */
static void add_row(char *text, size_t room, const char *name, double us, bool may_fail) {
    const size_t used = strlen(text);
    const char *addresses = any(6) ? "" : "'addresses':{'best':0.9,'worst':1.04},";
    if (may_fail && any(8) == 0)
        snprintf(text + used, room - used,
                 "{'name':'%s','variant':'v=1','status':'SKIPPED','reason':{'code':'interval','text':'wide'}},", name);
    else
        snprintf(
            text + used, room - used,
            "{'name':'%s','variant':'v=1','status':'OK','reason':null,'tflops':1.0,'tbps':1.0,'kernels':2,%s'time_us'"
            ":{'median':%.17g,'mean':1.0,'min':1.0,'p05':1.0,'p95':1.0,%s'batches':20,'launches':200}},",
            name, addresses, us, interval("rel_ci95", any(4) ? between(0, 0.006) : between(0, 0.06)));
}

/* Times from far above the ceiling (20 us) to just at it; winners and rivals from clear to within their intervals. */
static json_t *measure(const char *lib) {
    static const char *const families[] = {"LIBRARY_TUNE", "CUSTOM_KERNEL", "SPARSE_24", "CUSTOM_ATTENTION"};
    char text[4096];
    const double us = any(3) ? between(19, 26) : between(19, 200), ratio = between(0.5, 1);
    const bool won = any(2) && ratio < 0.98;
    snprintf(text, sizeof text, "{'baseline':'%s','baseline_variant':'v=1','best':'%s','best_variant':'v=1',", lib,
             won ? "own" : lib);
    size_t used = strlen(text);
    if (won)
        snprintf(text + used, sizeof text - used, "'best_approach':'%s','ratio':%.17g,%s", families[any(4)], ratio,
                 interval("ratio_ci", between(0, 0.03)));
    used = strlen(text);
    if (any(2))
        snprintf(text + used, sizeof text - used,
                 "'rival':{'name':'near','variant':'v=1','approach':'%s','ratio':%.17g,'ratio_ci':%.17g},",
                 families[any(4)], between(won ? ratio : 0.93, 1.1), any(5) ? between(0, 0.04) : 1.0);
    used = strlen(text);
    if (any(3) == 0) /* a probe in neighbouring blocks, at some clock */
        snprintf(text + used, sizeof text - used, "'probe':{'bound':'compute',%s'bound_us':%.17g,'among':true},",
                 interval("bound_ci", between(0, 0.02)), us * between(0.7, 1));
    used = strlen(text);
    if (any(4) == 0) snprintf(text + used, sizeof text - used, "'baseline_own':true,");
    used = strlen(text);
    snprintf(text + used, sizeof text - used, "'resident_bytes':0.0,'candidates':[");
    add_row(text, sizeof text, lib, us, true);
    add_row(text, sizeof text, "own", us * ratio, false);
    add_row(text, sizeof text, "near", us * between(0.95, 1.2), true);
    text[strlen(text) - 1] = 0; /* the last comma */
    used = strlen(text);
    snprintf(text + used, sizeof text - used, "]}");
    return parsed(text);
}

static void make_operation(made *m, int k) {
    static const op_kind kinds[] = {OP_GEMM, OP_ATTENTION, OP_NORM};
    snprintf(m->id, sizeof m->id, "op_%d", k);
    m->operation = (operation){.id = m->id,
                               .name = m->id,
                               .rec = {.kind = kinds[any(3)],
                                       .rank = 3,
                                       .shape = shape,
                                       .type = DTYPE_FP16,
                                       .flops = any(5) ? 2000000000 : 20000000, /* these are bound by launching */
                                       .bytes_read = any(5) ? 4000000 : 10000,
                                       .bytes_written = 20000},
                               .count = any(6) ? 1 + any(40) : 0,
                               .pattern = any(6) ? "DENSE" : "STRUCTURED_24"};
    m->in = (report_input){.operation = &m->operation,
                           .key = m->id,
                           .device = &device,
                           .regime = &rules,
                           .search = &search,
                           .ceilings = any(12) ? &best : NULL,
                           .status = ROW_SKIPPED,
                           .code = any(2) ? "budget" : "no_work",
                           .text = "none"};
    if (any(10)) m->in.measurement = m->measurement = measure("lib");
}

static void make_fusion(made *m, int k) {
    make_operation(m, k);
    m->fusion = (fusion){.id = m->id,
                         .pattern = "gemm+bias",
                         .count = 1 + any(9),
                         .op_count = 2,
                         .ops = {&part, &part},
                         .how = any(3) ? FUSION_SEQUENCE : FUSION_SUM};
    m->operation.count = m->fusion.count;
    json_decref(m->measurement);
    m->in.measurement = m->measurement = measure(m->fusion.how == FUSION_SUM ? "lib" : "parts");
    m->in.fusion = (report_fusion){.of = &m->fusion,
                                   .sum_us = any(5) ? between(20, 60) : NAN,
                                   .sum_ci = between(0, 0.01),
                                   .sum_kernels = 3,
                                   .code = "budget",
                                   .text = "no time"};
}

/* As scout/run/run_json.c sums it up. */
static void time_of_the_model(double *model_us, double *model_ci) {
    verdict_sum sum = {0};
    for (int k = 0; k < OPERATIONS; k++) {
        report_figures f;
        const double count = (double)all[k].operation.count;
        report_read(&all[k].in, &f);
        if (f.baseline_row) {
            verdict_sum_add(&sum, count * f.baseline_us, f.baseline_ci);
        } else if (!verdict_is_excused(f.code) && isfinite(f.estimate_us)) {
            verdict_sum_allow(&sum, count * f.estimate_us);
        }
    }
    *model_us = sum.us;
    *model_ci = verdict_sum_ci(&sum);
}

static void write_all(double model_us, double model_ci) {
    for (int k = 0; k < OPERATIONS + FUSIONS; k++) {
        json_builder b = {0};
        status st = {0};
        char name[64];
        all[k].in.model_us = model_us;
        all[k].in.model_ci = model_ci;
        snprintf(name, sizeof name, "%s/%.32s.json", all[k].in.fusion.of ? "fusions" : "reports", all[k].id);
        json_t *report = json_finish(&b, report_build(&all[k].in, &b), &st);
        if (!UNIT_CHECK(report && json_save(lab_path(name), report, &st))) printf("%s\n", st.text);
        json_decref(report);
    }
}

static double number(const json_t *o, const char *key) {
    const json_t *x = json_object_get(o, key);
    return json_is_number(x) ? json_number_value(x) : NAN;
}
static const char *text(const json_t *o, const char *key) { return json_string_value(json_object_get(o, key)); }

static void alike(double got, double want, const char *what) {
    if (isnan(got) && isnan(want)) return;
    if (!UNIT_CHECK(fabs(got - want) <= 1e-9 * fabs(want) + 1e-12))
        printf("%s: got %.17g, want %.17g\n", what, got, want);
}

static void compare(const study_report *r, int *counts) {
    status st = {0};
    json_t *report = study_detail(r, &st);
    UNIT_TEXT(r->verdict.approach, text(report, "approach"));
    UNIT_TEXT(r->verdict.priority, text(report, "priority"));
    UNIT_TEXT(r->verdict.recommendation, text(report, "recommendation"));
    if (!UNIT_CHECK(r->verdict.borderline == json_is_true(json_object_get(report, "borderline")))) puts(r->operation);
    alike(r->verdict.proven_gain_us, number(report, "proven_gain_us"), "proven_gain_us");
    alike(r->verdict.potential_gain_us, number(report, "potential_gain_us"), "potential_gain_us");
    alike(r->verdict.efficiency, number(report, "efficiency"), "efficiency");
    if (r->fusion) {
        const json_t *fused = json_object_get(report, "fusion");
        UNIT_CHECK(!r->worth == !text(fused, "worth"));
        if (r->worth) UNIT_TEXT(r->worth, text(fused, "worth"));
        if (r->worth) alike(r->saved_us, number(fused, "saved_us"), "saved_us");
    }
    counts[0] += strcmp(r->verdict.priority, "NONE") != 0;
    counts[1] += r->verdict.borderline;
    counts[2] += r->verdict.proven_gain_us > 0;
    counts[3] += r->worth && strcmp(r->worth, "yes") == 0;
    counts[4] += strcmp(r->verdict.approach, "UNMEASURED") == 0;
    json_decref(report);
}

static void set_up(double *model_us, double *model_ci) {
    set_up_ceilings();
    best.peaks[0].rel_ci95 = 0.004;
    device.identity.units = 100;
    snprintf(device.identity.name, sizeof device.identity.name, "A");
    lab_begin();
    for (int k = 0; k < OPERATIONS; k++) make_operation(&all[k], k);
    for (int k = OPERATIONS; k < OPERATIONS + FUSIONS; k++) make_fusion(&all[k], k);
    time_of_the_model(model_us, model_ci);
    write_all(*model_us, *model_ci);
}

static void tear_down(void) {
    lab_end();
    for (int k = 0; k < OPERATIONS + FUSIONS; k++) {
        json_decref(all[k].measurement);
        all[k].measurement = NULL;
    }
}

static void the_same_verdicts(void) {
    study s;
    status st = {0};
    double model_us, model_ci;
    int counts[5] = {0};
    set_up(&model_us, &model_ci);
    if (!UNIT_CHECK(lab_open(&s, &st))) printf("%s\n", st.text);
    for (size_t k = 0; k < s.skipped_count; k++) printf("%s: %s\n", s.skipped[k].path, s.skipped[k].why);
    UNIT_INT(s.skipped_count, 0);
    UNIT_INT(s.groups[0].count, OPERATIONS);
    UNIT_INT(s.groups[0].fusion_count, FUSIONS);
    near(s.groups[0].model_us, model_us);
    near(s.groups[0].model_ci, model_ci);
    for (size_t k = 0; k < s.groups[0].count; k++) compare(&s.groups[0].reports[k], counts);
    for (size_t k = 0; k < s.groups[0].fusion_count; k++) compare(&s.groups[0].fusions[k], counts);
    for (int k = 0; k < 5; k++) UNIT_CHECK(counts[k] > 5); /* of everything there was enough to go wrong */
    study_close(&s);
    tear_down();
}

/* Wherever in its interval the truth of a measurement lies: a verdict that is not borderline is the one it would have.
 */
static const struct {
    size_t x, ci;
} measured[] = {
    {offsetof(study_report, baseline_us), offsetof(study_report, baseline_ci)},
    {offsetof(study_report, ratio), offsetof(study_report, ratio_ci)},
    {offsetof(study_report, rival_ratio), offsetof(study_report, rival_ratio_ci)},
    {offsetof(study_report, ceiling_us), offsetof(study_report, ceiling_ci)},
};

static void move(study *s, size_t which, size_t measurement, double by) {
    study_group *g = &s->groups[0];
    study_report *r = &g->reports[which], kept = *r;
    double x, ci;
    memcpy(&x, (char *)r + measured[measurement].x, sizeof x);
    memcpy(&ci, (char *)r + measured[measurement].ci, sizeof ci);
    if (!isfinite(x) || !(ci < 1)) return;
    x *= 1 + by * ci;
    const bool beside = r->ceiling_from && strcmp(r->ceiling_from, "probe") == 0;
    if (beside && measured[measurement].x == offsetof(study_report, baseline_us)) r->ceiling_us *= 1 + by * ci;
    memcpy((char *)r + measured[measurement].x, &x, sizeof x);
    memcpy((char *)r + measured[measurement].ci, &(double){0}, sizeof ci);
    g->without_baseline = 0;
    study_judge(s, g);
    if (strcmp(r->verdict.approach, kept.verdict.approach) != 0 ||
        strcmp(r->verdict.priority, kept.verdict.priority) != 0) {
        UNIT_CHECK(false);
        printf("%s, measurement %zu by %g: %s %s was %s %s\n", r->operation, measurement, by, r->verdict.approach,
               r->verdict.priority, kept.verdict.approach, kept.verdict.priority);
    }
    *r = kept;
}

static void what_is_sure_stays(void) {
    static const double steps[] = {-0.99, -0.5, 0.5, 0.99};
    study s;
    status st = {0};
    double model_us, model_ci;
    int moved = 0;
    set_up(&model_us, &model_ci);
    UNIT_CHECK(lab_open(&s, &st));
    for (size_t k = 0; k < s.groups[0].count; k++) {
        if (s.groups[0].reports[k].verdict.borderline) continue;
        for (size_t m = 0; m < sizeof measured / sizeof measured[0]; m++)
            for (size_t n = 0; n < sizeof steps / sizeof steps[0]; n++) move(&s, k, m, steps[n]);
        moved++;
    }
    UNIT_CHECK(moved > OPERATIONS / 4);
    study_close(&s);
    tear_down();
}

/* Only the bound moves: what was worth doing is so no more. */
static void other_thresholds(void) {
    study s;
    status st = {0};
    lab_begin();
    lab_write("reports/a.json", LAB_PLAIN("a", "1", "25.0", "20.0"));
    const char *folder = lab_folder;
    study_options with = {.folders = &folder, .folder_count = 1, .thresholds = verdict_defaults};
    UNIT_CHECK(study_open(&s, &with, &st));
    UNIT_TEXT(s.groups[0].reports[0].verdict.approach, "CUTLASS_SWEEP");
    UNIT_TEXT(s.groups[0].reports[0].verdict.priority, "HIGH");
    study_close(&s);
    with.thresholds.ceiling = 0.7;
    UNIT_CHECK(study_open(&s, &with, &st));
    UNIT_TEXT(s.groups[0].reports[0].verdict.approach, "NONE");
    study_close(&s);
    with.thresholds = verdict_defaults;
    with.thresholds.high_potential = 0.5;
    UNIT_CHECK(study_open(&s, &with, &st));
    UNIT_TEXT(s.groups[0].reports[0].verdict.priority, "MEDIUM");
    study_close(&s);
    lab_end();
}

int main(void) {
    UNIT_RUN(the_same_verdicts);
    UNIT_RUN(what_is_sure_stays);
    UNIT_RUN(other_thresholds);
    return unit_end();
}
