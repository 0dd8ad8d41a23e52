/* Statistics: figures known by hand, and intervals held against the truth many times over. All randomness is seeded. */
#include "scout/stats.h"
#include "tests/unit/noisy.h"
#include "tests/unit/unit.h"

#include <math.h>

enum { REPEATS = 1000, MOST = 400 };

static bool near(double got, double want, double tolerance) { return fabs(got - want) <= tolerance; }

static void medians_and_quantiles(void) {
    const double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2}, holes[] = {NAN, 7, INFINITY, 9, -INFINITY};
    UNIT_CHECK(stats_median(odd, 3) == 3);
    UNIT_CHECK(odd[0] == 5 && odd[1] == 1 && odd[2] == 3);
    UNIT_CHECK(stats_median(even, 4) == 2.5);
    UNIT_CHECK(stats_quantile(even, 4, 0) == 1);
    UNIT_CHECK(stats_quantile(even, 4, 1) == 4);
    UNIT_CHECK(near(stats_quantile(even, 4, 0.25), 1.75, 1e-12));
    UNIT_CHECK(stats_quantile(even, 4, 7) == 4);
    UNIT_CHECK(isnan(stats_quantile(even, 4, NAN)));
    UNIT_CHECK(stats_median(holes, 5) == 8);
    UNIT_CHECK(stats_mean(holes, 5) == 8);
    const double outlier[] = {3, 100, 1, 2, -50}; /* 1, 2 and 3 are left */
    UNIT_CHECK(stats_trimmed_mean(outlier, 5) == 2 && stats_middle_mean(outlier, 5, 2) == 2);
    UNIT_CHECK(stats_middle_mean(outlier, 5, 0) == 11.2 && isnan(stats_middle_mean(outlier, 5, 3)));
    UNIT_CHECK(stats_trimmed_mean(even, 2) == 2.5 && stats_trimmed_mean(holes, 5) == 8);
    UNIT_CHECK(stats_mean(even, 4) == 2.5);
    UNIT_CHECK(near(stats_deviation(even, 4), sqrt(5.0 / 3), 1e-12));
    UNIT_CHECK(stats_deviation(even, 1) == 0);
}

static void nothing_is_not_a_number(void) {
    const double bad[] = {NAN, INFINITY};
    double ratio = 1;
    UNIT_CHECK(isnan(stats_median(NULL, 0)) && isnan(stats_mean(NULL, 0)) && isnan(stats_deviation(NULL, 0)));
    UNIT_CHECK(isnan(stats_median(bad, 2)));
    UNIT_CHECK(isnan(stats_median_interval(bad, 2, 0, 1).relative));
    UNIT_CHECK(isnan(stats_ratio_interval(NULL, NULL, 0, 1, &ratio).relative) && isnan(ratio));
    UNIT_CHECK(isnan(stats_relative_drift(bad, 2)));
}

static void student(void) {
    UNIT_CHECK(near(stats_t95(1), 12.706, 1e-3) && near(stats_t95(2), 4.303, 1e-3) && near(stats_t95(20), 2.086, 1e-3));
    UNIT_CHECK(near(stats_t95(30), 2.042, 2e-3) && near(stats_t95(60), 2.000, 2e-3) &&
               near(stats_t95(10000), 1.960, 1e-3));
    UNIT_CHECK(isinf(stats_t95(0)));
    for (size_t k = 1; k < 100; k++) UNIT_CHECK(stats_t95(k) > stats_t95(k + 1));
}

static void normal_series(double *x, size_t n, double deviation, uint64_t *random) {
    for (size_t k = 0; k < n; k++) x[k] = 100 * (1 + deviation * noisy_normal(random));
}

static void the_same_seed_gives_the_same_interval(void) {
    double x[50];
    uint64_t random = 3;
    normal_series(x, 50, 0.01, &random);
    const stats_interval a = stats_median_interval(x, 50, 0, 9), b = stats_median_interval(x, 50, 0, 9);
    UNIT_CHECK(a.low == b.low && a.high == b.high && a.relative == b.relative);
    UNIT_CHECK(a.low < a.high && a.low <= stats_median(x, 50) && stats_median(x, 50) <= a.high);
    UNIT_CHECK(near(a.relative, (a.high - a.low) / 2 / stats_median(x, 50), 1e-12));
}

static void one_sample_and_equal_samples(void) {
    const double same[] = {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4};
    const stats_interval one = stats_median_interval(same, 1, 0, 1), all = stats_median_interval(same, 13, 0, 1);
    UNIT_CHECK(isinf(one.relative) && one.low == 4);
    UNIT_CHECK(all.relative == 0 && all.low == 4 && all.high == 4);
    UNIT_CHECK(stats_median_interval(same, 13, 50, 1).relative == 0); /* a block longer than the series */
}

/* How often the interval holds the truth, of REPEATS; correlation: of a sample with the one before it. */
static int coverage(size_t n, size_t block, double correlation) {
    int held = 0;
    for (uint64_t seed = 0; seed < REPEATS; seed++) {
        double x[MOST], state = 0;
        uint64_t random = seed * 1000003 + n;
        state = noisy_normal(&random);
        for (size_t k = 0; k < n; k++) {
            state = correlation * state + sqrt(1 - correlation * correlation) * noisy_normal(&random);
            x[k] = 100 + state;
        }
        const stats_interval i = stats_median_interval(x, n, block, seed);
        held += i.low <= 100 && 100 <= i.high;
    }
    return held;
}

static void intervals_hold_the_truth(void) {
    static const struct {
        size_t n;
        int at_least; /* of a thousand */
    } cases[] = {{2, 930}, {3, 940}, {5, 940}, {12, 940}, {19, 940}, {20, 910}, {40, 920}, {150, 930}, {400, 930}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        const int held = coverage(cases[k].n, 0, 0);
        if (!UNIT_CHECK(held >= cases[k].at_least)) printf("  n %zu: %d of %d\n", cases[k].n, held, REPEATS);
    }
}

/* Samples that hang together: resampling them one by one promises far too much, blocks promise nearly the right. */
static void blocks_widen_the_interval_of_slow_swings(void) {
    const int alone = coverage(400, 1, 0.8), blocks = coverage(400, 0, 0.8), long_blocks = coverage(400, 25, 0.8);
    UNIT_CHECK(alone < 600);
    UNIT_CHECK(blocks > alone + 150);
    UNIT_CHECK(long_blocks > 860);
}

static void ratios_do_not_see_what_is_common(void) {
    int held = 0;
    double widest = 0;
    for (uint64_t seed = 0; seed < REPEATS; seed++) {
        double a[16], b[16], ratio;
        uint64_t random = seed + 77;
        for (size_t k = 0; k < 16; k++) {
            const double common = 1 + 0.25 * noisy_uniform(&random) + 0.02 * (double)k;
            a[k] = 0.9 * common * (1 + 0.002 * noisy_normal(&random));
            b[k] = common * (1 + 0.002 * noisy_normal(&random));
        }
        const stats_interval i = stats_ratio_interval(a, b, 16, seed, &ratio);
        held += i.low <= 0.9 && 0.9 <= i.high;
        widest = fmax(widest, fmax(i.relative, fabs(ratio / 0.9 - 1)));
    }
    UNIT_CHECK(held >= 910);
    UNIT_CHECK(widest < 0.005); /* while either series swings by a quarter */
    const double zero[] = {0, 1}, two[] = {2, 2};
    double ratio;
    (void)stats_ratio_interval(two, zero, 2, 1, &ratio);
    UNIT_CHECK(ratio == 2); /* the pair over nothing is left out */
}

static void slopes(void) {
    double line[1500], flat[10] = {5, 5, 5, 5, 5, 5, 5, 5, 5, 5};
    for (size_t k = 0; k < 1500; k++) line[k] = 100 + 0.01 * (double)k;
    UNIT_CHECK(near(stats_relative_drift(line, 11), 0.11 / 100.05, 1e-9));
    UNIT_CHECK(near(stats_relative_drift(line, 1500), 15 / 107.495, 1e-3)); /* thinned */
    line[3] = 1e6;                                                          /* one wild sample changes nothing */
    UNIT_CHECK(near(stats_relative_drift(line, 100), 1 / 100.5, 1e-3));
    UNIT_CHECK(stats_relative_drift(flat, 10) == 0 && stats_relative_drift(flat, 1) == 0);
    flat[9] = 4;
    UNIT_CHECK(stats_relative_drift(flat, 10) == 0);
}

int main(void) {
    UNIT_RUN(medians_and_quantiles);
    UNIT_RUN(nothing_is_not_a_number);
    UNIT_RUN(student);
    UNIT_RUN(the_same_seed_gives_the_same_interval);
    UNIT_RUN(one_sample_and_equal_samples);
    UNIT_RUN(intervals_hold_the_truth);
    UNIT_RUN(blocks_widen_the_interval_of_slow_swings);
    UNIT_RUN(ratios_do_not_see_what_is_common);
    UNIT_RUN(slopes);
    return unit_end();
}
