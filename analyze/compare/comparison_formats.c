/* Owns what the formats of a comparison share. */
#include "analyze/compare/comparison_formats.h"

#include "common/amount.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool comparison_fails_machine(drift_judgement machine, comparison_fail fail) {
    return fail.slower && machine.state == DRIFT_SLOWER;
}

size_t comparison_failed_machines(const comparison *c, comparison_fail fail) {
    size_t failed = comparison_fails_machine(c->machine, fail);
    for (size_t k = 0; k < c->part_count; k++) failed += comparison_fails_machine(c->parts[k].machine, fail);
    return failed;
}

bool comparison_fails(const comparison_row *row, comparison_fail fail) {
    if (!row->measured) return false;
    return (fail.slower && row->best.state == DRIFT_SLOWER) || (fail.verdict && row->verdict == COMPARISON_WORSE);
}

bool comparison_without_figure(const comparison_row *row) {
    return !row->measured && !verdict_is_excused(row->before->reason_code) &&
           !verdict_is_excused(row->after->reason_code);
}

comparison_tally comparison_tally_of(const comparison_list *list, comparison_fail fail) {
    comparison_tally t = {0, 0};
    for (size_t k = 0; k < list->row_count; k++) {
        const bool fails = comparison_fails(&list->rows[k], fail);
        t.failed += fails;
        t.missing += list->rows[k].measured && !fails && !isfinite(list->rows[k].best.net);
    }
    return t;
}

comparison_figure comparison_percent(double change) {
    comparison_figure f = {"-"};
    if (!isfinite(change)) return f;
    const double percent = fabs(100 * change) < 0.05 ? 0 : 100 * change;
    snprintf(f.s, sizeof f.s, fabs(percent) < 1e5 ? "%+.1f %%" : "%+.3g %%", percent);
    return f;
}

comparison_figure comparison_span(double us) {
    comparison_figure f = {"-"};
    if (isfinite(us)) snprintf(f.s, sizeof f.s, "%c%.30s", us < 0 ? '-' : '+', amount_time(fabs(us)).s);
    return f;
}

comparison_figure comparison_net(const comparison_row *row) {
    comparison_figure f = {"-"};
    const double net = 100 * expm1(row->best.net), within = 196 * row->best.sd;
    if (isfinite(net) && isfinite(within))
        snprintf(f.s, sizeof f.s, fabs(net) < 1e4 && within < 1e4 ? "%+.1f ± %.1f %%" : "%+.2g ± %.1g %%", net, within);
    return f;
}

const char *comparison_found(const comparison *c, char *text, size_t room) {
    const double least = drift_detectable(&c->drift);
    if (!(least <= 1))
        snprintf(text, room, "Too few operations are known well enough to find a slowdown of one");
    else
        snprintf(text, room, "A slowdown of %.1f %% of one operation is found in 99 comparisons of 100%s", 100 * least,
                 c->drift.learned ? "" : "; there are too few operations to learn the ordinary noise");
    return text;
}

const char *comparison_verdict_text(const comparison_row *row, char *text, size_t room) {
    const verdict *b = &row->before->verdict, *a = &row->after->verdict;
    const bool approach = strcmp(b->approach, a->approach) != 0, priority = strcmp(b->priority, a->priority) != 0;
    snprintf(text, room, "verdict %s: %s%s%s%s%s%s%s%s%s", comparison_verdict_names[row->verdict],
             approach ? "approach " : "", approach ? b->approach : "", approach ? " to " : "",
             approach ? a->approach : "", approach && priority ? ", " : "", priority ? "priority " : "",
             priority ? b->priority : "", priority ? " to " : "", priority ? a->priority : "");
    return text;
}
