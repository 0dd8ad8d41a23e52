/* Every variant beside the others: how fast, and what is to be said of it. */
#include "analyze/explain/explain.h"

#include "common/amount.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_rival(const explain *e, const json_t *row) {
    const json_t *rival = json_object_get(e->report, "rival");
    const char *name = json_get_text(rival, "name");
    return *name && rows_table_is(row, name, json_get_text(rival, "variant"));
}

/* ---- why one was chosen, or not ---- */

static const char *why_best(const explain *e) {
    if (verdict_gain_of(e->r->ratio, e->r->ratio_ci, e->thresholds->margin) == VERDICT_PROVEN_GAIN)
        return "chosen: the fastest that is proven to be faster";
    return arena_printf(e->arena, "the fastest, but not surely by more than %s",
                        amount_percent(e->thresholds->margin).s);
}

static const char *why_timed(const void *context, const json_t *row, double us) {
    const explain *e = context;
    const study_report *r = e->r;
    const bool baseline = rows_table_is(row, r->baseline, r->baseline_variant),
               best = rows_table_is(row, r->best, r->best_variant);
    if (baseline && best) return "the default, and chosen: nothing is proven to be faster";
    if (baseline) return "the default: all are compared with it";
    if (best && r->baseline_us > 0) return why_best(e);
    if (best) return "the fastest that is valid; there is no baseline to compare it with";
    if (is_rival(e, row)) return "the nearest rival";
    if (!(us < r->baseline_us) || (us >= r->best_us && r->best_us < r->baseline_us)) return "";
    return arena_printf(e->arena, "faster, but not by more than %s and the interval",
                        amount_percent(e->thresholds->margin).s);
}

static const char *within(const explain *e, double ci) {
    return verdict_has_interval(ci) ? arena_printf(e->arena, "%s", amount_within(ci).s) : "(in one pass)";
}

/* What the choice was made by: time over time in neighbouring blocks, which drifts of the device leave alone. */
static void write_pair(const explain *e) {
    const study_report *r = e->r;
    const verdict_figure saved = r->verdict.figures[VERDICT_SAVING];
    const json_t *rival = json_object_get(e->report, "rival");
    if (r->ratio > 0 && !rows_table_is(json_object_get(e->report, "candidates"), r->best, r->best_variant) &&
        (saved.x != 0 || saved.half > 0))
        explain_tell(e,
                     "The pair that decided: the best takes %.3f %s of the baseline's time in neighbouring blocks, so "
                     "it saves %s.",
                     r->ratio, within(e, r->ratio_ci), explain_points(e, saved));
    if (json_is_object(rival) && r->rival_ratio > 0)
        explain_tell(e, "The nearest of the others: %s takes %.3f %s of the baseline's time in neighbouring blocks.",
                     rows_table_name(e->arena, rival), r->rival_ratio, within(e, r->rival_ratio_ci));
}

/* On a host a pass that was slow does not count, and the one that chose a row may not: as many do as its interval is
 * from. */
static bool counts(const explain *e, const json_t *passes, size_t at, long used) {
    const uint64_t slow = (uint64_t)json_get_int(e->report, "slow_passes", 0);
    long calm = 0;
    bool is_slow = false, first = false;
    for (size_t k = 0; k < json_array_size(passes); k++) {
        const int64_t number = json_get_int(json_array_get(passes, k), "pass", (int64_t)k + 1);
        const bool out = number > 0 && number < 64 && slow >> number & 1;
        calm += !out;
        if (k == at) is_slow = out, first = number == 1;
    }
    return calm == 0 || (!is_slow && !(first && 0 < used && used < calm));
}

/* How a row's figure was come by: what each pass saw, with memory allocated anew, and what was left out of it. The
 * baseline's passes are times, for its ratio to itself says nothing. */
static void write_passes(const explain *e, const char *what, const char *name, const char *variant, bool base) {
    const json_t *row = rows_table_find(e->report, name, variant), *passes = json_object_get(row, "passes"), *pass;
    const char *from = json_get_text(row, "interval_from"), *list = "", *unit = "";
    const long used = strtol(from, NULL, 10);
    double blocks = 0, dropped = 0;
    bool all = true;
    size_t k;
    if (!*from && json_array_size(passes) == 0) return;
    json_array_foreach(passes, k, pass) {
        const double ratio = base ? NAN : json_get_positive(pass, "ratio"), us = json_get_positive(pass, "time_us");
        const bool in = counts(e, passes, k, used);
        const char *seen =
            ratio > 0 ? arena_printf(e->arena, "%.3f", ratio) : arena_printf(e->arena, "%s", amount_time(us).s);
        unit = ratio > 0 ? " of the baseline's time" : "";
        list = arena_printf(e->arena, "%s%s%s%s%s", list, k > 0 ? ", " : ": ", in ? "" : "(", seen, in ? "" : ")");
        blocks += fmax(json_get_int(pass, "blocks", 0), 0);
        dropped += fmax(json_get_int(pass, "dropped", 0), 0);
        all = all && in;
    }
    const bool clock = strcmp(json_get_text(row, "time_from"), "clock") == 0;
    explain_tell(e, "The %s: its time is %s, its interval from %s%s%s%s%s.", what,
                 clock ? "taken at the clock that its own load holds" : "as measured",
                 *from ? from : arena_printf(e->arena, "%zu passes", json_array_size(passes)), list, unit,
                 all ? "" : "; those in brackets do not count",
                 dropped > 0 ? arena_printf(e->arena, "; %.0f of %.0f blocks were disturbed and dropped", dropped,
                                            blocks + dropped)
                             : "");
}

/* How the blocks of a row are spread, where its report tells. */
static void write_blocks(const explain *e, const char *what, const char *name, const char *variant) {
    const char *text = rows_table_blocks(e->arena, rows_table_find(e->report, name, variant));
    if (text) explain_tell(e, "The blocks of the %s: %s.", what, text);
}

static void write_open(const explain *e) {
    const study_report *r = e->r;
    const json_t *undecided = json_object_get(e->report, "undecided");
    const char *list = "";
    const bool another =
        !rows_table_is(rows_table_find(e->report, r->baseline, r->baseline_variant), r->best, r->best_variant);
    if (r->address_best > 0 && r->address_worst > 0)
        explain_tell(e,
                     "Its time depends on memory addresses: between %.3f and %.3f of %s, by the placement of its "
                     "memory; the verdict holds for the middle.",
                     r->address_best, r->address_worst, another ? "the baseline's time" : "its usual time");
    for (size_t k = 0; k < json_array_size(undecided); k++) {
        const char *text = json_string_value(json_array_get(undecided, k));
        if (text) list = arena_printf(e->arena, "%s%s%s", list, *list ? ", " : "", text);
    }
    if (*list)
        explain_tell(e, "Not decided when the run ended: %s. A larger --budget or --target-ci 0.5%% goes on.", list);
}

static void write_counted(const explain *e, const char *what, const char *name, const char *variant) {
    const json_t *const row = rows_table_find(e->report, name, variant);
    const char *const counted = rows_table_counted(e->arena, row);
    if (counted)
        explain_tell(e, "Nsight Compute on the %s, %.200s: %s.", what, rows_table_name(e->arena, row), counted);
}

void explain_candidates(const explain *e) {
    const study_report *r = e->r;
    const json_t *rows = json_object_get(e->report, "candidates");
    explain_title(e, arena_printf(e->arena, "Candidates: %zu, of which %zu were timed", json_array_size(rows),
                                  rows_table_timed(rows)));
    rows_table_print(e->to.out, e->arena,
                     &(rows_table){.rows = rows,
                                   .baseline = r->baseline,
                                   .baseline_variant = r->baseline_variant,
                                   .baseline_us = r->baseline_us,
                                   .most = e->most,
                                   .columns = e->to.columns,
                                   .note = why_timed,
                                   .context = e});
    const double left = json_get_number(e->report, "variants_left_out");
    if (left > 0) explain_tell(e, "%.0f more variants were not tried.", left);
    write_pair(e);
    write_passes(e, "baseline", r->baseline, r->baseline_variant, true);
    if (r->ratio > 0) write_passes(e, "best", r->best, r->best_variant, false);
    write_blocks(e, "baseline", r->baseline, r->baseline_variant);
    if (r->ratio > 0) write_blocks(e, "best", r->best, r->best_variant);
    write_counted(e, "baseline", r->baseline, r->baseline_variant);
    if (r->ratio > 0) write_counted(e, "best", r->best, r->best_variant);
    write_open(e);
}
