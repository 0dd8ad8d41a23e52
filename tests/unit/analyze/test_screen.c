/* The rule of the alarms on figures made for it. */
#include "tests/unit/unit.h"

#include "analyze/history/screen.h"

#include <math.h>

enum { MOST = 100 };

/* Even noise of a known spread, without chance: the quantiles of a normal, in an order that has no trend. */
static size_t nights(double *x, size_t n, double middle, double sd) {
    static const double quantiles[] = {-1.28, 0.25, 1.64, -0.67, 0.67, -1.64, 1.28, -0.25, 0, 0.52, -0.52};
    for (size_t k = 0; k < n; k++) x[k] = middle + sd * quantiles[k % 11];
    return n;
}

static void medians(void) {
    double x[] = {3, 1, 2}, y[] = {4, 1, 2, 3};
    UNIT_CHECK(screen_median(x, 3) == 2);
    UNIT_CHECK(screen_median(y, 4) == 2.5);
    UNIT_CHECK(isnan(screen_median(x, 0)));
}

static void a_base_is_its_nights(void) {
    double x[MOST];
    const screen_base b = screen_base_of(x, NULL, nights(x, 44, 1, 0.005));
    UNIT_CHECK(fabs(b.middle - 1) < 0.001);
    UNIT_CHECK(b.spread > 0.004 && b.spread < 0.006);
    UNIT_INT(b.nights, SCREEN_NIGHTS);
    const screen_base none = screen_base_of(x, NULL, 0);
    UNIT_CHECK(isnan(none.spread) && none.nights == 0);
    UNIT_CHECK(screen_z(&none, 5) == 0);
}

static void one_bad_night_moves_nothing(void) {
    double x[MOST];
    nights(x, 42, 1, 0.005);
    x[20] = 9;
    const screen_base b = screen_base_of(x, NULL, 42);
    UNIT_CHECK(fabs(b.middle - 1) < 0.001 && b.spread < 0.007);
}

static void earlier_levels_tell_only_how_nights_differ(void) {
    double x[MOST];
    int level[MOST];
    nights(x, 40, 1, 0.005);
    for (size_t k = 0; k < 40; k++) level[k] = k >= 34 ? 2 : k >= 20;
    for (size_t k = 0; k < 40; k++) x[k] += 0.2 * level[k];
    const screen_base b = screen_base_of(x, level, 40);
    UNIT_CHECK(fabs(b.middle - 1.4) < 0.005);
    UNIT_CHECK(b.spread > 0.004 && b.spread < 0.006);
    UNIT_INT(b.nights, 6);
}

static void too_few_nights_suspect_nothing(void) {
    double x[MOST];
    screen_base b = screen_base_of(x, NULL, nights(x, SCREEN_LEAST - 1, 1, 0.005));
    UNIT_CHECK(screen_z(&b, 2) == 0);
    b = screen_base_of(x, NULL, nights(x, SCREEN_LEAST, 1, 0.005));
    UNIT_CHECK(screen_z(&b, 2) > screen_limit);
    UNIT_CHECK(screen_blend(&b, NAN) == b.spread);
    UNIT_CHECK(screen_blend(&b, 1) > 0.5);
}

static void repetitions_decide(void) {
    double x[MOST], same[SCREEN_REPEATS], more[SCREEN_REPEATS], wild[SCREEN_REPEATS];
    const screen_base b = screen_base_of(x, NULL, nights(x, 42, 1, 0.005));
    nights(same, SCREEN_REPEATS, 1, 0.005);
    nights(more, SCREEN_REPEATS, 1.03, 0.005);
    nights(wild, SCREEN_REPEATS, 1.03, 0.05);
    UNIT_CHECK(!screen_settle(&b, 1.03, same, SCREEN_REPEATS, 0).confirmed);
    UNIT_CHECK(screen_settle(&b, 1.03, more, SCREEN_REPEATS, 0).confirmed);
    UNIT_CHECK(!screen_settle(&b, 1.03, wild, SCREEN_REPEATS, 0).confirmed);
    UNIT_CHECK(!screen_settle(&b, 0.97, more, SCREEN_REPEATS, 0).confirmed);    /* tonight it was the other way */
    UNIT_CHECK(!screen_settle(&b, 1.03, more, SCREEN_REPEATS, 0.03).confirmed); /* all moved so */
    UNIT_CHECK(!screen_settle(&b, 1.03, more, 0, 0).confirmed);
}

static void changes_are_dated(void) {
    double x[MOST];
    size_t at[8];
    UNIT_INT(screen_changes(x, nights(x, 90, 1, 0.005), at, 8), 0);
    for (size_t k = 30; k < 90; k++) x[k] += 0.03;
    for (size_t k = 70; k < 90; k++) x[k] -= 0.05;
    UNIT_INT(screen_changes(x, 90, at, 8), 2);
    UNIT_INT(at[0], 30);
    UNIT_INT(at[1], 70);
    UNIT_INT(screen_changes(x, 90, at, 1), 1);
    nights(x, 90, 1, 0.005);
    x[50] += 1; /* a night is no level */
    UNIT_INT(screen_changes(x, 90, at, 8), 0);
    x[50] -= 1;
    x[89] += 1;
    UNIT_INT(screen_changes(x, 90, at, 8), 0);
    x[88] += 1;
    UNIT_INT(screen_changes(x, 90, at, 8), 1);
    UNIT_INT(at[0], 88);
    UNIT_INT(screen_changes(x, 0, at, 8), 0);
    UNIT_INT(screen_changes(x, 2, at, 8), 0);
}

int main(void) {
    UNIT_RUN(medians);
    UNIT_RUN(a_base_is_its_nights);
    UNIT_RUN(one_bad_night_moves_nothing);
    UNIT_RUN(earlier_levels_tell_only_how_nights_differ);
    UNIT_RUN(too_few_nights_suspect_nothing);
    UNIT_RUN(repetitions_decide);
    UNIT_RUN(changes_are_dated);
    return unit_end();
}
