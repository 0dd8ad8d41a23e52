/* Owns who is measured once more: a machine that others use is restless for a while and quiet for a while, and so is a
 * card at its power limit. What a budget has left when every operation has had a turn goes to those whose baseline
 * would not settle, or what looks faster than it, once each; fusions are measured after that, as they compare with
 * both. */
#include "scout/run_internal.h"

#include <math.h>

static const double LEAST_SECONDS = 0.2;

/* What of a measurement would not settle; the worst last, which is one without figures. */
typedef enum doubt { NOTHING, WINNER, BASELINE, FAILED } doubt;

/* By the margin, over the baseline and over whoever beats it already; a ratio that may be anything may be that, too. */
static bool might_win(const report_figures *f) {
    const double margin = verdict_defaults.margin, beaten = f->ratio > 0 && f->ratio < 1 ? f->ratio : 1;
    const double ci = f->rival_ratio_ci < 1 ? f->rival_ratio_ci : 1;
    return f->rival_ratio < beaten && f->rival_ratio * (1 - ci) < beaten * (1 - margin);
}

static doubt doubt_of(const run *r, const run_item *i) {
    report_figures f;
    const report_input in = run_input(r, i, -1);
    report_read(&in, &f);
    if (f.status != ROW_OK) return f.status == ROW_UNSTABLE ? BASELINE : FAILED;
    return f.rival_status == ROW_UNSTABLE && might_win(&f) ? WINNER : NOTHING;
}

static bool may(const run *r, const run_item *i) {
    if (i->source != RUN_MEASURED || !i->started || i->again) return false;
    const doubt d = doubt_of(r, i);
    return d == WINNER || d == BASELINE;
}

bool run_again_keep(const run *r, run_item *i, json_t *earlier) {
    json_t *later = i->measurement;
    const doubt left = doubt_of(r, i);
    i->measurement = earlier;
    const bool better = left < doubt_of(r, i);
    i->measurement = better ? later : earlier;
    json_decref(better ? earlier : later);
    return better;
}

run_item *run_again_choose(run *r, int device, double usual_s) {
    run_item *chosen = NULL;
    double weights = 0;
    const double left_s = r->budget_end - run_now();
    if (r->budget_end == 0) return NULL;
    for (int k = 0; k < r->list.count; k++) {
        run_item *i = &r->items[k];
        if (i->device != device || !may(r, i)) continue;        /* its two measurements are of one device */
        if (left_s < fmax(i->seconds, LEAST_SECONDS)) continue; /* it would be no better */
        weights += i->weight;
        if (!chosen || i->weight > chosen->weight) chosen = i;
    }
    if (!chosen) return NULL;
    chosen->again = true;
    chosen->budget_s = fmin(fmin(usual_s, left_s), fmax(chosen->budget_s, left_s * chosen->weight / weights));
    return chosen;
}
