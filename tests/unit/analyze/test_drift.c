/* What two runs share and what one operation has for itself: figures known by hand, and populations made up to mislead.
 * How often the test errs is in test_compare_nights.c. */
#include "analyze/compare/drift_fit.h"
#include "tests/fakes/noisy.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 600 };

static bool near(double got, double want, double tolerance) { return fabs(got - want) <= tolerance; }

static drift_options gpu(void) {
    return (drift_options){.alarms = 0.0005, .margin = 0.01, .prior = drift_prior_of("cuda:0")};
}

static void tails_of_student(void) {
    UNIT_CHECK(near(student_tail(1.959964, INFINITY), 0.025, 1e-7) && near(student_tail(0, 3), 0.5, 1e-12));
    UNIT_CHECK(near(student_quantile(0.025, 1), 12.7062, 1e-3) && near(student_quantile(0.025, 10), 2.22814, 1e-4));
    UNIT_CHECK(near(student_quantile(0.0005, 5), 6.8688, 1e-3) && near(student_quantile(0.0005, 499), 3.3101, 1e-3));
    UNIT_CHECK(near(student_quantile(1e-6, INFINITY), 4.753424, 1e-5));
    UNIT_CHECK(near(student_tail(-1, 4), 1 - student_tail(1, 4), 1e-12));
    for (int k = 0; k < 40; k++) /* the tail of one degree is known in closed form */
        UNIT_CHECK(near(student_tail(k, 1) * 3.14159265358979, atan2(1, k), 1e-9));
}

/* The unit of each heavy tail is the one whose clipped squares have the mean that normal ones have. A mixture of one
 * shape alone tells it: its limit is the unit times the quantile. */
static void units_of_heavy_tails(void) {
    static const double degrees[DRIFT_SHAPES] = {INFINITY, 20, 12, 8, 6, 5, 4, 3, 2};
    for (int shape = 1; shape < DRIFT_SHAPES; shape++) {
        double weights[DRIFT_SHAPES] = {0}, squares = 0, all = 0;
        weights[shape] = 1;
        const double unit = drift_fit_limit(weights, INFINITY, 1e-3) / student_quantile(1e-3, degrees[shape]);
        for (double z = 5e-4; z < 4.5; z += 1e-3) {
            const double part = exp(student_log_density(z / unit, degrees[shape]));
            squares += fmin(z * z, 9) * part;
            all += part;
        }
        UNIT_CHECK(near(squares / all, 0.995, 0.001));
    }
    const double normal[DRIFT_SHAPES] = {1};
    UNIT_CHECK(near(drift_fit_limit(normal, INFINITY, 1e-6), 4.753424, 1e-4));
}

/* n operations without a change, whose times differ by spread beyond their intervals (0.3 %). */
static void population(drift_row *rows, int n, double spread, uint64_t seed) {
    const double noise = drift_noise(0.003, 0.003);
    for (int k = 0; k < n; k++) rows[k] = (drift_row){hypot(spread, noise) * noisy_normal(&seed), noise};
}

static drift learned(const drift_row *rows, int n) {
    const drift_options options = gpu();
    drift d;
    if (!drift_learn(&d, &options, rows, (size_t)n, (size_t)n)) abort();
    return d;
}

static int named(const drift *d, const drift_row *rows, int first, int end, drift_state state) {
    int count = 0;
    for (int k = first; k < end; k++) count += drift_judge(d, rows[k], 0).state == state;
    return count;
}

static void the_spread_is_learned(void) {
    drift_row rows[MOST];
    for (int k = 0; k < 3; k++) {
        const double spread = (const double[]){0.002, 0.006, 0.03}[k];
        population(rows, 500, spread, 7);
        const drift d = learned(rows, 500);
        UNIT_CHECK(d.learned && near(d.spread, spread, 0.1 * spread) && near(d.machine, 0, spread / 5));
        UNIT_CHECK(d.machine_known && d.members >= 499 && d.normal > 0.5);
        UNIT_INT(named(&d, rows, 0, 500, DRIFT_SLOWER) + named(&d, rows, 0, 500, DRIFT_FASTER), 0);
    }
}

/* Intervals that promise less than is seen count for what they are, but not those of rows that are wider than usual. */
static void intervals_that_are_too_wide(void) {
    drift_row rows[MOST];
    population(rows, 500, 0.003, 5);
    for (int k = 0; k < 500; k++) rows[k].noise = 0.02;
    rows[0] = (drift_row){0.05, 0.02};
    rows[1] = (drift_row){0.05, 0.05};
    const drift d = learned(rows, 500);
    UNIT_CHECK(d.trust < 0.3);
    UNIT_INT(drift_judge(&d, rows[0], 0).state, DRIFT_SLOWER);
    UNIT_INT(drift_judge(&d, rows[1], 0).state, DRIFT_AMBIGUOUS);
}

static void a_machine_is_no_operation(void) {
    drift_row rows[MOST];
    population(rows, 500, 0.003, 3);
    for (int k = 0; k < 500; k++) rows[k].change += log(1.05);
    rows[17].change += log(1.05);
    const drift d = learned(rows, 500);
    UNIT_INT(drift_judge_machine(&d).state, DRIFT_SLOWER);
    UNIT_CHECK(near(expm1(d.machine), 0.05, 0.001));
    UNIT_INT(named(&d, rows, 0, 500, DRIFT_SLOWER), 1);
    UNIT_INT(drift_judge(&d, rows[17], 0).state, DRIFT_SLOWER);
    for (int k = 0; k < 500; k++) rows[k].change *= -1;
    const drift faster = learned(rows, 500);
    UNIT_INT(drift_judge_machine(&faster).state, DRIFT_FASTER);
    UNIT_INT(named(&faster, rows, 0, 500, DRIFT_FASTER), 1);
}

/* A library that makes three of five operations faster is no faster machine, for the others stayed where they were; one
 * that changes four in ten while the rest moved alike leaves the machine what it is. */
static void many_changes(void) {
    drift_row rows[MOST];
    population(rows, 500, 0.003, 11);
    for (int k = 0; k < 300; k++) rows[k].change -= 0.1;
    const drift d = learned(rows, 500);
    UNIT_CHECK(near(d.machine, 0, 0.001));
    UNIT_INT(named(&d, rows, 0, 300, DRIFT_FASTER), 300);
    UNIT_INT(named(&d, rows, 300, 500, DRIFT_SLOWER), 0);
    population(rows, 500, 0.003, 12);
    for (int k = 0; k < 500; k++) rows[k].change += k < 200 ? -0.2 : 0.06;
    const drift both = learned(rows, 500);
    UNIT_CHECK(near(both.machine, 0.06, 0.001));
    UNIT_INT(named(&both, rows, 0, 200, DRIFT_FASTER), 200);
    UNIT_INT(named(&both, rows, 200, 500, DRIFT_SLOWER) + named(&both, rows, 200, 500, DRIFT_FASTER), 0);
}

/* Two devices are apart everywhere: what stands out is only what stands out of that. */
static void two_devices(void) {
    drift_row rows[MOST];
    population(rows, 300, 0.15, 2);
    for (int k = 0; k < 300; k++) rows[k].change += log(1.4);
    rows[5].change = log(1.4) + 2;
    const drift d = learned(rows, 300);
    UNIT_CHECK(near(d.machine, log(1.4), 0.03) && near(d.spread, 0.15, 0.02));
    UNIT_INT(named(&d, rows, 0, 300, DRIFT_SLOWER), 1);
}

static void few_operations(void) {
    drift_row rows[] = {{0.03, 0.001}, {0.001, 0.001}, {-0.001, 0.001}};
    drift d = learned(rows, 3);
    UNIT_CHECK(!d.learned && d.spread >= gpu().prior->spread);
    UNIT_INT(drift_judge(&d, rows[0], 0).state, DRIFT_AMBIGUOUS);
    rows[0].change = 0.2; /* no machine's drift */
    d = learned(rows, 3);
    UNIT_INT(drift_judge(&d, rows[0], 0).state, DRIFT_SLOWER);
    UNIT_CHECK(drift_judge(&d, rows[1], 0).state != DRIFT_FASTER);
    for (int k = 0; k < 3; k++) rows[k].change = 0.2 + 0.001 * k; /* three of three: the machine, and once */
    d = learned(rows, 3);
    UNIT_INT(drift_judge_machine(&d).state, DRIFT_SLOWER);
    UNIT_INT(named(&d, rows, 0, 3, DRIFT_SLOWER), 0);
    d = learned(rows, 2); /* two rows cannot decide */
    UNIT_CHECK(!d.machine_known && drift_judge_machine(&d).state == DRIFT_AMBIGUOUS);
    UNIT_INT(named(&d, rows, 0, 2, DRIFT_SLOWER), 2);
    d = learned(rows, 0);
    UNIT_CHECK(!d.machine_known && d.rows == 0 && isfinite(d.limit) && isfinite(drift_detectable(&d)));
    UNIT_CHECK(drift_prior_of("cpu:0")->spread > drift_prior_of("cuda:0")->spread && drift_prior_of(NULL));
}

static void what_is_no_number(void) {
    drift_row rows[MOST];
    population(rows, 100, 0.003, 9);
    for (int k = 0; k < 100; k += 3) rows[k].change = (const double[]){NAN, INFINITY, -INFINITY}[k / 3 % 3];
    rows[1].noise = NAN;
    const drift d = learned(rows, 100);
    UNIT_INT(d.rows, 65);
    UNIT_CHECK(near(d.machine, 0, 0.002) && isfinite(d.limit));
    UNIT_INT(drift_judge(&d, rows[0], 0).state, DRIFT_AMBIGUOUS);
    UNIT_CHECK(near(drift_noise(0.0196, NAN), hypot(0.01, 1 / 1.96), 1e-4) && drift_noise(-1, 0) > 0);
    for (int k = 0; k < 100; k++) rows[k] = (drift_row){700, 0}; /* all alike, and absurd */
    const drift absurd = learned(rows, 100);
    UNIT_CHECK(near(absurd.machine, 700, 1e-6) && absurd.spread > 0);
}

/* Runs that are steadier than anything can be teach no tails. */
static void the_same_figures_again(void) {
    drift_row rows[100];
    for (int k = 0; k < 100; k++) rows[k] = (drift_row){0, drift_noise(0.003, 0.003)};
    rows[40].change = 0.03;
    const drift d = learned(rows, 100);
    UNIT_CHECK(d.normal > 0.99 && d.spread > 0);
    UNIT_INT(named(&d, rows, 0, 100, DRIFT_SLOWER), 1);
    UNIT_INT(named(&d, rows, 0, 100, DRIFT_SAME), 99);
}

static void states(void) {
    drift_row rows[MOST];
    population(rows, 400, 0.003, 21);
    const drift d = learned(rows, 400);
    const double sd = drift_judge(&d, rows[0], 0).sd, past = d.machine + d.limit * sd + 1e-6;
    UNIT_INT(drift_judge(&d, (drift_row){past, rows[0].noise}, 0).state, DRIFT_SLOWER);
    UNIT_INT(drift_judge(&d, (drift_row){past, rows[0].noise}, 0.02).state, DRIFT_AMBIGUOUS);
    UNIT_INT(drift_judge(&d, (drift_row){d.machine - d.limit * sd - 1e-6, rows[0].noise}, 0).state, DRIFT_FASTER);
    UNIT_INT(drift_judge(&d, (drift_row){d.machine + 3.5 * sd, rows[0].noise}, 0).state, DRIFT_AMBIGUOUS);
    UNIT_INT(drift_judge(&d, (drift_row){d.machine + sd, rows[0].noise}, 0).state, DRIFT_SAME);
    UNIT_INT(drift_judge(&d, (drift_row){d.machine, 0.02}, 0).state, DRIFT_AMBIGUOUS); /* it might be anything */
    UNIT_TEXT(drift_state_name(DRIFT_AMBIGUOUS), "AMBIGUOUS");
}

int main(void) {
    UNIT_RUN(tails_of_student);
    UNIT_RUN(units_of_heavy_tails);
    UNIT_RUN(the_spread_is_learned);
    UNIT_RUN(intervals_that_are_too_wide);
    UNIT_RUN(a_machine_is_no_operation);
    UNIT_RUN(many_changes);
    UNIT_RUN(two_devices);
    UNIT_RUN(few_operations);
    UNIT_RUN(what_is_no_number);
    UNIT_RUN(the_same_figures_again);
    UNIT_RUN(states);
    return unit_end();
}
