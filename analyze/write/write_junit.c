/* JUnit XML, which CI systems show: a suite per model, device and regime, a test per operation. It failed where there
 * is no baseline or where a candidate's row is bad, was skipped where it was not measured, and had an error where a
 * file is no report. That an operation could be faster is no failure. */
#include "analyze/write/escape.h"
#include "analyze/write/formats.h"
#include "common/amount.h"
#include "common/json.h"
#include "common/plain.h"

#include <inttypes.h>
#include <math.h>

static escape_line cut(const char *text) { return escape_text(ESCAPE_MARKUP, text, ESCAPE_MOST); }

/* ---- what a test says ---- */

typedef enum test_result { PASSED, SKIPPED, FAILED } test_result;

static test_result result_of(const summary_row *row) {
    const study_report *r = row->report;
    if (r->bad_rows > 0) return FAILED;
    if (plain_same(r->status, "SKIPPED")) return SKIPPED;
    return plain_same(r->status, "OK") ? PASSED : FAILED;
}

static bool is_bad(const char *said) {
    return !plain_same(said, "OK") && !plain_same(said, "SKIPPED") && !plain_same(said, "UNSUPPORTED");
}

/* The bad rows, read again from the report: one line each. */
static void put_bad_rows(FILE *out, const study_report *r) {
    status st = {0};
    json_t *report = study_detail(r, &st);
    const json_t *rows = json_object_get(report, "candidates");
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *row = json_array_get(rows, k), *reason = json_object_get(row, "reason");
        const char *said = json_get_text(row, "status");
        const char *const parts[] = {json_get_text(row, "name"), json_get_text(row, "variant"), said,
                                     json_get_text(reason, "code"), json_get_text(reason, "text")};
        if (!*said || !is_bad(said)) continue;
        for (size_t n = 0; n < sizeof parts / sizeof parts[0]; n++) {
            if (!*parts[n]) continue;
            fprintf(out, "%s%s", cut(parts[n]).s, n + 1 < sizeof parts / sizeof parts[0] ? " " : "");
        }
        fputc('\n', out);
    }
    if (!report) fputs(cut(st.text).s, out);
    json_decref(report);
}

static void put_failure(FILE *out, const study_report *r) {
    if (plain_same(r->status, "OK"))
        fprintf(out, "      <failure message=\"%d of %d candidates failed\" type=\"candidates\">", r->bad_rows,
                r->candidates);
    else
        fprintf(out, "      <failure message=\"no baseline: %s\" type=\"%s\">",
                cut(r->reason_text ? r->reason_text : r->status).s, cut(r->reason_code ? r->reason_code : r->status).s);
    fprintf(out, "%s\n", cut(r->verdict.recommendation).s);
    if (r->bad_rows > 0) put_bad_rows(out, r);
    fputs("</failure>\n", out);
}

static void put_test(FILE *out, const summary_row *row) {
    const study_report *r = row->report;
    const test_result result = result_of(row);
    char layers[STUDY_LAYERS];
    fprintf(out, "    <testcase classname=\"%s\" name=\"", cut(r->op).s);
    escape_print(out, ESCAPE_MARKUP, r->operation); /* whole: two that begin alike are two tests */
    fprintf(out, "\" time=\"%.9f\">\n", isfinite(row->weight_us) ? 1e-6 * row->weight_us : 0);
    if (result == FAILED) put_failure(out, r);
    if (result == SKIPPED)
        fprintf(out, "      <skipped message=\"%s\"/>\n", cut(r->reason_text ? r->reason_text : r->status).s);
    fprintf(out, "      <system-out>%s %s: %s%s%s</system-out>\n    </testcase>\n", cut(r->verdict.priority).s,
            cut(r->verdict.approach).s, cut(r->verdict.recommendation).s, r->layer_count > 0 ? "\nlayers: " : "",
            cut(study_layers(r, layers)).s);
}

/* ---- suites ---- */

typedef struct suite_sum {
    size_t tests, failed, skipped, errors;
    double time_s;
} suite_sum;

static suite_sum sum_of(const summary_group *g) {
    suite_sum sum = {.tests = g->row_count};
    for (size_t k = 0; k < g->row_count; k++) {
        const test_result result = result_of(&g->rows[k]);
        sum.failed += result == FAILED;
        sum.skipped += result == SKIPPED;
        sum.time_s += isfinite(g->rows[k].weight_us) ? 1e-6 * g->rows[k].weight_us : 0;
    }
    return sum;
}

/* The schema that Jenkins checks by: of the root no number of the skipped ones, of seconds three decimals. */
static void put_sum(FILE *out, const suite_sum *sum, bool root) {
    fprintf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" time=\"%.3f\"", sum->tests, sum->failed, sum->errors,
            sum->time_s);
    if (!root) fprintf(out, " skipped=\"%zu\"", sum->skipped);
    fputs(">\n", out);
}

static void put_property(FILE *out, const char *name, const char *value) {
    if (!value) return;
    fprintf(out, "      <property name=\"%s\" value=\"", name);
    escape_print(out, ESCAPE_MARKUP, value);
    fputs("\"/>\n", out);
}

static void put_suite(FILE *out, const summary_group *to) {
    const study_group *g = to->group;
    const suite_sum sum = sum_of(to);
    char method[24], model_us[32], model_ci[32];
    snprintf(method, sizeof method, "%" PRId64, g->method);
    snprintf(model_us, sizeof model_us, "%.9g", g->model_us);
    snprintf(model_ci, sizeof model_ci, "%.4g", g->model_ci);
    fprintf(out, "  <testsuite name=\"%s on %s, %s\"", cut(g->model ? g->model : "operations").s,
            cut(g->device ? g->device : "an unknown device").s, cut(g->regime).s);
    put_sum(out, &sum, false);
    fputs("    <properties>\n", out);
    const struct {
        const char *name, *value;
    } properties[] = {{"partial", g->partial.text},
                      {"model", g->model},
                      {"device", g->device},
                      {"device_class", g->device_class},
                      {"device_instance", g->device_instance},
                      {"driver", g->driver},
                      {"regime", g->regime},
                      {"method", method},
                      {"model_us", isfinite(g->model_us) ? model_us : NULL},
                      {"model_ci", isfinite(g->model_us) && verdict_known(g->model_ci) ? model_ci : NULL}};
    for (size_t k = 0; k < sizeof properties / sizeof properties[0]; k++)
        put_property(out, properties[k].name, properties[k].value);
    fputs("    </properties>\n", out);
    for (size_t k = 0; k < to->row_count; k++) put_test(out, &to->rows[k]);
    fputs("  </testsuite>\n", out);
}

/* Files that are no reports. */
static void put_skipped_files(FILE *out, const study *s) {
    const suite_sum sum = {.tests = s->skipped_count, .errors = s->skipped_count};
    if (s->skipped_count == 0) return;
    fputs("  <testsuite name=\"reports that cannot be read\"", out);
    put_sum(out, &sum, false);
    for (size_t k = 0; k < s->skipped_count; k++)
        fprintf(out,
                "    <testcase classname=\"report\" name=\"%s\" time=\"0\">\n"
                "      <error type=\"input\" message=\"%s\"/>\n    </testcase>\n",
                cut(s->skipped[k].path).s, cut(s->skipped[k].why).s);
    fputs("  </testsuite>\n", out);
}

bool write_junit(const summary *m, FILE *out, status *st) {
    (void)st;
    suite_sum all = {.tests = m->study->skipped_count, .errors = m->study->skipped_count};
    for (size_t k = 0; k < m->group_count; k++) {
        const suite_sum sum = sum_of(&m->groups[k]);
        all.tests += sum.tests;
        all.failed += sum.failed;
        all.time_s += sum.time_s;
    }
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"analyze\"", out);
    put_sum(out, &all, true);
    for (size_t k = 0; k < m->group_count; k++) put_suite(out, &m->groups[k]);
    put_skipped_files(out, m->study);
    fputs("</testsuites>\n", out);
    return true;
}
