/* A comparison for CI systems: one test per operation and per fusion, and one for the machine. What --fail-on names is
 * a failure, and nothing else is; an operation without a figure in one of the runs was skipped, and a file that is no
 * report is an error. */
#include "analyze/compare/comparison_formats.h"

#include "analyze/write/escape.h"
#include "common/amount.h"

#include <math.h>

static escape_line cut(const char *text) { return escape_text(ESCAPE_MARKUP, text, ESCAPE_MOST); }

static void begin(FILE *out, const char *class, const char *name, double us) {
    fprintf(out, "    <testcase classname=\"%s\" name=\"", cut(class).s);
    escape_print(out, ESCAPE_MARKUP, name); /* whole: two that begin alike are two tests */
    fprintf(out, "\" time=\"%.9f\">\n", isfinite(us) ? 1e-6 * us : 0);
}

/* Per run of the model; not-a-number where it is unknown. */
static double run_us(const comparison_row *r) { return (double)r->after->count * r->after->best_us; }

static double all_us(const comparison_list *list) {
    double us = 0;
    for (size_t k = 0; k < list->row_count; k++)
        if (list->rows[k].measured && isfinite(run_us(&list->rows[k]))) us += run_us(&list->rows[k]);
    return us;
}

static void write_machine(const char *name, const drift *d, drift_judgement machine, comparison_fail fail, FILE *out) {
    begin(out, "machine", name, NAN);
    if (comparison_fails_machine(machine, fail))
        fprintf(out, "      <failure type=\"slower\" message=\"%s of the time of all these operations\"/>\n",
                comparison_percent(expm1(d->machine)).s);
    fprintf(out, "      <system-out>%s", comparison_machine_text(d, machine.state));
    if (d->machine_known) fprintf(out, ": %s of the time", comparison_percent(expm1(d->machine)).s);
    fputs("</system-out>\n    </testcase>\n", out);
}

static void write_machines(const comparison *c, comparison_fail fail, FILE *out) {
    char name[64];
    write_machine("the machine as a whole", &c->drift, c->machine, fail, out);
    for (size_t k = 0; k < c->part_count; k++) {
        snprintf(name, sizeof name, "all that %s bounds", c->parts[k].bound);
        write_machine(name, &c->parts[k].drift, c->parts[k].machine, fail, out);
    }
}

static void write_figures(const comparison_row *r, FILE *out) {
    fprintf(out, "%s: %s net of the machine, %s", drift_state_name(r->best.state), comparison_net(r).s,
            amount_time(r->before->best_us).s);
    fprintf(out, " before, %s after", amount_time(r->after->best_us).s);
}

static void write_row(const comparison_row *r, comparison_fail fail, FILE *out) {
    char text[128];
    begin(out, r->after->fusion ? "fusion" : r->after->op, r->after->operation, run_us(r));
    if (comparison_fails(r, fail)) {
        fprintf(out, "      <failure type=\"%s\" message=\"",
                fail.slower && r->best.state == DRIFT_SLOWER ? "slower" : "verdict");
        write_figures(r, out);
        fputs("\">", out);
        if (r->verdict != COMPARISON_KEPT) fprintf(out, "%s. ", comparison_verdict_text(r, text, sizeof text));
        fprintf(out, "%s</failure>\n", cut(r->note).s);
    } else if (!isfinite(r->best.net)) {
        fprintf(out, "      <skipped message=\"%s\"/>\n", cut(r->note).s);
    }
    fputs("      <system-out>", out);
    write_figures(r, out);
    fputs("</system-out>\n    </testcase>\n", out);
}

/* Files that are no reports. */
static void write_skipped_file(const study_skipped *file, FILE *out) {
    begin(out, "report", file->path, NAN);
    fprintf(out, "      <error type=\"input\" message=\"%s\"/>\n    </testcase>\n", cut(file->why).s);
}

bool comparison_junit(const comparison *c, const comparison_shown *shown, FILE *out, status *st) {
    (void)st;
    const comparison_list *const lists[] = {&c->operations, &c->fusions};
    size_t tests = 1 + c->part_count + c->skipped_count, failed = comparison_failed_machines(c, shown->fail),
           skipped = 0;
    double us = 0;
    for (int n = 0; n < 2; n++) {
        const comparison_tally t = comparison_tally_of(lists[n], shown->fail);
        tests += lists[n]->measured;
        failed += t.failed;
        skipped += t.missing;
        us += all_us(lists[n]);
    }
    char sum[128];
    snprintf(sum, sizeof sum, "tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" time=\"%.3f\"", tests, failed,
             c->skipped_count, 1e-6 * us);
    fprintf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"analyze compare\" %s>\n", sum);
    fprintf(out, "  <testsuite name=\"%s on %s, %s\" %s skipped=\"%zu\">\n", cut(c->after->model).s,
            cut(c->after->device).s, cut(c->after->regime).s, sum, skipped); /* which the root has no place for */
    write_machines(c, shown->fail, out);
    for (int n = 0; n < 2; n++)
        for (size_t k = 0; k < lists[n]->row_count; k++)
            if (lists[n]->rows[k].measured) write_row(&lists[n]->rows[k], shown->fail, out);
    for (size_t k = 0; k < c->skipped_count; k++) write_skipped_file(&c->skipped[k], out);
    fputs("  </testsuite>\n</testsuites>\n", out);
    return true;
}
