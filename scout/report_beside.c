/* Owns whose word a ceiling is. On a host the probe ran among the blocks: what it saw takes the place of what is
 * stored, unless the operation outran it. Where power steers a device's clock it ran before them, and is a second
 * measurement of the same thing: the ceiling is what both say. Measurements come from elsewhere and are not trusted. */
#include "scout/report_beside.h"

#include "common/json_get.h"

#include <math.h>
#include <string.h>

/* A ceiling that is known to less than 5 % is no excuse: it is to be measured again. It is that of dense work: who
 * leaves zeros out may well be faster. */
bool report_beside_outruns(const report_figures *f, double ceiling_us, double ceiling_ci) {
    const bool best = (f->best_us < f->baseline_us || isnan(f->baseline_us)) && !report_skips_zeros(f);
    const double fastest = best ? f->best_us : f->baseline_us;
    const double own = isfinite(f->baseline_ci) && f->baseline_ci > 0 ? f->baseline_ci : 0;
    const double intervals = own + fmin(ceiling_ci, verdict_defaults.ceiling_ci);
    return fastest > 0 && ceiling_us > fastest * (1.01 + intervals);
}

/* Two measurements of the peak as one, each by how well it is known now: since the stored one was made, a clock that
 * power steers may have moved by a percent, which moves the probe and the operation beside it alike. What they are
 * further apart than that, no clock explains: it moves the mean no more, and is doubt about it. */
static void pool(double stored_s, double stored_ci, double *seconds, double *ci) {
    const double drift = 0.01, least = 0.001; /* no interval is narrower: a zero would silence the other one */
    const double a = hypot(fmax(stored_ci, least), drift), b = fmax(*ci, least);
    const double moved = fmin(fmax(*seconds / stored_s - 1, -drift), drift);
    const double mean = stored_s * (1 + moved * a * a / (a * a + b * b));
    const double apart = fabs(*seconds - stored_s) / 2, off = fabs(*seconds - mean);
    *seconds = mean;
    *ci = fmax(a * b / hypot(a, b), fmax(apart, off) / mean);
}

/* A probe that the operation outran is no ceiling: its bytes lay in the cache less well than the operation's. */
void report_beside_read(const json_t *m, ceilings_time *t, report_figures *out) {
    const json_t *probe = json_object_get(m, "probe");
    const char *bound = json_get_text_or_null(probe, "bound");
    const bool before = json_is_false(json_object_get(probe, "among"));
    double seconds = 1e-6 * json_get_positive(probe, "bound_us");
    double ci = json_get_positive(probe, "bound_ci");
    if (isnan(seconds) || !bound) return;
    if (before) {
        if (strcmp(bound, "compute") != 0 || !(t->compute_s > 0) || isnan(ci)) return;
        pool(t->compute_s, t->compute_ci, &seconds, &ci);
    }
    const ceilings_time beside = ceilings_time_beside(*t, bound, seconds, ci);
    if (strcmp(beside.bound, bound) != 0) return; /* another part is the larger one by now, and no probe ran for it */
    if (beside.seconds > t->seconds && report_beside_outruns(out, 1e6 * beside.seconds, beside.rel_ci95)) return;
    out->stored_ceiling_us = 1e6 * t->seconds;
    out->ceiling_from = before ? "both" : "probe";
    *t = beside;
}
