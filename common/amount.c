/* Figures as text, whatever numbers a report may hold. */
#include "common/amount.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

/* Four figures. */
static int digits_of(double x) { return x < 9.9995 ? 3 : x < 99.995 ? 2 : x < 999.95 ? 1 : 0; }

amount amount_time(double us) {
    static const struct {
        double most, unit;
        const char *name;
    } units[] = {{999.95, 1, "us"}, {999.95e3, 1e3, "ms"}, {INFINITY, 1e6, "s"}};
    amount a = {"-"};
    size_t k = 0;
    if (!isfinite(us)) return a;
    while (us >= units[k].most && k + 1 < sizeof units / sizeof units[0]) k++;
    const double x = us / units[k].unit;
    snprintf(a.s, sizeof a.s, x < 1e9 ? "%.*f %s" : "%.*g %s", x < 1e9 ? digits_of(x) : 4, x, units[k].name);
    return a;
}

amount amount_percent(double share) {
    amount a = {"-"};
    if (!isfinite(share)) return a;
    const double percent = 100 * share;
    const bool least = percent > 0 && percent < 0.05;
    snprintf(a.s, sizeof a.s, least ? "< 0.1 %%" : fabs(percent) < 1e6 ? "%.1f %%" : "%.3g %%", percent);
    return a;
}

amount amount_within(double relative) {
    amount a = {"± ?"};
    if (!isfinite(relative)) return a;
    const double percent = 100 * relative;
    snprintf(a.s, sizeof a.s, percent < 1e6 ? "± %.*f %%" : "± %.*g %%",
             percent < 0.1   ? 2
             : percent < 1e6 ? 1
                             : 3,
             percent);
    return a;
}
