/* Why the verdict is what it is: the rules up to the one that applied, and every threshold with what is compared with
 * it. The rules themselves are common/verdict.c; here is what each has to say of one operation. */
#include "analyze/explain/explain.h"

#include "common/amount.h"
#include "common/plain.h"

#include <math.h>
#include <string.h>

static const verdict_figure *figure(const explain *e, verdict_figures which) { return &e->r->verdict.figures[which]; }
static const char *said(const char *text) { return text ? text : "not known"; }
/* ---- what each rule looked at ---- */

static const char *work(const explain *e) {
    return plain_same(e->r->reason_code, "no_work") ? "it computes nothing and moves nothing" : "it has work to do";
}

static const char *measured(const explain *e) {
    const study_report *r = e->r;
    if (!(r->baseline_us > 0))
        return arena_printf(e->arena, "the baseline is %s: %s", r->status, r->reason_text ? r->reason_text : "no time");
    return r->ceiling_us > 0 ? "the baseline has a time, and a ceiling is known"
                             : "the baseline has a time, but no ceiling is known";
}

static const char *proven(const explain *e) {
    const verdict_figure *f = figure(e, VERDICT_SAVING);
    const char *margin = arena_printf(e->arena, "%s", amount_percent(e->thresholds->margin).s);
    if (f->x == 0 && !(f->half > 0)) return "the baseline is the fastest valid candidate";
    return arena_printf(e->arena, "the best saves %s; the whole interval must lie above %s", explain_points(e, *f),
                        margin);
}

static const char *proven_launch(const explain *e) {
    return arena_printf(e->arena, "%s; it is bound by %s", proven(e), said(e->r->bound));
}

static const char *fusion(const explain *e) {
    return e->r->fusion ? "it is a fusion, and no gain of it is proven" : "it is no fusion";
}

static const char *launch(const explain *e) {
    return arena_printf(e->arena, "launch overhead is %s of the ceiling, and bounds it from 50 %% on (%s does)",
                        explain_points(e, *figure(e, VERDICT_FLOOR)), said(e->r->bound));
}

static const char *data(const explain *e) {
    return plain_same(e->r->bound, "data") ? "how much it does depends on its data" : "its work is known";
}

static const char *exact(const explain *e) {
    const double ci = e->r->ceiling_ci, most = e->thresholds->ceiling_ci;
    const char *to = arena_printf(e->arena, "%s", amount_percent(most).s);
    if (!isfinite(ci)) return arena_printf(e->arena, "its uncertainty is unknown; %s is needed", to);
    return arena_printf(e->arena, "its uncertainty is %s; %s is needed", amount_within(ci).s, to);
}

static const char *efficient(const explain *e) {
    return arena_printf(e->arena, "efficiency is %s; the whole interval must reach %s",
                        explain_points(e, *figure(e, VERDICT_EFFICIENCY)), amount_percent(e->thresholds->ceiling).s);
}

static const char *either_side(const explain *e) {
    const verdict_figure *f = figure(e, VERDICT_EFFICIENCY);
    const char *in = fabs(f->x - e->thresholds->ceiling) <= f->half ? "in it" : "not in it";
    const char *limit = arena_printf(e->arena, "%s", amount_percent(e->thresholds->ceiling).s);
    if (!isfinite(f->half)) return arena_printf(e->arena, "efficiency is %s", explain_points(e, *f));
    return arena_printf(e->arena, "efficiency is between %.1f and %.1f %%; %s is %s", 100 * (f->x - f->half),
                        100 * (f->x + f->half), limit, in);
}

static const char *kind(const explain *e) {
    return arena_printf(e->arena, "it is %s, %s, on %s", said(e->r->op), said(e->r->pattern), said(e->r->device));
}

static const char *worth(const explain *e) {
    return arena_printf(e->arena, "%s of the model's time is potential; the whole interval must reach %s",
                        explain_points(e, *figure(e, VERDICT_POTENTIAL)),
                        amount_percent(e->thresholds->medium_potential).s);
}

static const char *rest(const explain *e) {
    (void)e;
    return "none of the others applies: no kernel would pay";
}

/* As common/verdict.c names them. */
static const struct {
    const char *rule;
    const char *(*say)(const explain *e);
} sayings[] = {
    {"nothing to do", work},
    {"not measured", measured},
    {"proven, and bound by launching", proven_launch},
    {"proven", proven},
    {"fusion without a gain", fusion},
    {"bound by its data", data},
    {"bound by launching", launch},
    {"ceiling not known well enough", exact},
    {"at the ceiling", efficient},
    {VERDICT_OPEN, either_side},
    {"dense product", kind},
    {"attention", kind},
    {"worth a kernel", worth},
    {"anything else", rest},
};

static const char *saying(const explain *e, const char *rule) {
    for (size_t k = 0; k < sizeof sayings / sizeof sayings[0]; k++)
        if (strcmp(sayings[k].rule, rule) == 0) return sayings[k].say(e);
    return "";
}

static void write_rules(const explain *e) {
    const verdict *v = &e->r->verdict;
    explain_title(e, "Why: the first rule that applies decides");
    for (int k = 0; k <= v->rule && verdict_rule(k); k++)
        explain_say(
            e,
            arena_printf(e->arena, "%s %s ", k == v->rule ? "yes" : "no ", plain_padded(e->arena, verdict_rule(k), 31)),
            saying(e, verdict_rule(k)));
    explain_say(e, "    => ", arena_printf(e->arena, "%s, priority %s", v->approach, v->priority));
}

/* ---- thresholds ---- */

static bool is_asked(const verdict_figure *f) { return isfinite(f->x) && (f->x != 0 || f->half > 0); }

static void write_check(const explain *e, const verdict_check *check) {
    const verdict_figure *f = figure(e, check->figure);
    if (!is_asked(f)) return;
    const double points = 100 * (f->x - check->threshold);
    const char *far = "may be on either side";
    if (isfinite(f->half))
        far = arena_printf(e->arena, "%.*f points %s%s", fabs(points) < 1 ? 2 : 1, fabs(points),
                           points < 0 ? "below" : "above",
                           check->touches ? arena_printf(e->arena, ": open, between %.1f and %.1f %%",
                                                         100 * (f->x - f->half), 100 * (f->x + f->half))
                           : check->near  ? ": within two intervals"
                                          : "");
    explain_say(e, plain_padded(e->arena, check->what, 26),
                arena_printf(e->arena, "%s %7s  %-19s %s", plain_padded(e->arena, explain_points(e, *f), 20),
                             amount_percent(check->threshold).s, check->effect, far));
}

static void write_thresholds(const explain *e) {
    verdict_check checks[VERDICT_CHECKS];
    const verdict *v = &e->r->verdict;
    bool any = false;
    verdict_checks(v, e->thresholds, checks);
    for (int k = 0; k < VERDICT_CHECKS; k++) any = any || is_asked(&v->figures[checks[k].figure]);
    if (!any) return;
    explain_title(e, "Thresholds (gains: of the model's time)");
    for (int k = 0; k < VERDICT_CHECKS; k++) write_check(e, &checks[k]);
    if (v->borderline)
        explain_tell(e, "Borderline: a threshold is within two intervals of the deciding figure, so the next run may "
                        "decide otherwise. Within one interval it is open, and the cheaper action was taken.");
}

void explain_verdict(const explain *e) {
    write_rules(e);
    write_thresholds(e);
}
