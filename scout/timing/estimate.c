/* Means of logarithms and Student's t. */
#include "scout/timing/estimate.h"

#include <math.h>

/* Half the width of Student's t that holds 96.5 %, by degrees of freedom. An interval that three looks may end holds
 * the truth 2 to 3 % less often than one that ends by itself, so that the intervals that are reported hold it in 93 to
 * 98 % of all runs (tests/unit/test_timing_coverage.c). */
static const double widths[] = {NAN,  18.17, 5.20, 3.67, 3.14, 2.87, 2.71, 2.61, 2.53,
                                2.48, 2.44,  2.40, 2.38, 2.35, 2.33, 2.32, 2.30};

static const size_t looks[] = {4, 7, 13};
enum { LOOKS = sizeof looks / sizeof looks[0], WIDTHS = sizeof widths / sizeof widths[0] };

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

bool estimate_look(size_t passes) {
    for (size_t k = 0; k < LOOKS; k++)
        if (looks[k] == passes) return true;
    return passes > looks[LOOKS - 1];
}

size_t estimate_last_look(void) { return looks[LOOKS - 1]; }
