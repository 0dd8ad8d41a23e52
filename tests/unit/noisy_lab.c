/* Timing the scripted subjects. */
#include "tests/unit/noisy_lab.h"

#include <math.h>

noisy world;
noisy_load loads[MOST];
static timing_subject subjects[MOST];
timing_racer racers[MOST];
timing_result results[MOST];
double ratios[MOST], ratio_ci[MOST];

timing_rules noisy_lab_rules(regime_load load, double budget_s) {
    const regime r = {.load = load};
    return timing_rules_of(&r, budget_s);
}

/* Subjects of the loads as they stand now; the seconds that confirming took. */
double noisy_lab_confirm(const timing_rules *rules, int count) {
    const timing_clock clock = noisy_clock(&world);
    const double begun_s = world.now_s;
    for (int k = 0; k < count; k++) subjects[k] = noisy_subject(&loads[k]);
    timing_confirm(&clock, rules, subjects, count, noisy_fresh, &world, results, ratios, ratio_ci);
    return world.now_s - begun_s;
}

double noisy_lab_race(const timing_rules *rules, int count, int finalists) {
    const timing_clock clock = noisy_clock(&world);
    const double begun_s = world.now_s;
    for (int k = 0; k < count; k++) racers[k] = (timing_racer){.subject = noisy_subject(&loads[k]), .keep = k == 0};
    timing_race(&clock, rules, racers, count, finalists);
    return world.now_s - begun_s;
}

double noisy_lab_error(int k) { return fabs(results[k].median_s / noisy_truth(&loads[k]) - 1); }

int noisy_lab_alive(int count) {
    int left = 0;
    for (int k = 0; k < count; k++) left += racers[k].alive;
    return left;
}
