/* Searching once more. How much time an operation has in the first pass follows from what it takes at least, for more
 * is not known then. One that turns out to take far more may have candidates that were not reached. */
#include "scout/run/run_internal.h"

#include <math.h>
#include <string.h>

static const double WORTH = 0.005; /* of the model's time, that could be gained */

double run_search_places(const run_item *i) {
    const double places = i->fusion ? (double)(i->fusion->selected > 0 ? i->fusion->selected : i->fusion->count)
                                    : (double)i->operation->count;
    return i->for_fusion ? fmax(fmax(places, i->stands), 1) : places; /* in no model's time, and held against what is */
}

double run_search_share(const run *r, const run_item *i, double model_us) {
    const double us = json_number_value(json_object_get(i->measurement, "baseline_time_us")),
                 places = run_search_places(i);
    return !(model_us > 0) || r->search.compare || r->axes.count > 0 || places == 0 ? 1 : places * us / model_us;
}

/* Some candidate or variant had no turn. */
static bool is_cut(const run_item *i) {
    const json_t *rows = json_object_get(i->measurement, "candidates");
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *row = json_array_get(rows, k), *reason = json_object_get(row, "reason");
        const char *is = json_get_text(row, "status"), *code = json_get_text(reason, "code");
        if (is && code && strcmp(is, "SKIPPED") == 0 && strcmp(code, "budget") == 0) return true;
    }
    return false;
}

/* A fusion was held against what its parts had run as by then. */
static bool is_held(const run *r, const run_item *i) {
    for (int k = r->list.count; k < r->item_count; k++) {
        const run_item *f = &r->items[k];
        for (int n = 0; f->measurement && f->fusion->how == FUSION_SEQUENCE && n < f->fusion->op_count; n++)
            if (f->fusion->ops[n] == i->operation) return true;
    }
    return false;
}

/* What its first pass took for its tensors, the right result and checks. */
static double beside_of(const run_item *i) { return fmax(i->first_s - i->budget_s, 0); }

/* Seconds that a second search of it gets; 0: none. Where each item is all there is, none is worth more than others. */
static double seconds_of(const run *r, const run_item *i, double model_us, double left_s) {
    const double share = run_search_share(r, i, model_us);
    if (r->search.compare || r->axes.count > 0) return 0;
    if (i->source != RUN_MEASURED || i->ended || i->derived || !(share > WORTH) || !is_cut(i) || is_held(r, i))
        return 0;
    report_figures f;
    const report_input in = run_input(r, i, -1);
    report_read(&in, &f);
    const double most = f.efficiency > 0 ? 1 - fmin(f.efficiency, 1) : 1;
    return most * share > WORTH ? budget_search_again(&r->budget, share, i->budget_s, left_s - beside_of(i)) : 0;
}

/* Fusions that were announced with what it ran as until then are to be announced again. */
void run_search_forget(run *r, const run_item *part) {
    for (int k = r->list.count; k < r->item_count; k++) {
        run_item *f = &r->items[k];
        for (int n = 0; !f->started && f->fusion && f->fusion->how == FUSION_SEQUENCE && n < f->fusion->op_count; n++)
            if (f->fusion->ops[n] == part->operation) f->announced = f->ready = false;
    }
}

/* The heaviest that was not asked yet. NULL: there is none. */
static run_item *heaviest(run *r, int device, run_stage last, double model_us) {
    run_item *chosen = NULL;
    double most = -1;
    for (int k = 0; k < r->item_count; k++) {
        run_item *i = &r->items[k];
        const bool here = i->stage <= last && (i->device == device || r->device_count == 1);
        if (!here || i->again || i->busy || !i->measurement || i->judged > (int)last) continue;
        const double share = run_search_share(r, i, model_us);
        if (share > most) chosen = i, most = share;
    }
    return chosen;
}

void run_search_look(run *r, int device, run_stage last, double model_us, double left_s) {
    for (run_item *i; (i = heaviest(r, device, last, model_us));) {
        const double seconds = seconds_of(r, i, model_us, left_s);
        i->judged = (int)last + 1;
        if (!(seconds > 0)) continue;
        left_s -= seconds + beside_of(i);
        i->again = true;
        i->announced = i->ready = false;
        i->budget_s = seconds;
    }
}

run_item *run_search_next(run *r, int device, bool wait, double left_s) {
    run_item *chosen = NULL;
    for (int k = 0; k < r->item_count; k++) {
        run_item *i = &r->items[k];
        const bool here = i->device == device || r->device_count == 1;
        if (here && !i->busy && !(left_s > (i->ready ? 0 : i->budget_s))) i->again = false; /* it waited too long */
        if (here && i->again && !i->busy && (wait || i->ready) && (!chosen || i->budget_s > chosen->budget_s))
            chosen = i;
    }
    return chosen;
}
