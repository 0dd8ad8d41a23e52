/* Subjects on the scripted device, and the two ways to time them: what tests of the timing engine share. */
#ifndef TESTS_UNIT_NOISY_LAB_H
#define TESTS_UNIT_NOISY_LAB_H

#include "tests/unit/noisy.h"

enum { MOST = 64 };

/* A test sets the world and its loads; the rest is what timing said. */
extern noisy world;
extern noisy_load loads[MOST];
extern timing_racer racers[MOST];
extern timing_result results[MOST];
extern double ratios[MOST], ratio_ci[MOST];

timing_rules noisy_lab_rules(regime_load load, double budget_s);
double noisy_lab_confirm(const timing_rules *rules, int count);             /* the seconds that it took */
double noisy_lab_race(const timing_rules *rules, int count, int finalists); /* the first is kept */
double noisy_lab_error(int k); /* of a result against the truth, relative */
int noisy_lab_alive(int count);

#endif
