/* Owns whose word a ceiling is. On a host the probe ran among the blocks: what it saw takes the place of what is
 * stored, unless the operation outran it. Measurements come from elsewhere and are not trusted. */
#include "scout/report_beside.h"

#include <math.h>
#include <string.h>

static double positive(const json_t *x) {
    const double value = json_is_number(x) ? json_number_value(x) : NAN;
    return isfinite(value) && value > 0 ? value : NAN;
}

/* A ceiling that is known to less than 5 % is no excuse: it is to be measured again. */
bool report_beside_outruns(const report_figures *f, double ceiling_us, double ceiling_ci) {
    const double fastest = f->best_us < f->baseline_us || isnan(f->baseline_us) ? f->best_us : f->baseline_us;
    const double own = isfinite(f->baseline_ci) && f->baseline_ci > 0 ? f->baseline_ci : 0;
    const double intervals = own + fmin(ceiling_ci, verdict_defaults.ceiling_ci);
    return fastest > 0 && ceiling_us > fastest * (1.01 + intervals);
}

/* A probe that the operation outran is no ceiling: its bytes lay in the cache less well than the operation's. */
void report_beside_read(const json_t *m, ceilings_time *t, report_figures *out) {
    const json_t *probe = json_object_get(m, "probe");
    const double us = positive(json_object_get(probe, "bound_us")), ci = positive(json_object_get(probe, "bound_ci"));
    const char *bound = json_string_value(json_object_get(probe, "bound"));
    if (isnan(us) || !bound) return;
    const ceilings_time beside = ceilings_time_beside(*t, bound, 1e-6 * us, ci);
    if (strcmp(beside.bound, bound) != 0) return; /* another part is the larger one by now, and no probe ran for it */
    if (beside.seconds > t->seconds && report_beside_outruns(out, 1e6 * beside.seconds, beside.rel_ci95)) return;
    out->stored_ceiling_us = 1e6 * t->seconds;
    *t = beside;
}

const char *report_beside_from(const report_figures *f) { return isfinite(f->stored_ceiling_us) ? "probe" : "stored"; }
