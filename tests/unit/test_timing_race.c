/* Racing, bursts and failures on the scripted device: is the winner kept, are budgets and pauses, does one that fails
 * fail alone. */
#include "scout/reason.h"
#include "tests/unit/noisy_lab.h"
#include "tests/unit/unit.h"

#include <math.h>

/* --- racing --- */

static void the_winner_of_64_is_kept(void) {
    static const double launch_s[] = {8e-6, 1.5e-4, 1.4e-3};
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 4);
    for (uint64_t seed = 0; seed < 45; seed++) {
        world = noisy_gpu(seed);
        world.noise = 0.004;
        world.outlier_share = 0.02;
        const int winner = (int)(seed * 29 % 63) + 1;
        /* Spread as variants are: some within a percent or two, most far behind, a few hopeless. The clock falls. */
        for (int k = 0; k < MOST; k++) {
            const double behind = k == winner ? 0 : 0.02 + 1.5 * pow(noisy_uniform(&world.random), 2);
            loads[k] = noisy_heavy(&world, launch_s[seed % 3] * (1 + behind), 1470);
        }
        loads[(winner + 9) % 63 + 1].launch_s = 40 * launch_s[seed % 3];
        const double took_s = noisy_lab_race(&rules, MOST, 3);
        UNIT_CHECK(racers[winner].alive && racers[0].alive);
        UNIT_CHECK(noisy_lab_alive(MOST) >= 2 && noisy_lab_alive(MOST) <= 4);
        UNIT_CHECK(took_s <= 0.35 * rules.budget_s * 1.05);
        for (int k = 0; k < MOST; k++) {
            UNIT_INT(racers[k].answer, SCOUT_OK);
            UNIT_CHECK(racers[k].alive == (racers[k].why.code[0] == 0));
            UNIT_CHECK(racers[k].alive || reason_known(racers[k].why.code));
            UNIT_CHECK(!racers[k].alive || (racers[k].rounds > 0 && racers[k].launches > 0 && racers[k].median_s > 0));
        }
        UNIT_INT(world.late, 0);
        UNIT_CHECK(loads[(winner + 9) % 63 + 1].launches <= 2); /* the hopeless one is seen through at once */
    }
}

/* The first launch of the one that wins meets a machine that is busy elsewhere for 4 ms. */
static scout_answer run_late(void *context, uint32_t launches, uint32_t batches, double *seconds, scout_why *why) {
    noisy_load *const load = context;
    const bool first = load->runs == 0;
    const timing_subject plain = noisy_subject(load);
    const scout_answer answer = plain.run(load, launches, batches, seconds, why);
    if (first) seconds[0] += 4e-3;
    return answer;
}

static void one_late_launch_ends_nobodys_race(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 10);
    world = noisy_quiet(3);
    const timing_clock clock = noisy_clock(&world);
    for (int k = 0; k < 30; k++) {
        loads[k] = noisy_load_of(&world, 3.4e-5 * (k == 7 ? 0.9 : 1));
        racers[k] = (timing_racer){.subject = noisy_subject(&loads[k]), .keep = k == 0};
    }
    racers[7].subject.run = run_late;
    timing_race(&clock, &rules, racers, 30, 2);
    UNIT_CHECK(racers[7].alive);
}

static void those_that_are_level_are_not_outraced(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 2);
    int level = 0, repeats = 20;
    for (uint64_t seed = 0; seed < (uint64_t)repeats; seed++) {
        world = noisy_quiet(seed);
        world.noise = 0.02;
        for (int k = 0; k < 5; k++) loads[k] = noisy_load_of(&world, 1e-4 * (1 + 0.0005 * k));
        noisy_lab_race(&rules, 5, 1);
        for (int k = 1; k < 5; k++) {
            const bool told = strstr(racers[k].why.text, "nobody beats the baseline") != NULL;
            level += racers[k].alive || told || strcmp(racers[k].why.code, "budget") == 0;
        }
    }
    UNIT_CHECK(level >= 0.8 * 4 * repeats);
}

static void racers_are_warm_before_they_are_timed(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 20);
    world = noisy_quiet(5);
    for (int k = 0; k < 2; k++) loads[k] = noisy_load_of(&world, 6e-3);
    noisy_lab_race(&rules, 2, 2);
    for (int k = 0; k < 2; k++) UNIT_CHECK(racers[k].rounds >= 1 && loads[k].launches >= 20 + racers[k].rounds);
}

/* A shared machine: neighbours in time are compared, so a swing throws out nobody who is not behind. */
static void swings_do_not_decide_a_race(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 10);
    int kept = 0, repeats = 60;
    for (uint64_t seed = 0; seed < (uint64_t)repeats; seed++) {
        world = noisy_shared(seed);
        for (int k = 0; k < 8; k++) loads[k] = noisy_load_of(&world, 1e-3 * (k == 5 ? 0.9 : 1 + 0.03 * k));
        noisy_lab_race(&rules, 8, 2);
        kept += racers[5].alive;
    }
    UNIT_CHECK(kept >= 0.97 * repeats);
}

static void long_launches_do_not_blow_the_races_budget(void) {
    static const double launch_s[] = {0.02, 0.1, 2};
    for (int size = 0; size < 3; size++) {
        const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 8);
        world = noisy_quiet(1);
        for (int k = 0; k < MOST; k++) loads[k] = noisy_load_of(&world, launch_s[size] * (1 + 0.002 * k));
        const double took_s = noisy_lab_race(&rules, MOST, 3);
        UNIT_CHECK(took_s <= 0.35 * rules.budget_s + 1.2 * launch_s[size]);
        UNIT_CHECK(racers[0].alive &&
                   noisy_lab_alive(MOST) == 4); /* the finalists' places are filled, if only by order */
        UNIT_CHECK(racers[1].alive && !racers[63].alive);
        UNIT_TEXT(racers[63].why.code, launch_s[size] > 0.05 ? "budget" : racers[63].why.code);
        UNIT_INT(world.late, 0);
    }
}

static void what_is_kept_is_timed_though_it_is_slow(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 8);
    world = noisy_quiet(1);
    for (int k = 0; k < 10; k++) loads[k] = noisy_load_of(&world, k == 0 ? 1e-3 : 1e-4 * (1 + 0.1 * k));
    noisy_lab_race(&rules, 10, 2);
    UNIT_CHECK(racers[0].alive && racers[0].rounds > 0 && fabs(racers[0].median_s / 1e-3 - 1) < 0.02);
    UNIT_CHECK(racers[1].alive && !racers[9].alive);
    UNIT_TEXT(racers[9].why.code, "outraced");
    noisy_lab_race(&rules, 2, 3); /* nobody needs to drop out: a few looks, for the order and its intervals */
    UNIT_CHECK(racers[0].alive && racers[1].alive && racers[1].rounds >= 4 && racers[1].rel_ci95 < 0.02);
    for (int k = 0; k < 2; k++) loads[k] = noisy_load_of(&world, 0.1);
    noisy_lab_race(&rules, 2, 3); /* one where they are dear */
    UNIT_CHECK(racers[0].alive && racers[1].alive && racers[1].rounds == 1 && isinf(racers[1].rel_ci95));
    timing_race(&(timing_clock){.context = NULL}, &rules, NULL, 0, 3);
}

static void failures_in_a_race(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 8);
    world = noisy_quiet(1);
    for (int k = 0; k < 6; k++) loads[k] = noisy_load_of(&world, 1e-4 * (k ? 1 + 0.01 * k : 1.2));
    loads[2].fails_at = 1;
    loads[3].fails_at = 5;
    loads[2].answer = loads[3].answer = SCOUT_FAILED;
    noisy_lab_race(&rules, 6, 1);
    UNIT_CHECK(racers[2].answer == SCOUT_FAILED && !racers[2].alive && racers[2].rounds == 0 &&
               isnan(racers[2].median_s));
    UNIT_CHECK(racers[3].answer == SCOUT_FAILED && !racers[3].alive && racers[1].alive);
    UNIT_TEXT(racers[2].why.code, "error");

    for (int k = 0; k < 6; k++) loads[k] = noisy_load_of(&world, 1e-4);
    loads[4].fails_at = 4;
    loads[4].answer = SCOUT_LOST;
    noisy_lab_race(&rules, 6, 1);
    for (int k = 0; k < 6; k++) UNIT_CHECK(racers[k].answer == SCOUT_LOST && !racers[k].alive);
    UNIT_TEXT(racers[4].why.code, "error");
    UNIT_TEXT(racers[1].why.code, "device_lost");
    UNIT_CHECK(world.last == &loads[4]);
}

/* --- bursts --- */

static void bursts_are_short_and_rested(void) {
    static const double launch_s[] = {8e-6, 4e-4, 3e-3};
    for (int size = 0; size < 3; size++) {
        const timing_rules rules = noisy_lab_rules(REGIME_BURST, 100);
        world = noisy_gpu((uint64_t)size);
        world.outlier_share = 0;
        for (int k = 0; k < 3; k++) loads[k] = noisy_heavy(&world, launch_s[size] * (1 + 0.05 * k), 1470);
        const double raced_s = noisy_lab_race(&rules, 3, 1);
        const double took_s = noisy_lab_confirm(&rules, 3);
        UNIT_CHECK(world.longest_burst_s <= 0.01 && world.shortest_pause_s >= 1);
        UNIT_CHECK(raced_s <= 0.35 * rules.budget_s && took_s <= 0.65 * rules.budget_s * 1.02);
        UNIT_CHECK(world.bursts >= 12);
        for (int k = 0; k < 3; k++) {
            UNIT_CHECK(results[k].settled && results[k].batches >= 20);
            UNIT_CHECK(size == 2 || results[k].launches >= 200);
            /* The clock had no time to fall far: near the figure of the idle clock, not of the loaded one. */
            UNIT_CHECK(results[k].median_s < 1.06 * loads[k].launch_s &&
                       results[k].median_s > 0.99 * loads[k].launch_s);
            UNIT_CHECK(fabs(ratios[k] / (1 + 0.05 * k) - 1) < 0.01);
        }
        UNIT_INT(world.late, 0);
    }
}

static void a_launch_longer_than_a_burst_is_one(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_BURST, 60);
    world = noisy_quiet(1);
    loads[0] = noisy_load_of(&world, 0.05);
    noisy_lab_confirm(&rules, 1);
    UNIT_CHECK(results[0].settled && results[0].batches == results[0].launches && results[0].batches >= 2);
    UNIT_CHECK(world.longest_burst_s < 0.052 && world.shortest_pause_s >= 1);
    UNIT_CHECK(noisy_lab_error(0) < 0.01);
}

static void a_race_of_bursts_keeps_its_budget(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_BURST, 20);
    world = noisy_quiet(1);
    for (int k = 0; k < MOST; k++) loads[k] = noisy_load_of(&world, 2e-5 * (1 + 0.01 * ((k * 37 + 5) % 64)));
    const double took_s = noisy_lab_race(&rules, MOST, 3);
    UNIT_CHECK(took_s <= 0.35 * rules.budget_s + 1.1);
    UNIT_CHECK(world.longest_burst_s <= 0.01 && world.shortest_pause_s >= 1);
    UNIT_CHECK(noisy_lab_alive(MOST) <= 4);
}

/* --- failures --- */

static void one_that_fails_ends_alone(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 8);
    for (uint32_t at = 1; at < 24; at += 2) {
        world = noisy_quiet(at);
        for (int k = 0; k < 3; k++) loads[k] = noisy_load_of(&world, 1e-3 * (1 + 0.05 * k));
        loads[1].fails_at = at;
        loads[1].answer = SCOUT_FAILED;
        noisy_lab_confirm(&rules, 3);
        if (loads[1].runs < at) break; /* it was over before */
        UNIT_INT(results[1].answer, SCOUT_FAILED);
        UNIT_TEXT(results[1].why.code, "error");
        UNIT_CHECK(!results[1].settled && isnan(results[1].median_s) && isnan(ratios[1]));
        UNIT_INT(loads[1].runs, at); /* and is not tried again */
        for (int k = 0; k < 3; k += 2) UNIT_CHECK(results[k].settled && noisy_lab_error(k) < 0.003);
        UNIT_CHECK(fabs(ratios[2] / 1.1 - 1) < 0.003);
    }
}

static void a_lost_device_ends_all(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 8);
    for (uint32_t at = 1; at < 16; at += 3) {
        world = noisy_quiet(at);
        for (int k = 0; k < 3; k++) loads[k] = noisy_load_of(&world, 1e-3);
        loads[1].fails_at = at;
        loads[1].answer = SCOUT_LOST;
        noisy_lab_confirm(&rules, 3);
        const uint32_t runs = world.runs;
        for (int k = 0; k < 3; k++) UNIT_INT(results[k].answer, SCOUT_LOST);
        UNIT_TEXT(results[1].why.code, "error"); /* its own words */
        UNIT_TEXT(results[0].why.code, "device_lost");
        UNIT_TEXT(results[2].why.code, "device_lost");
        UNIT_INT(world.last == &loads[1], 1); /* nothing ran after it */
        UNIT_CHECK(runs == world.runs && isnan(ratios[2]));
    }
}

static void the_baselines_failure_leaves_no_ratios(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 8);
    world = noisy_quiet(1);
    for (int k = 0; k < 2; k++) loads[k] = noisy_load_of(&world, 1e-3);
    loads[0].fails_at = 8;
    loads[0].answer = SCOUT_NO_MEMORY;
    noisy_lab_confirm(&rules, 2);
    UNIT_INT(results[0].answer, SCOUT_NO_MEMORY);
    UNIT_CHECK(results[1].settled && isnan(ratios[1]) && isnan(ratios[0]));
}

static void no_new_inputs(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 8);
    world = noisy_quiet(1);
    world.fresh_fails_at = 1;
    world.fresh_answer = SCOUT_NO_MEMORY;
    for (int k = 0; k < 2; k++) loads[k] = noisy_load_of(&world, 1e-3);
    noisy_lab_confirm(&rules, 2);
    for (int k = 0; k < 2; k++) {
        UNIT_INT(results[k].answer, SCOUT_NO_MEMORY);
        UNIT_TEXT(results[k].why.code, "memory");
    }
    timing_confirm(&(timing_clock){.context = NULL}, &rules, NULL, 0, NULL, NULL, NULL, NULL, NULL);
}

static void a_timer_that_lies_is_a_failure(void) {
    static const double lies[] = {NAN, INFINITY, -1, 1e-300};
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 8);
    for (int lie = 0; lie < 4; lie++) {
        world = noisy_quiet(1);
        for (int k = 0; k < 2; k++) loads[k] = noisy_load_of(&world, 1e-6);
        loads[1].lies_s = lies[lie];
        noisy_lab_confirm(&rules, 2);
        UNIT_INT(results[1].answer, SCOUT_FAILED);
        UNIT_TEXT(results[1].why.code, "error");
        UNIT_CHECK(results[0].settled);
    }
}

int main(void) {
    UNIT_RUN(the_winner_of_64_is_kept);
    UNIT_RUN(one_late_launch_ends_nobodys_race);
    UNIT_RUN(those_that_are_level_are_not_outraced);
    UNIT_RUN(racers_are_warm_before_they_are_timed);
    UNIT_RUN(swings_do_not_decide_a_race);
    UNIT_RUN(long_launches_do_not_blow_the_races_budget);
    UNIT_RUN(what_is_kept_is_timed_though_it_is_slow);
    UNIT_RUN(failures_in_a_race);
    UNIT_RUN(bursts_are_short_and_rested);
    UNIT_RUN(a_launch_longer_than_a_burst_is_one);
    UNIT_RUN(a_race_of_bursts_keeps_its_budget);
    UNIT_RUN(one_that_fails_ends_alone);
    UNIT_RUN(a_lost_device_ends_all);
    UNIT_RUN(the_baselines_failure_leaves_no_ratios);
    UNIT_RUN(no_new_inputs);
    UNIT_RUN(a_timer_that_lies_is_a_failure);
    return unit_end();
}
