/* Two studies made by hand: which is which, what a changed verdict means, what the ceilings and devices say. The
 * statistics are in test_drift.c. */
#include "analyze/compare/comparison_formats.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>

enum { MOST = 64 };

typedef struct lab {
    study_report reports[MOST], fusions[MOST];
    char ids[MOST][32], keys[MOST][32];
    study_group group;
    study study;
    const char *folder;
} lab;

static lab before, after;
static comparison made;
static status st;

static study_report report(const char *id, const char *key, double us) {
    study_report r = {.path = id,
                      .operation = id,
                      .key = key,
                      .op = "gemm",
                      .device = "cuda:0",
                      .status = "OK",
                      .baseline = "lib",
                      .baseline_variant = "",
                      .best = "lib",
                      .best_variant = "",
                      .baseline_us = us,
                      .best_us = us,
                      .baseline_ci = 0.003,
                      .best_ci = 0.003,
                      .count = 2,
                      .ceiling_us = us / 2,
                      .bound = "memory",
                      .precision = "fp16",
                      .clock_mhz = NAN};
    r.verdict = (verdict){.approach = "NONE", .priority = "NONE"};
    return r;
}

static void fill(lab *l, const char *folder, size_t count) {
    *l = (lab){.folder = folder};
    for (size_t k = 0; k < count; k++) {
        snprintf(l->ids[k], sizeof l->ids[k], "op_%02zu", k);
        snprintf(l->keys[k], sizeof l->keys[k], "key %zu", k);
        l->reports[k] = report(l->ids[k], l->keys[k], 100 + (double)k);
    }
    l->group = (study_group){.device = "GPU",
                             .device_class = "name=GPU;driver=1;lib=2",
                             .regime = "sustained",
                             .method = 5,
                             .reports = l->reports,
                             .count = count};
    l->study = (study){.groups = &l->group, .group_count = 1};
    l->study.options.folders = &l->folder;
    l->study.options.folder_count = 1;
}

static void start(size_t count) {
    fill(&before, "monday", count);
    fill(&after, "tuesday", count);
}

static bool compare(void) {
    const comparison_options options = {.drift = {.alarms = 0.0005, .margin = 0.01}, .margin = 0.02};
    st = (status){0};
    return comparison_make(&made, &before.study, &after.study, &options, &st);
}

static const comparison_row *row_of(const char *id) {
    for (size_t k = 0; k < made.operations.row_count; k++)
        if (strcmp(made.operations.rows[k].before->operation, id) == 0) return &made.operations.rows[k];
    return NULL;
}

static void who_is_whom(void) {
    start(12);
    after.reports[1].operation = "renamed";
    after.reports[2].key = "another";
    after.reports[3].operation = "a", after.reports[3].key = "twice"; /* which of two it is cannot be decided */
    after.reports[4].operation = "b", after.reports[4].key = "twice";
    before.reports[3].key = "twice";
    after.reports[5].operation = "op_06", after.reports[6].operation = "op_05"; /* names changed places */
    before.study.skipped = (study_skipped[]){{"monday/reports/another", "is cut short"}};
    before.study.skipped_count = 1;
    after.reports[2].path = "tuesday/reports/another"; /* whether it is new is unknown */
    if (!UNIT_CHECK(compare())) return;
    UNIT_INT(made.operations.row_count, 9);
    UNIT_TEXT(row_of("op_01")->after->operation, "renamed");
    UNIT_CHECK(!row_of("op_02") && !row_of("op_03") && !row_of("op_04"));
    UNIT_TEXT(row_of("op_05")->after->key, "key 5");
    UNIT_INT(made.operations.gone_count, 3);
    UNIT_INT(made.operations.fresh_count, 2);
    UNIT_INT(made.operations.states[DRIFT_SAME], 9);
    comparison_close(&made);
}

static void what_is_refused(void) {
    start(10);
    after.group.regime = "burst";
    UNIT_CHECK(!compare() && st.code == STATUS_INPUT && strstr(st.text, "sustained") && strstr(st.text, "burst"));
    start(10);
    after.group.method = 6;
    UNIT_CHECK(!compare() && st.code == STATUS_INPUT && strstr(st.text, "version 5") && strstr(st.text, "version 6"));
    start(2);
    after.reports[0].key = "x", after.reports[1].key = "y";
    UNIT_CHECK(!compare() && st.code == STATUS_INPUT && strstr(st.text, "monday") && strstr(st.text, "tuesday"));
    start(0);
    UNIT_CHECK(!compare() && st.code == STATUS_INPUT);
}

/* The state is that of the best; what the machine did is told by the defaults. */
static void the_best_counts(void) {
    start(20);
    for (size_t k = 0; k < 12; k++) { /* a kernel that serves most operations is no faster machine */
        after.reports[k].best = "mine";
        after.reports[k].best_us *= 0.7;
    }
    before.reports[19].best = "mine";
    before.reports[19].best_us *= 0.8;
    if (!UNIT_CHECK(compare())) return;
    UNIT_CHECK(made.machine.state == DRIFT_SAME && made.operations.states[DRIFT_FASTER] == 12 &&
               made.operations.states[DRIFT_SLOWER] == 1);
    UNIT_TEXT(made.operations.rows[0].before->operation, "op_19"); /* what is slower comes first */
    UNIT_INT(made.operations.rows[0].baseline.state, DRIFT_SAME);
    UNIT_CHECK(fabs(made.operations.rows[0].lost_us - 2 * 0.2 * 119) < 0.5 && made.operations.rows[1].lost_us < 0);
    UNIT_CHECK(fabs(made.operations.rows[1].lost_us) >=
               fabs(made.operations.rows[2].lost_us)); /* then the larger of what was won */
    UNIT_CHECK(made.model_us[1] < made.model_us[0]);
    comparison_close(&made);
}

/* What wins by 2.1 % one night may win by 1.9 % the next, and then nothing has won. */
static void a_choice_at_its_threshold(void) {
    for (int unsure = 0; unsure < 2; unsure++) {
        start(20);
        after.reports[0].best = "mine";
        after.reports[0].best_us *= 0.978;
        after.reports[0].verdict.borderline = unsure;
        if (!UNIT_CHECK(compare())) return;
        UNIT_INT(row_of("op_00")->best.state, unsure ? DRIFT_AMBIGUOUS : DRIFT_FASTER);
        UNIT_CHECK(row_of("op_00")->chosen_otherwise);
        comparison_close(&made);
    }
}

typedef struct verdict_case {
    const char *approach[2], *priority[2], *status[2];
    double proven_us[2];
    bool borderline;
    double factor; /* of the time after */
    comparison_verdict want;
} verdict_case;

static void what_a_verdict_means(void) {
    static const verdict_case cases[] = {
        {{"NONE", "NONE"}, {"LOW", "LOW"}, {"OK", "OK"}, {0, 0}, false, 1, COMPARISON_KEPT},
        {{"NONE", "CUSTOM_KERNEL"}, {"NONE", "HIGH"}, {"OK", "OK"}, {0, 0}, false, 1, COMPARISON_WORSE},
        {{"NONE", "CUSTOM_KERNEL"}, {"NONE", "HIGH"}, {"OK", "OK"}, {0, 0}, true, 1, COMPARISON_KEPT},
        {{"CUSTOM_KERNEL", "NONE"}, {"HIGH", "NONE"}, {"OK", "OK"}, {0, 0}, false, 1, COMPARISON_BETTER},
        {{"NONE", "LIBRARY_TUNE"}, {"NONE", "HIGH"}, {"OK", "OK"}, {0, 9}, false, 1, COMPARISON_BETTER},
        {{"LIBRARY_TUNE", "NONE"}, {"HIGH", "NONE"}, {"OK", "OK"}, {9, 0}, false, 1, COMPARISON_OTHER},
        {{"LIBRARY_TUNE", "NONE"}, {"HIGH", "NONE"}, {"OK", "OK"}, {9, 0}, false, 1.2, COMPARISON_WORSE},
        {{"LIBRARY_TUNE", "CUSTOM_KERNEL"}, {"LOW", "HIGH"}, {"OK", "OK"}, {9, 20}, false, 1, COMPARISON_OTHER},
        {{"NONE", "UNMEASURED"}, {"NONE", "NONE"}, {"OK", "CRASHED"}, {0, 0}, true, 1, COMPARISON_WORSE},
        {{"NONE", "UNMEASURED"}, {"NONE", "NONE"}, {"OK", "UNSTABLE"}, {0, 0}, false, 1, COMPARISON_OTHER},
        {{"UNMEASURED", "CUTLASS_SWEEP"}, {"NONE", "HIGH"}, {"UNSTABLE", "OK"}, {0, 0}, false, 1, COMPARISON_OTHER},
        {{"CUTLASS_SWEEP", "CUSTOM_KERNEL"}, {"LOW", "LOW"}, {"OK", "OK"}, {0, 0}, false, 1, COMPARISON_OTHER},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const verdict_case *c = &cases[k];
        start(20);
        study_report *sides[] = {&before.reports[7], &after.reports[7]};
        for (int n = 0; n < 2; n++) {
            sides[n]->verdict =
                (verdict){.approach = c->approach[n], .priority = c->priority[n], .proven_gain_us = c->proven_us[n]};
            sides[n]->verdict.borderline = c->borderline;
            sides[n]->status = c->status[n];
            if (strcmp(c->status[n], "OK") != 0) sides[n]->baseline_us = sides[n]->best_us = NAN;
        }
        sides[1]->best_us *= c->factor;
        if (!UNIT_CHECK(compare())) return;
        if (!UNIT_CHECK(row_of("op_07")->verdict == c->want)) printf("case %zu\n", k);
        UNIT_INT(made.operations.verdicts[c->want], c->want == COMPARISON_KEPT ? 20 : 1);
        const comparison_fail fail = {.verdict = true};
        UNIT_CHECK(comparison_fails(row_of("op_07"), fail) == (c->want == COMPARISON_WORSE));
        comparison_close(&made);
    }
}

static void a_figure_that_is_missing(void) {
    start(20);
    after.reports[3].status = "TIMEOUT", after.reports[3].reason_text = "did not answer";
    after.reports[3].baseline_us = after.reports[3].best_us = NAN;
    before.reports[4].status = after.reports[4].status = "SKIPPED";
    before.reports[4].baseline_us = before.reports[4].best_us = after.reports[4].baseline_us = NAN;
    after.reports[4].best_us = NAN;
    if (!UNIT_CHECK(compare())) return;
    const comparison_row *r = row_of("op_03");
    UNIT_CHECK(r->measured && r->best.state == DRIFT_AMBIGUOUS && isnan(r->lost_us) && isnan(r->best.net));
    UNIT_TEXT(r->note, "no figure after: TIMEOUT, did not answer");
    UNIT_CHECK(!row_of("op_04")->measured && made.operations.measured == 19);
    comparison_close(&made);
}

static void what_the_ceilings_say(void) {
    static const struct {
        double times, ceilings;
        comparison_ceilings want;
    } cases[] = {{1.1, 1, COMPARISON_CEILINGS_STORED},
                 {1.1, 1.1, COMPARISON_CEILINGS_ALIKE},
                 {1.1, 1.001, COMPARISON_CEILINGS_APART},
                 {1, 1.001, COMPARISON_CEILINGS_ALIKE},
                 {1.1, NAN, COMPARISON_CEILINGS_UNKNOWN}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        start(20);
        for (size_t n = 0; n < 20; n++) {
            after.reports[n].baseline_us *= cases[k].times, after.reports[n].best_us *= cases[k].times;
            after.reports[n].ceiling_us *= cases[k].ceilings;
            if (n % 2) before.reports[n].bound = after.reports[n].bound = "compute";
        }
        if (!UNIT_CHECK(compare())) return;
        UNIT_INT(made.ceilings_say, cases[k].want);
        UNIT_INT(made.machine.state, cases[k].times > 1 ? DRIFT_SLOWER : DRIFT_SAME);
        UNIT_INT(made.operations.states[DRIFT_SAME], 20);
        UNIT_INT(made.ceiling_count, isnan(cases[k].ceilings) ? 0 : 2);
        const comparison_fail fail = {.slower = true};
        UNIT_INT(comparison_failed_machines(&made, fail), cases[k].times > 1);
        comparison_close(&made);
    }
}

/* A clock that power holds back: what computes is slower, what moves data is not, and nothing is to blame. */
static void a_part_of_the_machine(void) {
    static const struct {
        double compute, memory;
        drift_state machine, part;
        const char *bound;
    } cases[] = {{1.05, 1, DRIFT_SAME, DRIFT_SLOWER, "compute"},
                 {1.05, 0.9, DRIFT_SLOWER, DRIFT_FASTER, "memory"},
                 {1.05, 1.05, DRIFT_SLOWER, DRIFT_SAME, NULL}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        start(60);
        for (size_t n = 0; n < 60; n++) {
            const bool computes = n < 36; /* more than half */
            after.reports[n].bound = computes ? "compute" : "memory";
            const double factor = computes ? cases[k].compute : cases[k].memory;
            after.reports[n].baseline_us *= factor, after.reports[n].best_us *= factor;
        }
        after.reports[5].best_us *= 1.2; /* and one for itself */
        if (!UNIT_CHECK(compare())) return;
        UNIT_INT(made.machine.state, cases[k].machine);
        UNIT_INT(made.part_count, cases[k].bound ? 1 : 0);
        if (cases[k].bound) {
            UNIT_TEXT(made.parts[0].bound, cases[k].bound);
            UNIT_INT(made.parts[0].machine.state, cases[k].part);
        }
        UNIT_INT(made.operations.states[DRIFT_SLOWER], 1);
        UNIT_INT(made.operations.states[DRIFT_SAME], 59);
        UNIT_TEXT(made.operations.rows[0].before->operation, "op_05");
        const comparison_fail fail = {.slower = true};
        UNIT_INT(comparison_failed_machines(&made, fail), 1);
        comparison_close(&made);
    }
}

static void what_differs(void) {
    start(10);
    after.group.device_class = "name=GPU 2;driver=1;lib=2;;=;more=3";
    before.group.driver = "1.5", after.group.driver = "1.6";
    before.group.device_instance = "name=GPU;uuid=1"; /* of one run alone: the classes are compared */
    if (!UNIT_CHECK(compare())) return;
    UNIT_INT(made.difference_count, 3);
    UNIT_TEXT(made.differences[0].what, "driver");
    UNIT_TEXT(made.differences[0].after, "1.6");
    UNIT_TEXT(made.differences[1].before, "GPU");
    UNIT_TEXT(made.differences[2].what, "more");
    UNIT_TEXT(made.differences[2].before, "");
    comparison_close(&made);
}

static study_report *add_fusion(lab *l, const char *id, double parts_us, double best_us) {
    study_report *r = &l->fusions[l->group.fusion_count++];
    *r = report(id, id, parts_us);
    r->fusion = true;
    r->fusion_pattern = "gemm+bias";
    r->baseline = "parts";
    r->best = "mine";
    r->parts_us = parts_us;
    r->best_us = best_us;
    r->speedup = parts_us / best_us;
    r->worth = "yes";
    r->speedup_ci = 0.0042;
    l->group.fusions = l->fusions;
    return r;
}

/* Judged beside the machine that the operations tell of, and in no sum. A sum of times has the parts' for its baseline,
 * whatever the report of the whole calls so. */
static void fusions_too(void) {
    start(30);
    add_fusion(&before, "as before", 100, 60);
    add_fusion(&after, "as before", 110, 66);
    add_fusion(&before, "slower", 100, 60);
    add_fusion(&after, "slower", 110, 80);
    add_fusion(&before, "sum", 100, 60)->baseline_us = 70;
    study_report *sum = add_fusion(&after, "sum", 140, 66);
    sum->baseline_us = 77;
    sum->sum = before.fusions[2].sum = true;
    add_fusion(&before, "gone", 100, 60);
    add_fusion(&before, "never", 100, 60)->worth = add_fusion(&after, "never", 100, 90)->worth = NULL;
    add_fusion(&before, "once", 100, 60);
    add_fusion(&after, "once", 110, 90)->worth = NULL; /* its parts were not measured */
    for (size_t k = 0; k < 30; k++) after.reports[k].baseline_us = after.reports[k].best_us *= 1.1;
    if (!UNIT_CHECK(compare())) return;
    UNIT_CHECK(made.machine.state == DRIFT_SLOWER && fabs(expm1(made.drift.machine) - 0.1) < 0.001);
    UNIT_INT(made.operations.states[DRIFT_SAME], 30);
    UNIT_INT(made.fusions.row_count, 5);
    UNIT_INT(made.fusions.measured, 4);
    UNIT_INT(made.fusions.states[DRIFT_AMBIGUOUS], 1);
    UNIT_TEXT(made.fusions.rows[1].note, "no figure after: its parts have no time");
    UNIT_INT(made.fusions.gone_count, 1);
    UNIT_INT(made.fusions.states[DRIFT_SLOWER], 1);
    UNIT_INT(made.fusions.states[DRIFT_SAME], 2);
    UNIT_TEXT(made.fusions.rows[0].after->operation, "slower");
    UNIT_CHECK(fabs(made.fusions.rows[0].lost_us - 2 * (80 - 66)) < 0.1);
    for (size_t k = 0; k < 4; k++)
        UNIT_INT(made.fusions.rows[k].baseline.state, made.fusions.rows[k].after->sum ? DRIFT_SLOWER : DRIFT_SAME);
    UNIT_CHECK(fabs(made.model_us[1] / made.model_us[0] - 1.1) < 1e-9);
    const comparison_fail fail = {.slower = true};
    UNIT_INT(comparison_tally_of(&made.fusions, fail).failed, 1);
    UNIT_INT(comparison_tally_of(&made.fusions, fail).missing, 1);
    UNIT_INT(comparison_tally_of(&made.operations, fail).failed, 0);
    comparison_close(&made);
}

static void figures(void) {
    UNIT_TEXT(comparison_percent(0.0312).s, "+3.1 %");
    UNIT_TEXT(comparison_percent(-0.0001).s, "+0.0 %");
    UNIT_TEXT(comparison_percent(NAN).s, "-");
    UNIT_TEXT(comparison_span(-12.5).s, "-12.50 us");
    UNIT_TEXT(comparison_span(NAN).s, "-");
    comparison_row r = {.best = {DRIFT_SLOWER, log(1.03), 0.003}};
    UNIT_TEXT(comparison_net(&r).s, "+3.0 ± 0.6 %");
    r.best.net = NAN;
    UNIT_TEXT(comparison_net(&r).s, "-");
}

int main(void) {
    UNIT_RUN(who_is_whom);
    UNIT_RUN(what_is_refused);
    UNIT_RUN(the_best_counts);
    UNIT_RUN(a_choice_at_its_threshold);
    UNIT_RUN(what_a_verdict_means);
    UNIT_RUN(a_figure_that_is_missing);
    UNIT_RUN(what_the_ceilings_say);
    UNIT_RUN(a_part_of_the_machine);
    UNIT_RUN(what_differs);
    UNIT_RUN(fusions_too);
    UNIT_RUN(figures);
    return unit_end();
}
