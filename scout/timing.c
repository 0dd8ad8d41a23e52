/* The method's figures, by regime. */
#include "scout/timing.h"

#include <math.h>

enum { host_rounds = 4 };
static const double hasten_share = 0.7; /* of the budget, for the rounds that a restless device needs */
static const double shortest_block_s = 0.05;

timing_rules timing_rules_of(const regime *r, double budget_s) {
    const bool burst = r->load == REGIME_BURST;
    return (timing_rules){
        .burst = burst,
        .warmups = 20,
        .launches = 200,
        .batches = 20,
        .restless_rounds = 6,
        .minima_rounds = 2,
        .resolutions = 200,
        /* A graph's launch leaves a gap of a few microseconds: under 0.2 % of this. A burst has room for few. */
        .interval_s = burst ? 0.001 : 0.002,
        .target = 0.005,
        .steered_target = 0.0075,
        .acceptable = 0.02,
        .last = 0.005,
        .block_s = 0.3,
        .block_drop = 0.5,
        .hopping_block_s = 0.6,
        .steered_block_s = 1,
        .steered_drop_s = 0.06,
        .steered_rounds = 1,
        .look_s = 0.15,
        .among_scale = 1,
        .among_ci = 0.05,
        .among_target = 0.0075,
        .among_last = 0.015,
        .settle_s = fmin(fmax(0.6 * budget_s, 0.5), 6),
        .steered_load_s = 2,
        .rest_s = 0.01,
        .settle_slope = 0.01,
        .idle_s = 1,
        .burst_s = 0.01,
        .margin = 0.02,
        .budget_s = budget_s,
        .race_share = 0.35,
        .train_s = burst ? 0.01 : 0.04,
        .window_s = 0.3,
    };
}

void timing_rules_hasten(timing_rules *rules, int subjects) {
    rules->restless_rounds = rules->minima_rounds = host_rounds;
    const double fit_s = hasten_share * rules->budget_s / (rules->restless_rounds * (subjects > 0 ? subjects : 1));
    rules->block_s = fmin(rules->block_s, fmax(fit_s, shortest_block_s));
    rules->hopping_block_s = fmin(rules->hopping_block_s, fmax(fit_s, rules->block_s));
}
