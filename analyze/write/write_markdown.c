/* A page for a pull request or a wiki: what to do first, then the figures that say why. Tables are those of GitHub and
 * GitLab; nothing but Markdown is in it. */
#include "analyze/write/escape.h"
#include "analyze/write/formats.h"
#include "common/amount.h"
#include "common/plain.h"

#include <inttypes.h>
#include <math.h>

enum { FIRST = 5, NAME = 100, SENTENCE = 400, FUSIONS = 20, FILES = 20 };

static escape_line say(const char *text) { return escape_text(ESCAPE_MARKDOWN, text, SENTENCE); }
static escape_line name(const char *text) { return escape_text(ESCAPE_MARKDOWN_CODE, text, NAME); }

static const char *plural(size_t n) { return n == 1 ? "" : "s"; }

/* ---- what to do first ---- */

static bool is_to_do(const summary_row *row) { return summary_to_do(row->outcome); }
static bool is_low(const summary_row *row) { return plain_same(row->report->verdict.priority, "LOW"); }

static void write_advice(FILE *out, size_t number, const summary_row *row) {
    const verdict *v = &row->report->verdict;
    fprintf(out, "%zu. **%s** %s: %s", number, v->priority, name(row->report->operation).s, say(v->recommendation).s);
    if (row->proven_share > 0)
        fprintf(out, " Proven%s: %s of the model's time.", row->outcome == SUMMARY_OWN ? " over an own kernel" : "",
                amount_percent(row->proven_share).s);
    if (row->potential_share > 0)
        fprintf(out, " Potential: %s%s.", amount_percent(row->potential_share).s,
                row->proven_share > 0 ? " more" : " of the model's time");
    fputs(v->borderline ? " *Borderline.*\n" : "\n", out);
}

/* Rows are ranked: those of low priority come last, and are told where there are no others. */
static void write_first(FILE *out, const summary_group *g) {
    size_t written = 0, left = 0;
    bool low = true;
    fputs("## What to do first\n\n", out);
    for (size_t k = 0; k < g->row_count; k++) {
        const summary_row *row = &g->rows[k];
        if (!is_to_do(row)) continue;
        low = low && is_low(row);
        if (written == FIRST || is_low(row) != low)
            left++;
        else
            write_advice(out, ++written, row);
    }
    if (written == 0 && g->group->partial.text)
        fputs("Not known yet: too little was measured.\n", out);
    else if (written == 0)
        fputs("Nothing: no operation is worth a kernel, and no faster candidate was found.\n", out);
    if (left > 0) fprintf(out, "\n%zu more in the table below.\n", left);
    fputc('\n', out);
}

/* ---- totals ---- */

/* Of what was measured alone. */
static amount_words within(const summary_group *g) {
    const verdict_sum *s = &g->group->measured;
    return amount_within_of(verdict_sum_ci(s), verdict_sum_unknown(s));
}

static void write_totals(FILE *out, const summary_group *g) {
    const summary_sum *all = &g->all;
    fputs("## Totals\n\n", out);
    if (g->group->whole.known) {
        char said[STUDY_WHOLE_TEXT];
        study_whole_say(&g->group->whole, said, sizeof said);
        fprintf(out, "**The model: %s.**\n\n", said);
    }
    if (g->group->memory.at)
        fprintf(out, "Weights %s, activations %s %s (at %s).\n\n",
                amount_bytes((double)g->group->memory.weight_bytes).s, g->group->memory.least ? "at least" : "at most",
                amount_bytes((double)g->group->memory.activation_bytes).s, name(g->group->memory.at).s);
    if (all->measured > 0) {
        fputs("| per run of the model | time | |\n|---|--:|---|\n", out);
        fprintf(out, "| by default | %s %s | %zu operation%s, run %" PRId64 " times |\n",
                amount_time(all->measured_us).s, within(g).s, all->measured, plural(all->measured),
                all->occurrences - g->outcomes[SUMMARY_MISSING].occurrences);
        fprintf(out, "| with what is proven | %s | %s less%s |\n", amount_time(all->measured_us - all->proven_us).s,
                amount_percent(all->proven_us / all->measured_us).s,
                study_whole_refutes(&g->group->whole) ? ", operation by operation; not proven of the model as a whole"
                                                      : "");
        if (all->own_us > 0)
            fprintf(
                out,
                "| gained over the project's own kernels | %s | %s, where no library has one; not in the line above "
                "|\n",
                amount_time(all->own_us).s, amount_percent(all->own_us / all->measured_us).s);
        fprintf(out, "| at all ceilings | %s | %s less, if every kernel reached its ceiling |\n\n",
                amount_time(all->measured_ceiling_us).s,
                amount_percent(1 - all->measured_ceiling_us / all->measured_us).s);
    }
    if (g->group->partial.text) fprintf(out, "Shares are of %s.\n\n", summary_whole(g));
    fputs("| outcome | operations | time | share | proven | potential |\n|---|--:|--:|--:|--:|--:|\n", out);
    for (int k = 0; k < SUMMARY_OUTCOMES; k++) {
        const summary_sum *sum = &g->outcomes[k];
        if (sum->operations == 0) continue;
        fprintf(out, "| %s | %zu | ", summary_outcomes[k].title, sum->operations);
        if (sum->measured > 0)
            fprintf(out, "%s | %s | %s | %s |\n", amount_time(sum->measured_us).s,
                    amount_percent(sum->measured_share).s, amount_percent(sum->proven_share + sum->own_share).s,
                    amount_percent(sum->potential_share).s);
        else
            fputs("- | - | - | - |\n", out);
    }
    if (all->measured > 0)
        fprintf(out, "\nBorderline (a threshold is within two intervals: the next run may differ): %zu, %s of all.\n",
                all->borderline, amount_percent(g->borderline_share).s);
    fputc('\n', out);
}

/* ---- tables ---- */

static void write_row(FILE *out, const summary_row *row, bool named) {
    const study_report *r = row->report;
    const verdict *v = &r->verdict;
    char shape[128], layers[STUDY_LAYERS];
    fprintf(out, "| %zu | %s%s | %s%s%s", row->rank, v->priority, v->borderline ? " (borderline)" : "",
            name(r->operation).s, named ? " | " : "",
            r->layer_count > 0 ? escape_text(ESCAPE_MARKDOWN_CODE, study_layers(r, layers), STUDY_LAYERS).s : "");
    fprintf(out, " | %s | %" PRId64 " | %s %s | %s | %s | %s | %s", study_shape(r, shape, sizeof shape), r->count,
            amount_time(r->baseline_us).s, amount_within(r->baseline_ci).s, amount_percent(row->share).s,
            amount_percent(v->efficiency).s, amount_percent(row->proven_share).s,
            amount_percent(row->potential_share).s);
    /* the approach: that of the best is what the report says */
    fprintf(out, " | %s: %s |\n", say(v->approach).s, say(v->recommendation).s);
}

/* A column for the layers of the model, where any are known. */
static bool is_named(const summary_group *g) {
    size_t k = 0;
    while (k < g->row_count && g->rows[k].report->layer_count == 0) k++;
    return k < g->row_count;
}

static void write_ranking(FILE *out, const summary_group *g, size_t top) {
    size_t inside = 0, written = 0;
    const bool named = is_named(g);
    fprintf(out,
            "## Operations\n\n| # | priority | operation | %sshape | runs | time | share | of its ceiling | proven | "
            "potential | what to do |\n|--:|---|---|%s---|--:|--:|--:|--:|--:|--:|---|\n",
            named ? "layers | " : "", named ? "---|" : "");
    for (size_t k = 0; k < g->row_count; k++) {
        if (g->rows[k].outcome == SUMMARY_OUTSIDE || g->rows[k].outcome == SUMMARY_MISSING) continue;
        inside++;
        if (top > 0 && written == top) continue;
        write_row(out, &g->rows[k], named);
        written++;
    }
    if (inside > written) fprintf(out, "\n%zu more are in summary.csv and summary.json.\n", inside - written);
    fputs("\nShares, proven and potential, are of the model's time. Proven: something that was measured is faster. "
          "Potential: the rest of the way to the measured ceiling; never added to what is proven.\n\n",
          out);
}

static void write_categories(FILE *out, const summary_group *g) {
    if (g->all.measured == 0) return;
    fputs("## By kind\n\n| kind | operations | time | share | proven | potential | already optimal |\n"
          "|---|--:|--:|--:|--:|--:|--:|\n",
          out);
    for (size_t k = 0; k < g->category_count; k++) {
        const summary_category *c = &g->categories[k];
        if (c->sum.measured == 0)
            fprintf(out, "| %s | %zu | - | - | - | - | - |\n", name(c->op).s, c->sum.operations);
        else
            fprintf(out, "| %s | %zu | %s | %s | %s | %s | %zu (%s) |\n", name(c->op).s, c->sum.operations,
                    amount_time(c->sum.measured_us).s, amount_percent(c->sum.measured_share).s,
                    amount_percent(c->sum.proven_share).s, amount_percent(c->sum.potential_share).s,
                    c->optimal.operations, amount_percent(c->optimal.share).s);
    }
    fputc('\n', out);
}

static void write_fusions(FILE *out, const summary_group *g) {
    const summary_fusions *f = &g->fusions;
    if (f->all == 0) return;
    fprintf(out, "## Fusions\n\nOf %zu, %zu %s time", f->all, f->worth, f->worth == 1 ? "saves" : "save");
    if (f->saved_us > 0)
        fprintf(out, " (%s, %s of the model's time, where no two join the same operation)", amount_time(f->saved_us).s,
                amount_percent(f->saved_share).s);
    fprintf(out, ", %zu borderline, %zu not known.\n\n", f->borderline, f->unknown);
    if (f->count == 0) return;
    fputs(
        "| fusion | pattern | runs | apart | as one | faster | kernels | saves |\n|---|---|--:|--:|--:|--:|--:|--:|\n",
        out);
    for (size_t k = 0; k < f->count && k < FUSIONS; k++) {
        const study_report *r = f->rows[k];
        fprintf(out, "| %s | %s | %" PRId64 " | %s | %s | ", name(r->operation).s, say(r->fusion_pattern).s, r->count,
                amount_time(r->parts_us).s, amount_time(r->fused_us).s);
        if (isfinite(r->speedup)) fprintf(out, "%.2f x %s", r->speedup, amount_within(r->speedup_ci).s);
        fprintf(out, " | %" PRId64 " to %" PRId64 " | %s |\n", r->kernels_parts, r->kernels_fused,
                plain_same(r->worth, "yes") ? amount_time(r->saved_us).s : "borderline");
    }
    if (f->count > FUSIONS) fprintf(out, "\n%zu more are in summary.json.\n", f->count - FUSIONS);
    fputc('\n', out);
}

/* ---- what is not in it ---- */

static void write_missing(FILE *out, const summary_group *g) {
    if (g->missing_count == 0 && g->bad_rows == 0) return;
    fputs("## What is missing\n\n", out);
    if (g->missing_count > 0) {
        fputs("Operations without a baseline are in no figure above.\n\n"
              "| status | reason | operations | runs | the first one |\n"
              "|---|---|--:|--:|---|\n",
              out);
    }
    for (size_t k = 0; k < g->missing_count; k++) {
        const summary_missing *m = &g->missing[k];
        fprintf(out, "| %s | %s: %s | %zu | %" PRId64 " | %s |\n", name(m->status).s, name(m->code).s, say(m->text).s,
                m->operations, m->occurrences, name(m->first->operation).s);
    }
    if (g->missing_count > 0) fputc('\n', out);
    if (g->bad_rows > 0)
        fprintf(out, "%zu operation%s with a candidate that failed; `analyze explain` shows which.\n\n", g->bad_rows,
                plural(g->bad_rows));
}

static void write_skipped(FILE *out, const study *s) {
    if (s->skipped_count == 0) return;
    fprintf(out, "## Files that are no reports: %zu\n\n", s->skipped_count);
    for (size_t k = 0; k < s->skipped_count && k < FILES; k++)
        fprintf(out, "- %s: %s\n", name(s->skipped[k].path).s, say(s->skipped[k].why).s);
    if (s->skipped_count > FILES) fprintf(out, "- and %zu more\n", s->skipped_count - FILES);
    fputc('\n', out);
}

static void write_next(FILE *out, const summary_group *g) {
    if (g->next_count == 0) return;
    fputs("## Next\n\n", out);
    for (size_t k = 0; k < g->next_count; k++) {
        fputs("- ", out);
        escape_print(out, ESCAPE_MARKDOWN_CODE, g->next[k].command);
        fprintf(out, ": %s\n", g->next[k].why);
    }
    fputc('\n', out);
}

/* ---- where it was measured ---- */

static void write_device(FILE *out, const study_group *g) {
    fputs("## Measured on\n\n| | |\n|---|---|\n", out);
    const struct {
        const char *what, *text;
    } rows[] = {{"device", g->device}, {"class", g->device_class}, {"driver", g->driver}, {"regime", g->regime}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (rows[k].text) fprintf(out, "| %s | %s |\n", rows[k].what, say(rows[k].text).s);
    fprintf(out, "| method | version %" PRId64 " |\n\n", g->method);
}

static void write_group(FILE *out, const summary_group *g, size_t top) {
    fprintf(out, "# %s on %s", name(g->group->model ? g->group->model : "operations").s,
            say(g->group->device ? g->group->device : "an unknown device").s);
    if (g->all.measured > 0) fprintf(out, ": %s %s per run", amount_time(g->group->measured_us).s, within(g).s);
    fputs("\n\n", out);
    if (g->group->partial.text) fprintf(out, "**%s**\n\n", g->group->partial.text);
    write_first(out, g);
    write_totals(out, g);
    write_ranking(out, g, top);
    write_categories(out, g);
    write_fusions(out, g);
    write_missing(out, g);
    write_next(out, g);
    write_device(out, g->group);
}

bool write_markdown(const summary *m, FILE *out, status *st) {
    (void)st;
    for (size_t k = 0; k < m->group_count; k++) write_group(out, &m->groups[k], m->top);
    write_skipped(out, m->study);
    return true;
}
