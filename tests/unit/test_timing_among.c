/* A probe that runs among the blocks, as on a host, on the scripted device: what drifts for both of them is in
 * neither's way. */
#include "tests/unit/noisy_lab.h"
#include "tests/unit/unit.h"

#include <math.h>

static timing_rules host_rules(void) {
    timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 8);
    rules.last = rules.acceptable;
    rules.brief_from = 2;
    rules.among = rules.contest = true;
    rules.among_scale = 0.7;
    return rules;
}

/* Slower by up to a tenth for half a minute at a time, and a little restless: the time of a launch is one thing now and
 * another later, what it is beside a probe is not. */
static void a_host_drifts_and_its_probe_with_it(void) {
    const timing_rules rules = host_rules();
    enum { SEEDS = 150 };
    int settled = 0, right = 0, held = 0;
    double least = INFINITY, most = 0, least_s = INFINITY, most_s = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        world = noisy_quiet(seed + 300);
        world.noise = 0.01;
        world.wander = 0.004;
        world.swing = 0.1;
        world.swing_period_s = 60;
        world.swing_phase = noisy_uniform(&world.random);
        for (int k = 0; k < 3; k++) loads[k] = noisy_load_of(&world, 1e-3 * (1 + 0.1 * k));
        noisy_lab_confirm(&rules, 3);
        if (!results[0].settled || !(ratio_ci[2] * ratios[2] * rules.among_scale <= rules.among_last)) continue;
        const double error = fabs(ratios[2] / 1.2 - 1);
        settled++;
        right += error < 0.01;
        held += error <= ratio_ci[2];
        least = fmin(least, ratios[2]), most = fmax(most, ratios[2]);
        least_s = fmin(least_s, results[0].median_s), most_s = fmax(most_s, results[0].median_s);
    }
    if (!UNIT_CHECK(settled >= 0.7 * SEEDS && right == settled && held >= 0.9 * settled))
        printf("    settled %d, right %d, held %d\n", settled, right, held);
    UNIT_CHECK(most / least - 1 < 0.02 && most_s / least_s - 1 > 0.05);
}

static void it_runs_in_every_round(void) {
    const timing_rules rules = host_rules();
    world = noisy_quiet(7);
    for (int k = 0; k < 3; k++) loads[k] = noisy_load_of(&world, 1e-3);
    noisy_lab_confirm(&rules, 3);
    UNIT_CHECK(results[0].settled && results[2].settled && 0.7 * ratio_ci[2] * ratios[2] <= rules.among_target);
    UNIT_CHECK(loads[2].launches >= 0.3 * (double)loads[0].launches);

    world = noisy_shared(7); /* as long as there is time, and no longer */
    for (int k = 0; k < 3; k++) loads[k] = noisy_load_of(&world, 1e-3);
    UNIT_CHECK(noisy_lab_confirm(&rules, 3) < 9.5);
    UNIT_CHECK(loads[2].launches >= 0.2 * (double)loads[0].launches);
}

/* What is left of an operation's time holds the rounds that a restless device needs; where there is plenty nothing
 * changes. */
static void little_time_makes_blocks_shorter(void) {
    const double left_s[] = {0.3, 0.9, 2, 4, 10};
    for (size_t k = 0; k < sizeof left_s / sizeof left_s[0]; k++) {
        for (int subjects = 1; subjects <= 4; subjects++) {
            timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, left_s[k]);
            const timing_rules usual = rules;
            timing_rules_hasten(&rules, subjects);
            UNIT_CHECK(rules.block_s >= 0.05 && rules.block_s <= usual.block_s);
            UNIT_CHECK(rules.hopping_block_s >= rules.block_s && rules.hopping_block_s <= usual.hopping_block_s);
            const double all_s = rules.restless_rounds * subjects * rules.block_s;
            UNIT_CHECK(all_s <= left_s[k] || rules.block_s == 0.05);
            UNIT_CHECK(all_s >= 0.6 * left_s[k] || rules.block_s == usual.block_s);
        }
    }
    timing_rules rules = host_rules();
    rules.budget_s = 1.2;
    timing_rules_hasten(&rules, 3);
    world = noisy_quiet(11);
    for (int k = 0; k < 3; k++) loads[k] = noisy_load_of(&world, 2e-4 * (1 + 0.1 * k));
    UNIT_CHECK(noisy_lab_confirm(&rules, 3) < 1.3);
    UNIT_CHECK(results[0].settled && noisy_lab_error(0) < 0.005 && results[0].launches >= 200);
    UNIT_CHECK(fabs(ratios[1] / 1.1 - 1) < 0.01 && fabs(ratios[2] / 1.2 - 1) < 0.01);
}

int main(void) {
    UNIT_RUN(a_host_drifts_and_its_probe_with_it);
    UNIT_RUN(it_runs_in_every_round);
    UNIT_RUN(little_time_makes_blocks_shorter);
    return unit_end();
}
