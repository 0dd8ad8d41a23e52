/* Owns a comparison: what is refused, the order of its steps, and the order of its rows. */
#include "analyze/compare/comparison.h"

#include "common/plain.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const size_t memory_limit = (size_t)2 << 30;

static bool is_known(double us) { return isfinite(us) && us > 0; }

/* ---- what is refused ---- */

static void check_alike(comparison *c) {
    const study_group *b = c->before, *a = c->after;
    if (!plain_alike(b->regime, a->regime))
        guard_fail(&c->guard, STATUS_INPUT,
                   "%s was measured in the regime %s and %s in %s: their figures cannot be compared; measure one of "
                   "them again",
                   c->studies[0]->options.folders[0], b->regime, c->studies[1]->options.folders[0], a->regime);
    if (b->method != a->method)
        guard_fail(&c->guard, STATUS_INPUT,
                   "%s was measured by version %" PRId64 " of the method and %s by version %" PRId64
                   ": their figures cannot be compared; measure one of them again",
                   c->studies[0]->options.folders[0], b->method, c->studies[1]->options.folders[0], a->method);
}

/* ---- figures ---- */

static double ratio_change(double before, double after) {
    return is_known(before) && is_known(after) ? log(after / before) : NAN;
}

/* What stands for the report. A fusion that was not held against its parts says nothing about fusing: its report may
 * hold the time of the operation that does all at once, which is compared by itself. */
static double best_us(const study_report *r) { return r->fusion && !r->worth ? NAN : r->best_us; }

static drift_row best_row(const comparison_row *r) {
    return (drift_row){ratio_change(best_us(r->before), best_us(r->after)),
                       drift_noise(r->before->best_ci, r->after->best_ci)};
}

/* Of a fusion its parts, one after another. Their times added up have an interval of what the speed-up's leaves. */
static double apart_us(const study_report *r) { return r->fusion ? r->parts_us : r->baseline_us; }
static double apart_ci(const study_report *r) {
    const double rest = r->speedup_ci * r->speedup_ci - r->best_ci * r->best_ci;
    return !r->sum ? r->baseline_ci : rest < 0 ? 0 : sqrt(rest);
}

static drift_row baseline_row(const comparison_row *r) {
    return (drift_row){ratio_change(apart_us(r->before), apart_us(r->after)),
                       drift_noise(apart_ci(r->before), apart_ci(r->after))};
}

/* The machine and the spread are those of the operations' baselines, which a new kernel leaves alone. Fusions run the
 * same work again, so nothing is learned from them, but they are as many more chances for an alarm. */
static void learn(comparison *c) {
    drift_row *rows = arena_array(&c->arena, drift_row, c->operations.row_count + 1);
    size_t family = 0;
    for (size_t k = 0; k < c->operations.row_count; k++) {
        const drift_row baseline = baseline_row(&c->operations.rows[k]), best = best_row(&c->operations.rows[k]);
        rows[k] = isfinite(baseline.change) ? baseline : best;
        family += isfinite(best.change);
    }
    for (size_t k = 0; k < c->fusions.row_count; k++) family += isfinite(best_row(&c->fusions.rows[k]).change);
    comparison_learn(c, rows, family);
}

static bool is_other(const study_report *r) {
    return !plain_alike(r->baseline, r->best) || !plain_alike(r->baseline_variant, r->best_variant);
}

static const char *say_missing(comparison *c, const char *which, const study_report *r) {
    const char *why = !plain_alike(r->status, "OK") ? r->status : r->fusion ? "its parts have no time" : "no time";
    return arena_printf(&c->arena, "no figure %s: %s%s%s", which, why, r->reason_text ? ", " : "",
                        r->reason_text ? r->reason_text : "");
}

static const char *say_best(comparison *c, const study_report *r) {
    const bool variant = r->best_variant && *r->best_variant;
    return arena_printf(&c->arena, "%s%s%s", r->best ? r->best : "-", variant ? " " : "",
                        variant ? r->best_variant : "");
}

static const char *note(comparison *c, const comparison_row *r) {
    if (!is_known(best_us(r->before))) return say_missing(c, "before", r->before);
    if (!is_known(best_us(r->after))) return say_missing(c, "after", r->after);
    if (!plain_alike(r->before->best, r->after->best) || !plain_alike(r->before->best_variant, r->after->best_variant))
        return arena_printf(&c->arena, "was run by %s, now by %s", say_best(c, r->before), say_best(c, r->after));
    return NULL;
}

/* So much of the model's time is not known that a share of it says little. */
static bool lacks_time(const study_group *g) {
    static const double enough = 0.95;
    return g->partial.text && !(g->partial.share >= enough);
}

static void judge(comparison *c, comparison_row *r) {
    const drift_row best = best_row(r), baseline = baseline_row(r);
    const drift *d = comparison_drift(c, r);
    const bool unsure = r->before->verdict.borderline || r->after->verdict.borderline;
    r->lost_us = NAN;
    r->partial = lacks_time(c->before) || lacks_time(c->after);
    r->measured = is_known(best_us(r->before)) || is_known(best_us(r->after));
    if (!r->measured) return;
    r->chosen_otherwise = is_other(r->before) != is_other(r->after);
    /* A winner by 2.1 % one night may be one by 1.9 % the next, and then it is none. */
    const double slack = r->chosen_otherwise && unsure ? -log1p(-c->options.margin) : 0;
    r->change = expm1(best.change);
    r->baseline_change = expm1(baseline.change);
    r->best = drift_judge(d, best, slack);
    r->baseline = drift_judge(d, baseline, 0);
    r->note = note(c, r);
    if (isfinite(best.change)) {
        const double count = (double)r->after->count;
        r->lost_us = count * (r->after->best_us - r->before->best_us * exp(d->machine));
        if (r->after->fusion) return;
        c->model_us[0] += count * r->before->best_us;
        c->model_us[1] += count * r->after->best_us;
    }
}

/* ---- order ---- */

static int group_of(const comparison_row *r) {
    if (!r->measured) return 6;
    if (r->best.state == DRIFT_SLOWER) return 0;
    if (r->verdict == COMPARISON_WORSE) return 1;
    if (r->best.state == DRIFT_FASTER) return 2;
    if (r->best.state == DRIFT_AMBIGUOUS) return 3;
    return r->verdict != COMPARISON_KEPT ? 4 : 5;
}

static double size_of(const comparison_row *r) { return isfinite(r->lost_us) ? fabs(r->lost_us) : 0; }

static int worst_first(const void *a, const void *b) {
    const comparison_row *x = a, *y = b;
    const int gx = group_of(x), gy = group_of(y);
    if (gx != gy) return gx - gy;
    const double lx = size_of(x), ly = size_of(y);
    if (gx < 5 && lx != ly) return lx < ly ? 1 : -1;
    return strcmp(x->before->operation, y->before->operation);
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of the baselines' rows; not-a-number where it is unknown. */
static double clock_of(comparison *c, int which) {
    double *clocks = arena_array(&c->arena, double, c->operations.row_count + 1);
    size_t n = 0;
    for (size_t k = 0; k < c->operations.row_count; k++) {
        const study_report *r = which ? c->operations.rows[k].after : c->operations.rows[k].before;
        if (is_known(r->clock_mhz)) clocks[n++] = r->clock_mhz;
    }
    if (n == 0) return NAN;
    qsort(clocks, n, sizeof *clocks, by_size);
    return clocks[n / 2];
}

static void settle(comparison *c, comparison_list *list) {
    for (size_t k = 0; k < list->row_count; k++) {
        comparison_row *r = &list->rows[k];
        judge(c, r);
        r->verdict = comparison_verdict_of(r);
        if (!r->measured) continue;
        list->measured++;
        list->states[r->best.state]++;
        list->verdicts[r->verdict]++;
    }
    qsort(list->rows, list->row_count, sizeof *list->rows, worst_first);
}

/* Names of files may hold any bytes. */
static void name_files(comparison *c) {
    c->skipped = arena_array(&c->arena, study_skipped, c->studies[0]->skipped_count + c->studies[1]->skipped_count + 1);
    for (int k = 0; k < 2; k++) {
        const study *s = c->studies[k];
        c->folders[k] = plain_utf8(&c->arena, s->options.folders[0]);
        for (size_t n = 0; n < s->skipped_count; n++)
            c->skipped[c->skipped_count++] =
                (study_skipped){plain_utf8(&c->arena, s->skipped[n].path), s->skipped[n].why};
    }
}

static void make(comparison *c) {
    check_alike(c);
    name_files(c);
    comparison_match(c);
    if (c->operations.row_count == 0)
        guard_fail(&c->guard, STATUS_INPUT, "no operation is in both %s and %s; compare two runs of one model",
                   c->studies[0]->options.folders[0], c->studies[1]->options.folders[0]);
    c->options.drift.prior = drift_prior_of(c->operations.rows[0].after->device);
    learn(c);
    settle(c, &c->operations);
    settle(c, &c->fusions);
    for (int k = 0; k < 2; k++) c->clock_mhz[k] = clock_of(c, k);
    comparison_weigh(c);
    comparison_differ(c);
}

bool comparison_make(comparison *c, const study *before, const study *after, const comparison_options *options,
                     status *st) {
    *c = (comparison){
        .studies = {before, after}, .before = &before->groups[0], .after = &after->groups[0], .options = *options};
    guard_init(&c->guard);
    arena_init(&c->arena, &c->guard, memory_limit);
    if (guard_enter(&c->guard)) {
        make(c);
        return true;
    }
    *st = c->guard.st;
    comparison_close(c);
    return false;
}

void comparison_close(comparison *c) {
    arena_free(&c->arena);
    *c = (comparison){.part_count = 0};
}

bool comparison_has_any(const comparison_list *list) {
    return list->row_count + list->fresh_count + list->gone_count > 0;
}

bool comparison_is_news(const comparison_row *r) { return group_of(r) < 5; }

const char *comparison_machine_text(const drift *d, drift_state state) {
    static const char *const texts[] = {"as fast as before", "faster", "slower", "perhaps at another speed"};
    return d->machine_known ? texts[state] : "too few operations changed alike to tell";
}
