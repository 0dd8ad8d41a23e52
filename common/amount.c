/* Figures as text, whatever numbers a report may hold. */
#include "common/amount.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

/* Four figures. */
static int digits_of(double x) { return x < 9.9995 ? 3 : x < 99.995 ? 2 : x < 999.95 ? 1 : 0; }

static const struct {
    double most, us;
    const char *name;
} units[] = {{999.95, 1, "us"}, {999.95e3, 1e3, "ms"}, {INFINITY, 1e6, "s"}};

amount_unit amount_unit_of(double largest_us) {
    size_t k = 0;
    while (largest_us >= units[k].most && k + 1 < sizeof units / sizeof units[0]) k++;
    return (amount_unit){units[k].name, units[k].us, digits_of(largest_us / units[k].us)};
}

amount amount_in(amount_unit unit, double us) {
    amount a = {"-"};
    const double x = us / unit.us, least = pow(10, -unit.digits);
    if (!isfinite(us)) return a;
    const bool small = x > 0 && x < least / 2;
    if (fabs(x) < 1e9)
        snprintf(a.s, sizeof a.s, "%s%.*f", small ? "< " : "", unit.digits, small ? least : x);
    else
        snprintf(a.s, sizeof a.s, "%.4g", x);
    return a;
}

amount amount_time(double us) {
    amount a = {"-"};
    if (!isfinite(us)) return a;
    const amount_unit unit = amount_unit_of(us);
    const double x = us / unit.us;
    snprintf(a.s, sizeof a.s, x < 1e9 ? "%.*f %s" : "%.*g %s", x < 1e9 ? unit.digits : 4, x, unit.name);
    return a;
}

amount amount_bytes(double bytes) {
    static const char *const names[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
    amount a = {"-"};
    size_t k = 0;
    if (!isfinite(bytes)) return a;
    for (; bytes >= 999.5 && k + 1 < sizeof names / sizeof names[0]; k++) bytes /= 1000;
    snprintf(a.s, sizeof a.s, "%.*f %s", k == 0 || bytes >= 99.95 ? 0 : bytes >= 9.995 ? 1 : 2, bytes, names[k]);
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
             percent < 0.1     ? 2
             : percent < 99.95 ? 1
             : percent < 1e6   ? 0
                               : 3,
             percent);
    return a;
}

amount_words amount_within_of(double relative, double unknown) {
    amount_words w = {""};
    const bool partly = unknown >= 0.0005 && isfinite(relative);
    const amount known = amount_within(partly && unknown > 0.9995 ? NAN : partly ? relative - unknown : relative);
    const int n = snprintf(w.s, sizeof w.s, "%s", known.s);
    if (partly && unknown <= 0.9995)
        snprintf(w.s + n, sizeof w.s - (size_t)n, " (%.*f %% without interval)", unknown < 0.0995 ? 1 : 0,
                 100 * unknown);
    return w;
}
