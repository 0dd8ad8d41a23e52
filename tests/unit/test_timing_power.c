/* Timing on a card at its power limit: whatever rested comes back as an echo once a second, for seconds, and the clock
 * hops from step to step for ever. Figures shall settle soon all the same, at what the card does in the long run, and
 * alike in every process. */
#include "scout/stats.h"
#include "scout/timing_judge.h"
#include "scout/timing_pace.h"
#include "tests/unit/noisy_lab.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

enum { SEEDS = 40, KINDS = 3 };

/* Launches as they are on the card whose trace this follows, at its clock under load. */
static const struct {
    double launch_s, loaded_mhz;
    bool calm;
} kinds[KINDS] = {{1.22e-3, 1400, true}, {21.7e-6, 1440, false}, {2.9e-3, 1425, false}};

static noisy_load load_of(int kind, double factor) {
    return noisy_heavy(&world, kinds[kind].launch_s * factor, kinds[kind].loaded_mhz);
}

/* Runs a load for so long, and writes its launches' medians of every bin_s (at most `room`). */
static size_t trace(noisy_load *load, double seconds, double bin_s, double *bins, size_t room) {
    const timing_subject subject = noisy_subject(load);
    const uint32_t launches = (uint32_t)ceil(2e-3 / load->launch_s),
                   batches = (uint32_t)(bin_s / launches / noisy_truth(load));
    const double begun_s = world.now_s;
    size_t n = 0;
    while (world.now_s - begun_s < seconds) {
        double x[512];
        scout_why why;
        UNIT_CHECK(batches <= 512 && subject.run(subject.context, launches, batches, x, &why) == SCOUT_OK);
        if (n < room) bins[n++] = stats_median(x, batches) / launches;
    }
    return n;
}

static double averages_deviate(const double *bins, size_t n, size_t each) {
    double means[1000];
    size_t count = 0;
    for (; (count + 1) * each <= n; count++) means[count] = stats_mean(bins + count * each, each);
    return stats_deviation(means, count) / stats_mean(means, count);
}

/* Figures of the traces: hops of 0.4 to 0.9 % from one 0.1 s to the next, and what is left of them falls with the
 * length of the time looked at: 0.45 % over 0.4 s, 0.3 % over 0.6 s, 0.15 % over a second. After a rest, quarters of a
 * second swing by percents, while whole seconds do not from the second one on. */
static void the_model_is_like_the_trace(void) {
    static double bins[1000];
    for (int kind = 0; kind < KINDS; kind++) {
        world = noisy_hopping(3, kinds[kind].calm);
        loads[0] = load_of(kind, 1);
        UNIT_CHECK(trace(&loads[0], 4, 0.05, bins, 1000) >= 70);
        for (size_t second = 0; second < 2; second++) {
            const double *x = bins + 20 * second + 4;
            UNIT_CHECK((stats_quantile(x, 16, 1) - stats_quantile(x, 16, 0)) / stats_median(x, 16) > 0.03);
            if (second == 1) UNIT_CHECK(fabs(stats_mean(x, 20) / noisy_truth(&loads[0]) - 1) < 0.005);
        }
        const size_t n = trace(&loads[0], 90, 0.1, bins, 1000);
        const double tenths = averages_deviate(bins, n, 1), block = averages_deviate(bins, n, 6),
                     second = averages_deviate(bins, n, 10);
        if (!UNIT_CHECK(tenths > (kinds[kind].calm ? 0.003 : 0.005) && tenths < 0.009 && block > 0.0012 &&
                        block < 0.004 && second < (kinds[kind].calm ? 0.003 : 0.002)))
            printf("  %g s: %.4f, %.4f, %.4f\n", kinds[kind].launch_s, tenths, block, second);
        UNIT_CHECK(fabs(stats_median(bins, n) / noisy_truth(&loads[0]) - 1) < 0.003);
        scout_telemetry t;
        const timing_clock clock = noisy_clock(&world);
        clock.telemetry(&world, &t);
        UNIT_CHECK(timing_pace_steered(&t));
        clock.pause(&world, 1);
        clock.telemetry(&world, &t);
        UNIT_CHECK(!timing_pace_steered(&t));
    }
}

static timing_state state;

static bool settles(timing_rules rules, double *took_s) {
    const timing_clock clock = noisy_clock(&world);
    const timing_subject load = noisy_subject(&loads[0]);
    scout_why why = {.code = ""};
    const double begun_s = world.now_s;
    rules.state = &state;
    const bool good = timing_settle(&clock, &rules, &load, &why);
    *took_s = world.now_s - begun_s;
    return good;
}

/* What is steered is seen to be; whoever goes on then waits for the rest of two seconds. */
static void steering_is_seen_at_once(void) {
    const timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 10);
    for (int kind = 0; kind < KINDS; kind++) {
        double took_s;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            world = noisy_hopping(seed, kinds[kind].calm);
            state = (timing_state){0};
            loads[0] = load_of(kind, 1);
            UNIT_CHECK(settles(rules, &took_s) && state.steered && took_s < 0.6);
            UNIT_CHECK(world.now_s - state.loaded_since_s >= rules.window_s);
            loads[0] = noisy_load_of(&world, 5e-6); /* one that does not need the power: the clock is pinned */
            world.clock_mhz = world.idle_mhz;
            UNIT_CHECK(settles(rules, &took_s) && !state.steered && took_s < 0.5);
            UNIT_INT(world.late, 0);
        }
    }
}

/* Two seconds under load come before the first block: what idled before is known, and what raced counts. */
static void the_first_seconds_are_waited_for(void) {
    timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 10);
    rules.state = &state;
    for (int raced = 0; raced < 2; raced++) {
        double took_s;
        world = noisy_hopping(1, false);
        state = (timing_state){0};
        for (int k = 0; k < 16; k++) loads[k] = load_of(1, 1);
        UNIT_CHECK(settles(rules, &took_s));
        if (raced) noisy_lab_race(&rules, 16, 2);
        const double since_s = state.loaded_since_s, before_s = world.now_s;
        rules.race_share = 0;
        const double confirmed_s = noisy_lab_confirm(&rules, 1);
        UNIT_CHECK(state.loaded_since_s == since_s && results[0].settled);
        UNIT_CHECK(before_s + confirmed_s >= since_s + rules.steered_load_s + rules.steered_block_s - 0.1);
        UNIT_CHECK(raced || confirmed_s < rules.steered_load_s + 5 * rules.steered_block_s);
    }
    world.fresh_s = 0.1; /* it rests */
    const double since_s = state.loaded_since_s;
    noisy_lab_confirm(&rules, 1);
    UNIT_CHECK(state.loaded_since_s > since_s);
}

/* What is left of a budget after a race, for confirming alone: a baseline, a rival, and a probe that is brief. */
static timing_rules confirming(double left_s) {
    timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, left_s);
    rules.race_share = 0;
    rules.brief_from = 3;
    rules.contest = true;
    return rules;
}

/* From a warm device to confirmed figures: 16 variants, two of the best and a probe beside the baseline. */
static double operation(uint64_t seed, int kind, double rival, int *missed) {
    timing_rules rules = noisy_lab_rules(REGIME_SUSTAINED, 10);
    double took_s;
    world = noisy_hopping(seed, kinds[kind].calm);
    world.fresh_s = 0.005;
    state = (timing_state){0};
    rules.state = &state;
    for (int k = 0; k < 16; k++) loads[k] = load_of(kind, k == 5 ? rival : 1 + 0.03 * k * k);
    UNIT_CHECK(settles(rules, &took_s));
    noisy_lab_race(&rules, 16, 2);
    UNIT_CHECK(racers[0].alive);
    *missed += rival < 0.98 && !(racers[5].alive && racers[5].median_s < racers[0].median_s);
    loads[1] = loads[5];
    loads[2] = load_of(kind, rival * 1.004);
    loads[3] = noisy_heavy(&world, 1.93e-3, 1395);
    rules = confirming(10 - world.now_s);
    rules.state = &state;
    noisy_lab_confirm(&rules, 4);
    return world.now_s;
}

static void operations(int kind, double rival, double longest_s) {
    double took_s = 0, least = INFINITY, most = 0, least_ratio = INFINITY, most_ratio = 0;
    int settled = 0, right = 0, held = 0, ratios_held = 0, missed = 0, probed = 0;
    const double wanted = rival < 0.98 ? 0.0075 : 0.02; /* of the rival: how fast it is matters where it wins */
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        took_s += operation(seed, kind, rival, &missed) / SEEDS;
        for (int k = 0; k < 3; k++) {
            settled += results[k].settled && results[k].rel_ci95 <= (k ? wanted : 0.0075);
            right += noisy_lab_error(k) < (k ? fmax(wanted / 2, 0.005) : 0.005);
            held += noisy_lab_error(k) <= results[k].rel_ci95;
        }
        ratios_held += fabs(ratios[1] / rival - 1) <= ratio_ci[1];
        least = fmin(least, results[0].median_s);
        most = fmax(most, results[0].median_s);
        least_ratio = fmin(least_ratio, ratios[1]);
        most_ratio = fmax(most_ratio, ratios[1]);
        UNIT_CHECK(results[3].answer == SCOUT_OK && results[3].launches <= 400);
        probed += noisy_lab_error(3) < 0.01;
        UNIT_INT(world.late, 0);
    }
    bool good = settled >= 0.95 * 3 * SEEDS && right >= 0.95 * 3 * SEEDS && held >= 0.9 * 3 * SEEDS;
    good = good && ratios_held >= 0.9 * SEEDS && most / least < 1.0125 && most_ratio / least_ratio < 1.02;
    UNIT_CHECK(probed >= 0.95 * SEEDS);
    UNIT_CHECK(missed <= 1); /* one interval of a thousand or so takes three times as long */
    if (!UNIT_CHECK(good && took_s < longest_s))
        printf("  %g s, rival %g: settled %d, right %d, held %d of %d, ratios %d in %.2f s; %.4f, ratios %.4f\n",
               kinds[kind].launch_s, rival, settled, right, held, 3 * SEEDS, ratios_held, took_s, most / least,
               most_ratio / least_ratio);
}

/* One that beats the baseline is confirmed as well as the baseline, one that does not is soon seen not to. */
static void an_operation_takes_five_seconds(void) {
    for (int kind = 0; kind < KINDS; kind++) {
        operations(kind, 1.003, 5.5);
        operations(kind, 0.96, 5.5);
    }
}

/* However long new inputs take, and however much the clock rises meanwhile: all blocks come after it. */
static void nothing_idles_between_blocks(void) {
    const timing_rules rules = confirming(10);
    int right = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        world = noisy_hopping(seed, true);
        world.fresh_s = 1;
        for (int k = 0; k < 2; k++) loads[k] = load_of(0, 1 - 0.1 * k);
        UNIT_CHECK(noisy_lab_confirm(&rules, 2) < 8);
        UNIT_INT(world.fresh_calls, 1);
        for (int k = 0; k < 2; k++) right += noisy_lab_error(k) < 0.0075;
    }
    UNIT_CHECK(right >= 0.95 * 2 * SEEDS);
}

/* --- judging --- */

/* Blocks of looks of 20 intervals: levels[k] is the k-th look's. */
static timing_opinion opinion_of(const double *levels, int blocks, int looks) {
    timing_series s = {.per_look = 20};
    uint64_t random = 4;
    for (int block = 0; block < blocks; block++) {
        UNIT_CHECK(timing_judge_block(&s));
        for (int k = 0; k < 20 * looks; k++)
            UNIT_CHECK(timing_judge_add(&s, levels[block * looks + k / 20] * (1 + 0.001 * noisy_normal(&random))));
        timing_judge_close(&s);
        s.blocks[block].middle_s = block;
        s.blocks[block].kept_s = 0.5;
    }
    const timing_opinion o = timing_judge(&s, NULL);
    timing_judge_free(&s);
    return o;
}

static void looks_are_judged(void) {
    static const double hops[] = {1, 1.006, 0.996, 1.003, 0.995, 1.004, 1.005, 0.997},
                        level[] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const double excursion[] = {1, 1, 0.975, 1, 1, 1, 1, 1}, apart[] = {1, 1, 1, 1, 1.008, 1.008, 1.008, 1.008};
    static const double slow[] = {1, 1.002, 1.004, 1.004, 1.003, 1.001, 0.999, 0.998};
    static const double drifts[] = {1, 1.004, 1.008, 1.012, 1.016, 1.02, 1.024, 1.028};
    const timing_opinion calm = opinion_of(level, 2, 4), hopping = opinion_of(hops, 2, 4);
    UNIT_CHECK(calm.looks == 8 && calm.rel_ci95 < 0.001 && !calm.drifts);
    UNIT_CHECK(opinion_of(level, 2, 1).looks == 2 && opinion_of(level, 2, 1).rel_ci95 > 0.001); /* not by luck */
    UNIT_CHECK(hopping.looks == 8 && hopping.rel_ci95 > 0.003 && hopping.rel_ci95 < 0.006 && !hopping.drifts);
    UNIT_CHECK(opinion_of(excursion, 2, 4).rel_ci95 < 0.003 && fabs(opinion_of(excursion, 2, 4).median_s - 1) < 0.001);
    UNIT_CHECK(opinion_of(apart, 2, 4).rel_ci95 > 0.008); /* looks of a block agree, blocks do not */
    UNIT_CHECK(opinion_of(slow, 2, 4).rel_ci95 > 0.003);  /* neighbours are alike */
    UNIT_CHECK(opinion_of(drifts, 2, 4).drifts);
}

/* Blocks of a second, one level to each half. */
static timing_series seconds_of(const double *halves, int blocks) {
    timing_series s = {.steered = true};
    for (int block = 0; block < blocks; block++) {
        UNIT_CHECK(timing_judge_block(&s));
        for (int k = 0; k < 40; k++) UNIT_CHECK(timing_judge_add(&s, halves[2 * block + k / 20]));
        timing_judge_close(&s);
        s.blocks[block].middle_s = block;
        s.blocks[block].kept_s = 0.94;
    }
    return s;
}

static timing_opinion seconds_say(const double *halves, int blocks, double *half) {
    timing_series s = seconds_of(halves, blocks);
    timing_noise noise = {0};
    timing_noise_add(&noise, &s, 0);
    *half = timing_noise_half(&noise, &s, 0);
    const timing_opinion o = timing_judge(&s, NULL);
    timing_judge_free(&s);
    return o;
}

static void seconds_are_judged(void) {
    static const double halves[] = {1.01, 0.99, 1.011, 0.989, 1.009, 0.991, 1.01, 0.99};
    static const double apart[] = {1, 1, 1.01, 1.01, 0.99, 0.99, 1.005, 0.995}, far[] = {1.02, 0.98, 1.02, 0.98};
    static const double drifts[] = {1, 1, 1.015, 1.015, 1.03, 1.03, 1.045, 1.045};
    double one, two, four, wide, none;
    /* Half a second is off by a percent, and the other half as much to the other side. */
    UNIT_CHECK(fabs(seconds_say(halves, 1, &one).median_s - 1) < 2e-4 && one > 0.005 && one < 0.0075);
    UNIT_CHECK(!seconds_say(halves, 2, &two).drifts && two < 0.75 * one);
    UNIT_CHECK(seconds_say(halves, 4, &four).looks == 4 && four < 0.75 * two);
    UNIT_CHECK(seconds_say(apart, 4, &wide).looks == 4 && wide > 1.5 * four);
    /* No controller that is known: one second says nothing. */
    UNIT_CHECK(isinf(seconds_say(far, 1, &none).rel_ci95) && isinf(none));
    UNIT_CHECK(isfinite(seconds_say(far, 2, &none).rel_ci95) && none < 0.0075);
    UNIT_CHECK(seconds_say(drifts, 4, &none).drifts);
}

/* Steering that is told late: what was measured before counts for nothing. */
static void steering_is_told_late(void) {
    for (int late = 0; late < 4; late++) {
        int held = 0, settled = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            timing_rules rules = confirming(10);
            rules.brief_from = 0;
            world = noisy_hopping(seed, false);
            world.silent_until_s = late;
            state = (timing_state){0};
            rules.state = &state;
            for (int k = 0; k < 2; k++) loads[k] = load_of(1, 1 - 0.1 * k);
            noisy_lab_confirm(&rules, 2);
            for (int k = 0; k < 2; k++) {
                settled += results[k].settled;
                held += !results[k].settled || noisy_lab_error(k) <= results[k].rel_ci95;
            }
        }
        if (!UNIT_CHECK(held >= 0.9 * 2 * SEEDS && settled >= 0.8 * 2 * SEEDS))
            printf("  told after %d s: %d held, %d settled of %d\n", late, held, settled, 2 * SEEDS);
    }
}

/* A budget that is used up by then: a card that swings more than the one that is known still has its figures. */
static void a_second_that_tells_nothing_has_another(void) {
    int settled = 0, held = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        timing_rules rules = confirming(2.5);
        rules.steered_rounds = 2;
        world = noisy_hopping(seed, true);
        world.echo *= 3;
        state = (timing_state){.steered = true};
        rules.state = &state;
        loads[0] = load_of(0, 1);
        UNIT_CHECK(noisy_lab_confirm(&rules, 1) < rules.steered_load_s + 2.2 * rules.steered_block_s);
        UNIT_CHECK(!strstr(results[0].why.text, "by 1 block"));
        settled += results[0].settled;
        held += !results[0].settled || noisy_lab_error(0) <= results[0].rel_ci95;
    }
    if (!UNIT_CHECK(settled >= 0.9 * SEEDS && held >= 0.9 * SEEDS))
        printf("  %d settled, %d held of %d\n", settled, held, SEEDS);
}

/* One round is all that a small budget has room for: what the minima ask for is in it. */
static void milliseconds_have_their_launches_in_one_round(void) {
    int settled = 0, held = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        timing_rules rules = confirming(5);
        rules.brief_from = 0;
        world = noisy_hopping(seed, true);
        state = (timing_state){.steered = true};
        rules.state = &state;
        for (int k = 0; k < 2; k++) loads[k] = noisy_heavy(&world, 7e-3 * (1 - 0.03 * k), 1400);
        noisy_lab_confirm(&rules, 2);
        for (int k = 0; k < 2; k++) {
            settled += results[k].settled && results[k].launches >= rules.launches;
            held += !results[k].settled || noisy_lab_error(k) <= results[k].rel_ci95;
        }
        UNIT_CHECK(world.now_s < 8);
    }
    if (!UNIT_CHECK(settled >= 0.8 * 2 * SEEDS && held >= 0.9 * 2 * SEEDS))
        printf("  %d settled, %d held of %d\n", settled, held, 2 * SEEDS);
}

/* Launches that are long against a second are measured one by one, as everywhere. */
static void long_launches_are_not_steered(void) {
    static const double launch_s[] = {0.05, 0.15, 0.4, 0.8};
    for (int size = 0; size < 4; size++) {
        int held = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            timing_rules rules = confirming(15);
            rules.brief_from = 0;
            world = noisy_hopping(seed, true);
            state = (timing_state){0};
            rules.state = &state;
            for (int k = 0; k < 2; k++) loads[k] = noisy_heavy(&world, launch_s[size] * (1 - 0.1 * k), 1400);
            noisy_lab_confirm(&rules, 2);
            for (int k = 0; k < 2; k++)
                held += !results[k].settled || noisy_lab_error(k) <= fmax(results[k].rel_ci95, 0.0025);
            UNIT_CHECK(!strstr(results[0].why.text, "inf"));
        }
        if (!UNIT_CHECK(held >= 0.9 * 2 * SEEDS)) printf("  %g s: %d of %d held\n", launch_s[size], held, 2 * SEEDS);
    }
}

int main(void) {
    UNIT_RUN(the_model_is_like_the_trace);
    UNIT_RUN(steering_is_seen_at_once);
    UNIT_RUN(the_first_seconds_are_waited_for);
    UNIT_RUN(an_operation_takes_five_seconds);
    UNIT_RUN(nothing_idles_between_blocks);
    UNIT_RUN(looks_are_judged);
    UNIT_RUN(seconds_are_judged);
    UNIT_RUN(steering_is_told_late);
    UNIT_RUN(a_second_that_tells_nothing_has_another);
    UNIT_RUN(milliseconds_have_their_launches_in_one_round);
    UNIT_RUN(long_launches_are_not_steered);
    return unit_end();
}
