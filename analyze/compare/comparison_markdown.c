/* A comparison for a pull request or a wiki: the machine first, then what changed, worst first. */
#include "analyze/compare/comparison_formats.h"

#include "analyze/write/escape.h"
#include "common/amount.h"

#include <math.h>

enum { NAME = 100, SENTENCE = 300 };

static escape_line say(const char *text) { return escape_text(ESCAPE_MARKDOWN, text, SENTENCE); }
static escape_line name(const char *text) { return escape_text(ESCAPE_MARKDOWN_CODE, text, NAME); }

static void write_head(const comparison *c, FILE *out) {
    fprintf(out, "# Two runs beside each other\n\n| | before | after |\n|---|---|---|\n| run | %s | %s |\n",
            name(c->folders[0]).s, name(c->folders[1]).s);
    for (size_t k = 0; k < c->difference_count; k++) {
        const comparison_difference *d = &c->differences[k];
        fprintf(out, "| differs: %s | %s | %s |\n", say(d->what).s, say(*d->before ? d->before : "not given").s,
                say(*d->after ? d->after : "not given").s);
    }
    if (isfinite(c->clock_mhz[0]) && isfinite(c->clock_mhz[1]))
        fprintf(out, "| clock | %.0f MHz | %.0f MHz |\n", c->clock_mhz[0], c->clock_mhz[1]);
    fprintf(out, "| model, by the best of what both measured | %s | %s |\n\nRegime: %s\n\n",
            amount_time(c->model_us[0]).s, amount_time(c->model_us[1]).s, say(c->after->regime).s);
}

static void write_change(const char *what, const drift *d, drift_judgement machine, FILE *out) {
    fprintf(out, "**%s: %s**", what, comparison_machine_text(d, machine.state));
    if (d->machine_known)
        fprintf(out, " (%s of the time, %s; %s)", comparison_percent(expm1(d->machine)).s,
                amount_within(1.96 * machine.sd).s, drift_state_name(machine.state));
    fputs(".", out);
}

static void write_machine(const comparison *c, FILE *out) {
    const bool moved = c->machine.state == DRIFT_SLOWER || c->machine.state == DRIFT_FASTER;
    char what[64];
    write_change("The machine as a whole", &c->drift, c->machine, out);
    if (moved && *comparison_ceilings_text(c->ceilings_say))
        fprintf(out, " About it, %s.", comparison_ceilings_text(c->ceilings_say));
    for (size_t k = 0; k < c->part_count; k++) {
        const comparison_part *part = &c->parts[k];
        snprintf(what, sizeof what, "But what %s bounds, %zu operations", part->bound, part->drift.rows);
        fputc('\n', out);
        write_change(what, &part->drift, part->machine, out);
    }
}

static void write_states(const char *what, const comparison_list *list, FILE *out) {
    fprintf(out, "\n\n| %s | |\n|---|--:|\n", what);
    for (int k = 0; k < COMPARISON_STATES; k++)
        fprintf(out, "| %s | %zu |\n", drift_state_name((drift_state)k), list->states[k]);
    fprintf(out, "| without a figure in either run | %zu |\n", list->row_count - list->measured);
    fprintf(out, "| new | %zu |\n| gone | %zu |\n", list->fresh_count, list->gone_count);
    fprintf(out, "| verdict worse | %zu |\n| verdict better | %zu |\n| verdict changed otherwise | %zu |\n",
            list->verdicts[COMPARISON_WORSE], list->verdicts[COMPARISON_BETTER], list->verdicts[COMPARISON_OTHER]);
}

static void write_counts(const comparison *c, FILE *out) {
    char found[160];
    write_states("operations", &c->operations, out);
    if (comparison_has_any(&c->fusions)) write_states("fusions", &c->fusions, out);
    if (c->drift.rows > 0) fprintf(out, "\n%s.\n", comparison_found(c, found, sizeof found));
}

static void write_row(const comparison_row *r, FILE *out) {
    char text[128];
    fprintf(out, "| %s | %s | %s | %s | %s | %s | %s", drift_state_name(r->best.state), name(r->after->operation).s,
            comparison_net(r).s, amount_time(r->before->best_us).s, amount_time(r->after->best_us).s,
            comparison_span(r->lost_us).s, say(r->note).s);
    if (r->verdict != COMPARISON_KEPT)
        fprintf(out, "%s%s", r->note ? "; " : "", say(comparison_verdict_text(r, text, sizeof text)).s);
    fputs(" |\n", out);
}

/* How many have changed. */
static size_t write_rows(const char *what, const comparison_list *list, size_t top, FILE *out) {
    size_t news = 0;
    for (size_t k = 0; k < list->row_count && comparison_is_news(&list->rows[k]); k++) {
        if (news == 0)
            fprintf(out,
                    "\nNet of the machine, by the best of each; per run: what the model loses by it.\n\n"
                    "| | %s | change | before | after | per run | |\n"
                    "|---|---|--:|--:|--:|--:|---|\n",
                    what);
        if (top == 0 || news < top) write_row(&list->rows[k], out);
        news++;
    }
    if (top > 0 && news > top) fprintf(out, "\n%zu more are left out here.\n", news - top);
    return news;
}

static void write_changes(const comparison *c, size_t top, FILE *out) {
    fputs("\n## What changed\n", out);
    const size_t operations = write_rows("operation", &c->operations, top, out);
    const size_t fusions = write_rows("fusion", &c->fusions, top, out);
    if (operations + fusions == 0) fputs("\nNothing.\n", out);
}

static void write_list(const char *title, const study_report *const *list, size_t count, size_t top, FILE *out) {
    if (count == 0) return;
    fprintf(out, "\n## %s\n\n", title);
    for (size_t k = 0; k < count && (top == 0 || k < top); k++) fprintf(out, "- %s\n", name(list[k]->operation).s);
    if (top > 0 && count > top) fprintf(out, "\n%zu more are left out here.\n", count - top);
}

static void write_skipped(const comparison *c, size_t top, FILE *out) {
    if (c->skipped_count > 0) fputs("\n## Files that were left out\n\n", out);
    for (size_t k = 0; k < c->skipped_count && (top == 0 || k < top); k++)
        fprintf(out, "- %s: %s\n", name(c->skipped[k].path).s, say(c->skipped[k].why).s);
    if (top > 0 && c->skipped_count > top) fprintf(out, "\n%zu more were left out.\n", c->skipped_count - top);
}

bool comparison_markdown(const comparison *c, const comparison_shown *shown, FILE *out, status *st) {
    (void)st;
    write_head(c, out);
    write_machine(c, out);
    write_counts(c, out);
    write_changes(c, shown->top, out);
    write_list("New operations", c->operations.fresh, c->operations.fresh_count, shown->top, out);
    write_list("Gone operations", c->operations.gone, c->operations.gone_count, shown->top, out);
    write_list("New fusions", c->fusions.fresh, c->fusions.fresh_count, shown->top, out);
    write_list("Gone fusions", c->fusions.gone, c->fusions.gone_count, shown->top, out);
    write_skipped(c, shown->top, out);
    return true;
}
