/* Owns who is measured once more: a machine that others use is restless for a while and quiet for a while, and so is a
 * card at its power limit. What a budget has left when every operation has had a turn goes to those whose baseline
 * would not settle, or what looks faster than it, once each; fusions are measured after that, as they compare with
 * both. */
#include "scout/run_internal.h"

#include <math.h>

static const double LEAST_SECONDS = 0.2;

/* What of a measurement would not settle. */
typedef enum doubt { NOTHING, WINNER, BASELINE } doubt;

static doubt doubt_of(const run *r, const run_item *i) {
    report_figures f;
    const report_input in = run_input(r, i, -1);
    report_read(&in, &f);
    if (f.status == ROW_UNSTABLE) return BASELINE;
    return f.status == ROW_OK && f.rival_status == ROW_UNSTABLE && f.rival_ratio < 1 ? WINNER : NOTHING;
}

static bool may(const run *r, const run_item *i) {
    return i->source == RUN_MEASURED && i->started && !i->again && doubt_of(r, i) != NOTHING;
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
    chosen->budget_s = fmin(usual_s, fmax(chosen->budget_s, left_s * r->device_count * chosen->weight / weights));
    return chosen;
}
