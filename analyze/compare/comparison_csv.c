/* A comparison for spreadsheets: one line per matched operation with a figure, the worst first,
 * then the same of fusions; RFC 4180. */
#include "analyze/compare/comparison_formats.h"

#include "analyze/write/escape.h"

#include <inttypes.h>
#include <math.h>

static const char head[] =
    "operation,op,count,state,baseline_state,verdict,failed,change,baseline_change,net_change,net_sd,lost_us,"
    "before_status,after_status,before_best,after_best,before_best_variant,after_best_variant,before_best_us,"
    "after_best_us,before_best_ci,after_best_ci,before_baseline_us,after_baseline_us,before_baseline_ci,"
    "after_baseline_ci,before_approach,after_approach,before_priority,after_priority,note,fusion\r\n";

static void text(FILE *out, const char *value) {
    fputc(',', out);
    escape_print(out, ESCAPE_CSV, value);
}

static void real(FILE *out, double x) {
    fputc(',', out);
    if (isfinite(x)) fprintf(out, "%.9g", x);
}

static void write_row(const comparison_row *r, comparison_fail fail, FILE *out) {
    const study_report *b = r->before, *a = r->after;
    escape_print(out, ESCAPE_CSV, a->operation);
    text(out, a->op);
    fprintf(out, ",%" PRId64, a->count);
    const char *const words[] = {drift_state_name(r->best.state), drift_state_name(r->baseline.state),
                                 comparison_verdict_names[r->verdict], comparison_fails(r, fail) ? "true" : "false"};
    for (size_t n = 0; n < sizeof words / sizeof words[0]; n++) text(out, words[n]);
    const double changes[] = {r->change, r->baseline_change, expm1(r->best.net), r->best.sd, r->lost_us};
    for (size_t n = 0; n < sizeof changes / sizeof changes[0]; n++) real(out, changes[n]);
    const char *const names[] = {b->status, a->status, b->best, a->best, b->best_variant, a->best_variant};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) text(out, names[n]);
    const double times[] = {b->best_us,     a->best_us,     b->best_ci,     a->best_ci,
                            b->baseline_us, a->baseline_us, b->baseline_ci, a->baseline_ci};
    for (size_t n = 0; n < sizeof times / sizeof times[0]; n++) real(out, times[n]);
    const char *const verdicts[] = {
        b->verdict.approach, a->verdict.approach, b->verdict.priority, a->verdict.priority, r->note, a->fusion_pattern};
    for (size_t n = 0; n < sizeof verdicts / sizeof verdicts[0]; n++) text(out, verdicts[n]);
    fputs("\r\n", out);
}

bool comparison_csv(const comparison *c, const comparison_shown *shown, FILE *out, status *st) {
    const comparison_list *const lists[] = {&c->operations, &c->fusions};
    (void)st;
    fputs(head, out);
    for (int n = 0; n < 2; n++)
        for (size_t k = 0; k < lists[n]->row_count; k++)
            if (lists[n]->rows[k].measured) write_row(&lists[n]->rows[k], shown->fail, out);
    return true;
}
