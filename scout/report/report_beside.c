/* Owns whose word a ceiling is. What ran in neighbouring blocks, at the same clock, takes the place of that part of
 * what is stored, unless the operation outran it. Measurements come from elsewhere and are not trusted. */
#include "scout/report/report_beside.h"

#include "common/json_get.h"

#include <math.h>
#include <string.h>

/* A ceiling that is known to less than 5 % is no excuse: it is to be measured again. It is that of dense work: a
 * candidate that skips zeros may be faster. */
bool report_beside_outruns(const report_figures *f, double ceiling_us, double ceiling_ci) {
    const bool best = (f->best_us < f->baseline_us || isnan(f->baseline_us)) && !verdict_is_sparse(f->family);
    const double fastest = best ? f->best_us : f->baseline_us;
    const double most = verdict_defaults.ceiling_ci;
    const double own = verdict_known(f->baseline_ci) ? f->baseline_ci : most;
    const double intervals = own + fmin(ceiling_ci, most);
    return fastest > 0 && ceiling_us > fastest * (1.01 + intervals);
}

/* A probe that the operation outran is no ceiling: its bytes lay in the cache less well than the operation's. Where
 * another part is the larger one beside what it saw, that one is as it is stored. */
void report_beside_read(const json_t *m, ceilings_time *t, report_figures *out) {
    const json_t *probe = json_object_get(m, "probe");
    const char *bound = json_get_text_or_null(probe, "bound");
    const double seconds = 1e-6 * json_get_positive(probe, "bound_us"), ci = json_get_number(probe, "bound_ci");
    if (isnan(seconds) || !bound || json_is_false(json_object_get(probe, "among"))) return;
    ceilings_time beside = ceilings_time_beside(*t, bound, seconds, ci);
    const bool set = strcmp(beside.bound, bound) == 0;
    if (set && !verdict_known(ci)) beside.rel_ci95 = INFINITY;
    if (beside.seconds > t->seconds && report_beside_outruns(out, 1e6 * beside.seconds, beside.rel_ci95)) return;
    if (set) {
        out->stored_ceiling_us = 1e6 * t->seconds;
        out->ceiling_from = "probe";
    }
    *t = beside;
}
