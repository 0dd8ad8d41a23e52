/* Statistics of timed intervals: pure functions of numbers, no clock, no device, no global state. Every random choice
 * (the bootstrap's) comes from a seed, so that the same samples give the same figures.
 *
 * Numbers that are not finite are left out everywhere. Where nothing is left, or the host has no memory left, the
 * figures are not-a-number. */
#ifndef SCOUT_STATS_H
#define SCOUT_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

double stats_median(const double *x, size_t n);             /* not-a-number where n is 0; x is not changed */
double stats_quantile(const double *x, size_t n, double q); /* linear between neighbours */
double stats_mean(const double *x, size_t n);
/* Of those that are left without the `cut` least and greatest; not-a-number where none are. */
double stats_middle_mean(const double *x, size_t n, size_t cut);
/* The same without a tenth at either end (rounded up, from three on): outliers move it not, and where values have
 * several peaks it goes from one to another smoothly, as a median does not. */
double stats_trimmed_mean(const double *x, size_t n);
double stats_deviation(const double *x, size_t n); /* of the sample (n - 1); 0 where n is 1 */

/* Student's t: 95 % of its distribution lie within plus and minus this. */
double stats_t95(size_t degrees);

/* 95 % interval of the median by a block bootstrap: neighbours within a block stay together, so that slow swings widen
 * the interval as they should. block 0: chosen from n (its cube root, at least 1). Below STATS_FEW samples a bootstrap
 * promises too much, and Student's interval is taken where it is wider. (Held against the truth in
 * tests/unit/test_stats.c: independent samples 92 % at 20, 94 % from 150 on; 84 % where neighbours correlate by 0.8.)
 */
enum { STATS_FEW = 20 };
typedef struct stats_interval {
    double low, high;
    double relative; /* half its width over the median; infinite where n is 1 */
} stats_interval;
stats_interval stats_median_interval(const double *x, size_t n, size_t block, uint64_t seed);

/* The same of the ratio of two series taken in neighbouring blocks: pair k is a[k] beside b[k], and the ratio is the
 * median of a[k] / b[k], so that what is common to both of a pair cancels. ratio may be NULL. */
stats_interval stats_ratio_interval(const double *a, const double *b, size_t pairs, uint64_t seed, double *ratio);

/* Slope by Theil and Sen of y over its index, times n, over the median: the relative change over the whole series. */
double stats_relative_drift(const double *y, size_t n);

#endif
