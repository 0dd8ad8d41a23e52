/* Explanations: every rule has something to say of what it looked at, the times that are named would really change the
 * verdict, and whatever a report holds, lines come out of it. */
#include "analyze/explain/explain.h"
#include "common/amount.h"
#include "tests/unit/common/verdict_fixture.h"

#include <stdlib.h>

static guard g;
static arena a;
static const char *planned; /* plan.json; NULL: there is none */

/* A report of what was judged, as a study would hold it. */
static study_report report_of(const verdict_facts *f) {
    return (study_report){.path = "-",
                          .operation = "op",
                          .device = f->device,
                          .op = f->op,
                          .pattern = f->pattern,
                          .precision = "fp16",
                          .rank = 3,
                          .shape = {f->shape[0], f->shape[1], f->shape[2]},
                          .count = (int64_t)f->count,
                          .status = f->measured ? "OK" : "UNSUPPORTED",
                          .reason_code = f->no_work    ? "no_work"
                                         : f->measured ? NULL
                                                       : "type",
                          .reason_text = f->measured ? NULL : "not that type",
                          .baseline = "lib",
                          .baseline_variant = "v=0",
                          .best = "lib",
                          .best_variant = f->ratio > 0 ? "v=1" : "v=0",
                          .baseline_us = f->measured ? f->baseline_us : NAN,
                          .baseline_ci = f->baseline_ci,
                          .best_us = f->ratio > 0 ? f->ratio * f->baseline_us : f->baseline_us,
                          .best_ci = f->best_ci,
                          .ratio = f->ratio,
                          .ratio_ci = f->ratio_ci,
                          .rival_ratio = f->rival_ratio,
                          .rival_ratio_ci = f->rival_ratio_ci,
                          .flops = 1e11,
                          .bytes_read = 1e8,
                          .ceiling_us = f->ceiling_us,
                          .ceiling_ci = f->ceiling_ci,
                          .launch_us = f->launch_us,
                          .peak_tflops = 1000,
                          .bound = f->bound,
                          .fusion = f->fusion,
                          .verdict = judge(f)};
}

/* Where lines are broken does not matter here. */
static void flatten(char *text) {
    char *to = text;
    for (const char *s = text; *s; s++)
        if ((*s != ' ' && *s != '\n') || (to > text && to[-1] != ' ')) *to++ = *s == '\n' ? ' ' : *s;
    *to = 0;
}

static const char *explained(const verdict_facts *f, const char *json) {
    static char text[1 << 16];
    const study_report r = report_of(f);
    const study_group group = {
        .device = "GPU", .device_class = "c", .regime = "r", .model = "m", .model_us = f->model_us};
    json_t *report = json_loads(json, 0, NULL), *plan = planned ? json_loads(planned, 0, NULL) : NULL;
    UNIT_CHECK(report != NULL);
    FILE *out = fmemopen(text, sizeof text, "w");
    guard_init(&g);
    arena_init(&a, &g, (size_t)64 << 20);
    const explain e = {terminal_of(out, 100), &a, &group, &r, &verdict_defaults, report, NULL, plan, 0};
    if (guard_enter(&g))
        explain_write(&e);
    else
        UNIT_CHECK(!"it failed");
    fclose(out);
    arena_free(&a);
    json_decref(report);
    json_decref(plan);
    flatten(text);
    return text;
}

static bool says(const char *text, const char *what) {
    if (strstr(text, what)) return true;
    printf("does not say \"%s\":\n%s\n", what, text);
    return false;
}

/* Rules up to the one that applied stand there with something behind each name. */
static void every_rule_says_something(void) {
    verdict_facts f = product(50);
    f.op = "norm", f.model_us = 1e6;
    for (int k = 0; k < 2; k++) {
        const char *text = explained(&f, "{\"candidates\": []}");
        for (int rule = 0; rule <= judge(&f).rule; rule++) {
            char line[64];
            const int n =
                snprintf(line, sizeof line, "%s %s ", rule < judge(&f).rule ? "no" : "yes", verdict_rule(rule));
            const char *at = strstr(text, line);
            UNIT_CHECK(at && strncmp(at + n, "no ", 3) != 0 && strncmp(at + n, "yes ", 4) != 0);
            UNIT_CHECK(at && strncmp(at + n, "=> ", 3) != 0);
        }
        UNIT_INT(strcmp(verdict_rule(judge(&f).rule), "anything else"), 0);
        f.ceiling_us = 80; /* another one that reaches the last rule */
    }
    UNIT_CHECK(says(explained(&f, "{}"), "yes anything else"));
}

/* Of this device and regime alone; its operation is "op". */
static void a_fusion_says_whether_the_plan_has_it(void) {
#define PLAN(class, list, groups, out)                                                                                 \
    "{\"device\": {\"class\": \"" class "\"}, \"regime\": \"r\", \"implementations\": [{\"operation\": \"x\"}" list    \
                                        "], \"groups\": [" groups "], \"left_out\": [" out "]}"
    static const struct {
        const char *plan, *says;
    } cases[] = {
        {PLAN("c", ", {\"fusion\": \"op\"}", "[1, 0, 1], [0, 2], [1, 3, 4]", ""), "the plan does it at 2 places"},
        {PLAN("c", ", {\"fusion\": \"op\"}", "[1, 0, 1]", ""), "the plan does it at 1 place "},
        {PLAN("c", ", {\"fusion\": \"other\"}", "[1, 0, 1]", ""), "the plan does without it: it is not proven"},
        {PLAN("c", "", "", "{\"fusion\": \"op\", \"text\": \"it came out wrong\"}"),
         "the plan does without it: it came out wrong"},
        {PLAN("other", ", {\"fusion\": \"op\"}", "[1, 0, 1]", ""), NULL},
        {"[]", NULL},
        {NULL, NULL},
    };
    verdict_facts f = product(50);
    f.fusion = true;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        planned = cases[k].plan;
        const char *text = explained(&f, "{}");
        UNIT_CHECK(cases[k].says ? says(text, cases[k].says) : !strstr(text, "the plan"));
    }
    planned = "{\"device\": {\"class\": \"c\"}, \"regime\": \"r\", \"taken\": \"2026-11-02T00:00:00Z\"}";
    UNIT_CHECK(says(explained(&f, "{\"taken\": \"2026-11-03T00:00:00Z\"}"), "plan.json is older than this report"));
    UNIT_CHECK(!strstr(explained(&f, "{\"taken\": \"2026-11-01T00:00:00Z\"}"), "older"));
    f.fusion = false;
    planned = cases[0].plan;
    UNIT_CHECK(!strstr(explained(&f, "{}"), "the plan"));
    planned = NULL;
#undef PLAN
}

static double time_behind(const char *text, const char *what) {
    const char *at = strstr(text, what);
    return at ? strtod(at + strlen(what), NULL) : NAN;
}

/* The advice, once followed, gives what it promises. */
static void the_times_are_the_thresholds(void) {
    verdict_facts f = product(20);
    f.model_us = 1000;
    const char *text = explained(&f, "{}");
    const double medium = 90;
    UNIT_CHECK(says(text, "A kernel surely below 98.00 us (1020 TFLOP/s, 2.0 % less"));
    UNIT_CHECK(says(text, "A kernel surely below 90.00 us"));
    f.ratio = (medium - 0.01) / 100;
    UNIT_TEXT(judge(&f).priority, "MEDIUM");
    f.ratio = (medium + 0.01) / 100, f.ceiling_us = 98; /* without potential in the way */
    UNIT_TEXT(judge(&f).priority, "LOW");
    f = product(50);
    f.model_us = 1000, f.device = "cpu";
    const double baseline = time_behind(explained(&f, "{}"), "That takes a baseline of ");
    UNIT_CHECK(baseline > 50);
    f.baseline_us = baseline - 0.01;
    UNIT_TEXT(verdict_rule(judge(&f).rule), "at the ceiling");
    f.baseline_us = baseline + 0.01;
    UNIT_CHECK(strcmp(verdict_rule(judge(&f).rule), "at the ceiling") != 0);
}

static void candidates_are_told(void) {
    static const char rows[] =
        "{\"rival\": {\"name\": \"other\", \"variant\": \"\"}, \"variants_left_out\": 7, \"candidates\": ["
        "{\"name\": \"lib\", \"variant\": \"v=0\", \"status\": \"OK\", \"time_us\": {\"median\": 100, \"rel_ci95\": "
        "0.01}},"
        "{\"name\": \"other\", \"variant\": \"\", \"status\": \"OK\", \"time_us\": {\"median\": 99}, \"ratio\": 0.99, "
        "\"ratio_ci\": 0.001, \"tflops\": 520.5, \"tbps\": 0.25, \"quality\": \"wide\"},"
        "{\"name\": \"slow\", \"variant\": \"\", \"status\": \"OK\", \"time_us\": {\"median\": 200}},"
        "{\"name\": \"swaying\", \"status\": \"OK\", \"time_us\": {\"median\": 300, \"rel_ci95\": 1.5}, \"ratio\": 3, "
        "\"ratio_ci\": 1.23},"
        "{\"name\": \"no\", \"status\": \"WRONG\", \"reason\": {\"code\": \"samples\", \"text\": \"they differ\"}},"
        "{\"name\": \"old\", \"status\": \"UNSTABLE\", \"reason\": {\"code\": \"interval\", \"text\": \"wide\"}},"
        "{\"name\": \"bad\", \"status\": \"WRONG\", \"reason\": {\"code\": \"samples\", \"text\": \"nor here\"}}]}";
    verdict_facts f = product(50);
    f.rival_ratio = 0.99, f.rival_ratio_ci = 0.001;
    const char *text = explained(&f, rows);
    UNIT_CHECK(says(text, "Candidates: 7, of which 4 were timed"));
    UNIT_CHECK(says(text, "the default, and chosen: nothing is proven to be faster"));
    UNIT_CHECK(says(text, "candidate time, us interval TFLOP/s TB/s ratio quality other 99.00 ± ? 520.5 0.250 0.990 ± "
                          "0.1 % wide the nearest rival lib v=0 100.00 ± 1.0 %"));
    UNIT_CHECK(says(text, "slow 200.00 ± ?"));
    UNIT_CHECK(says(text, "swaying 300.00 ± 150 % - - 3.000 ± 123 %"));
    UNIT_CHECK(says(text, "other ran 1.010 ± 0.001 times faster than lib v=0 swaying: not known well enough (± 123 %) "
                          "1 more: known from one pass alone, which proves nothing"));
    UNIT_CHECK(says(text, "WRONG samples: 2 no they differ bad nor here SKIPPED interval: 1 old wide"));
    UNIT_CHECK(says(text, "7 more variants were not tried."));
    UNIT_CHECK(says(text, "other, would need 1.0 % less time"));
    UNIT_CHECK(says(text, "other takes 0.990 ± 0.1 % of the baseline's time"));
    f.rival_ratio_ci = 1.23;
    UNIT_CHECK(says(explained(&f, rows), "other takes 0.990 ± 123 % of the baseline's time"));
    f.rival_ratio_ci = NAN;
    text = explained(&f, rows);
    UNIT_CHECK(says(text, "other takes 0.990 (in one pass) of the baseline's time"));
    UNIT_CHECK(strstr(text, "other  ") < strstr(text, "lib v=0  ") || strstr(text, "Candidates") > strstr(text, "lib"));
}

/* Of the baseline what it took; pass 3 was slow (bit 3), and the first chose the best. */
static void passes_that_do_not_count_are_marked(void) {
    verdict_facts f = product(50);
    f.ratio = 0.9, f.ratio_ci = 0.01;
    const char *text = explained(
        &f,
        "{\"slow_passes\": 8, \"candidates\": ["
        "{\"name\": \"lib\", \"variant\": \"v=0\", \"status\": \"OK\", \"time_us\": {\"median\": 100}, "
        "\"interval_from\": \"3 passes\", \"passes\": [{\"pass\": 1, \"time_us\": 99, \"ratio\": 1}, "
        "{\"pass\": 2, \"time_us\": 101, \"ratio\": 1}, {\"pass\": 3, \"time_us\": 140, \"ratio\": 1}, "
        "{\"pass\": 4, \"time_us\": 100, \"ratio\": 1}]},"
        "{\"name\": \"lib\", \"variant\": \"v=1\", \"status\": \"OK\", \"time_us\": {\"median\": 90}, \"ratio\": 0.9, "
        "\"ratio_ci\": 0.01, \"interval_from\": \"2 passes\", \"passes\": [{\"pass\": 1, \"ratio\": 0.88}, "
        "{\"pass\": 2, \"ratio\": 0.9}, {\"pass\": 3, \"ratio\": 0.95}, {\"pass\": 4, \"ratio\": 0.91}]}]}");
    UNIT_CHECK(says(text, "its interval from 3 passes: 99.00 us, 101.0 us, (140.0 us), 100.0 us; those in brackets do "
                          "not count."));
    UNIT_CHECK(says(text, "its interval from 2 passes: (0.880), 0.900, (0.950), 0.910 of the baseline's time; those in "
                          "brackets do not count."));
}

/* Members of other types than they should have, absurd numbers: it says what it can. */
static void nothing_breaks_it(void) {
    static const char *const reports[] = {
        "{\"candidates\": 7, \"rival\": [], \"probe\": {\"tflops\": 1e300, \"stored_tflops\": 1e-300}, \"taken\": {}}",
        "{\"candidates\": [1, null, \"x\", [], {}, {\"name\": 3, \"time_us\": 4, \"status\": \"OK\"}], \"rival\": {}}",
        "{\"peak_shape\": [1, -2, \"x\"], \"peak_how\": 9, \"specials\": -1, \"resident_bytes\": 1e308}",
        "{\"rival\": {\"name\": \"\\u001b[2J\", \"variant\": \"\\n\\n\"}, \"device\": {\"instance\": \"x\"}}"};
    static const double odd[] = {0, -1, NAN, INFINITY, 1e300, 1e-300};
    for (size_t k = 0; k < sizeof reports / sizeof reports[0]; k++) {
        for (size_t n = 0; n < sizeof odd / sizeof odd[0]; n++) {
            verdict_facts f = product(50);
            double *const figures[] = {&f.ceiling_us, &f.ceiling_ci, &f.baseline_ci, &f.ratio,      &f.ratio_ci,
                                       &f.launch_us,  &f.model_us,   &f.rival_ratio, &f.baseline_us};
            for (size_t which = 0; which < sizeof figures / sizeof figures[0]; which++) {
                const double kept = *figures[which];
                *figures[which] = odd[n];
                const char *text = explained(&f, reports[k]);
                UNIT_CHECK(strstr(text, "What would change it") != NULL);
                UNIT_CHECK(!strchr(text, '\033'));
                *figures[which] = kept;
            }
        }
    }
}

static void figures_as_text(void) {
    UNIT_TEXT(amount_time(18.923).s, "18.92 us");
    UNIT_TEXT(amount_time(999.96).s, "1.000 ms");
    UNIT_TEXT(amount_bytes(999).s, "999 B");
    UNIT_TEXT(amount_bytes(999.6).s, "1.00 KB");
    UNIT_TEXT(amount_bytes(13.48e9).s, "13.5 GB");
    UNIT_TEXT(amount_bytes(310e6).s, "310 MB");
    UNIT_TEXT(amount_bytes(9.3e18).s, "9.30 EB");
    UNIT_TEXT(amount_time(30195).s, "30.20 ms");
    UNIT_TEXT(amount_time(2.5e6).s, "2.500 s");
    UNIT_TEXT(amount_time(1e300).s, "1e+294 s");
    UNIT_TEXT(amount_time(NAN).s, "-");
    UNIT_TEXT(amount_percent(0.0344).s, "3.4 %");
    UNIT_TEXT(amount_percent(0).s, "0.0 %");
    UNIT_TEXT(amount_percent(0.0004).s, "< 0.1 %");
    UNIT_TEXT(amount_percent(-0.5).s, "-50.0 %");
    UNIT_TEXT(amount_percent(INFINITY).s, "-");
    UNIT_TEXT(amount_within(0.0061).s, "± 0.6 %");
    UNIT_TEXT(amount_within(0.0004).s, "± 0.04 %");
    UNIT_TEXT(amount_within(NAN).s, "± ?");
}

int main(void) {
    UNIT_RUN(every_rule_says_something);
    UNIT_RUN(a_fusion_says_whether_the_plan_has_it);
    UNIT_RUN(the_times_are_the_thresholds);
    UNIT_RUN(candidates_are_told);
    UNIT_RUN(passes_that_do_not_count_are_marked);
    UNIT_RUN(nothing_breaks_it);
    UNIT_RUN(figures_as_text);
    return unit_end();
}
