/* How far from its ceiling an operation is, and what that says when the ceiling is hardly known. */
#include "tests/unit/common/verdict_fixture.h"

static void at_the_ceiling_nothing_is_done(void) {
    verdict_facts f = product(97.7);
    wants(&f, "NONE", "NONE", false);
    verdict v = judge(&f);
    UNIT_TEXT(v.recommendation, "lib is at 97.7 % of the ceiling: use it, a custom kernel cannot improve on it.");
    UNIT_CHECK(fabs(v.efficiency - 0.977) < 1e-12);
    UNIT_CHECK(fabs(v.potential_gain_us - 2.3) < 1e-9);
    f = product(90);
    wants(&f, "NONE", "NONE", false);
    f = product(89.999);
    wants(&f, "CUTLASS_SWEEP", "HIGH", false);
}

static void above_the_ceiling_is_not_clipped(void) {
    verdict_facts f = product(110);
    verdict v = judge(&f);
    UNIT_CHECK(fabs(v.efficiency - 1.1) < 1e-12);
    UNIT_CHECK(v.potential_gain_us == 0);
    UNIT_TEXT(v.approach, "NONE");
}

static void an_interval_at_the_ceiling_takes_the_cheaper_action(void) {
    verdict_facts f = product(89.8);
    f.baseline_ci = 0.005;
    wants(&f, "NONE", "NONE", true);
    f = product(89.7);
    f.baseline_ci = 0.002; /* 89.7 +- 0.18: does not reach 90, but the next run may */
    wants(&f, "CUTLASS_SWEEP", "HIGH", true);
    f.baseline_ci = 0.0015; /* nor do two of these */
    wants(&f, "CUTLASS_SWEEP", "HIGH", false);
    f = product(90.2);
    f.baseline_ci = 0.005;
    wants(&f, "NONE", "NONE", true);
    f.baseline_ci = 0.001;
    wants(&f, "NONE", "NONE", false);
    f.ceiling_ci = 0.001; /* the ceiling is not exact either */
    wants(&f, "NONE", "NONE", true);
    f = product(89.8);
    f.ceiling_ci = 0.005;
    wants(&f, "NONE", "NONE", true);
}

static void an_open_one_says_between_what_and_what(void) {
    static const char *const open = "at the ceiling or not: open";
    verdict_facts f = product(89.8);
    f.baseline_ci = 0.005;
    UNIT_TEXT(judge(&f).recommendation,
              "lib is at between 89.4 and 90.2 % of the ceiling: use it, measure it longer (--budget) before writing a "
              "kernel.");
    UNIT_TEXT(verdict_rule(judge(&f).rule), open);
    f.ceiling_us = 90.2; /* only where all of it is above is it at the ceiling */
    UNIT_CHECK(strstr(judge(&f).recommendation, "lib is at between 89.7 and 90.7 % of the ceiling") != NULL);
    UNIT_TEXT(verdict_rule(judge(&f).rule), open);
    f.ceiling_us = 91; /* out of reach */
    UNIT_TEXT(judge(&f).recommendation,
              "lib is at 91.0 % of the ceiling: use it, a custom kernel would hardly improve on it.");
}

/* Seen in one pass alone: whatever it is, nothing is proven, and the cheaper action is taken. */
static void an_interval_that_is_not_known_decides_nothing(void) {
    static const double unknown[] = {NAN, 1, 30, INFINITY, -1};
    for (int k = 0; k < 5; k++)
        for (double efficiency = 20; efficiency < 120; efficiency += 15) {
            verdict_facts f = product(efficiency);
            f.baseline_ci = unknown[k];
            wants(&f, "NONE", "NONE", true);
            UNIT_CHECK(strstr(judge(&f).recommendation, unknown[k] == 30
                                                            ? "of the ceiling, known to +- 3000 % only: use it"
                                                            : "from one pass only"));
            f.ratio = 0.3, f.ratio_ci = unknown[k], f.best_us = 30, f.best_name = "fast";
            wants(&f, "NONE", "NONE", true);
            UNIT_CHECK(judge(&f).proven_gain_us == 0);
            UNIT_CHECK(strstr(judge(&f).recommendation, unknown[k] == 30
                                                            ? "Open: fast took 70.0 % less, known to +- 3000 % only."
                                                            : "Open: fast took 70.0 % less in one pass."));
            f.ratio_ci = 0.01; /* the ratio is known, and it is all of the model */
            wants(&f, "LIBRARY_TUNE", "HIGH", false);
            f.model_us = 1e5; /* of a model it is any part */
            wants(&f, "LIBRARY_TUNE", "LOW", true);
        }
    verdict_facts f = product(50);
    f.ratio_ci = NAN, f.best_us = 30, f.best_ci = NAN; /* two times, and how exact one is is unknown */
    wants(&f, "CUTLASS_SWEEP", "HIGH", true);
}

/* From neighbouring blocks it is a ratio to the baseline: nothing else is added to its interval, and however wide that
 * is, it decides where all of it is on one side. */
static void a_ceiling_from_beside_has_the_ratios_interval(void) {
    verdict_facts f = product(91);
    f.baseline_ci = 0.03, f.ceiling_ci = 0.002;
    wants(&f, "NONE", "NONE", true);
    f.ceiling_beside = true;
    wants(&f, "NONE", "NONE", false);
    UNIT_CHECK(fabs(judge(&f).figures[VERDICT_EFFICIENCY].half - 0.91 * 0.002) < 1e-12);
    f.ceiling_us = 70, f.ceiling_ci = 0.1;
    wants(&f, "CUTLASS_SWEEP", "HIGH", false);
    UNIT_CHECK(fabs(judge(&f).figures[VERDICT_POTENTIAL].half - 0.07) < 1e-12); /* alone it is the model */
    f.model_us = 200; /* 15 %: of its half of the time 3 % are not known, nor 7 of its 70 % */
    UNIT_CHECK(fabs(judge(&f).figures[VERDICT_POTENTIAL].half - (0.15 * 0.03 * 0.5 + 0.5 * 0.07)) < 1e-12);
    f.ceiling_ci = NAN;
    wants(&f, "NONE", "NONE", true);
    f.ceiling_beside = false;
    wants(&f, "UNMEASURED", "NONE", true);
}

static void a_ceiling_that_is_hardly_known_decides_nothing(void) {
    static const double efficiencies[] = {20, 50, 89, 90, 97, 150};
    static const double wide[] = {0.0501, 0.3, 1, 7, INFINITY, NAN};
    for (int e = 0; e < 6; e++)
        for (int k = 0; k < 6; k++) {
            verdict_facts f = product(efficiencies[e]);
            f.ceiling_ci = wide[k];
            wants(&f, "UNMEASURED", "NONE", true);
            const verdict v = judge(&f);
            UNIT_CHECK(strstr(v.recommendation, "measure it again with --ceilings --no-cache.") != NULL);
            UNIT_CHECK(v.potential_gain_us == 0);
            UNIT_CHECK(fabs(v.efficiency - efficiencies[e] / 100) < 1e-12); /* it stays what it was measured to be */
            f.op = "norm";
            wants(&f, "UNMEASURED", "NONE", true);
        }
    verdict_facts f = product(50);
    f.ceiling_ci = 0.0501;
    UNIT_CHECK(strstr(judge(&f).recommendation, "Its ceiling is known to +- 5.0 % only") != NULL);
    f.ceiling_ci = 1;
    UNIT_CHECK(strstr(judge(&f).recommendation, "The uncertainty of its ceiling is unknown") != NULL);
    f.ceiling_ci = 0.05; /* well known enough */
    wants(&f, "CUTLASS_SWEEP", "HIGH", false);
    UNIT_CHECK(fabs(judge(&f).potential_gain_us - 50) < 1e-9);
    verdict_thresholds t = verdict_defaults;
    t.ceiling_ci = 0.04;
    UNIT_TEXT(verdict_of(&f, &t).approach, "UNMEASURED");
}

/* What was proven stays proven; only what it adds to the model's time makes its priority. */
static void what_is_proven_needs_no_ceiling(void) {
    verdict_facts f = product(50);
    f.ratio = 0.9, f.best_us = 90, f.ceiling_ci = 1;
    wants(&f, "LIBRARY_TUNE", "HIGH", false);
    f.model_us = 500; /* 2 % proven; the potential might make it HIGH */
    wants(&f, "LIBRARY_TUNE", "MEDIUM", true);
    f.ceiling_us = 150; /* nor does one that is above it say that there is none */
    wants(&f, "LIBRARY_TUNE", "MEDIUM", true);
    f.ceiling_us = 50, f.ceiling_ci = 0;
    wants(&f, "LIBRARY_TUNE", "HIGH", false);
}

/* The floor is part of a ceiling, and no better known. */
static void nor_does_it_say_what_launching_is(void) {
    verdict_facts f = product(50);
    f.launch_us = 30, f.bound = "launch", f.ceiling_ci = 0.3;
    wants(&f, "UNMEASURED", "NONE", true);
    f.launch_us = 20, f.bound = "compute";
    wants(&f, "UNMEASURED", "NONE", true);
    f.launch_us = 45, f.bound = "launch"; /* 90 +- 27 %: that much is sure, for now */
    wants(&f, "NONE", "NONE", true);
    f.ceiling_ci = 0.2;
    wants(&f, "NONE", "NONE", false);
    UNIT_CHECK(strstr(judge(&f).recommendation, "Bound by launching") != NULL);
}

int main(void) {
    UNIT_RUN(at_the_ceiling_nothing_is_done);
    UNIT_RUN(above_the_ceiling_is_not_clipped);
    UNIT_RUN(an_interval_at_the_ceiling_takes_the_cheaper_action);
    UNIT_RUN(an_open_one_says_between_what_and_what);
    UNIT_RUN(an_interval_that_is_not_known_decides_nothing);
    UNIT_RUN(a_ceiling_from_beside_has_the_ratios_interval);
    UNIT_RUN(a_ceiling_that_is_hardly_known_decides_nothing);
    UNIT_RUN(what_is_proven_needs_no_ceiling);
    UNIT_RUN(nor_does_it_say_what_launching_is);
    return unit_end();
}
