/* Owns who is measured once more: a machine that others use is restless for a while and quiet for a while, so what a
 * budget has left when everybody has had a turn goes to those whose baseline would not settle, once each. */
#include "scout/run_internal.h"

#include <math.h>

static const double LEAST_SECONDS = 0.2;

static row_status status_of(const run *r, const run_item *i) {
    report_figures f;
    const report_input in = run_input(r, i, -1);
    report_read(&in, &f);
    return f.status;
}

static bool may(const run *r, const run_item *i) {
    return i->source == RUN_MEASURED && i->started && !i->again && status_of(r, i) == ROW_UNSTABLE;
}

bool run_again_keep(const run *r, run_item *i, json_t *earlier) {
    const bool better = status_of(r, i) == ROW_OK;
    json_decref(better ? earlier : i->measurement);
    if (!better) i->measurement = earlier;
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
