/* Whether launches became slower or faster over the looks at them, beyond what their noise explains. */
#include "scout/stats.h"
#include "scout/timing_judge.h"

#include <math.h>
#include <stdlib.h>

static const double drift_floor = 0.01; /* less is no drift worth the word */

/* Slope by Theil and Sen over their moments: what goes forth and back is not evenly spaced. */
static double slope_of(const double *y, const timing_look *looks, size_t n) {
    double *slopes = calloc(n * (n - 1) / 2, sizeof *slopes);
    size_t count = 0;
    if (!slopes) return NAN;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++) {
            const double apart_s = looks[j].moment_s - looks[i].moment_s;
            if (apart_s > 0) slopes[count++] = (y[j] - y[i]) / apart_s;
        }
    const double slope = stats_median(slopes, count);
    free(slopes);
    return slope;
}

/* The relative change over n >= 2 looks, and how much of one their noise could feign. */
static double change_over(const double *y, const timing_look *looks, size_t n, double *feigned) {
    const double slope = slope_of(y, looks, n), median = stats_median(y, n);
    const double whole_s = looks[n - 1].moment_s - looks[0].moment_s;
    double *residuals = calloc(2 * n, sizeof *residuals);
    *feigned = INFINITY;
    if (!residuals || isnan(slope)) {
        free(residuals);
        return 0;
    }
    double *moments = residuals + n;
    for (size_t k = 0; k < n; k++) {
        moments[k] = looks[k].moment_s;
        residuals[k] = y[k] - slope * (moments[k] - moments[0]);
    }
    /* The deviation of a slope over these moments, times the time between the first and the last. */
    const double width_s = stats_deviation(moments, n) * sqrt((double)n - 1);
    *feigned = n > 2 ? stats_t95(n - 1) * stats_deviation(residuals, n) / median * whole_s / width_s : 0;
    free(residuals);
    return slope * whole_s / median;
}

/* What the intervals within the first and the last block leave open. */
static double noise_of_ends(const timing_series *s, size_t from) {
    if (s->steered) return timing_noise_ends();
    const timing_block *ends[] = {&s->blocks[from], &s->blocks[s->block_count - 1]};
    double sum = 0;
    for (int k = 0; k < 2; k++) {
        const double half = stats_median_interval(s->x + ends[k]->first, ends[k]->count, 0, 1).relative;
        sum += isfinite(half) ? half * half : 0; /* a block of one interval says nothing about it */
    }
    return sqrt(sum);
}

bool timing_drift(const timing_series *s, const timing_look *looks, size_t n, timing_opinion *o) {
    double *y = calloc(2 * n, sizeof *y);
    if (!y) return false;
    double *clocks = y + n, feigned = 0;
    bool known = true;
    for (size_t k = 0; k < n; k++) {
        y[k] = looks[k].level_s;
        clocks[k] = looks[k].clock_mhz;
        known = known && clocks[k] > 0;
    }
    o->drift = n > 1 ? change_over(y, looks, n, &feigned) : 0;
    if (n > 1 && fabs(o->drift) > drift_floor) {
        o->drifts = fabs(o->drift) > fmax(feigned, noise_of_ends(s, o->first_block));
        const double moved = known ? change_over(clocks, looks, n, &feigned) : 0;
        o->by_clock = o->drifts && fabs(moved) > drift_floor && moved * o->drift < 0;
    }
    free(y);
    return true;
}
