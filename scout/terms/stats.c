/* Quantiles. */
#include "scout/terms/stats.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void stats_sort(double *x, size_t n) { qsort(x, n, sizeof *x, by_value); }

/* The finite ones of x, in their order. NULL where there are none or no memory. The caller frees. */
static double *finite_copy(const double *x, size_t n, size_t *kept) {
    *kept = 0;
    if (n == 0 || n > SIZE_MAX / sizeof *x) return NULL;
    double *copy = malloc(n * sizeof *copy);
    if (!copy) return NULL;
    for (size_t k = 0; k < n; k++)
        if (isfinite(x[k])) copy[(*kept)++] = x[k];
    if (*kept == 0) {
        free(copy);
        return NULL;
    }
    return copy;
}

static double sorted_quantile(const double *sorted, size_t n, double q) {
    const double place = fmin(fmax(q, 0), 1) * (double)(n - 1);
    const size_t below = (size_t)place;
    if (below + 1 >= n) return sorted[n - 1];
    return sorted[below] + (place - (double)below) * (sorted[below + 1] - sorted[below]);
}

double stats_quantile(const double *x, size_t n, double q) {
    size_t kept;
    double *copy = finite_copy(x, n, &kept);
    if (!copy || isnan(q)) {
        free(copy);
        return NAN;
    }
    stats_sort(copy, kept);
    const double found = sorted_quantile(copy, kept, q);
    free(copy);
    return found;
}

double stats_median(const double *x, size_t n) { return stats_quantile(x, n, 0.5); }
