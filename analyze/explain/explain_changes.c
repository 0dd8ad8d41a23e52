/* What would make the verdict another one, in times that a person can aim at. */
#include "analyze/explain/explain.h"

#include "common/amount.h"

#include <math.h>

static bool has_time(const study_report *r) { return plain_same(r->status, "OK") && r->baseline_us > 0; }
static bool is_launch(const explain *e) { return plain_same(e->r->bound, "launch") && !e->r->fusion; }
static bool is_rule(const explain *e, const char *name) { return plain_same(verdict_rule(e->r->verdict.rule), name); }

/* What the operation takes of the model's time. */
static double share_of(const explain *e) {
    const double us = (double)e->r->count * e->r->baseline_us;
    return e->group->model_us > us ? us / e->group->model_us : us > 0 ? 1 : 0;
}

/* ---- a faster kernel ---- */

typedef struct step {
    const char *priority;
    double share; /* of the model's time that has to be proven */
} step;

/* false: no kernel can be that fast, nor faster. */
static bool say_step(const explain *e, const step *s) {
    const study_report *r = e->r;
    const double share = share_of(e), margin = e->thresholds->margin;
    const double saved = fmax(s->share / share, margin), us = r->baseline_us * (1 - saved);
    if (saved >= 1) {
        explain_tell(e, "It takes less of the model's time (%s) than would have to be saved for %s (%s).",
                     amount_percent(share).s, s->priority, amount_percent(s->share).s);
        return false;
    }
    const char *rate = explain_rate(e, us);
    explain_tell(e, "A kernel surely below %s (%s%s%s less than the baseline) would be a proven gain of priority %s%s.",
                 amount_time(us).s, rate, *rate ? ", " : "", amount_percent(saved).s, s->priority,
                 r->ceiling_us > us ? ": below the ceiling, so out of reach" : "");
    return !(r->ceiling_us > us);
}

/* Until when what is proven stays so. */
static void say_proof(const explain *e) {
    const study_report *r = e->r;
    const verdict_figure saved = r->verdict.figures[VERDICT_SAVING];
    if (r->verdict.proven_gain_us > 0)
        explain_tell(e, "Were the best above %s, its gain would not be proven: %s now.",
                     amount_time(r->baseline_us * (1 - e->thresholds->margin - saved.half)).s,
                     amount_time(r->best_us).s);
}

static void say_kernels(const explain *e) {
    const verdict_thresholds *t = e->thresholds;
    const verdict_figure proven = e->r->verdict.figures[VERDICT_PROVEN];
    const double share = share_of(e);
    const step steps[] = {{"LOW", 0}, {"MEDIUM", t->medium_proven}, {"HIGH", t->high_proven}};
    if (!has_time(e->r) || !(share > 0) || e->r->fusion) return;
    if (is_launch(e)) {
        explain_tell(e, "Bound by launching: a faster kernel changes no priority, a proven fusion of it would.");
        return;
    }
    if (plain_same(e->r->bound, "data")) {
        explain_tell(e, "Bound by its data: what a faster kernel could reach is not known.");
        return;
    }
    bool reached = true;
    for (size_t k = 0; reached && k < sizeof steps / sizeof steps[0]; k++) {
        const bool next_too = k < 2 && steps[k + 1].share / share <= t->margin; /* with the same time, more */
        if (next_too || (proven.x > 0 && proven.x - proven.half >= steps[k].share)) continue;
        reached = say_step(e, &steps[k]);
    }
}

static void say_rival(const explain *e) {
    const study_report *r = e->r;
    const json_t *rival = json_object_get(e->report, "rival");
    const double enough = 1 - e->thresholds->margin;
    if (!json_is_object(rival) || !(r->rival_ratio > 0) || r->verdict.figures[VERDICT_PROVEN].x > 0) return;
    if (r->rival_ratio > enough)
        explain_tell(e, "The nearest rival, %s, would need %s less time to be proven.",
                     rows_table_name(e->arena, rival), amount_percent(1 - enough / r->rival_ratio).s);
    else
        explain_tell(e, "The nearest rival, %s, was fast enough, but not surely: measured longer, it may win.",
                     rows_table_name(e->arena, rival));
}

/* ---- the ceiling ---- */

static void say_efficiency(const explain *e) {
    const study_report *r = e->r;
    const double least = e->thresholds->ceiling;
    const verdict_figure f = r->verdict.figures[VERDICT_EFFICIENCY];
    if (!isfinite(f.x) || !(r->ceiling_us > 0)) return;
    if (is_rule(e, "at the ceiling") || is_rule(e, VERDICT_OPEN))
        explain_tell(e,
                     "It would be worth a look at an efficiency surely below %s: %s now. That takes a ceiling below "
                     "%s, or a baseline above %s.",
                     amount_percent(least).s, explain_points(e, f), amount_time(least * r->baseline_us).s,
                     amount_time(r->ceiling_us / least).s);
    else if (is_rule(e, "dense product") || is_rule(e, "attention") || is_rule(e, "worth a kernel") ||
             is_rule(e, "anything else"))
        explain_tell(e,
                     "At an efficiency of %s nothing can be gained (NONE): %s now. That takes a baseline of %s, or a "
                     "ceiling of %s.",
                     amount_percent(least).s, explain_points(e, f), amount_time(r->ceiling_us / least).s,
                     amount_time(least * r->baseline_us).s);
}

static void say_potential(const explain *e) {
    const double share = share_of(e), need = e->thresholds->medium_potential;
    if (!is_rule(e, "anything else") || !(share > 0)) return;
    const double us = e->r->baseline_us * (1 - need / share);
    if (us > 0)
        explain_tell(e, "A ceiling below %s would leave %s of the model's time to gain, enough for a kernel.",
                     amount_time(us).s, amount_percent(need).s);
    else
        explain_tell(e, "It would be worth a custom kernel if it took more than %s of a model's time: %s now.",
                     amount_percent(need).s, amount_percent(share).s);
}

/* ---- what was not measured ---- */

static void say_missing(const explain *e) {
    const study_report *r = e->r;
    if (!has_time(r) && !is_rule(e, "nothing to do"))
        explain_tell(e, "A baseline with a time: without one nothing can be compared.");
    else if (is_rule(e, "not measured"))
        explain_tell(e, "A ceiling: ceiling-scout ceilings measures it.");
    if (is_rule(e, "ceiling not known well enough"))
        explain_tell(e, "A ceiling that is known to %s: ceiling-scout ceilings --no-cache measures it again.",
                     amount_percent(e->thresholds->ceiling_ci).s);
    if (r->bad_rows > 0)
        explain_tell(e, "%d candidate%s failed; a corrected one may be faster.", r->bad_rows,
                     r->bad_rows == 1 ? "" : "s");
}

void explain_changes(const explain *e) {
    explain_title(e, "What would change it");
    say_missing(e);
    say_efficiency(e);
    say_proof(e);
    say_kernels(e);
    say_rival(e);
    say_potential(e);
    if (e->r->said && !plain_same(e->r->said, e->r->verdict.approach))
        explain_tell(e, "The report itself says %s: by its thresholds, and the model's time when it was written.",
                     e->r->said);
}
