/* Means of logarithms and Student's t. */
#include "scout/timing/estimate.h"

#include "scout/terms/stats.h"

#include <math.h>

/* Half the width of Student's t that holds 97.7 % of three passes, 96.5 % of four and 96.8 % of more, by degrees of
 * freedom. Four looks may end a measurement, and what one ends wrongly is not made good. So the truth is held up to
 * 3 % less often than by an interval that nothing chose: in 93 to 98 % of all runs, and in 90 % where it lies at the
 * margin itself (tests/unit/scout/test_timing_coverage.c). */
static const double widths[] = {NAN,  18.17, 6.50, 3.67, 3.23, 2.95, 2.78, 2.67, 2.59,
                                2.53, 2.49,  2.45, 2.43, 2.40, 2.38, 2.36, 2.35};

static const size_t looks[] = {4, 7, 13, 26};
const size_t estimate_decided = 13;
const double estimate_agreement = 1.08;
const double estimate_floor = 0.03;
enum { AGREEING = 3, LOOKS = sizeof looks / sizeof looks[0], WIDTHS = sizeof widths / sizeof widths[0] };

static double width_of(size_t degrees) { return widths[degrees < WIDTHS ? degrees : WIDTHS - 1]; }

estimate estimate_of(const double *x, size_t n) {
    estimate e = {.x = NAN, .ci = INFINITY, .least = INFINITY, .most = -INFINITY};
    double sum = 0, squares = 0;
    for (size_t k = 0; k < n; k++) {
        if (!(x[k] > 0) || !isfinite(x[k])) continue;
        sum += log(x[k]);
        e.least = fmin(e.least, x[k]);
        e.most = fmax(e.most, x[k]);
        e.passes++;
    }
    if (e.passes == 0) return e;
    const double mean = sum / (double)e.passes;
    e.x = exp(mean);
    for (size_t k = 0; k < n; k++)
        if (x[k] > 0 && isfinite(x[k])) squares += pow(log(x[k]) - mean, 2);
    if (e.passes < 2) return e;
    const double deviation = sqrt(squares / (double)(e.passes - 1));
    e.ci = width_of(e.passes - 1) * deviation / sqrt((double)e.passes);
    return e;
}

/* How a time goes with the clock, as its exponent: of a product 0.95, of a copy of much memory 0. What the blocks of
 * all passes say of it, and between passes, where other things differ as well, what these do; where the clock hardly
 * moved, something in the middle, which then hardly matters. */
static const double middle = 0.5, middle_error = 0.4, pass_error = 0.01, least_error = 0.0005;

typedef struct exponent {
    double x, error; /* its standard error */
} exponent;

static exponent exponent_of(const estimate_pass *passes, size_t n) {
    double weight = 1 / (middle_error * middle_error), sum = weight * middle, x = 0, clock = 0;
    double xx = 0, xy = 0, yy = 0, degrees = -1;
    for (size_t k = 0; k < n; k++) {
        const estimate_pass *p = &passes[k];
        xx += p->xx, xy += p->xy, yy += p->yy, degrees += p->n - 1;
        x += log(p->x) / (double)n;
        clock += log(p->clock) / (double)n;
    }
    const double left = xx > 0 && degrees > 0 ? fmax(yy - xy * xy / xx, 0) / degrees : 1;
    const double block = fmax(left, least_error * least_error), pass = pass_error * pass_error;
    weight += xx / block, sum -= xy / block;
    for (size_t k = 0; k < n; k++) {
        const double at = log(passes[k].clock) - clock, by = log(passes[k].x) - x;
        weight += at * at / pass, sum -= at * by / pass;
    }
    return (exponent){fmin(fmax(sum / weight, 0), 1.3), 1 / sqrt(weight)};
}

enum { MOST = 64, ENOUGH = 5 };

/* Something else may happen in a pass: its time lies so many times further from what the others have at its clock than
 * half of these do. What it says of the clock is left out, its time is not. */
static const double odd = 6;

static size_t agreeing(const estimate_pass *passes, size_t n, double slope, estimate_pass *to) {
    double x[MOST], far[MOST];
    size_t count = 0;
    for (size_t k = 0; k < n; k++) x[k] = log(passes[k].x) + slope * log(passes[k].clock);
    const double half = stats_median(x, n);
    for (size_t k = 0; k < n; k++) far[k] = fabs(x[k] - half);
    const double most = odd * fmax(stats_median(far, n), pass_error);
    for (size_t k = 0; k < n; k++)
        if (n < ENOUGH || far[k] <= most) to[count++] = passes[k];
    return count;
}

/* Of a mean of n passes, and of another part of its standard error, which hundreds of blocks tell: the interval of
 * both, by Welch and Satterthwaite. */
static double widened(double ci, size_t n, double error) {
    if (n < 2 || !isfinite(ci)) return ci;
    enum { FEW = 4 }; /* of fewer passes the spread may be small by luck */
    const double own = ci / width_of(n - 1), both = hypot(own, error);
    const double degrees = own > 0 ? (double)(n - 1) * pow(both / own, 4) : WIDTHS;
    const double wide = width_of((size_t)fmin(degrees, WIDTHS)) * both;
    return n < FEW ? fmax(ci, wide) : wide;
}

/* The highest clock of passes is the middle one of those so near to the highest: it grows with no number of passes, and
 * a light load may overshoot its clock by 5 % in a pass. */
static const double near_most = 0.95;

estimate estimate_at_clock(const estimate_pass *passes, size_t n, estimate_clock *at) {
    double mean = 0, most = 0, held = 0, held_error = 0, x[MOST];
    estimate_pass good[MOST];
    size_t holds = 0, highs = 0;
    if (n > MOST) n = MOST;
    for (size_t k = 0; k < n; k++) {
        mean += log(passes[k].clock) / (double)n;
        most = fmax(most, passes[k].clock);
    }
    for (size_t k = 0; k < n; k++)
        if (passes[k].clock >= near_most * most) x[highs++] = passes[k].clock;
    for (size_t k = 0; k < n; k++)
        if (passes[k].held > 0) held += log(passes[k].held), held_error += passes[k].held_error, holds++;
    at->clock = holds > 0 ? exp(held / (double)holds) : stats_median(x, highs);
    exponent e = exponent_of(passes, n);
    const size_t agree = agreeing(passes, n, e.x, good);
    if (agree < n) e = exponent_of(good, agree);
    for (size_t k = 0; k < n; k++) x[k] = passes[k].x * pow(passes[k].clock / at->clock, e.x);
    estimate all = estimate_of(x, n);
    /* The pass that was held tells how its time goes with the clock: what its blocks were off by, its part of the mean
     * is as well, the other way round. */
    const double part = holds > 0 && all.passes > 2 ? 1 - 2 / (double)all.passes : 1;
    all.ci = widened(all.ci, all.passes, sqrt(part) * fabs(mean - log(at->clock)) * e.error);
    at->ci = holds > 0 ? held_error / (double)holds : 0;
    at->slope = e.x;
    return all;
}

double estimate_slowest(double *x, size_t n) {
    stats_sort(x, n);
    for (size_t k = 0; k + AGREEING <= n; k++)
        if (x[k + AGREEING - 1] <= estimate_agreement * x[k]) return estimate_agreement * x[k];
    return INFINITY;
}

bool estimate_look(size_t passes) {
    for (size_t k = 0; k < LOOKS; k++)
        if (looks[k] == passes) return true;
    return passes > looks[LOOKS - 1];
}

size_t estimate_last_look(void) { return looks[LOOKS - 1]; }
