/* How often the comparison of two runs errs, counted over simulated nights: the promise of docs/comparing.md.
 *
 *     test_compare_nights [NIGHTS]      1000; more for `make bench-compare`, which shows what was counted */
#include "tests/fakes/nights.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>

static int nights = 1000;

/* 500 operations. A launch deviates by 1 % within a run; a report tells the median of 200, the least that the method
 * takes, and so knows it to ± 0.17 %. Beyond that two runs of an operation differ by 0.3 %, and those of the machine.
 */
static nights_model ordinary(void) {
    return (nights_model){
        .operations = 500, .launch_noise = 0.01, .launches = 200, .between = 0.003, .machine_runs = 0.003};
}

static nights_count count(const char *what, const nights_model *m) {
    const drift_options options = {.alarms = 0.0005, .margin = 0.01, .prior = drift_prior_of("cuda:0")};
    const nights_count c = nights_run(m, &options, nights, 20260);
    printf("%-54s %d nights: false SLOWER %d, FASTER %d", what, nights, c.false_slower, c.false_faster);
    if (m->slowed > 0) printf("; found %d (%.1f %%)", c.found, 100.0 * c.found / nights);
    printf("; machine SLOWER %d, FASTER %d; ambiguous %.1f a night\n", c.machine_slower, c.machine_faster, c.ambiguous);
    return c;
}

/* Nights in which the first two criteria must hold: in 1,000 one at most. */
static bool rarely(int events) { return events <= (nights + 999) / 1000; }
static bool nearly_always(int events) { return events >= (int)ceil(0.99 * nights); }

static void nothing_changed(void) {
    const nights_model m = ordinary();
    const nights_count c = count("nothing changed", &m);
    UNIT_CHECK(rarely(c.false_slower + c.false_faster));
    UNIT_CHECK(c.machine_slower + c.machine_faster == 0);
    UNIT_CHECK(c.ambiguous < 3);
}

static void one_is_slower(void) {
    nights_model m = ordinary();
    m.slowed = 1;
    m.slowdown = 0.03;
    const nights_count c = count("one operation is 3 % slower", &m);
    UNIT_CHECK(nearly_always(c.found) && rarely(c.false_slower + c.false_faster));
    UNIT_CHECK(c.detectable > 0.015 && c.detectable < 0.03); /* and it says so */
}

static void the_machine_is_slower(void) {
    nights_model m = ordinary();
    m.machine = 0.05;
    nights_count c = count("the machine is 5 % slower", &m);
    UNIT_INT(c.machine_slower, nights);
    UNIT_CHECK(rarely(c.false_slower + c.false_faster));
    m.slowed = 1;
    m.slowdown = 0.03;
    c = count("the machine is 5 % slower, and one 3 % more", &m);
    UNIT_INT(c.machine_slower, nights);
    UNIT_CHECK(nearly_always(c.found) && rarely(c.false_slower + c.false_faster));
    m.machine = -0.05;
    c = count("the machine is 5 % faster, and one 3 % slower", &m);
    UNIT_INT(c.machine_faster, nights);
    UNIT_CHECK(nearly_always(c.found) && rarely(c.false_slower + c.false_faster));
}

static void many_are_slower(void) {
    nights_model m = ordinary();
    m.slowed = 150;
    m.slowdown = 0.1;
    const nights_count c = count("150 operations are 10 % slower", &m);
    UNIT_CHECK(nearly_always(c.found) && rarely(c.false_slower + c.false_faster) && c.machine_slower == 0);
}

/* If each run by itself deviates by 0.3 %, two differ by 0.42 %, and no test can do both: 500 operations in 1,000
 * nights take 4.75 deviations, 99 % another 2.33, and 3 % are less than 7 of them. False alarms stay rare, and what is
 * found is nearly what the best test could: 98 %. */
static void twice_the_spread(void) {
    nights_model m = ordinary();
    m.between = 0.003 * sqrt(2);
    const nights_count none = count("0.3 % in each run: nothing changed", &m);
    UNIT_CHECK(rarely(none.false_slower + none.false_faster));
    m.slowed = 1;
    m.slowdown = 0.03;
    const nights_count one = count("0.3 % in each run: one is 3 % slower", &m);
    UNIT_CHECK(one.found >= 0.93 * nights);
    UNIT_CHECK(one.detectable > 0.03); /* and it says so */
}

/* Reports whose intervals say 1 % while their medians are far steadier. */
static void intervals_say_more(void) {
    nights_model m = ordinary();
    m.claimed_ci = 0.01;
    const nights_count none = count("reports claim +- 1 %: nothing changed", &m);
    UNIT_CHECK(rarely(none.false_slower + none.false_faster));
    m.slowed = 1;
    m.slowdown = 0.03;
    const nights_count one = count("reports claim +- 1 %: one is 3 % slower", &m);
    UNIT_CHECK(nearly_always(one.found));
}

/* Of the heavy tails of five degrees a normal test would be wrong every other night. */
static void heavy_tails(void) {
    nights_model m = ordinary();
    m.tails = 5;
    const nights_count c = count("heavy tails: nothing changed", &m);
    UNIT_CHECK(c.false_slower + c.false_faster < 0.25 * nights);
    UNIT_CHECK(c.heavy > 0.3 * nights);
}

static void small_models(void) {
    static const int sizes[] = {1, 3, 7, 8, 20, 60};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        char what[64];
        nights_model m = ordinary();
        m.operations = sizes[k];
        snprintf(what, sizeof what, "%d operations: nothing changed", sizes[k]);
        const nights_count none = count(what, &m);
        UNIT_CHECK(rarely((none.false_slower + none.false_faster) / 2)); /* the spread of 8 is hardly known */
        m.slowed = 1;
        m.slowdown = 0.2;
        snprintf(what, sizeof what, "%d operations: one is 20 %% slower", sizes[k]);
        const nights_count one = count(what, &m);
        UNIT_CHECK(nearly_always(one.found) && rarely((one.false_slower + one.false_faster) / 2));
    }
}

int main(int argc, char **argv) {
    if (argc > 1) nights = atoi(argv[1]);
    UNIT_RUN(nothing_changed);
    UNIT_RUN(one_is_slower);
    UNIT_RUN(the_machine_is_slower);
    UNIT_RUN(many_are_slower);
    UNIT_RUN(twice_the_spread);
    UNIT_RUN(intervals_say_more);
    UNIT_RUN(heavy_tails);
    UNIT_RUN(small_models);
    return unit_end();
}
