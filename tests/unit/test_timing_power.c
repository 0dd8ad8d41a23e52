/* Confirming on a card at its power limit whose controller remembers who ran before: the place in a round moves every
 * block, idling fills a power budget. Figures shall settle soon all the same, at the truth. */
#include "scout/timing_judge.h"
#include "tests/unit/noisy_lab.h"
#include "tests/unit/unit.h"

#include <math.h>

enum { SEEDS = 20 };

static const double taus_s[] = {0.05, 0.1, 0.15};
enum { TAUS = sizeof taus_s / sizeof taus_s[0] };

/* What is left of ten seconds after a race, for confirming alone. */
static timing_rules confirming(double left_s) {
    timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, left_s);
    rules.race_share = 0;
    return rules;
}

/* Rounds that a result was taken in: what counts of a block is half of its least length, where launches are short. */
static double rounds_of(int k, const timing_rules *rules) {
    return (double)results[k].launches * results[k].median_s / (rules->block_s * (1 - rules->block_drop));
}

/* A baseline, another one of nearly its power, a probe that draws more. */
static double confirm_three(uint64_t seed, double tau_s, const timing_rules *rules) {
    world = noisy_capped(seed, tau_s);
    world.fresh_s = 0.1;
    loads[0] = noisy_drawing(&world, 1.4e-3, 1050);
    loads[1] = noisy_drawing(&world, 1.35e-3, 1000);
    loads[2] = noisy_drawing(&world, 0.5e-3, 1200);
    return noisy_lab_confirm(rules, 3);
}

static void places_in_a_round_do_not_unsettle(void) {
    const timing_rules rules = confirming(8);
    for (int tau = 0; tau < TAUS; tau++) {
        int settled = 0, soon = 0, held = 0, ratios_held = 0;
        double least[3] = {INFINITY, INFINITY, INFINITY}, most[3] = {0}, took_s = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            took_s += confirm_three(seed, taus_s[tau], &rules);
            UNIT_INT(world.fresh_calls, 1);
            for (int k = 0; k < 3; k++) {
                const double truth = noisy_truth(&loads[k]), ratio = truth / noisy_truth(&loads[0]);
                settled += results[k].settled && results[k].rel_ci95 <= 0.005;
                soon += rounds_of(k, &rules) < 6.9;
                held += noisy_lab_error(k) <= results[k].rel_ci95;
                ratios_held += fabs(ratios[k] / ratio - 1) <= ratio_ci[k] || k == 0;
                least[k] = fmin(least[k], results[k].median_s / truth);
                most[k] = fmax(most[k], results[k].median_s / truth);
            }
            UNIT_INT(world.late, 0);
        }
        bool good = settled >= 0.95 * 3 * SEEDS && soon >= 0.95 * 3 * SEEDS;
        good = good && held >= 0.9 * 3 * SEEDS && ratios_held >= 0.9 * 3 * SEEDS;
        for (int k = 0; k < 3; k++) good = good && most[k] - least[k] < 0.005;
        for (int k = 0; k < 3; k++) good = good && fabs((most[k] + least[k]) / 2 - 1) < 0.002;
        if (!UNIT_CHECK(good && took_s / SEEDS < 6))
            printf("  %g s: settled %d, soon %d, held %d, ratios %d of %d in %.2f s; %g to %g, %g to %g, %g to %g\n",
                   taus_s[tau], settled, soon, held, ratios_held, 3 * SEEDS, took_s / SEEDS, least[0], most[0],
                   least[1], most[1], least[2], most[2]);
    }
}

/* From a warm device to confirmed figures: 16 variants, the winner and a probe beside the baseline. */
static void an_operation_takes_four_seconds(void) {
    for (int tau = 0; tau < 2; tau++) {
        double took_s = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 10);
            world = noisy_capped(seed, taus_s[tau]);
            world.fresh_s = 0.01;
            for (int k = 0; k < 16; k++) {
                const double behind = k == 5 ? -0.04 : k == 0 ? 0 : 0.03 * k * k;
                loads[k] = noisy_drawing(&world, 0.4e-3 * (1 + behind), 1000 + 15 * (k * 7 % 9));
            }
            const timing_clock clock = noisy_clock(&world);
            const timing_subject load = noisy_subject(&loads[0]);
            scout_why why;
            UNIT_CHECK(timing_settle(&clock, &rules, &load, &why));
            noisy_lab_race(&rules, 16, 2);
            UNIT_CHECK(racers[0].alive && racers[5].alive && racers[5].rel_ci95 < 0.1);
            UNIT_CHECK(racers[5].median_s < racers[0].median_s);
            loads[1] = loads[5];
            loads[2] = noisy_drawing(&world, 0.5e-3, 1150);
            rules = confirming(10 - world.now_s);
            noisy_lab_confirm(&rules, 3);
            for (int k = 0; k < 3; k++) UNIT_CHECK(results[k].settled && noisy_lab_error(k) < 0.003);
            took_s += world.now_s;
        }
        if (!UNIT_CHECK(took_s / SEEDS < (tau ? 4.8 : 4.2))) printf("  %g s: %.2f s\n", taus_s[tau], took_s / SEEDS);
    }
}

/* However long new inputs take, and however much the clock rises meanwhile: all blocks come after it. */
static void nothing_idles_between_blocks(void) {
    const timing_rules rules = confirming(10);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        world = noisy_capped(seed, 0.1);
        world.fresh_s = 2;
        loads[0] = noisy_drawing(&world, 1.4e-3, 1200);
        loads[1] = noisy_drawing(&world, 1.3e-3, 1180);
        UNIT_CHECK(noisy_lab_confirm(&rules, 2) < 6);
        UNIT_INT(world.fresh_calls, 1);
        for (int k = 0; k < 2; k++) UNIT_CHECK(results[k].settled && noisy_lab_error(k) < 0.003);
    }
}

/* A block of a subject that is near in power throws away the least, after one that is far from it more. */
static void what_is_thrown_away_depends_on_the_neighbour(void) {
    const timing_rules rules = confirming(10);
    double took_s[2];
    for (int far = 0; far < 2; far++) {
        world = noisy_capped(3, 0.1);
        loads[0] = noisy_drawing(&world, 1.4e-3, 1000);
        loads[1] = noisy_drawing(&world, 1.4e-3, far ? 1400 : 1000);
        took_s[far] = noisy_lab_confirm(&rules, 2);
        for (int k = 0; k < 2; k++) UNIT_CHECK(results[k].settled && noisy_lab_error(k) < 0.002);
    }
    UNIT_CHECK(took_s[0] < 1.9 && took_s[1] > took_s[0] + 0.4);
}

/* Blocks of 60 intervals, those on the way back off by `place`, each pair off the one before by `step`. */
static timing_opinion opinion_of(bool paired, int count, double place, double step, double noise) {
    timing_series s = {.paired = paired};
    uint64_t random = 4;
    for (int block = 0; block < count; block++) {
        const int pair = block / 2;
        const double level = 1 + (block % 2 ? place : 0) + step * pair;
        UNIT_CHECK(timing_judge_block(&s, block));
        for (int k = 0; k < 60; k++) UNIT_CHECK(timing_judge_add(&s, level * (1 + noise * noisy_normal(&random))));
        timing_judge_close(&s);
        s.blocks[block].middle_s = block;
    }
    const timing_opinion o = timing_judge(&s, 0);
    timing_judge_free(&s);
    return o;
}

static void blocks_are_judged_in_pairs(void) {
    const timing_opinion two = opinion_of(true, 2, 0.01, 0, 0.002), four = opinion_of(true, 4, 0.01, 0, 0.002);
    UNIT_CHECK(two.looks == 2 && two.rel_ci95 > 0.015); /* one pair: nobody knows yet which is right */
    UNIT_CHECK(four.looks == 2 && four.rel_ci95 < 0.004 && !four.drifts && fabs(four.median_s - 1.005) < 0.002);
    const timing_opinion singles = opinion_of(false, 4, 0.01, 0, 0.002);
    UNIT_CHECK(singles.looks == 4 && singles.rel_ci95 > 0.007);
    const timing_opinion apart = opinion_of(true, 4, 0.01, 0.006, 0.002), eight = opinion_of(true, 8, 0.01, 0, 0.002);
    UNIT_CHECK(apart.looks == 2 && apart.rel_ci95 > 0.01); /* what pairs disagree about is no effect of places */
    UNIT_CHECK(eight.looks == 4 && eight.rel_ci95 < 0.003);
    const timing_opinion drifting = opinion_of(true, 8, 0.01, 0.01, 0.002);
    UNIT_CHECK(drifting.drifts && drifting.rel_ci95 > 0.01);
    const timing_opinion restless = opinion_of(true, 4, 0.01, 0, 0.03); /* no pairs where anything could hide in them */
    UNIT_CHECK(restless.looks == 4);
    UNIT_CHECK(opinion_of(true, 4, 0, 0, 1e-6).rel_ci95 > 0.001); /* agreement by luck is not believed */
}

int main(void) {
    UNIT_RUN(places_in_a_round_do_not_unsettle);
    UNIT_RUN(an_operation_takes_four_seconds);
    UNIT_RUN(nothing_idles_between_blocks);
    UNIT_RUN(what_is_thrown_away_depends_on_the_neighbour);
    UNIT_RUN(blocks_are_judged_in_pairs);
    return unit_end();
}
