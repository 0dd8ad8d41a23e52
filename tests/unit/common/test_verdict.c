/* The rules of verdicts: each of them, and both sides of every threshold. */
#include "tests/unit/common/verdict_fixture.h"

#include <math.h>

/* Below, the interval's end short of the threshold; touching it from below and from above; above, short of it. Up to
 * two half widths away the next run may decide otherwise. */
typedef void set_figure(verdict_facts *f, double x);
static void around(verdict_facts f, set_figure *set, double threshold, double half, const char *const approaches[4],
                   const char *const priority[4]) {
    static const struct {
        double step; /* of half the interval's width */
        int place;
        bool borderline;
    } cases[] = {{-2.3, 0, false}, {-1.8, 0, true}, {-1.02, 0, true}, {-0.98, 1, true},
                 {0.98, 2, true},  {1.02, 3, true}, {1.8, 3, true},   {2.3, 3, false}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        set(&f, threshold + cases[k].step * half);
        wants(&f, approaches[cases[k].place], priority[cases[k].place], cases[k].borderline);
    }
}

#define ALL(a)      ((const char *const[4]){a, a, a, a})
#define FROM(a, b)  ((const char *const[4]){a, a, a, b})
#define UP_TO(a, b) ((const char *const[4]){a, b, b, b})

static void set_efficiency(verdict_facts *f, double x) { f->baseline_us = 100, f->ceiling_us = 100 * x; }
static void set_win(verdict_facts *f, double x) { f->ratio = 1 - x, f->best_us = 100 * (1 - x); }
static void set_rival(verdict_facts *f, double x) { f->rival_ratio = 1 - x; }
static void set_potential(verdict_facts *f, double x) { f->model_us = (100 - f->ceiling_us) / x; }
static void set_proven(verdict_facts *f, double x) { f->model_us = 100 * (1 - f->ratio) / x; }
static void set_floor(verdict_facts *f, double x) {
    f->launch_us = x * f->ceiling_us, f->bound = x >= 0.5 ? "launch" : "compute";
}

/* Every threshold, by the intervals of all that it is compared with. Half widths are those at the threshold. */
static void every_threshold_on_both_sides(void) {
    verdict_facts f = product(90);
    f.baseline_ci = 0.005;
    around(f, set_efficiency, 0.9, 0.9 * 0.005, UP_TO("CUTLASS_SWEEP", "NONE"), UP_TO("HIGH", "NONE"));
    f.ceiling_ci = 0.004; /* that of the ceiling comes on top */
    around(f, set_efficiency, 0.9, 0.9 * 0.009, UP_TO("CUTLASS_SWEEP", "NONE"), UP_TO("HIGH", "NONE"));
    f.baseline_ci = 0;
    around(f, set_efficiency, 0.9, 0.9 * 0.004, UP_TO("CUTLASS_SWEEP", "NONE"), UP_TO("HIGH", "NONE"));
    f = product(95);
    f.ratio_ci = 0.004;
    around(f, set_win, 0.02, 0.98 * 0.004, FROM("NONE", "LIBRARY_TUNE"), FROM("NONE", "MEDIUM"));
    f.ratio_ci = 0.03; /* also where it was the slower one this time */
    f.ratio = 1.005, f.best_us = 100.5;
    wants(&f, "NONE", "NONE", true);
    f = product(20), f.ratio = 0.5; /* of 60 us proven, or 80 potential: the shares of a large model */
    f.ceiling_us = 99.9, f.ratio_ci = 0.01, f.model_us = 1e4;
    around(f, set_proven, 0.01, 0.01 * 0.01, ALL("LIBRARY_TUNE"), FROM("LOW", "MEDIUM"));
    around(f, set_proven, 0.05, 0.05 * 0.01, ALL("LIBRARY_TUNE"), FROM("MEDIUM", "HIGH"));
    f = product(50);
    f.ceiling_ci = 0.01;
    around(f, set_potential, 0.03, 0.03 * 0.01, ALL("CUTLASS_SWEEP"), FROM("LOW", "MEDIUM"));
    around(f, set_potential, 0.10, 0.10 * 0.01, ALL("CUTLASS_SWEEP"), FROM("MEDIUM", "HIGH"));
    f.ceiling_ci = 0, f.baseline_ci = 0.01; /* the baseline is in the model's time too */
    around(f, set_potential, 0.03, 0.06 * 0.01 * 0.97, ALL("CUTLASS_SWEEP"), FROM("LOW", "MEDIUM"));
    f.op = "norm";
    around(f, set_potential, 0.03, 0.06 * 0.01 * 0.97, FROM("NONE", "CUSTOM_KERNEL"), FROM("LOW", "MEDIUM"));
    f = product(50);
    f.ceiling_ci = 0.01;
    around(f, set_floor, 0.5, 0.5 * 0.01, UP_TO("CUTLASS_SWEEP", "NONE"), UP_TO("HIGH", "NONE"));
}

/* Shares know no better what they are parts of. */
static void the_models_time_has_an_interval(void) {
    verdict_facts f = product(50);
    f.model_ci = 0.01; /* this operation is exact: all of it is that of the others */
    around(f, set_potential, 0.10, 0.10 * 0.01, ALL("CUTLASS_SWEEP"), FROM("MEDIUM", "HIGH"));
    f = product(99.9);
    f.ratio = 0.5, f.model_ci = 0.01;
    around(f, set_proven, 0.05, 0.05 * 0.01, ALL("LIBRARY_TUNE"), FROM("MEDIUM", "HIGH"));
    f = product(89.9); /* alone it is the model, and its own interval counts once: 10.1 +- 0.09 % */
    f.baseline_ci = f.model_ci = 0.0005;
    wants(&f, "CUTLASS_SWEEP", "HIGH", false);
    f.baseline_ci = f.model_ci = 0.0012;
    wants(&f, "NONE", "NONE", true);
}

/* What nearly won may win the next time. */
static void a_rival_at_the_margin_is_told(void) {
    verdict_facts f = product(80);
    f.rival_ratio_ci = 0.004, f.rival_family = "LIBRARY_TUNE";
    for (double win = 0.0165; win < 0.024; win += 0.001) { /* never proven: it was not chosen */
        set_rival(&f, win);
        wants(&f, "CUTLASS_SWEEP", "HIGH", true);
        UNIT_CHECK(judge(&f).proven_gain_us == 0);
    }
    set_rival(&f, 0.0159);
    f.rival_ratio_ci = 0.0020; /* twice that is less than what is missing */
    wants(&f, "CUTLASS_SWEEP", "HIGH", false);
    f.rival_ratio_ci = 0.0022;
    wants(&f, "CUTLASS_SWEEP", "HIGH", true);
    f.rival_ratio = 1.02, f.rival_ratio_ci = 0.05; /* it would not settle */
    wants(&f, "CUTLASS_SWEEP", "HIGH", true);
    f.rival_ratio = 0.7, f.rival_ratio_ci = 0.01; /* nor this one, which will win when it does */
    wants(&f, "CUTLASS_SWEEP", "HIGH", true);
    f.rival_ratio_ci = 0.3; /* wide, and known: it may save from 9 to 51 % */
    wants(&f, "CUTLASS_SWEEP", "HIGH", true);
    f.rival_ratio = 1.9, f.rival_ratio_ci = 0.6; /* twice as slow, within an interval that reaches below */
    wants(&f, "CUTLASS_SWEEP", "HIGH", true);
    f.rival_ratio_ci = 0.2;
    wants(&f, "CUTLASS_SWEEP", "HIGH", false);
    static const double unknown[] = {1, 1.5, INFINITY, NAN};
    for (int k = 0; k < 4; k++) { /* how it compares is not known: that says nothing of the row */
        f.rival_ratio_ci = unknown[k];
        for (f.rival_ratio = 0.7; f.rival_ratio < 2; f.rival_ratio += 0.3) wants(&f, "CUTLASS_SWEEP", "HIGH", false);
    }
    f.rival_ratio = 0.98, f.rival_ratio_ci = 0.01;
    f.ratio = 0.9, f.best_us = 90; /* what is proven does not hang on it */
    f.best_family = "LIBRARY_TUNE";
    wants(&f, "LIBRARY_TUNE", "HIGH", false);
}

static void two_approaches_that_win_alike(void) {
    verdict_facts f = product(80);
    f.ratio = 0.9, f.best_us = 90, f.ratio_ci = 0.002, f.best_family = "CUSTOM_KERNEL";
    f.rival_ratio = 0.903, f.rival_ratio_ci = 0.002, f.rival_family = "LIBRARY_TUNE";
    wants(&f, "CUSTOM_KERNEL", "HIGH", true);
    f.rival_ratio = 0.904;
    wants(&f, "CUSTOM_KERNEL", "HIGH", false);
    f.rival_ratio = 0.7, f.rival_ratio_ci = 0.01; /* it was not chosen, for it would not settle */
    wants(&f, "CUSTOM_KERNEL", "HIGH", true);
    f.rival_ratio = 1.9, f.rival_ratio_ci = 1; /* nothing is known of how it compares */
    wants(&f, "CUSTOM_KERNEL", "HIGH", false);
    f.rival_ratio_ci = 0.01;
    f.rival_ratio = 0.901, f.rival_family = "CUSTOM_KERNEL"; /* the same is to be done either way */
    wants(&f, "CUSTOM_KERNEL", "HIGH", false);
}

static void without_cutlass_nothing_is_swept(void) {
    static const char *const others[] = {"cpu", "cpu:0", "scripted:0", "cudas:0", "cud", "", NULL};
    for (size_t k = 0; k < sizeof others / sizeof others[0]; k++) {
        verdict_facts f = product(50);
        f.device = others[k];
        wants(&f, "CUSTOM_KERNEL", "HIGH", false);
        UNIT_CHECK(!strstr(judge(&f).recommendation, "tile"));
        f.model_us = 1666.8; /* 3 % is not worth a kernel */
        wants(&f, "NONE", "LOW", false);
        f = product(95);
        f.device = others[k];
        wants(&f, "NONE", "NONE", false);
    }
    verdict_facts f = product(50);
    f.device = "cuda";
    wants(&f, "CUTLASS_SWEEP", "HIGH", false);
}

static void potential_follows_the_models_time(void) {
    static const struct {
        double model_us;
        const char *priority;
    } cases[] = {{500, "HIGH"}, {500.1, "MEDIUM"}, {1666.6, "MEDIUM"}, {1666.8, "LOW"}, {1e9, "LOW"}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        verdict_facts f = product(50); /* 50 us to gain */
        f.model_us = cases[k].model_us;
        wants(&f, "CUTLASS_SWEEP", cases[k].priority, false);
    }
    verdict_facts f = product(50);
    f.count = 10, f.model_us = 5000;
    wants(&f, "CUTLASS_SWEEP", "HIGH", false);
    UNIT_CHECK(fabs(judge(&f).potential_gain_us - 500) < 1e-9);
}

static void an_interval_at_a_priority_takes_the_lower_one(void) {
    verdict_facts f = product(50);
    f.model_us = 500, f.baseline_ci = 0.01;
    wants(&f, "CUTLASS_SWEEP", "MEDIUM", true);
    f.model_us = 1666, f.baseline_ci = 0.01;
    wants(&f, "CUTLASS_SWEEP", "LOW", true);
    f.model_us = 1000, f.baseline_ci = 0.01;
    wants(&f, "CUTLASS_SWEEP", "MEDIUM", false);
}

static void a_proven_gain_comes_first(void) {
    verdict_facts f = product(99);
    f.best_us = 90, f.ratio = 0.9, f.ratio_ci = 0.001, f.best_name = "lib algo=6";
    wants(&f, "LIBRARY_TUNE", "HIGH", false);
    verdict v = judge(&f);
    UNIT_CHECK(fabs(v.proven_gain_us - 10) < 1e-9);
    UNIT_TEXT(v.recommendation, "Use lib algo=6: proven to take 10.0 % less time than lib.");
    f.baseline_own = true;
    UNIT_TEXT(judge(&f).recommendation,
              "Use lib algo=6: proven to take 10.0 % less time than lib, which is not a library's.");
    f.baseline_own = false;
    f.best_family = "CUSTOM_KERNEL";
    wants(&f, "CUSTOM_KERNEL", "HIGH", false);
    f.ratio = 0; /* no blocks side by side: the two times and both intervals */
    wants(&f, "CUSTOM_KERNEL", "HIGH", false);
    UNIT_CHECK(fabs(judge(&f).proven_gain_us - 10) < 1e-9);
}

static void a_proven_gain_follows_the_models_time(void) {
    static const struct {
        double model_us;
        const char *priority;
    } cases[] = {{199.9, "HIGH"}, {200.1, "MEDIUM"}, {999, "MEDIUM"}, {1001, "LOW"}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        verdict_facts f = product(99.9);
        f.best_us = 90, f.ratio = 0.9, f.model_us = cases[k].model_us;
        wants(&f, "LIBRARY_TUNE", cases[k].priority, false);
    }
}

static void a_win_must_exceed_margin_and_interval(void) {
    verdict_facts f = product(95);
    f.best_us = 98, f.ratio = 0.98001; /* just within the margin: no win */
    wants(&f, "NONE", "NONE", false);
    f.ratio = 0.979;
    wants(&f, "LIBRARY_TUNE", "MEDIUM", false);
    f.ratio_ci = 0.002; /* 2.1 +- 0.2 %: touches */
    wants(&f, "NONE", "NONE", true);
    UNIT_CHECK(judge(&f).proven_gain_us == 0);
    f.ratio = 0.981;
    wants(&f, "NONE", "NONE", true);
    f.ratio = 0.95, f.ratio_ci = 0.06; /* the interval is wider than the win */
    wants(&f, "NONE", "NONE", true);
    f.ratio = 1.05, f.ratio_ci = 0; /* slower */
    wants(&f, "NONE", "NONE", false);
}

/* Its bytes take a hundredth of its time, and what else it must do is not known. */
static void bound_by_data_has_no_potential(void) {
    verdict_facts f = product(1);
    f.bound = "data";
    wants(&f, "NONE", "NONE", false);
    UNIT_CHECK(judge(&f).potential_gain_us == 0 && isnan(judge(&f).efficiency));
    UNIT_CHECK(strstr(judge(&f).recommendation, "depends on its data") != NULL);
    f.best_us = 70, f.ratio = 0.7, f.best_name = "own", f.best_family = "CUSTOM_KERNEL";
    wants(&f, "CUSTOM_KERNEL", "HIGH", false);
    UNIT_CHECK(fabs(judge(&f).proven_gain_us - 30) < 1e-9);
}

static void bound_by_launch_has_no_potential(void) {
    verdict_facts f = product(50);
    f.bound = "launch";
    wants(&f, "NONE", "NONE", false);
    UNIT_CHECK(judge(&f).potential_gain_us == 0);
    f.best_us = 70, f.ratio = 0.7, f.best_name = "own", f.best_family = "CUSTOM_KERNEL";
    wants(&f, "CUSTOM_KERNEL", "NONE", false); /* what was gained stays visible */
    UNIT_CHECK(fabs(judge(&f).proven_gain_us - 30) < 1e-9);
    UNIT_CHECK(strstr(judge(&f).recommendation, "Bound by launching: own takes 30.0 % less time than lib") != NULL);
    f.best_family = "FUSION"; /* only that gives it priority */
    wants(&f, "FUSION", "HIGH", false);
}

static void what_was_not_measured_is_never_none(void) {
    verdict_facts f = product(50);
    f.measured = false;
    wants(&f, "UNMEASURED", "NONE", false);
    f = product(50);
    f.baseline_us = NAN;
    wants(&f, "UNMEASURED", "NONE", false);
    UNIT_CHECK(isnan(judge(&f).efficiency));
    f = product(NAN);
    wants(&f, "UNMEASURED", "NONE", false);
    UNIT_CHECK(strstr(judge(&f).recommendation, "--ceilings") != NULL);
    f = product(0);
    wants(&f, "UNMEASURED", "NONE", false);
    f.ratio = 0.9, f.best_us = 90; /* proven, whatever the ceiling is */
    wants(&f, "LIBRARY_TUNE", "HIGH", false);
    f = product(50);
    f.measured = false, f.best_us = 10, f.best_name = "own";
    wants(&f, "UNMEASURED", "NONE", false);
    UNIT_CHECK(strstr(judge(&f).recommendation, "only own did") != NULL);
    static const char *const advice[][2] = {{"interval", "again while"}, {"clock", "again while"},
                                            {"budget", "--budget"},      {"no_candidate", "no implementation"},
                                            {"type", "No library"},      {"memory", "memory"},
                                            {"samples", "see the rows"}, {NULL, "see the rows"}};
    f = (verdict_facts){.op = "gemm", .count = 1};
    for (size_t k = 0; k < sizeof advice / sizeof advice[0]; k++) {
        f.reason = advice[k][0];
        wants(&f, "UNMEASURED", "NONE", false);
        UNIT_CHECK(strstr(judge(&f).recommendation, advice[k][1]) != NULL);
    }
}

static void no_work_is_no_matter(void) {
    const verdict_facts f = {.op = "move", .no_work = true, .count = 3};
    wants(&f, "NONE", "NONE", false);
}

static void other_kinds(void) {
    verdict_facts f = product(50);
    f.op = "attention";
    wants(&f, "CUSTOM_ATTENTION", "HIGH", false);
    f.op = "norm";
    wants(&f, "CUSTOM_KERNEL", "HIGH", false);
    f.model_us = 1666.6;
    wants(&f, "CUSTOM_KERNEL", "MEDIUM", false);
    f.model_us = 1666.8;
    wants(&f, "NONE", "LOW", false);
    f.model_us = 1666.6, f.baseline_ci = 0.001;
    wants(&f, "NONE", "LOW", true);
    f = product(50);
    f.pattern = "BLOCK_SPARSE";
    wants(&f, "CUSTOM_KERNEL", "HIGH", false);
}

static void a_part_is_in_nobodys_time(void) {
    verdict_facts f = product(50);
    f.count = 0, f.model_us = 0;
    wants(&f, "CUTLASS_SWEEP", "LOW", false);
    UNIT_CHECK(judge(&f).potential_gain_us == 0);
}

static void thresholds_are_options(void) {
    verdict_facts f = product(85);
    verdict_thresholds t = verdict_defaults;
    t.ceiling = 0.8;
    UNIT_TEXT(verdict_of(&f, &t).approach, "NONE");
    t = verdict_defaults;
    t.high_potential = 0.5;
    UNIT_TEXT(verdict_of(&f, &t).priority, "MEDIUM");
}

static void tiles_fit_the_shape(void) {
    verdict_facts f = product(50);
    verdict_tile tiles[VERDICT_TILES];
    f.shape[0] = f.shape[1] = 8192;
    UNIT_INT(verdict_tiles(&f, tiles), VERDICT_TILES);
    UNIT_CHECK(tiles[0].m * tiles[0].n == 256 * 128);
    UNIT_CHECK(strstr(judge(&f).recommendation, "256x128x64") != NULL);
    UNIT_CHECK(strstr(judge(&f).recommendation, "K split") == NULL);
    f.shape[0] = 16; /* nothing of a block of 128 rows would be used */
    UNIT_INT(verdict_tiles(&f, tiles), VERDICT_TILES);
    UNIT_INT(tiles[0].m, 16);
    f.shape[0] = 128, f.shape[1] = 128;
    UNIT_CHECK(strstr(judge(&f).recommendation, "with K split") != NULL);
    f.shape[0] = 0;
    UNIT_INT(verdict_tiles(&f, tiles), 0);
    UNIT_CHECK(judge(&f).recommendation[0] != 0);
}

/* The parts are the baseline: nothing else is to be done about them here. */
static void what_could_run_as_one(void) {
    verdict_facts f = product(50);
    f.fusion = true;
    f.best_family = "FUSION";
    wants(&f, "NONE", "NONE", false);
    UNIT_CHECK(strstr(judge(&f).recommendation, "Do not fuse them") != NULL);
    f.rival_ratio = 1.3, f.rival_ratio_ci = 0.01;
    UNIT_CHECK(strstr(judge(&f).recommendation, "1.30 times") != NULL);
    f.rival_ratio = 0.47, f.rival_ratio_ci = INFINITY; /* of one pass */
    wants(&f, "NONE", "NONE", false);
    UNIT_CHECK(strstr(judge(&f).recommendation, "Do not") == NULL);
    UNIT_CHECK(strstr(judge(&f).recommendation, "Not decided: the fused operation took 0.47 times") != NULL);
    f.rival_ratio = 0.996, f.rival_ratio_ci = 0.001;
    UNIT_CHECK(strstr(judge(&f).recommendation, "Do not fuse them: the fused operation takes 0.4 % less time") != NULL);
    f.rival_ratio_ci = 0.01;
    UNIT_CHECK(strstr(judge(&f).recommendation, "Not decided") != NULL);
    f.ratio = 0.7, f.ratio_ci = 0.01;
    wants(&f, "FUSION", "HIGH", false);
    f.measured = false; /* the parts did not run */
    wants(&f, "UNMEASURED", "NONE", false);
}

int main(void) {
    UNIT_RUN(every_threshold_on_both_sides);
    UNIT_RUN(the_models_time_has_an_interval);
    UNIT_RUN(a_rival_at_the_margin_is_told);
    UNIT_RUN(two_approaches_that_win_alike);
    UNIT_RUN(without_cutlass_nothing_is_swept);
    UNIT_RUN(potential_follows_the_models_time);
    UNIT_RUN(an_interval_at_a_priority_takes_the_lower_one);
    UNIT_RUN(a_proven_gain_comes_first);
    UNIT_RUN(a_proven_gain_follows_the_models_time);
    UNIT_RUN(a_win_must_exceed_margin_and_interval);
    UNIT_RUN(bound_by_data_has_no_potential);
    UNIT_RUN(bound_by_launch_has_no_potential);
    UNIT_RUN(what_was_not_measured_is_never_none);
    UNIT_RUN(what_could_run_as_one);
    UNIT_RUN(no_work_is_no_matter);
    UNIT_RUN(other_kinds);
    UNIT_RUN(a_part_is_in_nobodys_time);
    UNIT_RUN(thresholds_are_options);
    UNIT_RUN(tiles_fit_the_shape);
    return unit_end();
}
