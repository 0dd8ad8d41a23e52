/* Medians, their intervals by a block bootstrap, and slopes by Theil and Sen. */
#include "scout/stats.h"

#include <math.h>
#include <stdlib.h>

/* Of long series fewer resamples do: draws in all, and the least and most resamples. */
enum { DRAWS = 400000, FEWEST_RESAMPLES = 200, RESAMPLES = 1000, SLOPE_POINTS = 512 };

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

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
    qsort(copy, kept, sizeof *copy, by_value);
    const double found = sorted_quantile(copy, kept, q);
    free(copy);
    return found;
}

double stats_median(const double *x, size_t n) { return stats_quantile(x, n, 0.5); }

double stats_mean(const double *x, size_t n) {
    double sum = 0;
    size_t kept = 0;
    for (size_t k = 0; k < n; k++) {
        if (!isfinite(x[k])) continue;
        sum += x[k];
        kept++;
    }
    return kept ? sum / (double)kept : NAN;
}

double stats_middle_mean(const double *x, size_t n, size_t cut) {
    size_t kept;
    double *copy = finite_copy(x, n, &kept);
    if (!copy || 2 * cut >= kept) {
        free(copy);
        return NAN;
    }
    qsort(copy, kept, sizeof *copy, by_value);
    const double mean = stats_mean(copy + cut, kept - 2 * cut);
    free(copy);
    return mean;
}

double stats_trimmed_mean(const double *x, size_t n) {
    size_t finite = 0;
    for (size_t k = 0; k < n; k++) finite += isfinite(x[k]) != 0;
    return stats_middle_mean(x, n, finite > 2 ? (finite + 9) / 10 : 0);
}

double stats_deviation(const double *x, size_t n) {
    const double mean = stats_mean(x, n);
    double sum = 0;
    size_t kept = 0;
    for (size_t k = 0; k < n; k++) {
        if (!isfinite(x[k])) continue;
        sum += (x[k] - mean) * (x[k] - mean);
        kept++;
    }
    if (kept == 0) return NAN;
    return kept > 1 ? sqrt(sum / (double)(kept - 1)) : 0;
}

double stats_t95(size_t degrees) {
    static const double table[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                   2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086};
    enum { LISTED = sizeof table / sizeof table[0] };
    if (degrees == 0) return INFINITY;
    /* Beyond the table its expansion in 1/degrees is right to three digits. */
    return degrees <= LISTED ? table[degrees - 1] : 1.960 + 2.372 / (double)degrees + 2.8 / pow((double)degrees, 2);
}

/* --- the bootstrap --- */

static uint64_t next_random(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

typedef struct ranked {
    double value;
    size_t index;
} ranked;

static int by_ranked_value(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* What a resample is drawn from. Ranks instead of values: a resample's median is then found by counting, not sorting.
 */
typedef struct pool {
    size_t n;
    double *sorted;
    size_t *rank;   /* of each sample, in the order in which they were taken */
    size_t *counts; /* of one resample, by rank */
} pool;

static void pool_free(pool *p) {
    free(p->sorted);
    free(p->rank);
    free(p->counts);
}

static bool pool_of(pool *p, const double *x, size_t n) {
    *p = (pool){.n = n};
    ranked *order = calloc(n, sizeof *order);
    p->sorted = calloc(n, sizeof *p->sorted);
    p->rank = calloc(n, sizeof *p->rank);
    p->counts = calloc(n, sizeof *p->counts);
    const bool good = order && p->sorted && p->rank && p->counts;
    if (good) {
        for (size_t k = 0; k < n; k++) order[k] = (ranked){x[k], k};
        qsort(order, n, sizeof *order, by_ranked_value);
        for (size_t k = 0; k < n; k++) {
            p->sorted[k] = order[k].value;
            p->rank[order[k].index] = k;
        }
    }
    free(order);
    return good;
}

static double resampled_median(pool *p, size_t block, uint64_t *random) {
    for (size_t k = 0; k < p->n; k++) p->counts[k] = 0;
    for (size_t taken = 0; taken < p->n;) {
        size_t at = next_random(random) % p->n;
        /* Round the end to the beginning: otherwise samples near the ends would be drawn less often. */
        for (size_t k = 0; k < block && taken < p->n; k++, taken++) {
            p->counts[p->rank[at]]++;
            at = at + 1 < p->n ? at + 1 : 0;
        }
    }
    const size_t lower = (p->n - 1) / 2, upper = p->n / 2;
    size_t rank = 0, seen = p->counts[0];
    while (seen <= lower) seen += p->counts[++rank];
    const double low = p->sorted[rank];
    while (seen <= upper) seen += p->counts[++rank];
    return 0.5 * (low + p->sorted[rank]);
}

/* Few samples: what Student says of a median of normal ones, whose deviation is 1.2533 times that of a mean. */
static double student_half(const double *x, size_t n) {
    const double efficiency = n > 2 ? 1.2533 : 1;
    return stats_t95(n - 1) * stats_deviation(x, n) / sqrt((double)n) * efficiency;
}

stats_interval stats_median_interval(const double *x, size_t n, size_t block, uint64_t seed) {
    stats_interval out = {NAN, NAN, NAN};
    double medians[RESAMPLES];
    pool p = {0};
    size_t kept;
    uint64_t random = seed;
    double *copy = finite_copy(x, n, &kept);
    if (!copy || !pool_of(&p, copy, kept)) goto done;
    const double median = sorted_quantile(p.sorted, kept, 0.5);
    if (kept == 1) {
        out = (stats_interval){median, median, INFINITY};
        goto done;
    }
    if (block == 0) block = (size_t)cbrt((double)kept);
    if (block < 1) block = 1;
    size_t resamples = DRAWS / kept;
    if (resamples < FEWEST_RESAMPLES) resamples = FEWEST_RESAMPLES;
    if (resamples > RESAMPLES) resamples = RESAMPLES;
    for (size_t k = 0; k < resamples; k++) medians[k] = resampled_median(&p, block, &random);
    qsort(medians, resamples, sizeof medians[0], by_value);
    out.low = sorted_quantile(medians, resamples, 0.025);
    out.high = sorted_quantile(medians, resamples, 0.975);
    if (kept < STATS_FEW) {
        const double half = student_half(copy, kept);
        out.low = fmin(out.low, median - half);
        out.high = fmax(out.high, median + half);
    }
    out.relative = median != 0 ? (out.high - out.low) / 2 / fabs(median) : INFINITY;
done:
    pool_free(&p);
    free(copy);
    return out;
}

stats_interval stats_ratio_interval(const double *a, const double *b, size_t pairs, uint64_t seed, double *ratio) {
    stats_interval out = {NAN, NAN, NAN};
    if (ratio) *ratio = NAN;
    double *quotients = pairs ? calloc(pairs, sizeof *quotients) : NULL;
    if (!quotients) return out;
    for (size_t k = 0; k < pairs; k++) quotients[k] = a[k] / b[k]; /* by 0: not finite, and left out */
    out = stats_median_interval(quotients, pairs, 1, seed);
    if (ratio) *ratio = stats_median(quotients, pairs);
    free(quotients);
    return out;
}

double stats_relative_drift(const double *y, size_t n) {
    const double median = stats_median(y, n);
    if (isnan(median) || median == 0) return NAN;
    /* All pairs of a long series are too many; evenly spaced points of it show the same slope. */
    const size_t step = n / SLOPE_POINTS + 1, points = (n + step - 1) / step;
    if (points < 2) return 0;
    double *slopes = calloc(points * (points - 1) / 2, sizeof *slopes);
    if (!slopes) return NAN;
    size_t count = 0;
    for (size_t i = 0; i < n; i += step)
        for (size_t j = i + step; j < n; j += step) slopes[count++] = (y[j] - y[i]) / (double)(j - i);
    const double slope = stats_median(slopes, count);
    free(slopes);
    return slope * (double)n / fabs(median);
}
