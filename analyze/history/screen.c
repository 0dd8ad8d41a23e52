/* Owns the statistics of the alarms. */
#include "analyze/history/screen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const double screen_limit = 3, screen_sure = 4;

static const double of_normal = 1.4826;       /* standard deviations of a normal in its median absolute deviation */
static const double of_median = 1.5707963268; /* the variance of a median over that of a mean */
static const double least_spread = 0.001;     /* no clock and no counter is better */

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double screen_median(double *x, size_t n) {
    if (n == 0) return NAN;
    qsort(x, n, sizeof *x, by_size);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

static double median_of(const double *x, size_t n) {
    double copy[SCREEN_NIGHTS];
    if (n > SCREEN_NIGHTS) x += n - SCREEN_NIGHTS, n = SCREEN_NIGHTS;
    memcpy(copy, x, n * sizeof *x);
    return screen_median(copy, n);
}

/* Of distances from `levels` middles. Their median alone is off by a fifth in 42 nights, and of 2,000 operations some
 * would be suspect every night. So it only says how far a distance counts, and of those the mean square is taken. */
static double spread_of(double *apart, size_t n, size_t levels) {
    static const double most = 2.5, of_held = 0.97756; /* what a normal's mean square is with distances held to that */
    const double first = of_normal * screen_median(apart, n);
    double sum = 0;
    for (size_t k = 0; k < n; k++) {
        const double x = fmin(apart[k], most * first);
        sum += x * x;
    }
    return sqrt(sum / of_held / (double)(n - levels));
}

screen_base screen_base_of(const double *x, const int *level, size_t n) {
    double apart[SCREEN_NIGHTS], middle = NAN;
    size_t count = 0, levels = 0;
    if (n > SCREEN_NIGHTS) {
        if (level) level += n - SCREEN_NIGHTS;
        x += n - SCREEN_NIGHTS, n = SCREEN_NIGHTS;
    }
    for (size_t from = 0; from < n; from += count, levels++) {
        for (count = 1; from + count < n && (!level || level[from + count] == level[from]);) count++;
        middle = median_of(x + from, count);
        for (size_t k = from; k < from + count; k++) apart[k] = fabs(x[k] - middle);
    }
    return (screen_base){middle, n > levels ? fmax(spread_of(apart, n, levels), least_spread) : NAN, count, n};
}

double screen_blend(const screen_base *own, double common) {
    const double mine = isfinite(own->spread) ? own->spread : common;
    if (!isfinite(common)) return mine;
    const double n = (double)own->all;
    return sqrt((n * mine * mine + SCREEN_COMMON * common * common) / (n + SCREEN_COMMON));
}

/* Of the base's middle, in spreads squared. */
static double doubt(const screen_base *b) { return of_median / (double)(b->nights > 0 ? b->nights : 1); }

double screen_z(const screen_base *b, double x) {
    if (b->nights == 0 || b->all < SCREEN_LEAST) return 0;
    return (x - b->middle) / (b->spread * sqrt(1 + doubt(b)));
}

screen_again screen_settle(const screen_base *b, double tonight, const double *again, size_t n, double machine) {
    const double middle = median_of(again, n), own = middle - b->middle, net = own - machine;
    const double less = fabs(own) < fabs(net) ? own : net, first = tonight - b->middle;
    const double seen = n >= SCREEN_LEAST ? screen_base_of(again, NULL, n).spread : 0; /* among the repetitions */
    const double sd = fmax(b->spread, seen) * sqrt(of_median / (double)(n > 0 ? n : 1) + doubt(b));
    const bool one_way = own * net > 0 && own * first > 0;
    return (screen_again){n > 0 && one_way && fabs(less) > screen_sure * sd, own};
}

/* ---- dates ---- */

/* Of neighbouring nights' differences, which no step disturbs but once. */
static double noise_of(const double *x, size_t n, double *room) {
    for (size_t k = 1; k < n; k++) room[k - 1] = fabs(x[k] - x[k - 1]);
    return fmax(of_normal * screen_median(room, n - 1) / sqrt(2), least_spread);
}

static double held(double x, double middle, double noise) {
    return fmin(fmax(x, middle - 3 * noise), middle + 3 * noise); /* one bad night is no level */
}

/* The split at which both sides' means lie furthest apart; 0: none is sure. Each night is held to what it and its two
 * neighbours are in the middle, so that no single one makes a level. */
static size_t split_of(const double *x, size_t n, double noise, double *room) {
    /* Two-sided 1e-5 divided by the splits; the tail of a normal, solved for its limit. */
    const double p = 1e-5 / (double)n;
    size_t best = 0;
    double sum = 0, left = 0, most = sqrt(-2 * log(p) - log(-2 * log(p)));
    if (n < 3) return 0;
    for (size_t k = 0; k < n; k++) {
        const size_t from = k == 0 ? 0 : k + 1 == n ? n - 3 : k - 1;
        room[k] = held(x[k], median_of(x + from, 3), noise);
        sum += room[k];
    }
    for (size_t k = 1; k < n; k++) {
        left += room[k - 1];
        const double a = (double)k, b = (double)(n - k);
        const double z = fabs(left / a - (sum - left) / b) / (noise * sqrt(1 / a + 1 / b));
        if (z > most) most = z, best = k;
    }
    return best;
}

size_t screen_changes(const double *x, size_t n, size_t *at, size_t most) {
    size_t found = 0, from = 0;
    double *room = n > 1 ? calloc(n, sizeof *room) : NULL;
    if (!room) return 0; /* dates are a help, and none is better than a wrong one */
    const double noise = noise_of(x, n, room);
    /* The first change of what is left, narrowed until its left side holds none. */
    while (from < n && found < most) {
        size_t split = split_of(x + from, n - from, noise, room);
        if (split == 0) break;
        for (size_t inner; (inner = split_of(x + from, split, noise, room)) > 0;) split = inner;
        from += split;
        at[found++] = from;
    }
    free(room);
    return found;
}
