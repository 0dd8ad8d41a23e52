/* Quantiles: figures known by hand. */
#include "scout/terms/stats.h"
#include "tests/unit/unit.h"

#include <math.h>

static void medians_and_quantiles(void) {
    const double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2}, holes[] = {NAN, 7, INFINITY, 9, -INFINITY};
    UNIT_CHECK(stats_median(odd, 3) == 3);
    UNIT_CHECK(odd[0] == 5 && odd[1] == 1 && odd[2] == 3);
    UNIT_CHECK(stats_median(even, 4) == 2.5);
    UNIT_CHECK(stats_quantile(even, 4, 0) == 1);
    UNIT_CHECK(stats_quantile(even, 4, 1) == 4);
    UNIT_CHECK(fabs(stats_quantile(even, 4, 0.25) - 1.75) < 1e-12);
    UNIT_CHECK(stats_quantile(even, 4, 7) == 4);
    UNIT_CHECK(isnan(stats_quantile(even, 4, NAN)));
    UNIT_CHECK(stats_median(holes, 5) == 8);
}

static void nothing_is_not_a_number(void) {
    const double bad[] = {NAN, INFINITY};
    UNIT_CHECK(isnan(stats_median(NULL, 0)) && isnan(stats_median(bad, 2)) && isnan(stats_quantile(bad, 2, 0.5)));
}

int main(void) {
    UNIT_RUN(medians_and_quantiles);
    UNIT_RUN(nothing_is_not_a_number);
    return unit_end();
}
