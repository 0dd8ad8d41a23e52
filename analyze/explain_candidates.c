/* Everybody who was asked: how fast, and why chosen or not. Those with a time come first, the fastest on top; the
 * others as the report lists them, and where they are many the rest of them is counted by what became of them. */
#include "analyze/explain.h"

#include "analyze/write/amount.h"
#include "common/plain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 46, REASON = 200, MOST_ROWS = 4096 };

typedef struct listed {
    const json_t *row;
    double us; /* infinite: it has no time */
    size_t at; /* in the report */
} listed;

static int by_time(const void *a, const void *b) {
    const listed *x = a, *y = b;
    if (x->us != y->us) return x->us < y->us ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static double time_of(const json_t *row) {
    const double us = json_get_number(json_object_get(row, "time_us"), "median");
    return strcmp(json_get_text(row, "status"), "OK") == 0 && us > 0 ? us : INFINITY;
}

static double width_of(const json_t *row) { return json_get_number(json_object_get(row, "time_us"), "rel_ci95"); }

static bool is_row(const json_t *row, const char *name, const char *variant) {
    return name && strcmp(json_get_text(row, "name"), name) == 0 &&
           strcmp(json_get_text(row, "variant"), variant ? variant : "") == 0;
}

static bool is_rival(const explain *e, const json_t *row) {
    const json_t *rival = json_object_get(e->report, "rival");
    const char *name = json_get_text(rival, "name");
    return *name && is_row(row, name, json_get_text(rival, "variant"));
}

/* ---- why one was chosen, or not ---- */

/* A report's best wins by more than the margin; the verdict asks that of all of its interval. */
static const char *why_best(const explain *e) {
    const verdict_figure saved = e->r->verdict.figures[VERDICT_SAVING];
    if (saved.x - saved.half > e->thresholds->margin) return "chosen: the fastest that is proven to be faster";
    return arena_printf(e->arena, "the fastest, but not surely by more than %s",
                        amount_percent(e->thresholds->margin).s);
}

static const char *why_timed(const explain *e, const json_t *row, double us) {
    const study_report *r = e->r;
    const bool baseline = is_row(row, r->baseline, r->baseline_variant), best = is_row(row, r->best, r->best_variant);
    if (baseline && best) return "the default, and chosen: nobody is proven to be faster";
    if (baseline) return "the default: everybody is compared with it";
    if (best && r->baseline_us > 0) return why_best(e);
    if (best) return "the fastest that is valid; there is no baseline to compare it with";
    if (!(r->baseline_us > 0)) return "slower than the best";
    const double saved = 1 - us / r->baseline_us;
    if (is_rival(e, row)) return "the nearest rival of the default";
    if (saved <= 0) return "slower than the default";
    if (r->best_us > 0 && us >= r->best_us && r->best_us < r->baseline_us) return "slower than the chosen one";
    return arena_printf(e->arena, "faster, but not by more than %s and the interval",
                        amount_percent(e->thresholds->margin).s);
}

static const char *why_not(const explain *e, const json_t *row) {
    const json_t *reason = json_object_get(row, "reason");
    return arena_printf(e->arena, "%s %s: %s", json_get_text(row, "status"), json_get_text(reason, "code"),
                        json_get_text(reason, "text"));
}

/* ---- lines ---- */

static void write_timed(const explain *e, const listed *l) {
    const double ratio = l->us / e->r->baseline_us;
    fprintf(e->out, "  %s %11s %s ", explain_cell(e, explain_row_name(e, l->row), NAME), amount_time(l->us).s,
            explain_cell(e, amount_within(width_of(l->row)).s, 8));
    if (ratio > 0 && isfinite(ratio))
        fprintf(e->out, "%7.3f  ", ratio);
    else
        fprintf(e->out, "%7s  ", "");
    fprintf(e->out, "%s\n", plain_cell(e->arena, why_timed(e, l->row, l->us), REASON));
}

static void write_others(const explain *e, const listed *rows, size_t count) {
    const size_t shown = e->most > 0 && count > e->most ? e->most : count;
    for (size_t k = 0; k < shown; k++)
        fprintf(e->out, "  %s %s\n", explain_cell(e, explain_row_name(e, rows[k].row), NAME),
                plain_cell(e->arena, why_not(e, rows[k].row), REASON));
    if (shown == count) return;
    map by_fate;
    map_init(&by_fate, e->arena);
    fprintf(e->out, "  and %zu more (--top 0 lists them):", count - shown);
    for (size_t k = shown; k < count; k++) {
        const char *fate = arena_printf(e->arena, "%s %s", json_get_text(rows[k].row, "status"),
                                        json_get_text(json_object_get(rows[k].row, "reason"), "code"));
        void **place = map_put(&by_fate, fate);
        if (!*place) *place = arena_zalloc(e->arena, sizeof(size_t));
        ++*(size_t *)*place;
    }
    /* Once each, as they come: the map has no order of its own. */
    for (size_t k = shown; k < count; k++) {
        const char *fate = arena_printf(e->arena, "%s %s", json_get_text(rows[k].row, "status"),
                                        json_get_text(json_object_get(rows[k].row, "reason"), "code"));
        size_t *left = map_get(&by_fate, fate);
        if (*left > 0) fprintf(e->out, " %zu %s", *left, plain_cell(e->arena, fate, NAME));
        *left = 0;
    }
    fputc('\n', e->out);
}

/* What the choice was made by: time over time in neighbouring blocks, which drifts of the device leave alone. */
static void write_pair(const explain *e) {
    const study_report *r = e->r;
    const verdict_figure saved = r->verdict.figures[VERDICT_SAVING];
    const json_t *rival = json_object_get(e->report, "rival");
    if (r->ratio > 0 && !is_row(json_object_get(e->report, "candidates"), r->best, r->best_variant) &&
        (saved.x != 0 || saved.half > 0))
        explain_tell(e,
                     "The pair that decided: the best takes %.3f ± %.1f %% of the baseline's time in neighbouring "
                     "blocks, so it saves %s.",
                     r->ratio, 100 * r->ratio_ci, explain_points(e, saved));
    if (json_is_object(rival) && r->rival_ratio > 0)
        explain_tell(e, "The nearest of the others: %s takes %.3f %s of the baseline's time in neighbouring blocks.",
                     explain_row_name(e, rival), r->rival_ratio,
                     r->rival_ratio_ci < 1 ? amount_within(r->rival_ratio_ci).s : "(it would not settle)");
}

void explain_candidates(const explain *e) {
    const json_t *rows = json_object_get(e->report, "candidates");
    const size_t all = json_array_size(rows), count = all < MOST_ROWS ? all : MOST_ROWS;
    listed *list = arena_array(e->arena, listed, count + 1);
    size_t timed = 0;
    for (size_t k = 0; k < count; k++) {
        list[k] = (listed){json_array_get(rows, k), time_of(json_array_get(rows, k)), k};
        timed += isfinite(list[k].us);
    }
    qsort(list, count, sizeof *list, by_time);
    explain_title(e, arena_printf(e->arena, "Candidates: %zu, of which %zu were timed", all, timed));
    for (size_t k = 0; k < timed; k++) write_timed(e, &list[k]);
    write_others(e, list + timed, count - timed);
    if (all > count) explain_tell(e, "%zu more rows were not looked at.", all - count);
    const double left = json_get_number(e->report, "variants_left_out");
    if (left > 0) explain_tell(e, "%.0f variants beyond these were not looked at.", left);
    write_pair(e);
}
