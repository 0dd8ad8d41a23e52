/* Owns the estimate of what all operations share, and the test of what one has for itself. Every step holds where a
 * good part of the operations did change: the start is the densest half, and outliers are ignored. */
#include "analyze/compare/drift.h"

#include "analyze/compare/drift_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double unknown_ci = 0.02; /* what a CPU's report may have at most */
static const double in_95 = 1.959963984540054, in_99_above = 2.3263478740408408;

/* Six products in five runs on one H200 deviated by 0.7 % from run to run at most, those under the power cap together
 * by up to 0.5 %; a shared host drifts by 2 to 5 % for minutes (docs/comparing.md). */
static const drift_prior priors[] = {
    {"cpu", 0.03, 0.03, 0.01},
    {NULL, 0.007, 0.007, 0.005},
};

const drift_prior *drift_prior_of(const char *device) {
    const drift_prior *p = priors;
    while (p->device && (!device || strncmp(device, p->device, strlen(p->device)) != 0)) p++;
    return p;
}

static double known_ci(double ci) { return isnan(ci) ? 1 : ci > 0 && isfinite(ci) ? ci : unknown_ci; }

double drift_noise(double before_ci, double after_ci) { return hypot(known_ci(before_ci), known_ci(after_ci)) / in_95; }

/* The operations that give the machine's factor: those that moved together; a part of them that stayed where it was
 * outweighs a larger one that moved, for then it was not the machine as a whole. */
static drift_fit cluster(const drift_fit_data *data, const drift_options *options) {
    drift_fit moved = drift_fit_densest(data);
    const size_t at_zero = drift_fit_near(data, &moved, 0);
    const bool nearly_all = 4 * moved.members >= 3 * data->n;
    if (data->n < DRIFT_FEW) return moved.members == data->n ? moved : drift_fit_fixed(data, 0, options->prior->spread);
    return nearly_all || 5 * at_zero < data->n ? moved : drift_fit_from(data, 0, &moved);
}

static void take_fit(drift *d, const drift_fit_data *data, const drift_fit *fit) {
    const bool few = data->n < DRIFT_FEW;
    d->members = fit->members;
    d->machine_known = data->n >= 3 && fit->members >= 3 && !fit->fixed;
    d->machine = d->machine_known ? fit->center : 0;
    d->machine_sd = few ? hypot(fit->center_sd, d->options.prior->machine) : fit->center_sd;
    d->learned = !few;
    d->spread = fit->spread;
    d->trust = fit->trust;
    d->ordinary = data->ordinary;
}

static double row_sd(const drift *d, double noise) {
    return hypot(noise <= d->ordinary ? d->trust * noise : noise, d->spread);
}

/* Half of the alarms are for either direction, and of these each of the family has Šidák's share, the machine being one
 * more. */
static bool set_limits(drift *d, const drift_fit_data *data, const drift_fit *fit, size_t family) {
    const double each = -expm1(log1p(-d->options.alarms / 2) / ((double)family + 1));
    double weights[DRIFT_SHAPES] = {1};
    d->machine_limit = student_quantile(each, INFINITY);
    d->limit = d->machine_limit;
    d->normal = 1;
    if (!d->learned) return true;
    if (!drift_fit_tails(data, fit, weights)) return false;
    d->limit = drift_fit_limit(weights, fmax(1, (double)fit->members - 1), each);
    d->normal = weights[0];
    return true;
}

static bool learn(drift *d, drift_fit_data *data, size_t family) {
    const double spread = d->options.prior->spread;
    d->rows = data->n;
    if (data->n < DRIFT_FEW) data->least_spread = spread;
    const drift_fit fit = data->n < 3 ? drift_fit_fixed(data, 0, spread) : cluster(data, &d->options);
    take_fit(d, data, &fit);
    d->typical_sd = hypot(row_sd(d, data->middle_noise), d->machine_sd);
    return set_limits(d, data, &fit, family);
}

bool drift_learn(drift *d, const drift_options *options, const drift_row *rows, size_t n, size_t family) {
    *d = (drift){.options = *options};
    drift_fit_data data;
    if (!drift_fit_open(&data, rows, n)) return false;
    const bool good = learn(d, &data, family);
    drift_fit_close(&data);
    return good;
}

const char *drift_state_name(drift_state state) {
    static const char *const names[] = {"SAME", "FASTER", "SLOWER", "AMBIGUOUS"};
    return names[state];
}

static drift_state state_of(const drift *d, double net, double sd, double least) {
    const double margin = log1p(d->options.margin), far = fabs(net);
    if (!isfinite(net) || !isfinite(sd)) return DRIFT_AMBIGUOUS;
    if (far > least && far >= margin) return net > 0 ? DRIFT_SLOWER : DRIFT_FASTER;
    if (far + in_95 * sd <= 2 * margin && (far <= 3 * sd || far < margin)) return DRIFT_SAME;
    return DRIFT_AMBIGUOUS;
}

drift_judgement drift_judge(const drift *d, drift_row row, double slack) {
    const double net = row.change - d->machine, sd = hypot(row_sd(d, row.noise), d->machine_sd);
    return (drift_judgement){state_of(d, net, sd, d->limit * sd + slack), net, sd};
}

drift_judgement drift_judge_machine(const drift *d) {
    const double sd = hypot(d->machine_sd, d->options.prior->machine_runs);
    if (!d->machine_known) return (drift_judgement){DRIFT_AMBIGUOUS, NAN, sd};
    return (drift_judgement){state_of(d, d->machine, sd, d->machine_limit * sd), d->machine, sd};
}

double drift_detectable(const drift *d) {
    return expm1(fmax(d->limit * d->typical_sd, log1p(d->options.margin)) + in_99_above * d->typical_sd);
}
