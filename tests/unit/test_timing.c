/* The timing engine on a scripted device: does it find the truth, does it say so when it cannot, does it keep to its
 * budgets. All time is virtual, all chance seeded. */
#include "scout/reason.h"
#include "scout/timing_judge.h"
#include "tests/unit/noisy_lab.h"
#include "tests/unit/unit.h"

#include <math.h>

static bool unstable(int k, const char *code) {
    return results[k].answer == SCOUT_OK && !results[k].settled && strcmp(results[k].why.code, code) == 0;
}

/* --- rules and warm-up --- */

static void rules_are_the_methods(void) {
    const timing_rules s = noisy_lab_rules(REGIME_SUSTAINED, 8), b = noisy_lab_rules(REGIME_BURST, 8);
    UNIT_CHECK(!s.burst && b.burst && s.warmups == 20 && s.launches == 200 && s.batches == 20);
    UNIT_CHECK(s.resolutions == 200 && s.target == 0.005 && s.acceptable == 0.02 && s.block_s >= 0.3);
    UNIT_CHECK(b.idle_s >= 1 && b.burst_s <= 0.01 && s.margin == 0.02 && s.settle_slope == 0.01 && s.budget_s == 8);
}

static void warming_up_ends_at_a_steady_clock(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 8);
    for (uint64_t seed = 0; seed < 50; seed++) {
        world = noisy_gpu(seed);
        loads[0] = noisy_heavy(&world, seed % 2 ? 8e-6 : 1.4e-3, 1470);
        const timing_clock clock = noisy_clock(&world);
        const timing_subject subject = noisy_subject(&loads[0]);
        scout_why why = {.code = ""};
        UNIT_CHECK(timing_settle(&clock, &rules, &subject, &why));
        UNIT_CHECK(fabs(world.clock_mhz / 1470 - 1) < 0.012);
        UNIT_CHECK(world.now_s < 1.5);
        const double warm_s = world.now_s; /* the next operation finds the device warm, after a moment's pause */
        world.clock_mhz += 10;
        UNIT_CHECK(timing_settle(&clock, &rules, &subject, &why));
        UNIT_CHECK(world.now_s - warm_s < 1.1);
        UNIT_INT(world.late, 0);
    }
}

static void without_a_clock_durations_tell(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 8);
    for (uint64_t seed = 0; seed < 50; seed++) {
        world = noisy_gpu(seed);
        world.clock_known = false;
        loads[0] = noisy_heavy(&world, 1.4e-3, 1470);
        const timing_clock clock = noisy_clock(&world);
        const timing_subject subject = noisy_subject(&loads[0]);
        scout_why why = {.code = ""};
        UNIT_CHECK(timing_settle(&clock, &rules, &subject, &why));
        UNIT_CHECK(fabs(world.clock_mhz / 1470 - 1) < 0.012);
    }
}

static void what_never_settles_is_said(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 8);
    world = noisy_gpu(1);
    world.creep_mhz_per_s = 150;
    loads[0] = noisy_heavy(&world, 1.4e-3, 1980);
    const timing_clock clock = noisy_clock(&world);
    timing_subject subject = noisy_subject(&loads[0]);
    scout_why why = {.code = ""};
    UNIT_CHECK(!timing_settle(&clock, &rules, &subject, &why));
    UNIT_TEXT(why.code, "clock");
    UNIT_CHECK(strstr(why.text, "the clock still changed by") != NULL);
    UNIT_CHECK(world.now_s >= rules.settle_s && world.now_s < rules.settle_s + 0.1);

    world = noisy_gpu(1); /* a launch longer than the warm-up may be */
    loads[0] = noisy_load_of(&world, 10);
    subject = noisy_subject(&loads[0]);
    UNIT_CHECK(!timing_settle(&clock, &rules, &subject, &why));
    UNIT_TEXT(why.code, "clock");
    UNIT_INT(loads[0].launches, 1);
    loads[0] = noisy_load_of(&world, 0.9); /* two of these can be compared */
    UNIT_CHECK(timing_settle(&clock, &rules, &subject, &why));

    loads[0].fails_at = loads[0].runs + 2;
    loads[0].answer = SCOUT_LOST;
    UNIT_CHECK(!timing_settle(&clock, &rules, &subject, &why));
    UNIT_TEXT(why.code, "error");
}

static void a_burst_begins_with_idling(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_BURST, 8);
    world = noisy_gpu(1);
    loads[0] = noisy_load_of(&world, 1e-3);
    const timing_clock clock = noisy_clock(&world);
    const timing_subject subject = noisy_subject(&loads[0]);
    scout_why why = {.code = ""};
    UNIT_CHECK(timing_settle(&clock, &rules, &subject, &why));
    UNIT_CHECK(world.now_s >= 1 && world.runs == 0);
}

/* --- confirming --- */

/* Noise that is only noise: the stated interval holds the truth at least as often as it promises. */
static void the_interval_holds_the_truth(void) {
    static const double launch_s[] = {8e-6, 4e-4, 3e-3};
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 8);
    for (int size = 0; size < 3; size++) {
        int held = 0, settled = 0, repeats = 120;
        for (uint64_t seed = 0; seed < (uint64_t)repeats; seed++) {
            world = noisy_quiet(seed + 1000);
            world.noise = 0.01;
            world.outlier_share = 0.005;
            world.outlier_factor = 3;
            for (int k = 0; k < 2; k++) loads[k] = noisy_load_of(&world, launch_s[size] * (1 + 0.1 * k));
            noisy_lab_confirm(&rules, 2);
            settled += results[0].settled;
            held += noisy_lab_error(0) <= results[0].rel_ci95;
        }
        if (!UNIT_CHECK(held >= 0.94 * repeats && settled >= 0.94 * repeats))
            printf("  %g s: held %d, settled %d of %d\n", launch_s[size], held, settled, repeats);
    }
}

/* A card at its power limit: subjects that pull the clock to different places, new inputs between rounds. What idling
 * and events leave is no noise and in no interval; it is small. */
static void a_capped_card_is_read_within_a_third_of_a_percent(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 8);
    int settled = 0, repeats = 60;
    for (uint64_t seed = 0; seed < (uint64_t)repeats; seed++) {
        world = noisy_gpu(seed);
        world.fresh_s = 0.2;
        loads[0] = noisy_heavy(&world, 1.4e-3, 1470);
        loads[1] = noisy_heavy(&world, 1.3e-3, 1500);
        loads[2] = noisy_heavy(&world, 1.45e-3, 1455);
        UNIT_CHECK(noisy_lab_confirm(&rules, 3) < 0.65 * rules.budget_s);
        for (int k = 0; k < 3; k++) {
            UNIT_CHECK(noisy_lab_error(k) < 0.0033);
            UNIT_CHECK(fabs(ratios[k] / (noisy_truth(&loads[k]) / noisy_truth(&loads[0])) - 1) < 0.0033);
            UNIT_CHECK(fabs(results[k].clock_mhz / loads[k].loaded_mhz - 1) < 0.02);
            UNIT_CHECK(results[k].power_w == 695 && isnan(results[k].temperature_c) && results[k].throttle == 4);
            UNIT_TEXT(results[k].throttle_text, "power cap");
            settled += results[k].settled;
        }
        UNIT_INT(world.late, 0);
    }
    UNIT_CHECK(settled >= 0.94 * 3 * repeats);
}

/* New inputs let the clock rise: the block after them throws away more. */
static void new_inputs_do_not_brighten_the_figure(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 8);
    for (uint64_t seed = 0; seed < 10; seed++) {
        world = noisy_gpu(seed);
        world.tau_s = 0.08;
        world.fresh_s = 0.4;
        loads[0] = noisy_heavy(&world, 1.4e-3, 1470);
        noisy_lab_confirm(&rules, 1);
        UNIT_CHECK(results[0].settled && noisy_lab_error(0) < 0.006);
    }
}

/* Nine blocks of which the first four are off by a tenth. */
static timing_opinion opinion_of(double noise) {
    timing_series s = {.n = 0};
    uint64_t random = 4;
    for (int block = 0; block < 9; block++) {
        UNIT_CHECK(timing_judge_block(&s));
        for (int k = 0; k < 50; k++)
            UNIT_CHECK(timing_judge_add(&s, (block < 4 ? 1.1 : 1) * (1 + noise * noisy_normal(&random))));
        timing_judge_close(&s);
        s.blocks[block].middle_s = block;
    }
    const timing_opinion o = timing_judge(&s, NULL);
    timing_judge_free(&s);
    return o;
}

static void only_a_calm_device_may_have_warmed_up(void) {
    const timing_opinion calm = opinion_of(0.002), restless = opinion_of(0.03);
    UNIT_CHECK(calm.first_block == 4 && calm.n == 250 && calm.rel_ci95 < 0.002 && !calm.drifts);
    UNIT_CHECK(restless.first_block == 0 && restless.n == 450 && restless.rel_ci95 > 0.02);
    const timing_series none = {.n = 0};
    UNIT_CHECK(isinf(timing_judge(&none, NULL).rel_ci95));
}

static void minima_are_held(void) {
    static const double launch_s[] = {2e-7, 8e-6, 1e-4, 1.6e-3, 3e-3, 6e-3};
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 12);
    for (int size = 0; size < 6; size++) {
        world = noisy_gpu((uint64_t)size);
        loads[0] = noisy_load_of(&world, launch_s[size]);
        loads[1] = noisy_load_of(&world, 1.1 * launch_s[size]);
        noisy_lab_confirm(&rules, 2);
        for (int k = 0; k < 2; k++) {
            const timing_result *r = &results[k];
            UNIT_CHECK(r->settled && r->batches >= 20 && r->launches >= 200 && r->launches % r->batches == 0);
            /* Warm-ups, and the first half of two blocks, were run besides. */
            UNIT_CHECK(loads[k].launches >= r->launches + 20);
            UNIT_CHECK((double)(loads[k].launches - r->launches) * loads[k].launch_s >= 0.29);
            UNIT_CHECK((double)r->launches / r->batches * r->median_s >= rules.interval_s);
            UNIT_CHECK(r->min_s <= r->p05_s && r->p05_s <= r->median_s && r->median_s <= r->p95_s);
            UNIT_CHECK(r->rel_ci95 <= rules.target && r->why.code[0] == 0);
        }
    }
}

static void a_coarse_timer_makes_longer_intervals(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 8);
    world = noisy_quiet(4);
    world.resolution_s = 1e-4;
    loads[0] = noisy_load_of(&world, 5e-4);
    noisy_lab_confirm(&rules, 1);
    UNIT_CHECK(results[0].settled && noisy_lab_error(0) < 0.003);
    UNIT_CHECK((double)results[0].launches / results[0].batches * results[0].median_s >= 200 * 1e-4);
}

static void blocks_go_forth_and_back(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 8);
    world = noisy_quiet(4);
    for (int k = 0; k < 3; k++) loads[k] = noisy_load_of(&world, 1e-3);
    noisy_lab_confirm(&rules, 3);
    /* Three to find the intervals, A B C C B A for two rounds: the two of C are one stay. */
    UNIT_INT(world.switches, 3 + 5);
    UNIT_INT(world.fresh_calls, 1);
    UNIT_CHECK(ratios[0] == 1 && ratio_ci[0] == 0);
}

static void ratios_hold_under_a_common_drift(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 8);
    int held = 0, repeats = 60;
    for (uint64_t seed = 0; seed < (uint64_t)repeats; seed++) {
        world = noisy_quiet(seed);
        world.creep_per_s = 0.02;
        loads[0] = noisy_load_of(&world, 1e-3);
        loads[1] = noisy_load_of(&world, 0.93e-3);
        loads[2] = noisy_load_of(&world, 1.2e-3);
        noisy_lab_confirm(&rules, 3);
        UNIT_CHECK(fabs(ratios[1] / 0.93 - 1) < 0.005 && fabs(ratios[2] / 1.2 - 1) < 0.005);
        held += fabs(ratios[1] - 0.93) <= ratio_ci[1] * 0.93;
        for (int k = 0; k < 3; k++) UNIT_CHECK(unstable(k, "drift")); /* while no figure of one alone is right */
    }
    UNIT_CHECK(held >= 0.94 * repeats);
}

static void a_falling_clock_is_named(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 8);
    world = noisy_quiet(2);
    world.creep_mhz_per_s = 40;
    for (int k = 0; k < 2; k++) loads[k] = noisy_heavy(&world, 1e-3, 1980);
    noisy_lab_confirm(&rules, 2);
    UNIT_CHECK(unstable(0, "clock") && unstable(1, "clock"));
    UNIT_CHECK(strstr(results[0].why.text, "the clock moved and launches became") != NULL);
    UNIT_CHECK(strstr(results[0].why.text, "slower") != NULL);
}

/* A warm-up that was not over: its blocks are left out, and what comes after is right. */
static void a_drift_that_ends_is_left_out(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 20);
    world = noisy_quiet(2);
    world.tau_s = 1.0;
    loads[0] = noisy_heavy(&world, 1.4e-3, 1470);
    loads[1] = noisy_heavy(&world, 1.3e-3, 1470);
    noisy_lab_confirm(&rules, 2);
    UNIT_CHECK(results[0].settled && noisy_lab_error(0) < 0.01);
    UNIT_CHECK(results[1].settled && noisy_lab_error(1) < 0.01);
    UNIT_CHECK(results[0].launches >= 200);
}

/* A machine shared with others that swings by a quarter: no figure of it may pass for one, yet ratios are near. */
static void a_shared_machine_is_unstable(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 6);
    int settled = 0, held = 0, repeats = 40;
    for (uint64_t seed = 0; seed < (uint64_t)repeats; seed++) {
        world = noisy_shared(seed);
        if (seed % 2) world.swing_period_s = 20;
        loads[0] = noisy_load_of(&world, 1e-3);
        loads[1] = noisy_load_of(&world, 0.9e-3);
        noisy_lab_confirm(&rules, 2);
        for (int k = 0; k < 2; k++) {
            settled += results[k].settled;
            UNIT_CHECK(results[k].settled || reason_known(results[k].why.code));
            UNIT_CHECK(results[k].settled || results[k].why.text[0] != 0);
        }
        held += fabs(ratios[1] - 0.9) <= ratio_ci[1] * 0.9;
    }
    UNIT_INT(settled, 0);
    UNIT_CHECK(held >= 0.9 * repeats); /* a swing as fast as the rounds is the worst case of pairs of blocks */
}

/* The same machine when the others are quiet: jitter alone goes away with patience, and settles at the truth. */
static void jitter_needs_patience(void) {
    int settled = 0, held = 0, repeats = 30;
    for (uint64_t seed = 0; seed < (uint64_t)repeats; seed++) {
        world = noisy_shared(seed);
        world.swing = 0;
        loads[0] = noisy_load_of(&world, 1e-3);
        const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 30);
        noisy_lab_confirm(&rules, 1);
        settled += results[0].settled;
        held += results[0].settled && noisy_lab_error(0) <= 1.2 * rules.target;
    }
    UNIT_CHECK(settled >= 0.9 * repeats);
    UNIT_INT(held, settled);
}

static void long_launches_get_fewer(void) {
    static const struct {
        double launch_s, budget_s;
        int count, confirmed;
    } cases[] = {{0.03, 8, 3, 3}, {0.1, 8, 3, 3}, {0.4, 10, 3, 3}, {2, 40, 2, 2}, {2, 8, 3, 1}, {2, 1, 3, 1}};
    for (int c = 0; c < 6; c++) {
        const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, cases[c].budget_s);
        world = noisy_quiet((uint64_t)c);
        world.noise = 0.0005;
        for (int k = 0; k < cases[c].count; k++) loads[k] = noisy_load_of(&world, cases[c].launch_s * (1 + 0.01 * k));
        const double took_s = noisy_lab_confirm(&rules, cases[c].count);
        for (int k = 0; k < cases[c].count; k++) {
            if (k < cases[c].confirmed) {
                UNIT_CHECK(results[k].settled && results[k].rel_ci95 <= rules.acceptable && noisy_lab_error(k) < 0.005);
                UNIT_CHECK(results[k].launches >= (cases[c].launch_s >= 0.3 ? 3 : 2)); /* the first look counts */
            } else {
                UNIT_INT(results[k].answer, SCOUT_NO);
                UNIT_TEXT(results[k].why.code, "budget");
                UNIT_CHECK(isnan(results[k].median_s) && isnan(ratios[k]) && isnan(ratio_ci[k]));
            }
        }
        /* Within the budget, or no more than three launches of the baseline and a look at the others. */
        const double least_s = (2 + cases[c].count) * cases[c].launch_s * 1.03;
        if (!UNIT_CHECK(took_s <= fmax(rules.budget_s, least_s)))
            printf("  %g s: %g s of %g\n", cases[c].launch_s, took_s, rules.budget_s);
        UNIT_INT(world.late, 0);
    }
}

static void long_launches_that_jump_are_unstable(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 8);
    world = noisy_quiet(3);
    world.noise = 0.05;
    loads[0] = noisy_load_of(&world, 0.5);
    noisy_lab_confirm(&rules, 1);
    UNIT_CHECK(unstable(0, "interval"));
    UNIT_CHECK(results[0].rel_ci95 > rules.acceptable && results[0].median_s > 0);
}

static void budgets_of_confirming_are_held(void) {
    static const double launch_s[] = {8e-6, 3e-4, 3e-3, 2e-2, 0.2};
    for (int size = 0; size < 5; size++) {
        const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 10);
        world = noisy_shared((uint64_t)size); /* never settles, so it takes all it may */
        world.fresh_s = 0.05;
        for (int k = 0; k < 4; k++) loads[k] = noisy_load_of(&world, launch_s[size]);
        const double took_s = noisy_lab_confirm(&rules, 4);
        if (!UNIT_CHECK(took_s <= 0.65 * rules.budget_s * 1.1 + 2 * launch_s[size]))
            printf("  %g s: took %g\n", launch_s[size], took_s);
        UNIT_INT(world.late, 0);
    }
}

/* A generous budget is not spent on what it cannot bring. */
static void the_hopeless_is_given_up(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 20);
    int unstable_runs = 0, early = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        world = noisy_shared(seed);
        for (int k = 0; k < 2; k++) loads[k] = noisy_load_of(&world, 1e-3);
        const double took_s = noisy_lab_confirm(&rules, 2);
        unstable_runs += !results[0].settled;
        early += !results[0].settled && took_s < 0.5 * rules.budget_s;
    }
    if (!UNIT_CHECK(unstable_runs >= 15 && early >= 0.8 * unstable_runs))
        printf("  %d unstable, %d of them early\n", unstable_runs, early);
}

/* What it is held against is the baseline only where there is one. */
static void who_is_far_is_told_by_a_launch(void) {
    timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 4);
    for (int contest = 0; contest < 2; contest++) {
        rules.contest = contest;
        world = noisy_gpu(5);
        for (int k = 0; k < 2; k++) loads[k] = noisy_load_of(&world, k ? 0.1 : 1e-4);
        noisy_lab_confirm(&rules, 2);
        UNIT_CHECK(results[0].settled);
        UNIT_INT(results[1].answer, SCOUT_NO);
        UNIT_TEXT(results[1].why.code, "outraced");
        UNIT_CHECK((strstr(results[1].why.text, "baseline") != NULL) == contest);
    }
}

/* --- rotations --- */

enum { ROTATION = 512, ROTATING = 3 };

typedef struct rotating {
    timing_subject of;
    uint32_t broken; /* intervals that were no whole rotations */
} rotating;

static scout_answer run_rotating(void *context, uint32_t launches, uint32_t batches, double *seconds, scout_why *why) {
    rotating *r = context;
    r->broken += launches > 1 && launches % ROTATION;
    return r->of.run(r->of.context, launches, batches, seconds, why);
}

static uint32_t whole_rotation(void *context) {
    (void)context;
    return ROTATION;
}

/* Launches that come by hundreds make long intervals: the engine knows how long, and takes fewer of them. */
static void intervals_are_whole_rotations(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 4);
    rotating turns[ROTATING] = {{.broken = 0}};
    timing_subject subjects[ROTATING];
    world = noisy_gpu(3);
    const timing_clock clock = noisy_clock(&world);
    for (int k = 0; k < ROTATING; k++) {
        loads[k] = noisy_load_of(&world, (30 + 2 * k) * 1e-6);
        turns[k].of = noisy_subject(&loads[k]);
        subjects[k] = (timing_subject){.context = &turns[k], .run = run_rotating, .whole = whole_rotation};
    }
    timing_confirm(&clock, &rules, subjects, ROTATING, noisy_fresh, &world, results, ratios, ratio_ci);
    for (int k = 0; k < ROTATING; k++) {
        UNIT_INT(turns[k].broken, 0);
        UNIT_CHECK(results[k].settled && noisy_lab_error(k) < 0.005);
        UNIT_CHECK(results[k].batches >= rules.batches && results[k].launches % ROTATION == 0);
    }
    UNIT_CHECK(world.now_s < 5);
}

int main(void) {
    UNIT_RUN(rules_are_the_methods);
    UNIT_RUN(intervals_are_whole_rotations);
    UNIT_RUN(who_is_far_is_told_by_a_launch);
    UNIT_RUN(warming_up_ends_at_a_steady_clock);
    UNIT_RUN(without_a_clock_durations_tell);
    UNIT_RUN(what_never_settles_is_said);
    UNIT_RUN(a_burst_begins_with_idling);
    UNIT_RUN(the_interval_holds_the_truth);
    UNIT_RUN(a_capped_card_is_read_within_a_third_of_a_percent);
    UNIT_RUN(new_inputs_do_not_brighten_the_figure);
    UNIT_RUN(only_a_calm_device_may_have_warmed_up);
    UNIT_RUN(minima_are_held);
    UNIT_RUN(a_coarse_timer_makes_longer_intervals);
    UNIT_RUN(blocks_go_forth_and_back);
    UNIT_RUN(ratios_hold_under_a_common_drift);
    UNIT_RUN(a_falling_clock_is_named);
    UNIT_RUN(a_drift_that_ends_is_left_out);
    UNIT_RUN(a_shared_machine_is_unstable);
    UNIT_RUN(jitter_needs_patience);
    UNIT_RUN(long_launches_get_fewer);
    UNIT_RUN(long_launches_that_jump_are_unstable);
    UNIT_RUN(budgets_of_confirming_are_held);
    UNIT_RUN(the_hopeless_is_given_up);
    return unit_end();
}
