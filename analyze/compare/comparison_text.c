/* A comparison for a terminal: the machine first, then what changed, worst first. At most 100 columns. */
#include "analyze/compare/comparison_formats.h"

#include "analyze/write/escape.h"
#include "common/amount.h"

#include <math.h>
#include <string.h>

enum { NAME = 42, NOTE = 84, VALUE = 36, WHERE = 60 };

static escape_line cut(const char *text, size_t most) { return escape_text(ESCAPE_TERMINAL, text, most); }

static const char *plural(size_t n) { return n == 1 ? "" : "s"; }

static void write_runs(const comparison *c, FILE *out) {
    static const char *const names[] = {"before", "after"};
    for (int k = 0; k < 2; k++)
        fprintf(out, "%-10s  %s  %s\n", names[k], cut(c->folders[k], WHERE).s,
                cut((k ? c->after : c->before)->device, VALUE).s);
    fprintf(out, "regime      %s\n", cut(c->after->regime, WHERE).s);
    for (size_t k = 0; k < c->difference_count; k++) {
        const comparison_difference *d = &c->differences[k];
        fprintf(out, "%s%s: %s -> %s\n", k == 0 ? "differs     " : "            ", cut(d->what, 20).s,
                cut(*d->before ? d->before : "not given", VALUE - 6).s,
                cut(*d->after ? d->after : "not given", VALUE - 6).s);
    }
}

static void write_ceilings(const comparison *c, FILE *out) {
    const bool moved = c->machine.state == DRIFT_SLOWER || c->machine.state == DRIFT_FASTER;
    if (moved && *comparison_ceilings_text(c->ceilings_say))
        fprintf(out, "            %s\n", comparison_ceilings_text(c->ceilings_say));
    if (c->ceilings_say == COMPARISON_CEILINGS_STORED) return;
    for (size_t k = 0; k < c->ceiling_count && k < 8; k++) {
        const comparison_ceiling *kind = &c->ceilings[k];
        fprintf(out, "%s%s %s: %s of the time (%zu operation%s)\n", k == 0 ? "ceilings    " : "            ",
                cut(*kind->bound ? kind->bound : "unknown", 10).s, cut(kind->precision, 10).s,
                comparison_percent(kind->change).s, kind->operations, plural(kind->operations));
    }
}

static void write_change(const drift *d, drift_judgement machine, FILE *out) {
    fputs(comparison_machine_text(d, machine.state), out);
    if (d->machine_known)
        fprintf(out, ": %s of the time, %s; %s", comparison_percent(expm1(d->machine)).s,
                amount_within(1.96 * machine.sd).s, drift_state_name(machine.state));
}

static void write_machine(const comparison *c, FILE *out) {
    fputs("\nmachine     ", out);
    write_change(&c->drift, c->machine, out);
    fputc('\n', out);
    for (size_t k = 0; k < c->part_count; k++) {
        const comparison_part *part = &c->parts[k];
        fprintf(out, "            but what %s bounds (%zu operations): ", part->bound, part->drift.rows);
        write_change(&part->drift, part->machine, out);
        fputc('\n', out);
    }
    write_ceilings(c, out);
    if (isfinite(c->clock_mhz[0]) && isfinite(c->clock_mhz[1]))
        fprintf(out, "clock       %.0f -> %.0f MHz\n", c->clock_mhz[0], c->clock_mhz[1]);
}

static void write_states(const char *what, const comparison_list *list, FILE *out) {
    fprintf(out, "%-10s  %zu compared:", what, list->measured);
    for (int k = 0; k < COMPARISON_STATES; k++)
        fprintf(out, "%s %zu %s", k > 0 ? "," : "", list->states[k], drift_state_name((drift_state)k));
    fprintf(out, "; %zu new, %zu gone\n", list->fresh_count, list->gone_count);
    if (list->row_count > list->measured)
        fprintf(out, "            %zu more have no figure in either run\n", list->row_count - list->measured);
}

static void write_counts(const comparison *c, FILE *out) {
    if (c->model_us[0] > 0) {
        fprintf(out, "model       %s", amount_time(c->model_us[0]).s);
        fprintf(out, " -> %s by the best of what both measured\n", amount_time(c->model_us[1]).s);
    }
    write_states("operations", &c->operations, out);
    if (comparison_has_any(&c->fusions)) write_states("fusions", &c->fusions, out);
    const comparison_list *const o = &c->operations, *const f = &c->fusions;
    fprintf(out, "verdicts    %zu worse, %zu better, %zu changed otherwise\n",
            o->verdicts[COMPARISON_WORSE] + f->verdicts[COMPARISON_WORSE],
            o->verdicts[COMPARISON_BETTER] + f->verdicts[COMPARISON_BETTER],
            o->verdicts[COMPARISON_OTHER] + f->verdicts[COMPARISON_OTHER]);
    if (c->drift.rows == 0) return;
    fprintf(out, "seen        a slowdown of %.1f %% of one operation is found in 99 comparisons of 100",
            100 * drift_detectable(&c->drift));
    fputs(c->drift.learned ? "\n" : ";\n            there are too few operations to learn the ordinary noise\n", out);
}

static void write_note(const char *text, FILE *out) { fprintf(out, "            %s\n", cut(text, NOTE).s); }

/* The sign of ± takes two bytes. */
static void write_row(const comparison_row *r, FILE *out) {
    const comparison_figure net = comparison_net(r);
    char text[128];
    fprintf(out, "%-10s%*s %9s %9s %9s  %s\n", drift_state_name(r->best.state), strchr(net.s, '%') ? 16 : 15, net.s,
            amount_time(r->before->best_us).s, amount_time(r->after->best_us).s, comparison_span(r->lost_us).s,
            cut(r->after->operation, NAME).s);
    if (r->note) write_note(r->note, out);
    if (r->verdict != COMPARISON_KEPT) write_note(comparison_verdict_text(r, text, sizeof text), out);
}

static void write_list(const char *title, const study_report *const *list, size_t count, size_t top, FILE *out) {
    if (count == 0) return;
    fprintf(out, "\n%s\n", title);
    for (size_t k = 0; k < count; k++) {
        if (top > 0 && k == top) {
            fprintf(out, "  and %zu more\n", count - k);
            return;
        }
        fprintf(out, "  %s\n", cut(list[k]->operation, NAME + 40).s);
    }
}

/* How many have changed. */
static size_t write_rows(const char *what, const comparison_list *list, size_t top, FILE *out) {
    size_t news = 0;
    for (size_t k = 0; k < list->row_count && comparison_is_news(&list->rows[k]); k++) {
        if (news == 0) {
            fprintf(out, "\n%-10s%15s %9s %9s %9s  %s\n", "", "change", "before", "after", "per run", what);
            fputs("            net of the machine, by the best of each; per run: what the model loses by it\n", out);
        }
        if (top == 0 || news < top) write_row(&list->rows[k], out);
        news++;
    }
    if (top > 0 && news > top) fprintf(out, "and %zu more; --top 0 shows all\n", news - top);
    return news;
}

static void write_changes(const comparison *c, size_t top, FILE *out) {
    const size_t operations = write_rows("operation", &c->operations, top, out);
    const size_t fusions = write_rows("fusion", &c->fusions, top, out);
    if (operations + fusions > 0 || c->operations.measured == 0) return;
    fputs(c->machine.state == DRIFT_SAME ? "\nNothing changed.\n" : "\nNo operation changed by itself.\n", out);
}

static void write_skipped(const comparison *c, size_t top, FILE *out) {
    if (c->skipped_count > 0) fprintf(out, "\n%zu file%s left out\n", c->skipped_count, plural(c->skipped_count));
    for (size_t k = 0; k < c->skipped_count && (top == 0 || k < top); k++)
        fprintf(out, "  %s: %s\n", cut(c->skipped[k].path, NAME).s, cut(c->skipped[k].why, NAME).s);
}

bool comparison_text(const comparison *c, const comparison_shown *shown, FILE *out, status *st) {
    (void)st;
    write_runs(c, out);
    write_machine(c, out);
    write_counts(c, out);
    write_changes(c, shown->top, out);
    write_list("New", c->operations.fresh, c->operations.fresh_count, shown->top, out);
    write_list("Gone", c->operations.gone, c->operations.gone_count, shown->top, out);
    write_list("New fusions", c->fusions.fresh, c->fusions.fresh_count, shown->top, out);
    write_list("Gone fusions", c->fusions.gone, c->fusions.gone_count, shown->top, out);
    write_skipped(c, shown->top, out);
    return true;
}
