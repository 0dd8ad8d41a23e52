/* How the time of a run is divided, from its first second to its last. */
#include "scout/run/budget.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

static void near(double got, double want) {
    if (!UNIT_CHECK(got == want || fabs(got - want) <= 1e-9 * fabs(want))) printf("got %.12g, want %.12g\n", got, want);
}

static budget made(const char *what, double seconds) {
    const bool alone = strcmp(what, "ceilings") == 0 || strcmp(what, "audit") == 0;
    const options o = {.mode = alone ? OPTIONS_CEILINGS : OPTIONS_BATCH,
                       .budget_s = seconds,
                       .exhaustive = strcmp(what, "exhaustive") == 0 || strcmp(what, "audit") == 0,
                       .only = strcmp(what, "only") == 0 ? "gemm" : NULL};
    return budget_of(&o, 100);
}

static void ceilings_have_a_third(void) {
    const budget none = made("run", 0), thirty = made("run", 30), alone = made("ceilings", 30),
                 audit = made("audit", 0);
    UNIT_CHECK(isinf(budget_ceilings_left(&none, 7)));
    near(budget_ceilings_left(&thirty, 0), 10);
    near(budget_ceilings_left(&thirty, 4), 6);
    near(budget_ceilings_left(&alone, 4), 26);
    near(budget_ceilings_part(&none, 0, 3, false), 4);
    near(budget_ceilings_part(&none, 0, 3, true), 5);
    near(budget_ceilings_part(&thirty, 0, 5, false), 2);
    near(budget_ceilings_part(&thirty, 0, 0, false), 4);
    near(budget_ceilings_part(&audit, 0, 9, false), 12);
    UNIT_CHECK(budget_ceilings_again(&thirty, 9) && !budget_ceilings_again(&thirty, 9.5));
}

static void short_runs_take_what_is_stored(void) {
    const budget none = made("run", 0), short_one = made("run", 3), alone = made("ceilings", 3);
    UNIT_CHECK(!budget_ceilings_enough(&none, 1.9) && budget_ceilings_enough(&none, 2));
    UNIT_CHECK(budget_ceilings_enough(&short_one, 0.1));
    UNIT_CHECK(!budget_ceilings_enough(&alone, 0.1));
}

static void searches_are_as_wide_as_their_worth(void) {
    budget none = made("run", 0), all = made("exhaustive", 0);
    near(budget_search(&none, &(budget_job){.share = 0}, 200), 0.1);
    near(budget_search(&none, &(budget_job){.share = 0.5}, 200), 2.6);
    near(budget_search(&all, &(budget_job){.share = 0.5}, 200), 120);
    near(budget_search(&all, &(budget_job){.fusion = true}, 200), 120);
}

/* By what an operation turned out to be worth; a quarter of what is left at most, and not for a little more. */
static void a_second_search_is_worth_it_or_not_made(void) {
    const budget none = made("run", 0), forty = made("run", 40);
    near(budget_search_again(&none, 0.5, 0.2, 100), 2.6);
    near(budget_search_again(&none, 0.5, 0.2, 4), 1);
    near(budget_search_again(&none, 0.5, 0.67, 4), 0);
    near(budget_search_again(&none, 0.5, 1.7, 100), 2.6);
    near(budget_search_again(&none, 0.5, 1.8, 100), 0);
    near(budget_search_again(&none, 0.5, 0.2, -1), 0);
    near(budget_search_again(&none, 0.5, 0, 100), 0); /* it never had a first one */
    near(budget_operations_left(&forty, 110), 20);
    UNIT_CHECK(isinf(budget_operations_left(&none, 110)));
}

static void a_budget_is_shared(void) {
    budget b = made("run", 40);
    /* 30 s are for operations while there are fusions, of which a quarter may be searched in, on a host 0.6. */
    near(budget_search(&b, &(budget_job){.fusions_left = true, .share = 1, .part = 0.1}, 110), 0.25 * 0.1 * 20);
    near(budget_search(&b, &(budget_job){.share = 1, .part = 0.1}, 110), 0.25 * 0.1 * 30);
    near(budget_search(&b, &(budget_job){.share = 1, .part = 0.1, .host = true}, 110), 0.6 * 0.1 * 30);
    near(budget_search(&b, &(budget_job){.share = 1, .part = 3}, 137), 0.25 * 3);
    near(budget_search(&b, &(budget_job){.share = 0, .part = 0.5}, 110), 0.1);
    near(budget_search(&b, &(budget_job){.share = 0, .part = 0.001}, 110), 0.02);
    /* Rather than have none, operations take the time of fusions; a fusion has none then. */
    near(budget_search(&b, &(budget_job){.fusions_left = true, .share = 1}, 131), 0.25 * 9);
    near(budget_search(&b, &(budget_job){.fusions_left = true, .share = 1, .host = true}, 131), 5.1); /* its usual */
    near(budget_search(&b, &(budget_job){.fusions_left = true, .share = 1}, 140), 0.02);
    near(budget_search(&b, &(budget_job){.fusion = true, .fusions_left = true, .share = 1}, 141), 0);
}

static void fusions_without_a_budget(void) {
    budget b = made("run", 0), only = made("only", 0);
    const budget_job job = {.fusion = true, .fusions_left = true, .share = 0};
    near(budget_search(&b, &job, 220), 0.1);
    near(b.fusions_end, 220 + 40); /* a quarter of all: a third of the 120 s before */
    near(budget_search(&b, &job, 259.95), 0.05);
    near(budget_search(&b, &job, 259.99), 0);
    near(budget_search(&only, &job, 1000), 0.1);
    b = made("run", 0);
    near(budget_search(&b, &job, 101), 0.1);
    near(b.fusions_end, 121);
}

/* Whole seconds for what is worth them, and no time that another operation needs for a figure. */
static void a_load_is_held_as_long_as_it_is_worth(void) {
    const budget none = made("run", 0), some = made("run", 40);
    near(budget_hold(&none, 0.014, 0.17, false, 110), 0.8);
    near(budget_hold(&none, 0.03, 0.25, false, 110), 1.5);
    near(budget_hold(&none, 0.03, 0.25, true, 110), 1.5);
    near(budget_hold(&none, 0.014, 0.17, true, 110), 0);
    near(budget_hold(&some, 0.03, 0.25, false, 110), 1.5); /* its pass is not cut */
    UNIT_CHECK(!budget_cuts(&some, 0.03, 0.25) && budget_cuts(&some, 0.03, 0.24) && !budget_cuts(&none, 0.03, 0.01));
    near(budget_hold(&some, 0.03, 0.24, false, 110), 0.12);
    near(budget_hold(&some, 0.03, 0.19, false, 110), 0);
    near(budget_hold(&some, 0.6, 3, false, 110), 1.5);
    near(budget_hold(&some, 0.6, 3, true, 138), 1.5);
    near(budget_hold(&some, 0.6, 3, true, 139), 0);
}

static void later_passes(void) {
    budget b = made("run", 0);
    near(budget_later_end(&b, 3, false, 103), 117);
    near(budget_later_end(&b, 9, false, 109), 117); /* it is said once */
    b = made("run", 0);
    near(budget_later_end(&b, 30, false, 130), 160);
    b = made("run", 0);
    near(budget_later_end(&b, 25, true, 130), 150);
    b = made("run", 0);
    near(budget_later_end(&b, 60, true, 160), 175);
    budget_lose(&b, 4);
    near(budget_later_end(&b, 60, true, 170), 179); /* what was disturbed is made up for */
    for (int k = 0; k < 9; k++) budget_lose(&b, 4);
    near(budget_later_end(&b, 60, true, 170), 205); /* not without end */
    b = made("run", 50);
    budget_lose(&b, 4);
    near(budget_later_end(&b, 60, true, 130), 150);
    b = made("exhaustive", 0);
    UNIT_CHECK(isinf(budget_later_end(&b, 1, true, 130)));
    near(budget_spare(8), 4);
    near(budget_spare(100), 10);
}

static void what_is_worth_most_has_what_is_left(void) {
    const budget_wish of[] = {{0.1, 2}, {0.5, 3}, {0.05, 1}, {0.3, 4}};
    const struct {
        double left_s, least;
    } rows[] = {{10, 0}, {9.5, 0.1}, {7, 0.3}, {8.9, 0.3}, {6.9, 0.5}, {1, 0.5}, {-1, 0.5}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        budget_wish all[4];
        memcpy(all, of, sizeof of);
        near(budget_afforded(all, 4, rows[k].left_s), rows[k].least);
    }
    near(budget_afforded(NULL, 0, 1), 0);
}

static void a_tenth_is_kept_for_the_whole(void) {
    budget b = made("run", 50);
    near(budget_replay_end(&b, 120), 150); /* nothing was kept: what is left */
    budget_reserve(&b);
    near(budget_later_end(&b, 60, true, 130), 143.5);
    near(budget_replay_end(&b, 143.5), 150);
    near(budget_replay_more(&b), 5);
    b = made("run", 10);
    budget_reserve(&b);
    near(budget_later_end(&b, 60, true, 101), 108); /* of a short one no more than as much again */
    b = made("run", 0);
    budget_reserve(&b);
    near(budget_later_end(&b, 30, false, 130), 160);
    near(budget_replay_end(&b, 160), 170);
    near(budget_replay_more(&b), 0);
    near(budget_replay_end(&b, 400), 430);
}

/* Without a figure for each operation there is no sum to hold the whole against. */
static void operations_come_before_the_whole(void) {
    budget b = made("run", 10);
    budget_reserve(&b); /* the last 2 s */
    near(budget_search(&b, &(budget_job){.share = 1}, 107.99), 0.25 * 2.01);
    near(budget_search(&b, &(budget_job){.share = 1}, 109), 0.25 * 1);
    near(budget_search(&b, &(budget_job){.fusion = true, .share = 1}, 109), 0);
    /* Of a first pass that is late, a tenth of the budget at most, each has the least that gives a figure. */
    near(budget_search(&b, &(budget_job){.share = 1}, 110), 0.02);
    near(budget_search(&b, &(budget_job){.fusions_left = true, .share = 1, .part = 0.5, .host = true}, 110.99), 0.02);
    near(budget_search(&b, &(budget_job){.share = 1}, 111), 0);
    near(budget_search(&b, &(budget_job){.fusion = true, .share = 1}, 110), 0);
}

static void more_is_kept_where_that_is_enough(void) {
    budget b = made("run", 50);
    budget_reserve_for(&b, 10, 10, 101);
    near(budget_later_end(&b, 60, true, 130), 150); /* nothing is measured as a whole */
    budget_reserve(&b);
    budget_reserve_for(&b, 3, 3, 101);
    near(budget_later_end(&b, 60, true, 130), 143.5); /* it has that */
    budget_reserve_for(&b, 2, 10, 101);
    near(budget_later_end(&b, 60, true, 130), 138.5);
    near(budget_replay_end(&b, 138.5), 150);
    near(budget_operations_left(&b, 110), 0.75 * 38.5 - 10);
    budget_reserve_for(&b, 18, 30, 101);
    near(budget_later_end(&b, 60, true, 130), 130);
    near(budget_operations_left(&b, 110), 0.75 * 30 - 10);
    budget_reserve_for(&b, 23, 30, 101);
    near(budget_later_end(&b, 60, true, 130), 125.5); /* the first pass has up to a half */
    budget_reserve_for(&b, 24, 30, 101);
    near(budget_later_end(&b, 60, true, 130), 150); /* more than that it has not, and what was kept is given back */
    near(budget_replay_end(&b, 143.5), 150);
    budget_reserve_for(&b, 2, 10, 152.9);
    near(budget_later_end(&b, 60, true, 130), 138.5); /* there is still time for one, a tenth late */
    budget_reserve_for(&b, 2, 10, 153.1);
    near(budget_later_end(&b, 60, true, 130), 150); /* there is no more */
    budget_reserve_for(&b, 23, 30, 131.9);
    near(budget_later_end(&b, 60, true, 130), 125.5); /* its own time has begun, a little late */
    budget_reserve_for(&b, 23, 30, 132.1);
    near(budget_later_end(&b, 60, true, 130), 150);
}

int main(void) {
    UNIT_RUN(ceilings_have_a_third);
    UNIT_RUN(short_runs_take_what_is_stored);
    UNIT_RUN(searches_are_as_wide_as_their_worth);
    UNIT_RUN(a_second_search_is_worth_it_or_not_made);
    UNIT_RUN(a_budget_is_shared);
    UNIT_RUN(fusions_without_a_budget);
    UNIT_RUN(a_load_is_held_as_long_as_it_is_worth);
    UNIT_RUN(later_passes);
    UNIT_RUN(what_is_worth_most_has_what_is_left);
    UNIT_RUN(a_tenth_is_kept_for_the_whole);
    UNIT_RUN(operations_come_before_the_whole);
    UNIT_RUN(more_is_kept_where_that_is_enough);
    return unit_end();
}
