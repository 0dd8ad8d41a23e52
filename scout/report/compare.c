/* Owns the rule of keep or revert. Keeping needs a proven gain, reverting that there is none: what lies between is
 * undecided, and said so. What is wrong, crashes or hangs is reverted however fast it was. */
#include "scout/report/compare.h"

#include "common/json.h"

#include "scout/terms/variants.h"

#include <math.h>
#include <string.h>

const char *const compare_decision_names[] = {"NONE", "UNDECIDED", "REVERT", "KEEP"};

static row_status status_of(const json_t *row) {
    row_status found = ROW_ERROR;
    reason_status_from_name(json_get_text(row, "status"), &found);
    return found;
}

static bool is_of(const json_t *row, const char *name, const char *variant) {
    return strcmp(json_get_text(row, "name"), name) == 0 && strcmp(json_get_text(row, "variant"), variant) == 0;
}

/* ---- which row is after ---- */

static bool is_not_asked(const json_t *row) {
    return strcmp(json_get_text(json_object_get(row, "reason"), "code"), "not_asked") == 0;
}

/* Where no row has a time: the most telling failure. */
static int telling(const json_t *row) {
    static const row_status order[] = {ROW_UNSUPPORTED, ROW_SKIPPED, ROW_ERROR, ROW_TIMEOUT, ROW_CRASHED, ROW_WRONG};
    for (int k = 0; k < (int)(sizeof order / sizeof order[0]); k++)
        if (status_of(row) == order[k]) return k;
    return -1;
}

/* Of those that were asked for the fastest beside the one before; where none has a ratio, the one that says most. */
static const json_t *find_after(const report_input *in, const json_t *before) {
    const json_t *rows = json_object_get(in->measurement, "candidates");
    const json_t *rival = json_object_get(in->measurement, "rival"), *found = NULL, *fastest = NULL;
    double least = INFINITY;
    int most = -1;
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *row = json_array_get(rows, k);
        if (row == before || is_not_asked(row) || !filter_takes(in->search->candidate, json_get_text(row, "name")))
            continue;
        if (rival && is_of(row, json_get_text(rival, "name"), json_get_text(rival, "variant"))) return row;
        const double ratio = status_of(row) == ROW_OK ? json_get_positive(row, "ratio") : NAN;
        if (ratio < least) least = ratio, fastest = row;
        if (telling(row) > most) most = telling(row), found = row;
    }
    return fastest ? fastest : found;
}

/* Also where it failed, and so is no baseline: it was requested as before, and so is not after. */
static const json_t *find_before(const report_input *in) {
    const json_t *m = in->measurement, *rows = json_object_get(m, "candidates");
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *row = json_array_get(rows, k);
        const bool told = json_is_string(json_object_get(m, "baseline"));
        if (told ? is_of(row, json_get_text(m, "baseline"), json_get_text(m, "baseline_variant"))
                 : !is_not_asked(row) && !filter_takes(in->search->candidate, json_get_text(row, "name")))
            return row;
    }
    return NULL;
}

static void read_rows(const report_input *in, const report_figures *f, compare *out) {
    const json_t *rival = json_object_get(in->measurement, "rival");
    out->before = f->baseline_row ? f->baseline_row : find_before(in);
    out->before_us = f->baseline_us;
    out->before_ci = f->baseline_ci;
    if (f->best_row && f->best_row != f->baseline_row) {
        out->after = f->best_row;
        if (f->baseline_row) out->ratio = f->ratio, out->ratio_ci = f->ratio_ci;
    } else {
        out->after = find_after(in, out->before);
        const bool known = out->after && f->baseline_row && isfinite(f->rival_ratio) &&
                           is_of(out->after, json_get_text(rival, "name"), json_get_text(rival, "variant"));
        if (known) out->ratio = f->rival_ratio, out->ratio_ci = f->rival_ratio_ci;
        if (!known && f->baseline_row) { /* its row has them too */
            out->ratio = json_get_positive(out->after, "ratio");
            out->ratio_ci = json_get_number(out->after, "ratio_ci");
        }
    }
    if (!out->after || status_of(out->after) != ROW_OK) return;
    const json_t *time = json_object_get(out->after, "time_us");
    out->after_us = json_get_number(time, "median");
    out->after_ci = json_get_number(time, "rel_ci95");
}

/* ---- what becomes of it ---- */

static void say_difference(const compare *c, const char *rest, char *text, size_t room) {
    const double change = 100 * (c->ratio - 1);
    const char *more = change < 0 ? "less" : "more";
    if (verdict_has_interval(c->ratio_ci))
        snprintf(text, room, "%.1f %% %s time, give or take %.1f %%: %s", fabs(change), more,
                 100 * c->ratio * c->ratio_ci, rest);
    else
        snprintf(text, room, "%.1f %% %s time in one pass: %s", fabs(change), more, rest);
}

static compare_decision by_ratio(compare *c) {
    switch (verdict_gain_of(c->ratio, c->ratio_ci, verdict_defaults.margin)) {
    case VERDICT_PROVEN_GAIN: say_difference(c, "it is worth keeping", c->text, sizeof c->text); return COMPARE_KEEP;
    case VERDICT_NO_GAIN:
        say_difference(c, c->ratio * (1 - c->ratio_ci) > 1 ? "it is slower" : "a change has to save more than 2 %",
                       c->text, sizeof c->text);
        return COMPARE_REVERT;
    case VERDICT_OPEN_GAIN: break;
    }
    say_difference(c, "it may or may not save 2 %; measure again, on a quieter machine or with a larger --budget",
                   c->text, sizeof c->text);
    return COMPARE_UNDECIDED;
}

static void say_row(const char *what, const json_t *row, char *text, size_t room) {
    snprintf(text, room, "%.20s%.60s is %.20s: %.190s", what, json_get_text(row, "name"),
             reason_status_name(status_of(row)), json_get_text(json_object_get(row, "reason"), "text"));
}

static compare_decision decide(compare *c) {
    if (!c->after) {
        snprintf(c->text, sizeof c->text, "nothing to compare: no candidate of this kind was added or named");
        return COMPARE_NONE;
    }
    const row_status after = status_of(c->after);
    if (after != ROW_OK) say_row("", c->after, c->text, sizeof c->text);
    if (after == ROW_UNSUPPORTED) return COMPARE_NONE;
    if (after == ROW_SKIPPED) return COMPARE_UNDECIDED;
    if (after != ROW_OK) return COMPARE_REVERT;
    if (isfinite(c->ratio)) return by_ratio(c);
    if (c->before)
        say_row("before: ", c->before, c->text, sizeof c->text);
    else
        snprintf(c->text, sizeof c->text,
                 "nothing to compare with: no other implementation of this operation is known here");
    return COMPARE_UNDECIDED;
}

void compare_read(const report_input *in, const report_figures *f, compare *out) {
    *out =
        (compare){.before_us = NAN, .before_ci = NAN, .after_us = NAN, .after_ci = NAN, .ratio = NAN, .ratio_ci = NAN};
    if (in->measurement) read_rows(in, f, out);
    out->decision = decide(out);
}

/* ---- in the report ---- */

static void put_side(json_builder *b, json_t *to, const char *key, const json_t *row, double us, double ci) {
    json_t *side = json_new_object(b);
    json_put_text(b, side, "name", json_get_text(row, "name"));
    json_put_text(b, side, "variant", json_get_text(row, "variant"));
    json_put_text(b, side, "status", reason_status_name(status_of(row)));
    if (isfinite(us)) json_put_real(b, side, "time_us", us);
    if (isfinite(us) && isfinite(ci)) json_put_real(b, side, "rel_ci95", ci);
    json_put(b, to, key, row ? side : json_null());
    if (!row) json_decref(side);
}

json_t *compare_json(const compare *c, json_builder *b) {
    json_t *to = json_new_object(b);
    put_side(b, to, "before", c->before, c->before_us, c->before_ci);
    put_side(b, to, "after", c->after, c->after_us, c->after_ci);
    if (isfinite(c->ratio)) json_put_real(b, to, "ratio", c->ratio);
    if (isfinite(c->ratio) && verdict_known(c->ratio_ci)) json_put_real(b, to, "ratio_ci", c->ratio_ci);
    json_put_text(b, to, "decision", compare_decision_names[c->decision]);
    json_put_text(b, to, "text", c->text);
    return to;
}

void compare_put(const report_input *in, const report_figures *f, json_t *report, json_builder *b) {
    compare c;
    compare_read(in, f, &c);
    json_put(b, report, "comparison", compare_json(&c, b));
}
