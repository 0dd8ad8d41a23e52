/* Owns the fits behind drift.c. The center is Tukey's biweight mean, the spread solves that clipped squares have the
 * mean that normal ones have; both are found in turn, from a start that up to half of all rows cannot move. */
#include "analyze/compare/drift_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 20, HALVINGS = 30, TAILS_FROM = 50 };
static const double reach = 4.5;     /* deviations: an operation that is further away has changed */
static const double clip = 3;        /* where squares are clipped, and what their mean is then */
static const double clipped = 0.995; /* P(|Z|<3) - 6 phi(3) + 9 P(|Z|>3) */
static const double biweight = 4.685;
static const double floor_spread = 0.001; /* no measurement repeats to less than 0.1 % */
static const double least_trust = 0.1;
static const double shape_reach = 4;      /* deviations */
static const double heavy_prior = 0.0003; /* how likely each heavier tail is before anything is seen */

static int by_change(const void *a, const void *b) {
    const double x = ((const drift_row *)a)->change, y = ((const drift_row *)b)->change;
    return (x > y) - (x < y);
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double middle(const double *sorted, size_t n) { return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2; }

bool drift_fit_open(drift_fit_data *data, const drift_row *rows, size_t n) {
    *data = (drift_fit_data){.rows = malloc((n + 1) * sizeof *data->rows), .least_spread = floor_spread};
    double *noises = malloc((n + 1) * sizeof *noises);
    if (data->rows && noises) {
        for (size_t k = 0; k < n; k++) {
            if (!isfinite(rows[k].change) || !isfinite(rows[k].noise)) continue;
            noises[data->n] = rows[k].noise;
            data->rows[data->n++] = rows[k];
        }
        if (data->n > 0) {
            qsort(data->rows, data->n, sizeof *data->rows, by_change);
            qsort(noises, data->n, sizeof *noises, by_size);
            data->middle_noise = middle(noises, data->n);
            data->ordinary = 1.5 * data->middle_noise;
        }
    }
    const bool good = data->rows && noises;
    free(noises);
    if (!good) drift_fit_close(data);
    return good;
}

void drift_fit_close(drift_fit_data *data) {
    free(data->rows);
    *data = (drift_fit_data){0};
}

static double variance(const drift_fit_data *data, const drift_fit *fit, double noise) {
    const double within = noise <= data->ordinary ? fit->trust * noise : noise;
    return within * within + fit->spread * fit->spread;
}

size_t drift_fit_near(const drift_fit_data *data, const drift_fit *fit, double place) {
    size_t near = 0;
    for (size_t k = 0; k < data->n; k++) {
        const double away = data->rows[k].change - place;
        near += away * away <= reach * reach * variance(data, fit, data->rows[k].noise);
    }
    return near;
}

static void find_center(const drift_fit_data *data, drift_fit *fit) {
    double weights = 0, sum = 0, information = 0;
    for (size_t k = 0; k < data->n; k++) {
        const double v = variance(data, fit, data->rows[k].noise), away = data->rows[k].change - fit->center;
        const double u = away * away / v / (biweight * biweight);
        if (u >= 1) continue;
        const double w = (1 - u) * (1 - u) / v;
        weights += w;
        sum += w * away;
        information += 1 / v;
    }
    if (weights <= 0) return;
    fit->center += sum / weights;
    fit->center_sd = 1 / sqrt(0.95 * information); /* the biweight's efficiency */
}

/* One number stands for both: above 0 a spread, below 0 what is taken from the trust. */
static void set_excess(const drift_fit_data *data, drift_fit *fit, double excess) {
    fit->spread = fmax(data->least_spread, excess);
    fit->trust = excess < 0 ? 1 + excess : 1;
}

static double clipped_mean(const drift_fit_data *data, const drift_fit *fit, size_t first, size_t end) {
    double sum = 0;
    for (size_t k = first; k < end; k++) {
        const double away = data->rows[k].change - fit->center;
        sum += fmin(away * away / variance(data, fit, data->rows[k].noise), clip * clip);
    }
    return sum / (double)(end - first);
}

/* Members are a stretch of the sorted rows but for those with much noise of their own; these do no harm, being clipped.
 */
static void find_spread(const drift_fit_data *data, drift_fit *fit) {
    size_t first = 0, end = data->n;
    const double far = reach * sqrt(variance(data, fit, data->middle_noise));
    while (first < end && data->rows[first].change < fit->center - far) first++;
    while (end > first && data->rows[end - 1].change > fit->center + far) end--;
    if (end - first < 2) return;
    double low = least_trust - 1, high = far;
    for (int k = 0; k < HALVINGS; k++) {
        const double excess = (low + high) / 2;
        set_excess(data, fit, excess);
        *(clipped_mean(data, fit, first, end) > clipped ? &low : &high) = excess;
    }
}

static drift_fit settle(const drift_fit_data *data, drift_fit fit, bool learn) {
    for (int k = 0; k < ROUNDS; k++) {
        const drift_fit before = fit;
        find_center(data, &fit);
        if (learn) find_spread(data, &fit);
        const double moved = fabs(fit.center - before.center) + fabs(fit.spread - before.spread);
        if (moved + fabs(fit.trust - before.trust) * data->middle_noise < 1e-4 * fit.spread) break;
    }
    fit.members = drift_fit_near(data, &fit, fit.center);
    return fit;
}

/* The shortest stretch that holds half of all: its middle, and the deviation of a normal distribution whose half is as
 * long; of few rows the shortest is short by chance, which the customary factor makes up for. */
drift_fit drift_fit_densest(const drift_fit_data *data) {
    const size_t half = data->n / 2 + 1;
    size_t best = 0;
    for (size_t k = 0; k + half <= data->n; k++) {
        const drift_row *r = data->rows;
        if (r[k + half - 1].change - r[k].change < r[best + half - 1].change - r[best].change) best = k;
    }
    const double low = data->rows[best].change, high = data->rows[best + half - 1].change;
    const double deviation = (high - low) / 2 / 0.6745 * (1 + 5 / (double)data->n);
    drift_fit fit = {.center = (low + high) / 2, .trust = 1, .spread = fmax(data->least_spread, deviation)};
    return settle(data, fit, data->n >= DRIFT_FEW);
}

drift_fit drift_fit_from(const drift_fit_data *data, double start, const drift_fit *as) {
    drift_fit fit = *as;
    fit.center = start;
    return settle(data, fit, true);
}

drift_fit drift_fit_fixed(const drift_fit_data *data, double center, double spread) {
    drift_fit fit = {.center = center, .spread = fmax(spread, data->least_spread), .trust = 1, .fixed = true};
    fit.members = drift_fit_near(data, &fit, center);
    return fit;
}

/* Student's t by its degrees, and its unit in deviations of a fit to such numbers (by the clipped squares above; held
 * against the integrals in tests/unit/analyze/test_drift.c). The first one, all but normal, has the members' degrees.
 */
static const struct {
    double degrees, unit;
} shapes[DRIFT_SHAPES] = {{INFINITY, 1}, {20, 0.9536}, {12, 0.9234}, {8, 0.8870}, {6, 0.8522},
                          {5, 0.8256},   {4, 0.7879},  {3, 0.7302},  {2, 0.6326}};

/* Logarithm of how likely the members' distances are. Beyond shape_reach lies what changed, so it has no say, and every
 * shape is cut off there. */
static double log_likelihood(const double *sizes, size_t n, size_t shape) {
    const double degrees = shapes[shape].degrees, unit = shapes[shape].unit;
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += student_log_density(sizes[k] / unit, degrees);
    return sum - (double)n * (log(unit) + log(1 - 2 * student_tail(shape_reach / unit, degrees)));
}

bool drift_fit_tails(const drift_fit_data *data, const drift_fit *fit, double weights[DRIFT_SHAPES]) {
    double *sizes = malloc((data->n + 1) * sizeof *sizes), sum = 0;
    if (!sizes) return false;
    size_t n = 0;
    double squares = 0;
    for (size_t k = 0; k < data->n; k++) {
        const double away = data->rows[k].change - fit->center;
        const double size = fabs(away) / sqrt(variance(data, fit, data->rows[k].noise));
        if (size > shape_reach) continue;
        sizes[n++] = size;
        squares += size * size;
    }
    const bool steadier =
        squares < 0.5 * (double)n; /* than the least spread there is: that has no shape to learn from */
    const double normal = log_likelihood(sizes, n, 0);
    for (size_t k = 0; k < DRIFT_SHAPES; k++) {
        const bool asked = k == 0 || (n >= TAILS_FROM && !steadier);
        weights[k] = asked ? exp(k == 0 ? 0 : fmin(log_likelihood(sizes, n, k) - normal, 500)) : 0;
        if (k > 0) weights[k] *= heavy_prior;
        sum += weights[k];
    }
    for (size_t k = 0; k < DRIFT_SHAPES; k++) weights[k] /= sum;
    free(sizes);
    return true;
}

static double tail(const double weights[DRIFT_SHAPES], double degrees, double deviations) {
    double sum = weights[0] * student_tail(deviations, degrees);
    for (size_t k = 1; k < DRIFT_SHAPES; k++)
        if (weights[k] > 1e-9) sum += weights[k] * student_tail(deviations / shapes[k].unit, shapes[k].degrees);
    return sum;
}

double drift_fit_limit(const double weights[DRIFT_SHAPES], double degrees, double part) {
    double low = 0, high = 1;
    while (tail(weights, degrees, high) > part && high < 1e9) high *= 2;
    for (int k = 0; k < HALVINGS; k++) {
        const double between = (low + high) / 2;
        *(tail(weights, degrees, between) > part ? &low : &high) = between;
    }
    return high;
}

static const double pi = 3.14159265358979323846;

/* The continued fraction of the incomplete beta function (Lentz's way), for x below (a + 1) / (a + b + 2). */
static double fraction(double a, double b, double x) {
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double value = d;
    for (int k = 1; k <= 500; k++) {
        const double even = k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k));
        const double odd = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1));
        const double steps[] = {even, odd};
        double change = 1;
        for (int s = 0; s < 2; s++) {
            d = 1 + steps[s] * d;
            c = 1 + steps[s] / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            if (fabs(c) < tiny) c = tiny;
            change = c * d;
            value *= change;
        }
        if (fabs(change - 1) < 1e-14) break;
    }
    return value;
}

/* Regularised incomplete beta function. */
static double beta_part(double a, double b, double x) {
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    const double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * fraction(a, b, x) / a : 1 - front * fraction(b, a, 1 - x) / b;
}

double student_tail(double t, double degrees) {
    if (isinf(degrees)) return erfc(t / sqrt(2)) / 2;
    const double part = beta_part(degrees / 2, 0.5, degrees / (degrees + t * t)) / 2;
    return t >= 0 ? part : 1 - part;
}

double student_quantile(double tail, double degrees) {
    double low = 0, high = 1;
    while (student_tail(high, degrees) > tail && high < 1e12) high *= 2;
    for (int k = 0; k < 60; k++) {
        const double middle = (low + high) / 2;
        *(student_tail(middle, degrees) > tail ? &low : &high) = middle;
    }
    return (low + high) / 2;
}

double student_log_density(double t, double degrees) {
    if (isinf(degrees)) return -t * t / 2 - log(2 * pi) / 2;
    return lgamma((degrees + 1) / 2) - lgamma(degrees / 2) - log(degrees * pi) / 2 -
           (degrees + 1) / 2 * log1p(t * t / degrees);
}
